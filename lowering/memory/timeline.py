"""The operations of a function in the order in which they run, and which values each one uses.

Every operation has two moments, its begin and its end; what is nested in it lies between. A loop is passed through
once: what lives across an iteration is used outside of it or carried, and then lives as long as the loop.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from devscope.dialects.op_facts import LOOPS, Control, facts
from devscope.lowering import mlir_util

_LOOPS = LOOPS | {Control.PARALLEL}


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
        step.name, step.operands, step.results = "", [], []

    def replace(self, step: Step, op: Any) -> None:
        """Erase an operation, whose results nobody uses, and let its step stand for ``op``."""
        self.remove(step)
        step.op, step.name, step.operands, step.results = op, op.name, list(op.operands), list(op.results)
        self._enter(step)
