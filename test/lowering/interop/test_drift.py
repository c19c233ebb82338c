"""Operations that xDSL's definitions refuse become unregistered, and only they."""

from __future__ import annotations

import sys

import pytest
from xdsl.dialects.arith import AddfOp
from xdsl.dialects.builtin import UnregisteredOp
from xdsl.dialects.func import FuncOp

from devscope.dialects.names import op_name
from devscope.lowering.interop.bindings import ir


def by_name(imported, name):
    return [op for op in imported.walk() if op_name(op) == name]


GPU = """func.func @f(%n: index) {
  gpu.launch blocks(%a, %b, %c) in (%d = %n, %e = %n, %g = %n) threads(%h, %i, %j) in (%k = %n, %l = %n, %m = %n) {
    %0 = arith.constant 1.0 : f32
    %1 = arith.addf %0, %0 : f32
    gpu.terminator
  }
  return
}"""


def test_a_refused_operation_is_unregistered_in_place(session):
    imported = session.to_xdsl(session.parse(GPU))
    imported.verify()
    (launch,) = by_name(imported, "gpu.launch")
    assert isinstance(launch, UnregisteredOp)
    assert not launch.properties
    assert "operandSegmentSizes" in launch.attributes
    (function,) = by_name(imported, "func.func")
    assert isinstance(function, FuncOp)
    assert launch.operands[0] is function.body.block.args[0]
    (addf,) = by_name(imported, "arith.addf")
    assert isinstance(addf, AddfOp)


def test_what_was_found_holds_for_later_imports(session):
    for _ in range(2):
        (launch,) = by_name(session.to_xdsl(session.parse(GPU)), "gpu.launch")
        assert isinstance(launch, UnregisteredOp)


def test_refused_below_python_s_stack(session):
    depth = 2 * sys.getrecursionlimit()
    module = session.parse(GPU)
    (function,) = module.body.operations
    (launch,) = (op for op in function.regions[0].blocks[0].operations if op.operation.name == "gpu.launch")
    for _ in range(depth):
        point = ir.InsertionPoint(launch)
        outer = ir.Operation.create("scf.execute_region", regions=1, loc=module.operation.location, ip=point)
        outer.regions[0].blocks.append().append(launch)
    block = session.to_xdsl(module).body.block.first_op.regions[0].block
    for _ in range(depth):
        block = block.first_op.regions[0].block
    assert isinstance(block.first_op, UnregisteredOp)
    assert op_name(block.first_op) == "gpu.launch"


@pytest.mark.parametrize("types", [("f32", "!quant.uniform<i8:f32, 0.5>")])
def test_only_the_refused_shape_is_unregistered(session, types):
    plain, quantised = (f"tensor<4x{type}>" for type in types)
    text = f"""func.func @f(%a: {plain}, %b: {quantised}) {{
      %0 = tensor.extract_slice %a[0] [2] [1] : {plain} to tensor<2x{types[0]}>
      %1 = tensor.extract_slice %b[0] [2] [1] : {quantised} to tensor<2x{types[1]}>
      return
    }}"""
    imported = session.to_xdsl(session.parse(text))
    imported.verify()
    first, _ = by_name(imported, "tensor.extract_slice")
    assert not isinstance(first, UnregisteredOp)


def test_properties_that_xdsl_lacks_are_attributes(session):
    text = "func.func @f(%x: f32) {\n  %0 = arith.truncf %x to_nearest_even : f32 to bf16\n  return\n}"
    imported = session.to_xdsl(session.parse(text))
    (truncf,) = by_name(imported, "arith.truncf")
    assert not isinstance(truncf, UnregisteredOp)
    assert "roundingmode" in truncf.attributes
    imported.verify()
