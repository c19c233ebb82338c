"""``device-merge``: equal private functions become one.

Equal are functions of one signature, target and scope whose bodies are the same operations in the same order
with the same attributes, whatever they and their values are called. What is checked as a program runs is equal
only to what comes from the same place, which an error names. `analysis.function_structure` compares them.
"""

from collections.abc import Hashable

from xdsl.rewriter import Rewriter

from devscope.analysis.call_graph import CallGraph
from devscope.analysis.function_structure import fingerprint
from devscope.analysis.manager import AnalysisManager, ManagedPass
from devscope.rewriting.functions import redirect


class DeviceMergePass(ManagedPass):
    """Merge private functions that are equal but for their names."""

    name = "device-merge"

    def run(self, analyses: AnalysisManager) -> bool:
        graph = analyses.get(CallGraph)
        if len(graph.private) < 2:
            return False
        stands_for: dict[str, str] = {}
        first: dict[Hashable, str] = {}
        # Callees before callers, which may be equal once their callees are.
        for function in (function for component in graph.components for function in component):
            if function in graph.private:
                name = function.sym_name.data
                other = first.setdefault(fingerprint(function, stands_for), name)
                if other != name:
                    stands_for[name] = other
        for call, _, callee in graph.calls:
            if callee is not None and (name := stands_for.get(callee.sym_name.data)) is not None:
                redirect(call, name)
        for name in stands_for:
            Rewriter.erase_op(graph.symbols.functions[name], safe_erase=False)
        return bool(stands_for)
