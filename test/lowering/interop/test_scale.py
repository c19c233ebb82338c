"""Long chains, deep nesting and large constants."""

from __future__ import annotations

import subprocess
import sys

import pytest

from devscope.lowering.interop.bindings import ir
from devscope.lowering.interop.exporter import Exporter

MEMORY_SCRIPT = """
import resource, struct, sys
from devscope.lowering.interop.parsing import parse_file
from devscope.lowering.interop.session import Session
session = Session()
small = session.parse('"a.b"() {a = dense<"0x' + '01FF' * 16 + '"> : tensor<32xi8>} : () -> ()')
session.to_mlir(session.to_xdsl(small))
module = parse_file(sys.argv[1], session.context)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
imported = session.to_xdsl(module)
imported.clone()
str(imported)
session.to_mlir(imported)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
MEBIBYTE = 1024 * 1024


def test_a_long_chain(session, generic_text):
    lines = ["func.func @f(%v0: tensor<8xf32>) -> tensor<8xf32> {"]
    lines += [f"  %v{i + 1} = math.exp %v{i} : tensor<8xf32>" for i in range(5000)]
    module = session.parse("\n".join([*lines, "  return %v5000 : tensor<8xf32>", "}"]))
    imported = session.to_xdsl(module)
    assert generic_text(session.to_mlir(imported)) == generic_text(module)


def test_values_of_an_export_are_dropped_after_their_last_use(session):
    """Each value of the bindings holds an operation of theirs."""
    lines = ["func.func @f(%v0: tensor<8xf32>) -> tensor<8xf32> {"]
    lines += [f"  %v{i + 1} = arith.addf %v{i}, %v0 : tensor<8xf32>" for i in range(200)]
    module = session.parse("\n".join([*lines, "  return %v200 : tensor<8xf32>", "}"]))
    exporter = Exporter(session._bridge, session._hidden)
    exporter.module(session.to_xdsl(module))
    assert len(exporter._values) < 10


def test_nesting_deeper_than_python_s_stack(session):
    depth = 2 * sys.getrecursionlimit()
    module = session.parse("")
    block = module.body
    for _ in range(depth):
        point = ir.InsertionPoint(block)
        outer = ir.Operation.create("scf.execute_region", regions=1, loc=module.operation.location, ip=point)
        block = outer.regions[0].blocks.append()
    exported = session.to_mlir(session.to_xdsl(module), verify=False)
    block = exported.body
    for _ in range(depth):
        (outer,) = block.operations
        assert outer.operation.name == "scf.execute_region"
        (block,) = outer.operation.regions[0].blocks
    assert len(block.operations) == 0


@pytest.mark.parametrize("place", ["arith.constant {}", "arith.constant {{a = [{{b = [{}]}}]}} 0 : i8"])
def test_a_large_constant_never_enters_python(tmp_path, place):
    """20 MiB of elements; the text of them in Python would be 40 MiB, the list of them far more."""
    path = tmp_path / "large.mlir"
    elements = 5 * MEBIBYTE
    data = "01020304" * (elements - 1) + "05060708"
    constant = place.format(f'dense<"0x{data}"> : tensor<{elements}xi32>')
    path.write_text(f"func.func @f() {{\n  %0 = {constant}\n  return\n}}\n")
    command = [sys.executable, "-c", MEMORY_SCRIPT, str(path)]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(result.stdout) < 2 * 1024, "KiB that the process grew by"
