"""Shapes as values, and what has no elements."""

from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.mlir_util import Builder


def expand_size(op: Any) -> None:
    """The size of a dimension, as a tensor on the host."""
    type_ = op.results[0].type
    build = Builder(op)
    axis = build.constant(ir.IntegerAttr(op.attributes["dimension"]).value)
    size = build.value("tensor.dim", [op.operands[0], axis], build.index)
    number = build.value("arith.index_cast", [size], ir.RankedTensorType(type_).element_type)
    mlir_util.replace_op(op, [build.value("tensor.from_elements", [number], type_)])


def fold_empty_slice(op: Any) -> None:
    """A slice without elements may begin at an end, which upstream does not lower."""
    type_ = op.results[0].type
    if type_.has_static_shape and 0 in type_.shape:
        mlir_util.replace_op(op, [Builder(op).value("tensor.empty", [], type_)])


def fold_empty_reduce(op: Any) -> None:
    types = [result.type for result in op.results]
    if not list(op.attributes["dimensions"]):
        mlir_util.replace_op(op, list(op.operands)[: len(types)])
        return
    if all(type_.has_static_shape for type_ in types) and 0 in op.operands[0].type.shape:
        build, scalar = Builder(op), {"broadcast_dimensions": ir.DenseI64ArrayAttr.get([])}
        initial = zip(list(op.operands)[len(types) :], types, strict=True)
        values = [build.value("stablehlo.broadcast_in_dim", [v], t, scalar) for v, t in initial]
        mlir_util.replace_op(op, values)
