"""Reads and writes of vectors, and their masks, piece by piece."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels.vector_piece_ops import (
    SIGNED_GREATER,
    as_vector,
    compare,
    extract_element,
    is_vector,
    one_element,
)
from devscope.lowering.mlir_util import Builder

if TYPE_CHECKING:
    from devscope.lowering.kernels.vector_pieces import Splitter


def load(splitter: Splitter, build: Builder, op: Any) -> list[Any]:
    buffer, *at = list(op.operands)
    made: list[Any] = []
    for (begin, size), type_ in splitter.parts_of_result(op):
        name = "vector.load" if size > 1 else "memref.load"
        made.append(build.value(name, [buffer, *_behind(build, at, begin)], type_))
    return made


def store(splitter: Splitter, build: Builder, op: Any) -> list[Any]:
    value, buffer, *at = list(op.operands)
    for (begin, size), piece in zip(splitter.parts(value.type), splitter.of(value), strict=True):
        name = "vector.store" if size > 1 else "memref.store"
        bytes_ = size * mlir_util.element_bytes(ir.VectorType(value.type).element_type)
        build.op(name, [piece, buffer, *_behind(build, at, begin)], attributes=_hints(op, bytes_))
    return []


def read(splitter: Splitter, build: Builder, op: Any) -> list[Any]:
    (buffer,), at, padding, _ = mlir_util.operand_groups(op)
    axis = _axis(op)
    made: list[Any] = []
    for (begin, _), type_ in splitter.parts_of_result(op):
        vector = type_ if isinstance(type_, ir.VectorType) else one_element(type_)
        groups = [[buffer], _behind(build, at, begin, axis), padding, []]
        read = build.grouped(op.name, groups, [vector], dict(op.attributes.items())).results[0]
        made.append(read if vector == type_ else extract_element(build, read, 0))
    return made


def write(splitter: Splitter, build: Builder, op: Any) -> list[Any]:
    (value,), (buffer,), at, _ = mlir_util.operand_groups(op)
    axis = _axis(op)
    for (begin, _), piece in zip(splitter.parts(value.type), splitter.of(value), strict=True):
        vector = as_vector(build, piece)
        groups = [[vector], [buffer], _behind(build, at, begin, axis), []]
        build.grouped(op.name, groups, [], dict(op.attributes.items()))
    return []


def create_mask(splitter: Splitter, build: Builder, op: Any) -> list[Any]:
    made: list[Any] = []
    for (begin, size), type_ in splitter.parts_of_result(op):
        end = build.value("arith.subi", [op.operands[0], build.constant(begin)], build.index)
        if size == 1:
            made.append(compare(build, SIGNED_GREATER, end, build.constant(0)))
        else:
            made.append(build.value(op.name, [end], type_))
    return made


def constant_mask(splitter: Splitter, build: Builder, op: Any) -> list[Any]:
    (end,) = list(ir.DenseI64ArrayAttr(op.attributes["mask_dim_sizes"]))
    made: list[Any] = []
    for (begin, size), type_ in splitter.parts_of_result(op):
        lanes = min(max(end - begin, 0), size)
        if size == 1:
            made.append(build.constant(lanes, type_))
        else:
            sizes = {"mask_dim_sizes": ir.DenseI64ArrayAttr.get([lanes], op.context)}
            made.append(build.value(op.name, [], type_, sizes))
    return made


def masked_load(splitter: Splitter, build: Builder, op: Any) -> list[Any]:
    buffer, *at, mask, others = list(op.operands)
    made: list[Any] = []
    pieces = zip(splitter.parts(others.type), splitter.of(mask), splitter.of(others), strict=True)
    for (begin, _), flags, other in pieces:
        vectors = [as_vector(build, each) for each in (flags, other)]
        read = build.value(op.name, [buffer, *_behind(build, at, begin), *vectors], vectors[1].type)
        made.append(read if is_vector(other) else extract_element(build, read, 0))
    return made


def masked_store(splitter: Splitter, build: Builder, op: Any) -> list[Any]:
    buffer, *at, mask, value = list(op.operands)
    for (begin, _), flags, piece in zip(
        splitter.parts(value.type), splitter.of(mask), splitter.of(value), strict=True
    ):
        vectors = [as_vector(build, each) for each in (flags, piece)]
        build.op(op.name, [buffer, *_behind(build, at, begin), *vectors])
    return []


def gather(splitter: Splitter, build: Builder, op: Any) -> list[Any]:
    buffer, *at, index, mask, others = list(op.operands)
    made: list[Any] = []
    for parts in zip(splitter.of(index), splitter.of(mask), splitter.of(others), strict=True):
        vectors = [as_vector(build, each) for each in parts]
        read = build.value(op.name, [buffer, *at, *vectors], vectors[2].type)
        made.append(read if is_vector(parts[2]) else extract_element(build, read, 0))
    return made


def _hints(op: Any, bytes_: int) -> dict[str, Any]:
    """The attributes of a store, for one of its pieces, of ``bytes_``, all of them powers of two."""
    hints = dict(op.attributes.items())
    if "alignment" in hints:
        known = ir.IntegerAttr(hints["alignment"])
        hints["alignment"] = ir.IntegerAttr.get(known.type, min(known.value, bytes_))
    return hints


def _axis(op: Any) -> int:
    """The axis of the buffer that a vector is read along."""
    (index,) = ir.AffineMapAttr(op.attributes["permutation_map"]).value.results
    return ir.AffineDimExpr(index).position


def _behind(build: Builder, at: Sequence[Any], begin: int, axis: int = -1) -> list[Any]:
    made = list(at)
    if begin:
        made[axis] = build.value("arith.addi", [made[axis], build.constant(begin)], build.index)
    return made
