"""The buffers of a function whose lifetime is known: allocated and freed in one block, whatever happens."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.memory.aliases import owned
from devscope.lowering.memory.effects import FILLED, VIEW
from devscope.lowering.memory.timeline import Step, Timeline

_ACROSS = frozenset({"memref.copy", VIEW})


@dataclass(eq=False)
class Buffer:
    """``users``: the operations of the block it is allocated in that use it, in order, without ``free``.

    ``aliases``: the values for its memory. ``first`` and ``last`` are moments of the timeline. ``keeps_storage``:
    it is copied to or from another memory, or viewed from there, in a loop, where the copies of one iteration may
    go on while the next one computes; or the host makes it, and other memory if the device is not done with that;
    or it is used by several devices, where the order of one device's work does not say when it is not needed any
    more.
    """

    alloc: Step
    free: Step
    users: list[Step]
    aliases: set[Any]
    keeps_storage: bool

    @property
    def value(self) -> Any:
        return self.alloc.results[0]

    @property
    def space(self) -> str:
        return space_text(self.value)

    @property
    def first(self) -> int:
        return self.users[0].begin

    @property
    def last(self) -> int:
        return self.users[-1].end

    @property
    def bytes(self) -> int | None:
        """None if the size is known at run time only."""
        return static_bytes(self.value.type)


def space_text(buffer: Any) -> str:
    """The memory that a value is in: the text of its memory space, "" for the host's."""
    space = mlir_util.memory_space(buffer.type)
    return "" if space is None else str(space)


def static_bytes(type_: Any) -> int | None:
    memref = ir.MemRefType(type_)
    if not memref.has_static_shape:
        return None
    return math.prod(memref.shape) * mlir_util.element_bytes(memref.element_type)


def has_plain_type(alloc: Any) -> bool:
    """Whether the buffer is dense, and the size of its elements known here."""
    type_ = ir.MemRefType(alloc.results[0].type)
    element = type_.element_type
    return isinstance(element, ir.IntegerType | ir.FloatType | ir.IndexType) and mlir_util.is_whole_buffer(type_)


def find_buffers(timeline: Timeline, in_loop: bool) -> list[Buffer]:
    """The buffers of a function without branches; ``in_loop``: it is called in a loop."""
    if timeline.has_branches:
        return []
    found = (_buffer(timeline, step, in_loop) for step in timeline.steps if step.name == "memref.alloc")
    return [buffer for buffer in found if buffer is not None]


def _buffer(timeline: Timeline, alloc: Step, in_loop: bool) -> Buffer | None:
    if not has_plain_type(alloc.op):
        return None
    found = owned(timeline, alloc.results[0], alloc)
    if found is None:
        return None
    free = found.free
    if free.parent is not alloc.parent or free.block != alloc.block:
        return None
    users: dict[Step, None] = {}
    for use in found.uses:
        step = use.enclosing(alloc.block, alloc.parent)
        if step is None or step.begin > free.begin:
            return None
        users[step] = None
    keeps = any(use.name in _ACROSS and _needs_storage(use, in_loop) for use in found.uses)
    return Buffer(alloc, free, sorted(users, key=lambda step: step.begin), found.aliases, keeps)


def _needs_storage(copy: Step, in_loop: bool) -> bool:
    if FILLED in copy.op.attributes:
        return True
    source, target = (space_text(value) for value in (*copy.operands, *copy.results))
    return source != target and (in_loop or copy.in_loop or bool(source and target))
