"""The values through which the memory of a buffer can be reached, and the operations that use them."""

from __future__ import annotations

from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.memory.timeline import Step, Timeline

#: What gives a buffer to somebody who may keep it, or turns it into a number that can be compared.
_ESCAPES = frozenset({"func.return", "func.call_indirect", "memref.extract_aligned_pointer_as_index"})
_YIELDS = frozenset({"scf.condition", "scf.yield"})


def uses_of(timeline: Timeline, buffer: Any) -> tuple[list[Step], set[Any]] | None:
    """All steps that use the memory of ``buffer``, the result of an allocation, and the values for it.

    None if it escapes. What an operation makes out of buffers is taken for the same memory, but what a call
    returns is not: functions return new memory.
    """
    found: dict[Step, None] = {}
    seen = {buffer}
    work = [buffer]
    while work:
        for step in timeline.users.get(work.pop(), ()):
            if step.name in _ESCAPES:
                return None
            found[step] = None
            for alias in _aliases(step):
                if alias not in seen:
                    seen.add(alias)
                    work.append(alias)
    return list(found), seen


def _aliases(step: Step) -> list[Any]:
    if step.name == "func.call":
        return []
    aliases = [result for result in step.results if mlir_util.is_memref(result.type)]
    around = step.parent if step.name in _YIELDS else step
    if around is not None and len(around.op.regions):
        aliases += [result for result in around.results if mlir_util.is_memref(result.type)]
        for block in mlir_util.blocks_of(around.op):
            aliases += [argument for argument in block.arguments if mlir_util.is_memref(argument.type)]
    return aliases
