"""The values through which the memory of a buffer can be reached, and the operations that use them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from devscope.dialects.op_facts import Control, facts
from devscope.lowering import mlir_util
from devscope.lowering.memory.timeline import Step, Timeline

_KEEPS = frozenset({Control.RETURN, Control.CALL_INDIRECT})
"""What gives a buffer to somebody who may keep it."""
_ADDRESS = "memref.extract_aligned_pointer_as_index"
"""Makes a number of a buffer, which can be compared."""
_YIELDS = frozenset({Control.CONDITION, Control.YIELD})


@dataclass
class Owned:
    """A buffer that is freed once, by its own value. ``uses``: all but that; ``aliases``: the values for it."""

    value: Any
    made: Step
    free: Step
    uses: list[Step]
    aliases: set[Any]


def _uses_of(timeline: Timeline, buffer: Any) -> tuple[list[Step], set[Any]] | None:
    """All steps that use the memory of ``buffer``, the result of an allocation, and the values for it.

    None if it escapes. What an operation makes out of buffers is taken for the same memory, but what a call
    returns is not: functions return new memory.
    """
    found: dict[Step, None] = {}
    seen = {buffer}
    work = [buffer]
    while work:
        for step in timeline.users.get(work.pop(), ()):
            if facts(step.name).control in _KEEPS or step.name == _ADDRESS:
                return None
            found[step] = None
            for alias in _aliases(step):
                if alias not in seen:
                    seen.add(alias)
                    work.append(alias)
    return list(found), seen


def owned(timeline: Timeline, value: Any, made: Step) -> Owned | None:
    """The buffer ``value`` that ``made`` makes; None if it escapes, or is freed otherwise."""
    found = _uses_of(timeline, value)
    if found is None:
        return None
    uses, aliases = found
    frees = [use for use in uses if facts(use.name).frees]
    if len(frees) != 1 or frees[0].operands[0] != value:
        return None
    return Owned(value, made, frees[0], [use for use in uses if use is not frees[0]], aliases)


def _aliases(step: Step) -> list[Any]:
    if step.name == "func.call":
        return []
    aliases = [result for result in step.results if mlir_util.is_memref(result.type)]
    around = step.parent if facts(step.name).control in _YIELDS else step
    if around is not None and len(around.op.regions):
        aliases += [result for result in around.results if mlir_util.is_memref(result.type)]
        for block in mlir_util.blocks_of(around.op):
            aliases += [argument for argument in block.arguments if mlir_util.is_memref(argument.type)]
    return aliases
