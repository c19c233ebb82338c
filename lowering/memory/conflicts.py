"""Whether two buffers with the same contents may be one: neither is written while the other one is still used."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from devscope.lowering.memory.aliases import uses_of
from devscope.lowering.memory.effects import Effect, effect_of
from devscope.lowering.memory.timeline import Step, Timeline

_FREE = "memref.dealloc"


@dataclass
class Owned:
    """A buffer that is freed once, by its own value. ``uses``: all but that; ``aliases``: the values for it."""

    value: Any
    made: Step
    free: Step
    uses: list[Step]
    aliases: set[Any]


@dataclass
class Use:
    """An operation that uses a buffer. ``step``: the one in a certain block that is or contains it, None for an
    operation outside of that block."""

    step: Step | None
    effect: Effect

    @property
    def writes(self) -> bool:
        return self.effect is Effect.WRITE


def owned(timeline: Timeline, value: Any, made: Step) -> Owned | None:
    """The buffer ``value`` that ``made`` makes; None if it escapes, or is freed otherwise."""
    found = uses_of(timeline, value)
    if found is None:
        return None
    uses, aliases = found
    frees = [use for use in uses if use.name == _FREE]
    if len(frees) != 1 or frees[0].operands[0] != value:
        return None
    return Owned(value, made, frees[0], [use for use in uses if use is not frees[0]], aliases)


def uses_around(buffer: Owned, copy: Step) -> list[Use]:
    """What uses a buffer besides ``copy``, seen from the block that has the copy."""
    found: list[Use] = []
    for use in buffer.uses:
        if use is not copy:
            values = [value for value in use.operands if value in buffer.aliases]
            effects = [effect_of(use.name, use.op, use.operands, value) for value in values]
            strongest = max(effects, key=lambda effect: effect.value, default=Effect.NOTHING)
            found.append(Use(use.enclosing(copy.block, copy.parent), strongest))
    return found


def used_after_write(uses: Iterable[Use], others: Iterable[Use]) -> bool:
    """Whether one of ``uses`` comes after, or together with, one of ``others`` that writes."""
    writes = [use.step.begin for use in others if use.step is not None and use.writes]
    if not writes:
        return False
    return any(u.step is not None and u.effect is not Effect.NOTHING and u.step.begin >= min(writes) for u in uses)
