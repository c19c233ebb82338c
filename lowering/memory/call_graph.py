"""The call graph of a bufferised module, which is in MLIR.

`devscope.analysis.call_graph` reads xDSL's IR. Function values are gone (``device-defunctionalize``).
"""

from collections.abc import Iterable
from typing import Any

from devscope.analysis.strongly_connected import strongly_connected_components
from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir


class CallGraph:
    """``functions`` are those with a body, by name, ``calls`` the operations that call each, by its name.

    ``callees``: the functions with a body that each calls.
    ``order`` has all of them, callees before callers; ``recursive`` are those that can reach themselves.
    """

    def __init__(self, module: Any) -> None:
        self.functions = {
            mlir_util.symbol_name(func): func for func in mlir_util.functions(module) if mlir_util.has_body(func)
        }
        self.calls: dict[str, list[Any]] = {name: [] for name in self.functions}
        ops = {name: mlir_util.walk(func) for name, func in self.functions.items()}
        self.callees = {name: self._callees(found) for name, found in ops.items()}
        components = list(strongly_connected_components(self.callees))
        self.order = [name for component in components for name in component]
        self.recursive = {n for c in components for n in c if len(c) > 1 or n in self.callees[n]}

    def called_by(self, name: str, op: Any) -> list[str]:
        """The function with a body that ``op``, an operation called ``name``, calls, if it calls one."""
        callee = ir.FlatSymbolRefAttr(op.attributes["callee"]).value if name == "func.call" else None
        return [callee] if callee in self.functions else []

    def reachable(self, roots: Iterable[str]) -> set[str]:
        """``roots``, and all that they may call."""
        seen = set(roots)
        work = list(seen)
        while work:
            found = set(self.callees[work.pop()]) - seen
            seen |= found
            work += found
        return seen

    def _callees(self, ops: Iterable[Any]) -> list[str]:
        found: dict[str, None] = {}
        for op in ops:
            for callee in self.called_by(op.name, op):
                found[callee] = None
                self.calls[callee].append(op)
        return list(found)
