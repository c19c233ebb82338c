"""Calls in user kernels: of private functions over scalars, which device-bind-target inlines."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from devscope.analysis.call_graph import CallGraph
from devscope.analysis.classify import portable_functions
from devscope.analysis.symbols import Symbols, callee_name
from devscope.dialects.location import source_location
from devscope.errors import VerifyError


def check_calls(module: ModuleOp, symbols: Symbols) -> None:
    """Raise `VerifyError`, located, for a call in a user kernel of ``module`` that a kernel cannot make."""
    calls = [(kernel, op) for kernel in symbols.kernels.values() for op in calls_in(kernel)]
    if not calls:
        return
    graph = CallGraph(module, symbols)
    portable = {f.sym_name.data: f for f in portable_functions(graph.symbols.functions.values())}
    for kernel, op in calls:
        name = callee_name(op) or ""
        if name not in portable:
            raise VerifyError(
                f"kernel '{kernel.sym_name.data}' calls '{name}', which kernels cannot",
                source_location(op),
                ["what they call are private functions with a body, over scalars alone"],
            )
        cycle = graph.cycle_below(portable[name])
        if cycle is not None:
            path = " -> ".join(function.sym_name.data for function in cycle)
            raise VerifyError(
                f"kernel '{kernel.sym_name.data}' calls '{name}', which is recursive: {path}",
                source_location(op),
                ["write it as a loop (scf.while)"],
            )


def calls_in(op: Operation) -> list[Operation]:
    return [inner for inner in op.walk() if callee_name(inner) is not None]
