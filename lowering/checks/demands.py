"""What operations of input dialects demand of shapes, and what upstream makes of them does not any more."""

from typing import Any

from devscope.dialects.names import SAME_SIZE
from devscope.lowering import mlir_util
from devscope.lowering.checks.assertions import compare
from devscope.lowering.interop.bindings import ir
from devscope.lowering.mlir_util import Builder

JOINED = {"stablehlo.concatenate": "dimension", "tosa.concat": "axis"}
"""Operations that join tensors, with the attribute that says along which dimension."""


def keep_demands(module: Any) -> None:
    """Assert what the operations of ``module`` demand, for `check_shapes`, which words it."""
    for op in mlir_util.walk(module.operation):
        if op.name in JOINED:
            along = ir.IntegerAttr(op.attributes[JOINED[op.name]]).value
            _require_equal_but(op, along)


def _require_equal_but(op: Any, along: int) -> None:
    first, *others = [ir.RankedTensorType(value.type) for value in op.operands]
    for number, type_ in enumerate(others, 1):
        for axis in range(first.rank):
            if axis != along and (first.is_dynamic_dim(axis) or type_.is_dynamic_dim(axis)):
                build = Builder(op)
                pair = [op.operands[0], op.operands[number]]
                sizes = [build.value("tensor.dim", [v, build.constant(axis)], build.index) for v in pair]
                require_same(build, op, sizes, [f"dimension {axis} of operand {n}" for n in (0, number)])


def require_same(build: Builder, op: Any, sizes: list[Any], names: list[str]) -> None:
    """Assert that two sizes, which are called ``names``, are equal."""
    attributes = {
        "msg": ir.StringAttr.get(f"in '{op.name}'", op.context),
        SAME_SIZE: ir.ArrayAttr.get([ir.StringAttr.get(n, op.context) for n in names], op.context),
    }
    build.op("cf.assert", [compare(build, "eq", *sizes)], attributes=attributes)
