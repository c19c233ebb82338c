"""How often an operation runs, as far as the program says: counts of copies and reads.

Per call of the public function that it is in; in a private one, for all calls of it by name together, each as
often as it runs.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import NamedTuple

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, Region

from devscope.analysis.dominance import Dominators
from devscope.analysis.loops import Loop, innermost_loop, trip_count
from devscope.analysis.strongly_connected import strongly_connected_components
from devscope.analysis.symbols import callee_name, function_of, is_public
from devscope.dialects.op_facts import Control, facts_of
from devscope.passes.device_plan.system import System


class Repetition(NamedTuple):
    """``times`` altogether, or per iteration of loops and recursions of which the length is not known."""

    times: int = 1
    per_iteration: bool = False
    at_most: bool = False
    """It stands in a branch."""

    @property
    def total(self) -> int | None:
        """How often, at most; None if that is not known."""
        return None if self.per_iteration else self.times

    def __str__(self) -> str:
        """In a word or two; empty for what runs once."""
        many = f"x{self.times:,}" if self.times != 1 or (self.at_most and not self.per_iteration) else ""
        words = ("at most" if self.at_most and many else "", many, "per iteration" if self.per_iteration else "")
        return " ".join(filter(None, words))


ONCE = Repetition()

_COUNTED = 10**12
"""Calls of calls of calls are many soon: more are not counted."""


class Repetitions:
    """Of the operations of a planned module."""

    def __init__(self, systems: Iterable[System]) -> None:
        self._systems = list(systems)
        self._blocks: dict[Block, Repetition] = {}
        self._functions: dict[FuncOp, Repetition] | None = None

    def of(self, op: Operation) -> Repetition:
        """Of an operation that is planned one by one."""
        block = op.parent
        return self._of_block(block) if block is not None else ONCE

    def _of_block(self, block: Block) -> Repetition:
        path: list[Block] = []
        current: Block | None = block
        while current is not None and current not in self._blocks:
            path.append(current)
            parent = current.parent_op()
            current = parent.parent if parent is not None and not isinstance(parent, FuncOp) else None
        found = self._blocks[current] if current is not None else ONCE
        for inner in reversed(path):
            found = self._blocks[inner] = self._inside(inner, found)
        return found

    def _inside(self, block: Block, around: Repetition) -> Repetition:
        """Of what stands in ``block``, where the operation around it has ``around``."""
        times, per_iteration, at_most = around.times, around.per_iteration, around.at_most
        parent, region = block.parent_op(), block.parent
        control = facts_of(parent).control if parent is not None else None
        if isinstance(parent, FuncOp):
            called = self._of_functions().get(parent, ONCE)
            times, per_iteration, at_most = called.times, called.per_iteration, called.at_most
        elif parent is not None and control is Control.COUNTED and (count := trip_count(parent)) is not None:
            times *= count
        elif control in (Control.COUNTED, Control.WHILE):
            per_iteration = True
        at_most |= control is Control.CHOICE and parent is not None and len(parent.regions) > 1
        if region is not None and (graph := self._graphs.get(region)) is not None:
            per_iteration |= bool(graph.loops[block])
            at_most |= block is not region.first_block
        return Repetition(times, per_iteration, at_most)

    def _of_functions(self) -> Mapping[FuncOp, Repetition]:
        """Of the bodies of functions, callers first: a call knows how often its own function runs."""
        if self._functions is not None:
            return self._functions
        found = self._functions = dict[FuncOp, Repetition]()
        functions = {s.op.sym_name.data: s.op for system in self._systems for s in system.signatures.values()}
        sites: dict[FuncOp, list[Operation]] = {function: [] for function in functions.values()}
        callees: dict[FuncOp, list[FuncOp]] = {function: [] for function in functions.values()}
        for caller, callee, op, _ in self._calls(functions):
            sites[callee].append(op)
            callees[caller].append(callee)
        for component in reversed(list(strongly_connected_components(callees))):
            for function in component:
                calls = [self.of(op) for op in sites[function] if function_of(op) not in component]
                is_recursive = len(component) > 1 or function in callees[function]
                if is_public(function) or not sites[function]:
                    found[function] = Repetition(1, function in self.repeated_functions)
                elif (times := sum(call.times for call in calls)) > _COUNTED:
                    found[function] = Repetition(1, per_iteration=True)
                else:
                    at_most = any(call.at_most for call in calls)
                    per_iteration = is_recursive or any(call.per_iteration for call in calls)
                    found[function] = Repetition(times or 1, per_iteration, at_most)
        return found

    @cached_property
    def _graphs(self) -> Mapping[Region, Dominators]:
        return {region: graph for system in self._systems for region, graph in system.graphs.items()}

    @cached_property
    def repeated_functions(self) -> dict[FuncOp, tuple[Loop, Operation]]:
        """The functions that loops call, directly or not, each with the loop and the call in it.

        Only calls by name count: which functions a function value stands for is not known in general.
        """
        functions = {s.op.sym_name.data: s.op for system in self._systems for s in system.signatures.values()}
        found: dict[FuncOp, tuple[Loop, Operation]] = {}
        callees: dict[FuncOp, list[FuncOp]] = {}
        for caller, callee, op, system in self._calls(functions):
            callees.setdefault(caller, []).append(callee)
            if callee not in found and (loop := innermost_loop(op, system.graphs)) is not None:
                found[callee] = (loop, op)
        work = list(found)
        while work:
            caller = work.pop()
            for callee in callees.get(caller, ()):
                if callee not in found:
                    found[callee] = found[caller]
                    work.append(callee)
        return found

    def _calls(self, functions: Mapping[str, FuncOp]) -> Iterator[tuple[FuncOp, FuncOp, Operation, System]]:
        for system in self._systems:
            for site in system.sites:
                # Planning may have written the name of a clone.
                caller, callee = function_of(site.op), functions.get(callee_name(site.op) or "")
                if caller is not None and callee is not None:
                    yield caller, callee, site.op, system
