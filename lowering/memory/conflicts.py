"""Whether two buffers with the same contents may be one: neither is written while the other one is still used."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from devscope.lowering.memory.aliases import Owned
from devscope.lowering.memory.effects import Effect, effect_of
from devscope.lowering.memory.timeline import Step


@dataclass
class Use:
    """An operation that uses a buffer. ``step``: the one in a certain block that is or contains it, None for an
    operation outside of that block."""

    step: Step | None
    effect: Effect

    @property
    def writes(self) -> bool:
        return self.effect is Effect.WRITE


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
