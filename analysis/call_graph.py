"""The call graph of a module: who calls whom by name, from where, and in which cycles.

What calls through function values may reach is a question of its own (`function_values`).
"""

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple, Self

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, SymbolRefAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation

from devscope.analysis.manager import AnalysisManager
from devscope.analysis.strongly_connected import strongly_connected_components
from devscope.analysis.symbols import CALL, Symbols, is_claimed, is_public
from devscope.dialects.names import op_name


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
                    named.update(names_in(op))
        self.private: set[FuncOp] = {
            function
            for name, function in self.symbols.functions.items()
            if name not in named and not is_public(function) and not is_claimed(function) and function.body.blocks
        }
        """Functions with a body all of whose callers are calls here: not public, no function values,
        and none that a backend compiles."""

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
    def _endless(self) -> set[FuncOp]:
        """The functions whose calls lead to cycles."""
        found: set[FuncOp] = set()
        for group in self.components:
            below = {callee for function in group for callee in self.callees[function]}
            if not (below.isdisjoint(group) and below.isdisjoint(found)):
                found.update(group)
        return found

    def cycle_below(self, function: FuncOp) -> list[FuncOp] | None:
        """A cycle that calls of ``function`` lead to, in the order of calls, the first function again last.

        None if calls of ``function`` always end.
        """
        if function not in self._endless:
            return None
        reached = (path[-1] for path in ([function], *self._paths(function)))
        return next(path for start in reached for path in self._paths(start) if path[-1] is start)

    def _paths(self, start: FuncOp) -> Iterator[list[FuncOp]]:
        """A shortest chain of calls to each function that ``start`` leads to, perhaps itself; short ones first."""
        paths = [[start]]
        seen: set[FuncOp] = set()
        for path in paths:
            for callee in self.callees[path[-1]]:
                if callee not in seen:
                    seen.add(callee)
                    paths.append([*path, callee])
                    yield paths[-1]


def names_in(op: Operation) -> Iterator[str]:
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
