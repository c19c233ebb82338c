"""Results of elementwise operations that go into a part of a larger buffer, as by a concatenation, are made there.

Upstream's ``eliminate-empty-tensors`` does so with the part alone that is put in first: those behind it go into
the result of the insertion before, which does not exist yet where they are computed.
"""

from math import prod
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir

_RUN = 16
"""Elements side by side in a part, at least: of fewer, several rows are computed at once, and then copied."""


_Places = list[tuple[float, float]]
"""The first index and the last one along each axis of a buffer."""
_Users = list[tuple[Any, _Places | None]]
"""What is done to a buffer, and to which places; None where that is no view."""


def place_results(module: Any) -> None:
    users: dict[Any, _Users] = {}  # of each buffer with parts, found once: there may be many parts
    copies: list[Any] = []
    for copy in mlir_util.named(module.operation, "memref.copy"):
        if copy.operands[0] == copy.operands[1]:  # an insertion of what was made there
            copy.erase()
        else:
            copies.append(copy)
    for copy in copies:
        _place(copy, users)


def _place(copy: Any, users: dict[Any, _Users]) -> None:
    alloc = mlir_util.maker(copy.operands[0], "memref.alloc")
    view = mlir_util.maker(copy.operands[1], "memref.subview")
    whole = None if view is None else mlir_util.maker(view.operands[0], "memref.alloc")
    if alloc is None or view is None or whole is None:
        return
    if any(op.block != copy.block for op in (alloc, view, whole)) or len(list(view.results[0].uses)) > 1:
        return
    if mlir_util.memory_space(alloc.results[0].type) != mlir_util.memory_space(whole.results[0].type):
        return
    before = [value for op in (whole, view) for value in op.operands if value != whole.results[0]]
    if not _has_long_rows(view.results[0].type) or not all(_is_known(value, alloc) for value in before):
        return
    writers = [use.owner.operation for use in alloc.results[0].uses if use.owner.operation != copy]
    if not all(_is_elementwise(op, alloc, copy) for op in writers):
        return
    if whole.results[0] not in users:
        users[whole.results[0]] = _users(whole)
    if not _is_apart(view, users[whole.results[0]], copy):
        return
    if not whole.is_before_in_block(alloc):
        whole.move_before(alloc)
    view.move_before(alloc)
    copy.erase()
    mlir_util.replace_op(alloc, view.results)


def _has_long_rows(type_: Any) -> bool:
    memref = ir.MemRefType(type_)
    strides, _ = memref.get_strides_and_offset()
    dynamic = ir.ShapedType.get_dynamic_size()
    run = 1
    for extent, stride in reversed(list(zip(memref.shape, strides, strict=True))):
        if extent != 1 and stride != run:
            break
        if extent == dynamic:
            return True
        run *= extent
    return run >= min(_RUN, prod(memref.shape))


def _is_known(value: Any, op: Any) -> bool:
    """Whether ``value`` is known in front of ``op``."""
    maker = mlir_util.maker(value)
    return maker is None or maker.block != op.block or maker.is_before_in_block(op)


def _is_elementwise(op: Any, alloc: Any, copy: Any) -> bool:
    """Whether ``op``, of those in front of ``copy``, does nothing but write its elements to ``alloc``."""
    if op.block != copy.block or not op.is_before_in_block(copy):
        return False
    if op.name == "linalg.fill":
        return True
    if op.name != "linalg.generic" or "reduction" in str(op.attributes["iterator_types"]):
        return False
    return alloc.results[0] not in mlir_util.operand_groups(op)[0]


def _users(whole: Any) -> _Users:
    ops = [use.owner.operation for use in whole.results[0].uses]
    return [(op, _places(op) if op.name == "memref.subview" else None) for op in ops]


def _is_apart(view: Any, users: _Users, copy: Any) -> bool:
    """Whether what ``users`` do in front of ``copy`` is done to parts that ``view`` has nothing of."""
    own = _places(view)
    for op, places in users:
        if (places is not None and _are_apart(own, places)) or op == view:
            continue
        if op.block != copy.block or not copy.is_before_in_block(op):
            return False
    return True


def _are_apart(one: _Places, other: _Places) -> bool:
    """Whether they are known to have no element in common."""
    return any(a[1] < b[0] or b[1] < a[0] for a, b in zip(one, other, strict=True))


def _places(view: Any) -> _Places:
    """All where they are not known."""
    names = ("static_offsets", "static_sizes", "static_strides")
    dynamic = {ir.ShapedType.get_dynamic_size(), ir.ShapedType.get_dynamic_stride_or_offset()}
    places: _Places = []
    for numbers in zip(*(ir.DenseI64ArrayAttr(view.attributes[name]) for name in names), strict=True):
        offset, size, stride = numbers
        is_known = dynamic.isdisjoint(numbers)
        places.append((offset, offset + (size - 1) * stride) if is_known else (0, float("inf")))
    return places
