"""What the host makes for a device is made in the device's memory from the start, where the host reaches that."""

from __future__ import annotations

from typing import Any

from devscope.lowering.interop.bindings import ir
from devscope.lowering.memory.aliases import Owned
from devscope.lowering.memory.conflicts import used_after_write, uses_around
from devscope.lowering.memory.effects import FILLED, PUBLISH, VIEW
from devscope.lowering.memory.timeline import Step, Timeline
from devscope.lowering.mlir_util import Builder

_FREE = "memref.dealloc"


def map_host_write(timeline: Timeline, made: dict[Any, Step], copy: Step, source: Owned, target: Owned) -> bool:
    """Replace a buffer of the host that ``copy`` copies to a device, both allocated, by a view of the copy.

    The buffer must be for this one run of the block that has the copy, and must not change after the copy: the
    device reads it later. ``made`` has the operation of each value.
    """
    begin = _begin(copy, source)
    if begin is None:
        return False
    filled, used = uses_around(source, copy), uses_around(target, copy)
    if any(use.step is None for use in filled) or any(u.step is None or u.step.begin < copy.begin for u in used):
        return False
    after = [use for use in filled if use.step is not None and use.step.begin > copy.begin]
    if any(use.writes for use in after) or used_after_write(after, used):
        return False
    last = max([copy, *(use.step for use in [*after, *used] if use.step is not None)], key=lambda step: step.begin)
    _replace(timeline, made, copy, source, target, begin, last)
    return True


def _begin(copy: Step, source: Owned) -> Step | None:
    """Where the buffer of the host begins to be used in the block of the copy; None if it has contents by then."""
    if source.made.block == copy.block:
        return source.made
    # It is allocated outside of the loop.
    steps = [use.enclosing(copy.block, copy.parent) for use in source.uses]
    first = min((step for step in steps if step is not None), key=lambda step: step.begin)
    return first if first is not copy and _fills(first, source.value) else None


def _fills(step: Step, buffer: Any) -> bool:
    """Whether an operation writes all of a buffer, without reading it."""
    if step.operands[-1:] != [buffer] or buffer in step.operands[:-1]:
        return False
    if step.name in ("linalg.fill", "memref.copy"):
        return True
    if step.name != "linalg.generic":
        return False
    output = ir.AffineMapAttr(list(ir.ArrayAttr(step.op.attributes["indexing_maps"]))[-1]).value
    identity = ir.AffineMap.get_identity(ir.MemRefType(buffer.type).rank, step.op.context)
    return output == identity and not list(step.op.regions[0].blocks[0].arguments[-1].uses)


def _replace(
    timeline: Timeline,
    made: dict[Any, Step],
    copy: Step,
    source: Owned,
    target: Owned,
    begin: Step,
    last: Step,
) -> None:
    build = Builder(begin.op)
    old = target.made.op
    alloc = old.clone(ip=ir.InsertionPoint(begin.op))
    for number, size in enumerate(source.made.operands):
        alloc.operands[number] = size
    place = alloc.results[0]
    filled = ir.UnitAttr.get(alloc.context)
    view = build.op(VIEW, [place], [source.value.type], {FILLED: filled})
    done = Builder(copy.op).op(PUBLISH, [view.results[0]])
    free = Builder(last.op).op(_FREE, [place])
    free.move_after(done if last is copy else last.op)
    for owned, value in ((source, view.results[0]), (target, place)):
        owned.free.op.erase()
        owned.value.replace_all_uses_with(value)
    for op in (copy.op, source.made.op, old):
        op.erase()
    _update(timeline, made, copy, source, target, begin.begin, last, (alloc, view, done, free))


def _update(
    timeline: Timeline,
    made: dict[Any, Step],
    copy: Step,
    source: Owned,
    target: Owned,
    begin: int,
    last: Step,
    ops: tuple[Any, Any, Any, Any],
) -> None:
    """What the timeline says of the new operations. They take the steps of those that are gone."""
    alloc, view, done, free = ops
    place, seen = alloc.results[0], view.results[0]
    viewed = Step(view, VIEW, copy.parent, copy.block, begin, begin, copy.in_loop, [place], [seen])
    for owned, value in ((source, seen), (target, place)):
        users = timeline.users.pop(owned.value)
        timeline.users[value] = [step for step in users if step is not owned.free]
        for step in users:
            step.operands = [value if operand == owned.value else operand for operand in step.operands]
    timeline.users[place] = [viewed, *(step for step in timeline.users[place] if step is not copy), target.free]
    copy.op, copy.name, copy.operands = done, PUBLISH, [seen]
    _move(target.made, alloc, copy, begin)
    target.made.operands, target.made.results = list(alloc.operands), [place]
    _move(target.free, free, copy, last.end)
    target.free.operands = [place]
    source.made.name = source.free.name = ""
    made[place], made[seen] = target.made, viewed


def _move(step: Step, op: Any, copy: Step, moment: int) -> None:
    step.op, step.parent, step.block, step.begin, step.end = op, copy.parent, copy.block, moment, moment
