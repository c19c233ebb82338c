"""Buffers that take over the memory of another one, the same value from then on.

Two cases. An elementwise operation writes its result over an input that nothing uses later. And a buffer whose
size is known at run time only takes the memory of one that is not used any more, if both sizes are the same
values.
"""

from __future__ import annotations

from typing import Any

from devscope.lowering.memory.buffers import Buffer
from devscope.lowering.memory.elementwise import elementwise_pairs
from devscope.lowering.memory.timeline import Step


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
