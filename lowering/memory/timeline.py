"""The operations of a function in the order in which they run, and which of them use the memory of a buffer.

Every operation has two moments, its begin and its end; what is nested in it lies between. A loop is passed through
once: what lives across an iteration is used outside of it or carried, and then lives as long as the loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from devscope.dialects.op_facts import LOOPS, Control, facts
from devscope.lowering import mlir_util
from devscope.lowering.memory.effects import Effect, effect_of

_LOOPS = LOOPS | {Control.PARALLEL}
_ADDRESS = "memref.extract_aligned_pointer_as_index"
"""Makes a number of a buffer, which can be compared."""
_YIELDS = frozenset({Control.CONDITION, Control.YIELD})


@dataclass(eq=False)
class Step:
    """An operation of the function. ``block`` tells the blocks of one operation apart."""

    op: Any
    name: str
    parent: Step | None
    block: Any
    begin: int
    end: int = 0
    in_loop: bool = False
    operands: list[Any] = field(default_factory=list[Any])
    results: list[Any] = field(default_factory=list[Any])

    def enclosing(self, block: Any, parent: Step | None) -> Step | None:
        """The step in ``block``, a block of ``parent``, that is or contains this one."""
        step: Step | None = self
        while step is not None and step.parent is not parent:
            step = step.parent
        return step if step is not None and step.block == block else None


class Timeline:
    """``has_branches``: there is control flow between blocks, of which the order of operations says nothing."""

    def __init__(self, func: Any) -> None:
        self.steps: list[Step] = []
        self.made: dict[Any, Step] = {}
        self.users: dict[Any, list[Step]] = {}
        self._aliases: dict[Step, list[Any]] = {}
        self.has_branches = False
        clock = 0
        work: list[tuple[Any, Step | None, Step | None]] = [
            (op, None, None) for op in reversed(mlir_util.children(func))
        ]
        while work:
            op, parent, done = work.pop()
            clock += 1
            if done is not None:
                done.end = clock
                continue
            step = Step(op, op.name, parent, op.block, clock)
            step.in_loop = parent is not None and (parent.in_loop or facts(parent.name).control in _LOOPS)
            step.operands, step.results = list(op.operands), list(op.results)
            self.has_branches |= len(op.successors) > 0
            self.steps.append(step)
            self._enter(step)
            work.append((op, parent, step))
            if len(op.regions):
                work.extend((inner, step, None) for inner in reversed(mlir_util.children(op)))
        self.length = clock + 1

    def _enter(self, step: Step) -> None:
        for value in step.operands:
            self.users.setdefault(value, []).append(step)
        self.made.update(dict.fromkeys(step.results, step))

    def aliases(self, step: Step) -> list[Any]:
        """The values of buffers that may be those that a step uses."""
        if step not in self._aliases:
            self._aliases[step] = list(self._aliases_of(step))
        return self._aliases[step]

    @staticmethod
    def _aliases_of(step: Step) -> Iterator[Any]:
        if step.name == "func.call":
            return
        yield from (result for result in step.results if mlir_util.is_memref(result.type))
        around = step.parent if facts(step.name).control in _YIELDS else step
        if around is not None and len(around.op.regions):
            yield from (result for result in around.results if mlir_util.is_memref(result.type))
            for block in mlir_util.blocks_of(around.op):
                yield from (argument for argument in block.arguments if mlir_util.is_memref(argument.type))

    def rename(self, old: Any, new: Any) -> None:
        """Let all that uses ``old`` use ``new``."""
        old.replace_all_uses_with(new)
        users = self.users.pop(old, [])
        for step in users:
            step.operands = [new if value == old else value for value in step.operands]
        self.users.setdefault(new, []).extend(users)

    def remove(self, step: Step) -> None:
        """Erase an operation, whose results nobody uses."""
        for value in step.operands:
            self.users[value].remove(step)
        step.op.erase()
        self._aliases.clear()
        step.name, step.operands, step.results = "", [], []

    def replace(self, step: Step, op: Any) -> None:
        """Erase an operation, whose results nobody uses, and let its step stand for ``op``."""
        self.remove(step)
        step.op, step.name, step.operands, step.results = op, op.name, list(op.operands), list(op.results)
        self._enter(step)


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
            if facts(step.name).control is Control.RETURN or step.name == _ADDRESS:
                return None  # somebody may keep it
            found[step] = None
            for alias in timeline.aliases(step):
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
