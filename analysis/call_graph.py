"""The call graph of a module: who calls whom by name, from where, and in which cycles.

What calls through function values may reach is a question of its own (`function_values`).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Self

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, SymbolRefAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation

from devscope.analysis.strongly_connected import strongly_connected_components
from devscope.analysis.symbols import CALL, Symbols, is_public
from devscope.dialects.names import op_name

if TYPE_CHECKING:
    from devscope.analysis.manager import AnalysisManager


class Call(NamedTuple):
    """A ``func.call``. ``caller`` is None outside of functions, ``callee`` if the module has no such function."""

    op: Operation
    caller: FuncOp | None
    callee: FuncOp | None


class CallGraph:
    """The calls of a module, which must not change while this is in use."""

    def __init__(self, module: ModuleOp, symbols: Symbols | None = None) -> None:
        self.symbols = symbols or Symbols(module)
        self.calls: list[Call] = []
        """All calls, function by function, outer before inner."""
        named: set[str] = set()
        for around in module.body.block.ops:
            caller = around if isinstance(around, FuncOp) else None
            for op in around.walk():
                if op_name(op) == CALL:
                    self.calls.append(Call(op, caller, self.symbols.callee(op)))
                else:
                    named.update(_names(op))
        self.private: set[FuncOp] = {
            function
            for name, function in self.symbols.functions.items()
            if name not in named and not is_public(function) and function.body.blocks
        }
        """Functions with a body all of whose callers are calls here: not public, and no function values."""

    @classmethod
    def of(cls, analyses: AnalysisManager) -> Self:
        return cls(analyses.module, analyses.get(Symbols))

    @cached_property
    def callees(self) -> dict[FuncOp, list[FuncOp]]:
        """Per function whom it calls, in the order of the calls."""
        found: dict[FuncOp, list[FuncOp]] = {function: [] for function in self.symbols.functions.values()}
        for _, caller, callee in self.calls:
            if caller is not None and callee is not None and caller in found:
                found[caller].append(callee)
        return found

    @cached_property
    def components(self) -> list[list[FuncOp]]:
        """The strongly connected components, callees before callers."""
        return list(strongly_connected_components(self.callees))

    @cached_property
    def _cycle_of(self) -> dict[FuncOp, frozenset[FuncOp]]:
        """Per recursive function, those that lie on cycles with it."""
        recursive = (group for group in self.components if len(group) > 1 or group[0] in self.callees[group[0]])
        return {function: frozenset(group) for group in recursive for function in group}

    def cycle_below(self, function: FuncOp) -> list[FuncOp] | None:
        """A cycle that calls of ``function`` lead to, in the order of calls, the first function again last.

        None if calls of ``function`` always end.
        """
        seen = {function: None}
        stack = [function]
        while stack and self._cycle_of:
            current = stack.pop()
            if current in self._cycle_of:
                return self._shortest_cycle(current)
            for callee in self.callees[current]:
                if callee not in seen:
                    seen[callee] = None
                    stack.append(callee)
        return None

    def _shortest_cycle(self, start: FuncOp) -> list[FuncOp]:
        members = self._cycle_of[start]
        came_from: dict[FuncOp, FuncOp] = {}
        queue = [start]
        for current in queue:
            for callee in self.callees[current]:
                if callee is start:
                    path = [start, current]
                    while path[-1] is not start:
                        path.append(came_from[path[-1]])
                    return path[::-1]
                if callee in members and callee not in came_from:
                    came_from[callee] = current
                    queue.append(callee)
        raise AssertionError("a member of a cycle leads back to itself")


def _names(op: Operation) -> Iterator[str]:
    """The symbols in an operation's attributes."""
    stack: list[Attribute] = [*op.attributes.values(), *op.properties.values()]
    while stack:
        attribute = stack.pop()
        if isinstance(attribute, SymbolRefAttr):
            yield attribute.root_reference.data
        elif isinstance(attribute, ArrayAttr):
            stack += attribute.data
        elif isinstance(attribute, DictionaryAttr):
            stack += attribute.data.values()
