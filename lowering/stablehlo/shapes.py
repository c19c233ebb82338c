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


def expand_dynamic_reshape(op: Any) -> None:
    """The same elements, in a shape that is a value."""
    value, shape = op.operands
    mlir_util.replace_op(op, [Builder(op).value("tensor.reshape", [value, shape], op.results[0].type)])


def know_expansions(op: Any) -> None:
    """Upstream lowers a broadcast whose dimensions it knows to grow or not to.

    One of size 1 grows. Of one whose size is known as the program runs only it is taken for granted that it does
    not, as in what JAX makes of symbolic shapes; that it fits is checked then, as all shapes are.
    """
    type_ = op.operands[0].type
    axes = range(type_.rank)
    expanding = [axis for axis in axes if not type_.is_dynamic_dim(axis) and type_.shape[axis] == 1]
    others = [axis for axis in axes if axis not in expanding]
    op.attributes["known_expanding_dimensions"] = ir.DenseI64ArrayAttr.get(expanding)
    op.attributes["known_nonexpanding_dimensions"] = ir.DenseI64ArrayAttr.get(others)
