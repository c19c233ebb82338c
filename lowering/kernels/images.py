"""What a convolution reads: a buffer, or the part of a padded one that is not padding.

Padding, and the zeros that a transposed convolution puts between elements, reach buffers as a fill and a copy into
a part of what is filled. Kernels read the source of the copy instead, and know what is outside.
"""

from dataclasses import dataclass, field, replace
from itertools import pairwise, takewhile
from typing import Any

from devscope.dialects.op_facts import facts
from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels import subviews
from devscope.lowering.kernels.buffer_users import filled_value
from devscope.lowering.memory.effects import buffer_of, is_new

_FILLS = ("linalg.fill", "linalg.map", "linalg.generic")


@dataclass(frozen=True)
class ImageAxis:
    """Where index ``u`` of an operation is in a buffer: at ``(u - low) / holes`` along axis ``source``.

    ``low``: numbers and values of type index that are added up. ``source``: None where the buffer has one element
    along the axis. ``checked``: whether there are indices that are outside of the buffer.
    """

    source: int | None
    low: tuple[Any, ...] = ()
    holes: int = 1
    checked: bool = False


@dataclass(frozen=True)
class Image:
    """``axes``: of the operand that an operation has. ``outside``: the constant there, MLIR's text; None is any.

    ``unused``: buffers that only what made them uses, if the operation reads ``value``, the latest first.
    """

    value: Any
    axes: tuple[ImageAxis, ...]
    outside: str | None = None
    unused: tuple[Any, ...] = field(default=())


def image_of(op: Any, value: Any) -> Image:
    """What ``op`` reads as ``value``, one of its operands."""
    image = Image(value, tuple(ImageAxis(axis) for axis in range(ir.MemRefType(value.type).rank)))
    while (inner := _without_padding(op, image)) is not None:
        image = inner
    return image


def erase_unused(image: Image) -> None:
    """Once nothing reads the padded buffers of ``image``."""
    for buffer in image.unused:
        _erase(buffer)


def _erase(buffer: Any) -> None:
    for user in [use.owner.operation for use in buffer.uses]:
        if user.name == "bufferization.dealloc":
            memrefs, conditions, retained = mlir_util.operand_groups(user)
            kept = [number for number, memref in enumerate(memrefs) if memref != buffer]
            groups = [[memrefs[number] for number in kept], [conditions[number] for number in kept], retained]
            if kept or retained:
                types = [result.type for result in user.results]
                made = mlir_util.Builder(user).grouped(user.name, groups, types)
                mlir_util.replace_op(user, made.results)
            else:
                user.erase()
            continue
        if len(user.results):
            _erase(user.results[0])
        else:
            user.erase()
    buffer.owner.operation.erase()


def _without_padding(op: Any, image: Image) -> Image | None:
    seen = _through_view(image)
    if seen is None:
        return None
    buffer, axes = seen
    parts = _parts(op, buffer, image.value)
    if parts is None:
        return None
    outside, subview, copy = parts
    if image.outside not in (None, outside) or not _is_unchanged(copy, op):
        return None
    lows, extents, steps = subviews.numbers(subview)
    source = copy.operands[0]
    shape = ir.MemRefType(source.type).shape
    wide = [axis for axis, extent in enumerate(extents) if extent != 1]
    wide_of_source = [axis for axis, extent in enumerate(shape) if extent != 1]
    if len(wide) != len(wide_of_source) or not all(isinstance(step, int) for step in steps):
        return None
    in_source = dict(zip(wide, wide_of_source, strict=True))
    whole = ir.MemRefType(buffer.type).shape
    made: list[ImageAxis] = []
    for before, axis in zip(image.axes, axes, strict=True):
        if axis is None:
            made.append(replace(before, source=None))
            continue
        if before.holes != 1:
            return None
        is_all = (
            lows[axis] == 0
            and extents[axis] == whole[axis]
            and not ir.ShapedType(buffer.type).is_dynamic_dim(axis)
        )
        made.append(
            replace(
                before,
                source=in_source.get(axis),
                low=(*before.low, *([] if lows[axis] == 0 else [lows[axis]])),
                holes=steps[axis],
                checked=before.checked or not is_all,
            )
        )
    outer = set(range(len(whole))) - {axis for axis in axes if axis is not None}
    if any(whole[axis] != 1 or extents[axis] != 1 for axis in outer):
        return None
    return Image(source, tuple(made), outside, (*image.unused, buffer))


def _through_view(image: Image) -> tuple[Any, list[int | None]] | None:
    """The new buffer that ``image.value`` is a view of, without axes of one element, and the axes of it."""
    value = image.value
    if isinstance(value.owner, ir.Block):
        return None
    owner = value.owner.operation
    axes = [axis.source for axis in image.axes]
    if owner.name in ("memref.collapse_shape", "memref.expand_shape"):
        buffer = owner.operands[0]
        collapses = owner.name == "memref.collapse_shape"
        shape = ir.MemRefType((buffer if collapses else value).type).shape
        widest: list[int] = []
        for group in ir.ArrayAttr(owner.attributes["reassociation"]):
            members = [ir.IntegerAttr(axis).value for axis in ir.ArrayAttr(group)]
            wide = [axis for axis in members if shape[axis] != 1]
            if len(wide) > 1:
                return None
            widest.append((wide or members)[0])
        if collapses:
            axes = [None if axis is None else widest[axis] for axis in axes]
        else:
            axes = [widest.index(axis) if axis in widest else None for axis in axes]
        value = buffer
    if isinstance(value.owner, ir.Block) or value.owner.operation.name != "memref.alloc":
        return None
    return value, axes


def _parts(op: Any, buffer: Any, view: Any) -> tuple[str, Any, Any] | None:
    """What fills ``buffer``, a view of a part of it and the copy to there, if only ``op`` uses it, too."""
    users = [use.owner.operation for use in buffer.uses]
    if buffer != view:
        if [use.owner.operation for use in view.uses] != [op]:
            return None
        users = [user for user in users if user != view.owner.operation]
    users = [user for user in users if user != op and user.name != "bufferization.dealloc"]
    views = [user for user in users if user.name == "memref.subview"]
    fills = [user for user in users if user.name in _FILLS]
    if len(users) != 2 or len(views) != 1 or len(fills) != 1 or any(user.block != op.block for user in users):
        return None
    outside = _filled_with(fills[0], buffer)
    uses = [use.owner.operation for use in views[0].results[0].uses]
    if outside is None or len(uses) != 1 or uses[0].name != "memref.copy" or uses[0].block != op.block:
        return None
    if uses[0].operands[1] != views[0].results[0] or not _in_order(fills[0], uses[0], op):
        return None
    return outside, views[0], uses[0]


def _in_order(*ops: Any) -> bool:
    return all(one.is_before_in_block(other) for one, other in pairwise(ops))


def _filled_with(op: Any, buffer: Any) -> str | None:
    """The text of the constant that ``op`` writes everywhere in ``buffer``."""
    if op.operands[len(op.operands) - 1] != buffer:
        return None
    value = filled_value(op)
    constant = None if value is None else mlir_util.maker(value, "arith.constant")
    return None if constant is None else str(constant.attributes["value"])


def _is_unchanged(copy: Any, op: Any) -> bool:
    """Whether the source of ``copy`` has the same elements at ``op``, which comes later in the block."""
    source = buffer_of(copy.operands[0])
    between = takewhile(lambda other: other != op, mlir_util.ops_behind(copy))
    return all(_leaves_alone(other, source) for other in between)


def _leaves_alone(op: Any, buffer: Any) -> bool:
    known = facts(op.name)
    if op.name == "cf.assert" or (
        (known.allocates or known.pure is True or known.view_of is not None) and not list(op.regions)
    ):
        return True
    if op.name.startswith("linalg.") or op.name == "memref.copy":
        roots = [buffer_of(op.operands[len(op.operands) - 1])]
        return all(root != buffer and is_new(root) for root in roots)
    return False
