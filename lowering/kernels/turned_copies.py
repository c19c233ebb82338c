"""Copies that load each element at a place which goes with the loops, such as a quarter of a turn of an image."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels.nest import Nest, Operand
from devscope.lowering.kernels.tiles import ELEMENTS, LINE


class _Sum(NamedTuple):
    """A number that is ``constant`` more than a sum of loops' indices, each times a factor."""

    factors: Mapping[int, int]
    constant: int

    def plus(self, other: "_Sum", times: int = 1) -> "_Sum":
        loops = {**self.factors, **other.factors}
        factors = {loop: self.factors.get(loop, 0) + times * other.factors.get(loop, 0) for loop in loops}
        constant = self.constant + times * other.constant
        return _Sum({loop: factor for loop, factor in factors.items() if factor}, constant)

    @property
    def is_negative_nowhere(self) -> bool:
        return self.constant >= 0 and all(factor >= 0 for factor in self.factors.values())


class _Place(NamedTuple):
    """Of elements of a buffer: the one of the first iteration, and how far apart those of each loop are."""

    offset: int
    strides: tuple[tuple[int, int], ...]


def turned_copy(op: Any) -> Nest | None:
    """A generic of buffers, of known sizes, that transposes by such loads, as a copy between two views.

    Loops through which what is read goes backwards, element by element, are turned around: then the view of the
    result has a negative stride, which kernels may be called with, but no operation of `memref` or `vector`.
    """
    if len(op.operands) != 1 or not mlir_util.is_memref(op.operands[0].type):
        return None
    *body, end = mlir_util.children(op)
    if len(end.operands) != 1:  # what is there for its assertions only
        return None
    load = end.operands[0].owner
    if isinstance(load, ir.Block) or load.operation.name != "memref.load":
        return None
    if any(len(inner.regions) or not _is_of_index(inner) for inner in body if inner != load.operation):
        return None
    type_ = ir.MemRefType(op.operands[0].type)
    place = _place(load.operation)
    is_whole = mlir_util.is_whole_buffer(type_) and mlir_util.static_bytes(type_) not in (None, 0)
    if place is None or not is_whole or not _is_in_order(op, type_.rank):
        return None
    if mlir_util.is_on_device(op.operands[0]) or str(type_.element_type) not in ELEMENTS:
        return None
    offset, strides = place.offset, [dict(place.strides).get(axis, 0) for axis in range(type_.rank)]
    tile = LINE // mlir_util.element_bytes(type_.element_type)
    inner = [axis for axis, stride in enumerate(strides) if abs(stride) == 1 and type_.shape[axis] >= tile]
    if not inner or type_.shape[-1] < tile or abs(strides[-1]) == 1:
        return None
    to_strides, to_offset = list(type_.get_strides_and_offset()[0]), 0
    for axis, extent in enumerate(type_.shape):
        if strides[axis] == -1:
            offset -= extent - 1
            to_offset += (extent - 1) * to_strides[axis]
            strides[axis], to_strides[axis] = 1, -to_strides[axis]
    loops = tuple(range(type_.rank))
    source = _view(op, load.operation.operands[0], offset, strides, type_)
    target = _view(op, op.operands[0], to_offset, to_strides, type_)
    return Nest(op, [Operand(source, loops), Operand(target, loops)], 1, [True] * type_.rank, True)


def _is_in_order(op: Any, rank: int) -> bool:
    """Whether loop n indexes axis n of the result."""
    if op.name == "linalg.map":
        return True
    map_ = ir.AffineMapAttr(ir.ArrayAttr(op.attributes["indexing_maps"])[0]).value
    return map_ == ir.AffineMap.get_identity(rank, op.context)


def _is_of_index(op: Any) -> bool:
    return op.name == "linalg.index" or op.name.startswith("arith.")


def _view(op: Any, buffer: Any, offset: int, strides: list[int], like: Any) -> Any:
    shape = "x".join(map(str, [*like.shape, like.element_type]))
    type_ = f"memref<{shape}, strided<{strides}, offset: {offset}>>"
    sizes = f"offset: [{offset}], sizes: {list(like.shape)}, strides: {strides}"
    text = f"%view = memref.reinterpret_cast %0 to {sizes} : {buffer.type} to {type_}"
    return mlir_util.insert(op, text, [buffer])[0].result


def _place(load: Any) -> _Place | None:
    buffer, *indices = load.operands
    type_ = ir.MemRefType(buffer.type)
    dynamic = ir.ShapedType.get_dynamic_size()
    strides, offset = type_.get_strides_and_offset()
    known = ir.ShapedType.get_dynamic_stride_or_offset() not in (*strides, offset)
    if mlir_util.is_on_device(buffer) or not known or dynamic in type_.shape or _is_inside(buffer, load):
        return None
    total = _Sum({}, offset)
    for index, stride in zip(indices, strides, strict=True):
        place = _sum(index)
        if place is None:
            return None
        total = total.plus(place, stride)
    return _Place(total.constant, tuple(sorted(total.factors.items())))


def _is_inside(value: Any, load: Any) -> bool:
    owner = value.owner if isinstance(value.owner, ir.Block) else value.owner.operation.block
    return owner == load.block


def _sum(value: Any) -> _Sum | None:
    """None for what is no such number."""
    if isinstance(value.owner, ir.Block):
        return None
    op = value.owner.operation
    if op.name == "linalg.index":
        return _Sum({ir.IntegerAttr(op.attributes["dim"]).value: 1}, 0)
    if op.name == "arith.constant" and isinstance(op.attributes["value"], ir.IntegerAttr):
        return _Sum({}, ir.IntegerAttr(op.attributes["value"]).value)
    if any(str(each.type) not in ("index", "i64") for each in (*op.operands[-1:], value)):
        return None
    if op.name == "arith.index_cast":
        return _sum(op.operands[0])
    if op.name in ("arith.addi", "arith.subi", "arith.muli"):
        left, right = map(_sum, op.operands)
        if left is None or right is None:
            return None
        if op.name == "arith.muli":
            left, right = (left, right) if not right.factors else (right, left)
            return None if right.factors else _Sum({}, 0).plus(left, right.constant)
        return left.plus(right, 1 if op.name == "arith.addi" else -1)
    if op.name == "arith.select" and _is_negative_test(op.operands[0], op.operands[2]):
        return _sum(op.operands[2])
    return None


def _is_negative_test(condition: Any, value: Any) -> bool:
    """Whether ``condition`` says that ``value`` is less than 0, which it is never."""
    if isinstance(condition.owner, ir.Block) or condition.owner.operation.name != "arith.cmpi":
        return False
    op = condition.owner.operation
    zero, number = _sum(op.operands[1]), _sum(value)
    if ir.IntegerAttr(op.attributes["predicate"]).value != _LESS or op.operands[0] != value or zero != _Sum({}, 0):
        return False
    return number is not None and number.is_negative_nowhere


_LESS = 2
"""Signed, as a predicate of ``arith.cmpi``."""
