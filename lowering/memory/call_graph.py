"""The call graph of a bufferised module, which is in MLIR.

`devscope.analysis.call_graph` reads xDSL's IR, and follows function values: here, what is a value anywhere may be
what any indirect call reaches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from devscope.analysis.strongly_connected import strongly_connected_components
from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir

_INDIRECT = "func.call_indirect"


@dataclass
class Caller:
    """A function with a body: the calls in it, by callee, and whether it is called through values."""

    func: Any
    calls: dict[str, list[Any]] = field(default_factory=dict[str, list[Any]])
    is_value: bool = False
    calls_values: bool = False


class CallGraph:
    """The functions with a body of a module, by name."""

    def __init__(self, module: Any) -> None:
        self.functions = {
            mlir_util.symbol_name(f): Caller(f) for f in mlir_util.functions(module) if mlir_util.has_body(f)
        }
        for caller in self.functions.values():
            for op in mlir_util.walk(caller.func):
                self._visit(caller, op)
        self.order, self.recursive = self._analyse()

    def callees(self, name: str) -> Iterator[str]:
        """The functions with a body that ``name`` may call."""
        caller = self.functions[name]
        yield from (callee for callee in caller.calls if callee in self.functions)
        if caller.calls_values:
            yield from (other for other, found in self.functions.items() if found.is_value)

    def reachable(self, roots: Iterable[str]) -> set[str]:
        """``roots``, and all that they may call."""
        seen = set(roots)
        work = list(seen)
        while work:
            found = set(self.callees(work.pop())) - seen
            seen |= found
            work += found
        return seen

    def _visit(self, caller: Caller, op: Any) -> None:
        if op.name == "func.call":
            callee = ir.FlatSymbolRefAttr(op.attributes["callee"]).value
            caller.calls.setdefault(callee, []).append(op)
        elif op.name == _INDIRECT:
            caller.calls_values = True
        elif op.name == "func.constant":
            taken = self.functions.get(ir.FlatSymbolRefAttr(op.attributes["value"]).value)
            if taken is not None:
                taken.is_value = True

    def _analyse(self) -> tuple[list[str], frozenset[str]]:
        """All functions, callees before callers, and those that can reach themselves."""
        graph = {name: list(self.callees(name)) for name in self.functions}
        components = list(strongly_connected_components(graph))
        recursive = {name for c in components for name in c if len(c) > 1 or name in graph[name]}
        return [name for component in components for name in component], frozenset(recursive)
