"""The buffers of a function whose lifetime is known: allocated and freed in one block, whatever happens.

Some take over the memory of another one, the same value from then on. An elementwise operation writes its result
over an input that nothing uses later. And a buffer whose size is known at run time only takes the memory of one
that is not used any more, if both sizes are the same values.
"""

from dataclasses import dataclass
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.memory.effects import FILLED, VIEW, elementwise_pairs
from devscope.lowering.memory.timeline import Step, Timeline, owned

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
        return mlir_util.static_bytes(self.value.type)


def space_text(buffer: Any) -> str:
    """The memory that a value is in: the text of its memory space, "" for the host's."""
    space = mlir_util.memory_space(buffer.type)
    return "" if space is None else str(space)


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


def share_buffers(buffers: list[Buffer]) -> list[Buffer]:
    """Merge buffers, and return those that are left, with the lifetimes that they have now."""
    left: list[Buffer] = []
    ending: dict[Step, list[Buffer]] = {}
    for buffer in sorted(buffers, key=lambda buffer: buffer.first):
        owner = _overwritten(buffer, ending.get(buffer.users[0], ())) or _dead(buffer, left)
        if owner is None:
            owner = buffer
            left.append(buffer)
        else:
            ending[owner.users[-1]].remove(owner)
            _merge(owner, buffer)
        ending.setdefault(owner.users[-1], []).append(owner)
    return left


def _overwritten(buffer: Buffer, candidates: Any) -> Buffer | None:
    """The buffer among ``candidates``, last used where ``buffer`` is first used, that it may be written over."""
    if not candidates:
        return None
    step = buffer.users[0]
    pairs = elementwise_pairs(step.op)
    for other in candidates:
        if (other.value, buffer.value) in pairs and _fits(buffer, other):
            others = [value for value in step.op.operands if value not in (other.value, buffer.value)]
            if not any(value in other.aliases or value in buffer.aliases for value in others):
                return other
    return None


def _dead(buffer: Buffer, earlier: list[Buffer]) -> Buffer | None:
    """The buffer of the same dynamic size that was used last, of those not used any more."""
    if buffer.bytes is not None:
        return None
    dead = [other for other in earlier if other.last < buffer.first and _fits(buffer, other)]
    return max(dead, key=lambda other: other.last, default=None)


def _fits(buffer: Buffer, other: Buffer) -> bool:
    return (
        buffer.value.type == other.value.type
        and buffer.alloc.operands == other.alloc.operands
        and buffer.alloc.block == other.alloc.block
        and not (buffer.keeps_storage or other.keeps_storage)
    )


def _merge(owner: Buffer, buffer: Buffer) -> None:
    aliases = buffer.aliases - {buffer.value}
    buffer.value.replace_all_uses_with(owner.value)
    buffer.alloc.op.erase()
    owner.free.op.erase()
    owner.free = buffer.free
    owner.users += [step for step in buffer.users if step is not owner.users[-1]]
    owner.aliases |= aliases
