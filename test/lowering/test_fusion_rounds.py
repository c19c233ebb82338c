"""Elementwise operations in a row: all become one, and bodies that are copied on the way stay short."""

import numpy as np
import pytest

import devscope
from devscope.lowering.fusion_rounds import fuse
from devscope.lowering.interop.bindings import ir, walk
from devscope.lowering.interop.session import Session

COUNT = 600
KINDS = ("addf", "mulf", "subf")


def chain(type_: str, squares: bool) -> str:
    lines = [f"func.func @main(%v: {type_}, %w: {type_}) -> {type_} {{"]
    last = "%v"
    for n in range(COUNT):
        other = last if squares and n % 7 == 1 else "%w"
        lines.append(f"  %{n} = arith.{KINDS[n % 3]} {last}, {other} : {type_}")
        last = f"%{n}"
    return "\n".join([*lines, f"  return {last} : {type_}", "}"])


@pytest.mark.parametrize("squares", [False, True])
@pytest.mark.parametrize("type_", ["tensor<4x8xf32>", "tensor<?x?xf32>"])
def test_rounds(type_: str, squares: bool) -> None:
    session = Session()
    module = session.parse(chain(type_, squares))
    longest: list[int] = []

    def run_passes(op: ir.Operation, text: str) -> None:
        session.run_passes(op, text)
        generics = [op for op in walk(module.operation) if op.name == "linalg.generic"]
        longest.append(max(len(walk(generic)) for generic in generics))

    fuse(module, run_passes)
    assert longest[-1] >= COUNT
    assert longest[-2] <= COUNT // 4
    assert sum(op.name == "linalg.generic" for op in walk(module.operation)) == 1


@pytest.mark.parametrize("target", ["cpu:0", "opencl:0"])
@pytest.mark.parametrize("type_", ["tensor<4x8xf32>", "tensor<?x?xf32>"])
def test_values(type_: str, target: str) -> None:
    x, w = (np.random.default_rng(n).uniform(-1, 1, (4, 8)).astype(np.float32) for n in range(2))
    expected = x
    for n in range(COUNT):
        other = expected if n % 7 == 1 else w
        expected = (np.add, np.multiply, np.subtract)[n % 3](expected, other)
    np.testing.assert_array_equal(devscope.compile(chain(type_, True), default=target)(x, w), expected)
