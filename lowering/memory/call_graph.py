"""Which functions of a bufferised module call which, from where, and which of them in circles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

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
        components = list(strongly_connected(graph))
        circular = {name for group in components for name in group if len(group) > 1 or name in graph[name]}
        return [name for group in components for name in group], frozenset(circular)


def strongly_connected(graph: Mapping[str, Iterable[str]]) -> Iterator[list[str]]:
    """The strongly connected components, those that are pointed to first (Tarjan 1972, without recursion)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    open_: list[str] = []
    waiting: set[str] = set()
    for root in graph:
        if root in index:
            continue
        work = [(root, iter(graph[root]))]
        index[root] = low[root] = len(index)
        open_.append(root)
        waiting.add(root)
        while work:
            node, targets = work[-1]
            for target in targets:
                if target not in index:
                    index[target] = low[target] = len(index)
                    open_.append(target)
                    waiting.add(target)
                    work.append((target, iter(graph[target])))
                    break
                if target in waiting:
                    low[node] = min(low[node], index[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    start = open_.index(node)
                    waiting.difference_update(open_[start:])
                    yield open_[start:]
                    del open_[start:]
