"""Constants of claimed functions that are operands of their code, behind the others: those that are more than one
number, and those whose number stays in MLIR: NaNs.

They are marked before anybody looks at them, so that all who count operands count the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FunctionType, IntegerAttr, TensorType, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from devscope.analysis.symbols import named_function
from devscope.dialects.names import op_name

PASSED_ATTR = "devscope.passed"
"""Of a constant: which one of them it is."""


def mark_constants(functions: Sequence[FuncOp]) -> None:
    """Mark those of a claimed function, the first of ``functions``. Of merged matches it calls one for each, and
    gives them theirs.
    """
    first, *others = functions
    calls = [op for op in first.body.walk() if others and named_function(op) is not None]
    inner = {named_function(op) for function in others for op in function.body.walk()}
    made: dict[tuple[object, object], SSAValue] = {}
    for callee in others:
        if callee.sym_name.data in inner:
            continue
        given: list[SSAValue] = []
        for constant in _constants(callee):
            key = constant.get_attr_or_prop("value"), constant.results[0].type
            if key not in made:
                copy = constant.clone()
                Rewriter.insert_op(copy, InsertPoint.at_start(first.body.block))
                made[key] = copy.results[0]
            given.append(made[key])
            _pass(callee, [constant], constant.results[0].type)
        for call in [call for call in calls if given and named_function(call) == callee.sym_name.data]:
            call.operands = [*call.operands, *given]
    for number, op in enumerate(_constants(first)):
        op.attributes[PASSED_ATTR] = IntegerAttr(number, i64)


def _constants(function: FuncOp) -> list[Operation]:
    """Those that are no splats."""

    def is_splat(value: Attribute | None) -> bool:
        return isinstance(value, DenseIntOrFPElementsAttr) and len(value) > 0 and value.is_splat()

    found = [op for op in function.body.walk() if op_name(op) in ("arith.constant", "stablehlo.constant")]
    return [
        op
        for op in found
        if isinstance(op.results[0].type, TensorType) and not is_splat(op.get_attr_or_prop("value"))
    ]


def pass_marked(marked: FuncOp, function: FuncOp) -> dict[SSAValue, SSAValue]:
    """What is ``marked`` becomes the last operands of ``function``, a copy of that which passes have seen. Gives
    these operands by the constants.
    """
    passed_on: dict[SSAValue, SSAValue] = {}
    for constant in (op for op in marked.body.walk() if PASSED_ATTR in op.attributes):
        number = constant.attributes[PASSED_ATTR]
        same = [op for op in function.body.walk() if op.attributes.get(PASSED_ATTR) == number]
        passed_on |= dict.fromkeys((op.results[0] for op in same), _pass(function, same, constant.results[0].type))
    return passed_on


def _pass(function: FuncOp, constants: Sequence[Operation], type_: Attribute) -> SSAValue:
    """One more operand, which replaces constants."""
    block = function.body.block
    argument = block.insert_arg(type_, len(block.args))
    for op in constants:
        Rewriter.replace_op(op, [], [argument])
    types = function.function_type
    function.properties["function_type"] = FunctionType.from_lists([*block.arg_types], [*types.outputs])
    function.properties.pop("arg_attrs", None)
    return argument
