"""A split module, broken in ways that no parser lets through: ``device-verify-split`` says where."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from xdsl.dialects import arith, func
from xdsl.dialects.builtin import FunctionType, ModuleOp, SymbolRefAttr, f64
from xdsl.parser import Parser

from devscope.analysis.manager import AnalysisManager
from devscope.dialects.context import make_context
from devscope.errors import VerifyError
from devscope.passes.device_verify_split import DeviceVerifySplitPass

SPLIT = """
func.func private @piece(%x: tensor<4xf32> {device.scope = DEV}, %s: f32)
    -> (tensor<4xf32> {device.scope = DEV})
    attributes {device.scope = DEV, device.target = #device.target<"opencl", {}>} {
  %0 = "math.tanh"(%x) : (tensor<4xf32>) -> tensor<4xf32> loc("m.mlir":2:1)
  func.return %0 : tensor<4xf32>
}
func.func @main(%x: tensor<4xf32> {device.scope = DEV}, %s: f32) -> (tensor<4xf32> {device.scope = DEV})
    attributes {device.scope = CPU, device.target = #device.target<"cpu", {}>} {
  %0 = func.call @piece(%x, %s) : (tensor<4xf32>, f32) -> tensor<4xf32> loc("m.mlir":5:1)
  func.return %0 : tensor<4xf32>
}
"""


def split_module() -> ModuleOp:
    text = SPLIT.replace("DEV", '#device.scope<"opencl", 0 : i64, "", "">')
    return Parser(make_context(), text.replace("CPU", '#device.scope<"cpu", 0 : i64, "", "">')).parse_module()


def function(module: ModuleOp, name: str) -> func.FuncOp:
    return next(op for op in module.ops if isinstance(op, func.FuncOp) and op.sym_name.data == name)


def call(module: ModuleOp) -> func.CallOp:
    return next(op for op in module.walk() if isinstance(op, func.CallOp))


def no_callee(module: ModuleOp) -> None:
    call(module).properties["callee"] = SymbolRefAttr("nobody")


def too_few_arguments(module: ModuleOp) -> None:
    call(module).operands = call(module).operands[:1]


def other_argument(module: ModuleOp) -> None:
    piece = function(module, "piece")
    piece.properties["function_type"] = FunctionType.from_lists(
        [piece.function_type.inputs.data[0], f64], piece.function_type.outputs.data
    )


def no_results(module: ModuleOp) -> None:
    piece = function(module, "piece")
    piece.properties["function_type"] = FunctionType.from_lists(piece.function_type.inputs.data, [])


def value_of_another_function(module: ModuleOp) -> None:
    tanh = function(module, "piece").body.block.first_op
    assert tanh is not None
    tanh.operands[0] = function(module, "main").body.block.args[0]


def detached_value(module: ModuleOp) -> None:
    constant = arith.ConstantOp.from_int_and_width(0, 32)
    call(module).operands[1] = constant.result


BROKEN = [
    (no_callee, "m.mlir:5:1: error: 'nobody' is called, but the module has no such function"),
    (too_few_arguments, "m.mlir:5:1: error: the call of 'piece' has 1 arguments, the function has 2"),
    (other_argument, "m.mlir:5:1: error: argument #1 of the call of 'piece' is f32, not f64"),
    (no_results, "m.mlir:5:1: error: the call of 'piece' has 1 results, the function has 0"),
    (
        value_of_another_function,
        "m.mlir:2:1: error: operand #0 of 'math.tanh' is defined outside of function 'piece'",
    ),
    (detached_value, "m.mlir:5:1: error: operand #1 of 'func.call' is defined outside of function 'main'"),
]


def test_what_is_not_broken() -> None:
    module = split_module()
    before = str(module)
    DeviceVerifySplitPass().run(AnalysisManager(module))
    assert str(module) == before


@pytest.mark.parametrize(("damage", "message"), BROKEN, ids=[damage.__name__ for damage, _ in BROKEN])
def test_broken(damage: Callable[[ModuleOp], None], message: str) -> None:
    module = split_module()
    damage(module)
    with pytest.raises(VerifyError) as caught:
        DeviceVerifySplitPass().run(AnalysisManager(module))
    assert str(caught.value) == message
