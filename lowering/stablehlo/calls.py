"""Calls of what is known by name."""

from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.mlir_util import Builder
from devscope.lowering.stablehlo import matrix_calls
from devscope.lowering.stablehlo.templates import expand
from devscope.lowering.stablehlo.windows import expand_dynamic_reduce_window

_NOTHING = frozenset(
    [
        "Sharding",
        "SPMDFullToShardShape",
        "SPMDShardToFullShape",
        "annotate_device_placement",
        "LayoutConstraint",
        "MoveToHost",
        "MoveToDevice",
        "PinToDevice",
        "xla.sdy.FuncResultSharding",
        "xla.sdy.LocalToGlobalShape",
        "xla.sdy.GlobalToLocalShape",
    ]
)
"""Calls that return what they are given: a program runs on one device of a kind."""


def expand_custom_call(op: Any) -> None:
    name = ir.StringAttr(op.attributes["call_target_name"]).value
    if name in _NOTHING and [v.type for v in op.operands] == [v.type for v in op.results]:
        mlir_util.replace_op(op, list(op.operands))
    elif name == "shape_assertion":
        _assert(op)
    elif name == "stablehlo.dynamic_reduce_window":
        expand_dynamic_reduce_window(op)
    elif name == "devscope.require":
        _require(op)
    elif routine := matrix_calls.routine(name):
        expand(op, routine(op))


def _assert(op: Any) -> None:
    """Of sizes; what the message would say of them is left out."""
    build = Builder(op)
    test = build.value("tensor.extract", [op.operands[0]], ir.IntegerType.get_signless(1, op.context))
    message = (
        ir.StringAttr(op.attributes["error_message"]).value
        if "error_message" in op.attributes
        else "shapes disagree"
    )
    build.op("cf.assert", [test], [], {"msg": ir.StringAttr.get(message, op.context)})
    op.erase()


def _require(op: Any) -> None:
    """The second operand, if the first one is true."""
    build = Builder(op)
    test = build.value("tensor.extract", [op.operands[0]], ir.IntegerType.get_signless(1, op.context))
    message = "a sequence is shorter than the program was compiled for, which all of them are"
    build.op("cf.assert", [test], [], {"msg": ir.StringAttr.get(message, op.context)})
    mlir_util.replace_op(op, [op.operands[1]])


def expand_barrier(op: Any) -> None:
    mlir_util.replace_op(op, list(op.operands))
