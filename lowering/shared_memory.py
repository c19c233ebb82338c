"""Copies between memories that both ends reach become views of what would be copied.

Works on the bufferised host code of a whole program, before its memory is planned: a view is another value for the
memory of its source, so that whatever looks at lifetimes finds them. Which memories a device reaches, the machine
description says. A copy stays if either of its buffers is written while the other one is still used, if its target
is returned or carried on, and if it moves a part only. What the host makes for a device is made in the device's
memory from the start.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.copies import is_whole_copy
from devscope.lowering.interop.bindings import ir
from devscope.lowering.memory.buffers import has_plain_type, space_text
from devscope.lowering.memory.effects import END_VIEW, FILLED, PUBLISH, VIEW, WRITTEN
from devscope.lowering.memory.timeline import (
    Owned,
    Step,
    Timeline,
    Use,
    owned,
    used_after_write,
    uses_around,
)
from devscope.lowering.mlir_util import Builder

SlotPair = tuple[int, int]
"""Two slots, the lower one first."""

#: Operations whose result is all of their operand.
_SAME = frozenset({VIEW, "memref.cast", "memref.collapse_shape", "memref.expand_shape"})


def slot_pairs(names: Mapping[int, str], shared: Iterable[frozenset[str]]) -> frozenset[SlotPair]:
    """The pairs of slots whose devices, called ``names``, are among the pairs of ``shared``."""
    slots = {name: slot for slot, name in names.items()}
    found = [sorted(slots[name] for name in pair) for pair in shared if pair <= slots.keys()]
    return frozenset((low, high) for low, high in found)


def share_memory(module: Any, slots: Mapping[str, int], shared: frozenset[SlotPair]) -> list[SlotPair]:
    """Replace what copies of ``module`` can be replaced; returns the pairs of slots that it relies on.

    ``slots`` has the slot of each memory space, "" for the host's.
    """
    used: set[SlotPair] = set()
    if shared:
        for func in mlir_util.functions(module):
            if mlir_util.has_body(func):
                used |= _Function(func, slots, shared).elide()
    return sorted(used)


class _Function:
    def __init__(self, func: Any, slots: Mapping[str, int], shared: frozenset[SlotPair]) -> None:
        self._slots, self._shared = slots, shared
        self._timeline = Timeline(func)
        self._lent: dict[Any, list[Step]] = {}
        """The buffers that other devices view, and where the views are made."""
        self._taken: set[Any] = set()
        """The buffers that the host writes."""

    def elide(self) -> set[SlotPair]:
        used: set[SlotPair] = set()
        if self._timeline.has_branches:
            return used
        for step in self._timeline.steps:
            if step.name == "memref.copy":
                pair = self._pair(step)
                if pair in self._shared and self._elide(step):
                    used.add(pair)
        for buffer, views in self._lent.items():
            for view in views:
                self._end(view, buffer)
        return used

    def _pair(self, copy: Step) -> SlotPair:
        low, high = sorted(self._slots[space_text(value)] for value in self._ends(copy))
        return low, high

    def _ends(self, copy: Step) -> tuple[Any, Any]:
        """What is copied and where to. A device that views a buffer has no view of it to give to another one."""
        source, target = copy.operands
        return self._origin(source, frozenset({VIEW})) if space_text(target) else source, target

    def _origin(self, value: Any, same: frozenset[str]) -> Any:
        """What ``value`` is made of by operations called as in ``same``."""
        while (made := self._timeline.made.get(value)) is not None and made.name in same:
            value = made.operands[0]
        return value

    def _elide(self, copy: Step) -> bool:
        source, target = self._ends(copy)
        put = self._allocated(target)
        if put is None or not _moves_all(copy):
            return False
        if space_text(source) == "":
            filled = self._allocated(source)
            return filled is not None and _map_host_write(self._timeline, copy, filled, put)
        read = self._source_of(source)
        if read is None:
            return False
        after = uses_around(put, copy)
        if any(use.step is None or use.step.begin < copy.begin for use in after):
            return False
        written = any(use.writes for use in after)
        # What writes to the host's view must wait for all who use its source.
        may_write = space_text(target) == "" and read.value not in self._lent
        if _conflict(copy, read, after) or (written and not may_write):
            return False
        if space_text(target):
            if read.value in self._taken:
                return False
            self._lent.setdefault(read.value, []).append(copy)
        elif written:
            self._taken.add(read.value)
        self._replace(copy, put, written)
        _live_on(read, [use for use in put.uses if use is not copy])
        return True

    def _end(self, view: Step, buffer: Any) -> None:
        """Order the uses of a device's view before what changes or frees the buffer.

        Not right after its last use: what only reads the buffer meanwhile need not wait.
        """
        read = self._source_of(buffer)
        assert read is not None
        writes = [use.step for use in uses_around(read, view) if use.writes and use.step is not None]
        writes = [step for step in writes if step.begin > view.begin]
        if writes:
            place = min(writes, key=lambda step: step.begin).op
        elif view.block == read.made.block:
            place = read.free.op
        else:
            assert view.parent is not None
            place = [op for op in mlir_util.children(view.parent.op) if op.block == view.block][-1]
        Builder(place).op(END_VIEW, [view.operands[0], view.results[0]])

    def _source_of(self, value: Any) -> Owned | None:
        """What is copied, all of a buffer that is freed in the block that it is made in."""
        value = self._origin(value, _SAME)
        made = self._timeline.made.get(value)
        # What a call returns is new memory.
        if made is None or made.name not in ("memref.alloc", "func.call"):
            return None
        found = owned(self._timeline, value, made)
        return found if found is not None and found.free.block == made.block else None

    def _allocated(self, value: Any) -> Owned | None:
        made = self._timeline.made.get(value)
        if made is None or made.name != "memref.alloc" or not has_plain_type(made.op):
            return None
        return owned(self._timeline, value, made)

    def _replace(self, copy: Step, put: Owned, written: bool) -> None:
        source, target = self._ends(copy)
        attributes = {WRITTEN: ir.UnitAttr.get(copy.op.context)} if written else {}
        view = Builder(copy.op).op(VIEW, [source], [target.type], attributes)
        self._timeline.remove(put.free)
        self._timeline.rename(target, view.results[0])
        self._timeline.replace(copy, view)
        self._timeline.remove(put.made)


def _moves_all(copy: Step) -> bool:
    source, target = (mlir_util.with_memory_space(value.type, None) for value in copy.operands)
    return is_whole_copy(copy.op) and source == target


def _conflict(copy: Step, read: Owned, after: list[Use]) -> bool:
    """Whether one buffer is written while the other one, which would be the same, is still used.

    ``after``: the uses of the target, all behind the copy in its block.
    """
    others = [use for use in uses_around(read, copy) if use.step is None or use.step.begin > copy.begin]
    if used_after_write(after, others):
        return True
    if not any(use.writes for use in after):
        return False
    # In a loop that the source is from outside of, the next iteration uses it.
    return copy.block != read.made.block or used_after_write(others, after)


def _live_on(read: Owned, uses: list[Step]) -> None:
    """Free the source after the last use of its view."""
    last = read.free
    for use in uses:
        step = use.enclosing(read.made.block, read.made.parent)
        if step is not None and step.begin > last.begin:
            last = step
    if last is not read.free:
        read.free.op.move_after(last.op)
        read.free.begin = read.free.end = last.end


def _map_host_write(timeline: Timeline, copy: Step, source: Owned, target: Owned) -> bool:
    """Replace a buffer of the host that ``copy`` copies to a device, both allocated, by a view of the copy.

    The buffer must be for this one run of the block that has the copy, and must not change after the copy: the
    device reads it later.
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
    _make_in_place(timeline, copy, source, target, begin, last)
    return True


def _make_in_place(timeline: Timeline, copy: Step, source: Owned, target: Owned, begin: Step, last: Step) -> None:
    """The target lives from ``begin`` to ``last``, in the block of the copy; the source is a view of it."""
    build = Builder(begin.op)
    alloc = target.made.op.clone(ip=ir.InsertionPoint(begin.op))
    for number, size in enumerate(source.made.operands):
        alloc.operands[number] = size
    place = alloc.results[0]
    view = build.op(VIEW, [place], [source.value.type], {FILLED: ir.UnitAttr.get(alloc.context)})
    timeline.remove(source.free)
    timeline.rename(source.value, view.results[0])
    timeline.rename(target.value, place)
    timeline.replace(copy, Builder(copy.op).op(PUBLISH, [view.results[0]]))
    free = Builder(last.op).op("memref.dealloc", [place])
    free.move_after(last.op)
    moments = begin.begin, begin.begin, last.end
    steps = source.made, target.made, target.free
    for step, op, moment in zip(steps, (view, alloc, free), moments, strict=True):
        timeline.replace(step, op)
        step.parent, step.block, step.begin, step.end = copy.parent, copy.block, moment, moment


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
