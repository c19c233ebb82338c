"""What a split module says of itself: memory locations, and kinds of calls (`devscope.analysis.split_functions`).

``device.target`` on a function is now the only truth about how it is compiled, and a ``device.scope`` says no more
than where things are.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp, StringAttr, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.rewriter import Rewriter

from devscope.analysis.call_graph import CallGraph
from devscope.analysis.manager import AnalysisManager
from devscope.analysis.split_functions import CallKind, call_kind
from devscope.analysis.symbols import Symbols
from devscope.dialects.device import CALL_ATTR, KERNEL_ATTR, SCOPE_ATTR, DeviceCopyOp, ScopeAttr
from devscope.dialects.signature import ARGUMENTS, RESULTS, set_signature_attributes, signature_attributes
from devscope.rewriting.functions import clone_function, fresh_name, redirect, taken_names


def reduce_to_memory_locations(module: ModuleOp) -> None:
    """Drop the targets of all scopes; copies that thereby go nowhere are dropped too."""
    for op in list(module.walk()):
        scope = op.attributes.get(SCOPE_ATTR)
        if isinstance(scope, ScopeAttr):
            op.attributes[SCOPE_ATTR] = scope.memory_location
        if isinstance(op, DeviceCopyOp):
            op.src, op.dst = op.src.memory_location, op.dst.memory_location
            if op.src == op.dst:
                Rewriter.replace_op(op, [], [op.operand])
        elif isinstance(op, FuncOp):
            types = op.function_type
            for side, count in ((ARGUMENTS, len(types.inputs)), (RESULTS, len(types.outputs))):
                scopes = signature_attributes(op, side, count)
                locations = [s.memory_location if isinstance(s, ScopeAttr) else s for s in scopes]
                set_signature_attributes(op, side, locations)


def mark_calls(analyses: AnalysisManager) -> None:
    """Mark calls with ``device.call`` and launched functions with ``device.kernel``; marks that stand go.

    Functions that are both launched and called as external ones get a private copy for the latter: what is
    launched runs as a unit of its own, so that it must not be a part of another one at the same time.
    """
    for function in analyses.get(Symbols).functions.values():
        function.attributes.pop(KERNEL_ATTR, None)
    marked: dict[FuncOp, dict[CallKind, list[Operation]]] = {}
    for op, caller, callee in analyses.get(CallGraph).calls:
        if caller is None or callee is None:
            continue
        kind = call_kind(caller, callee)
        if kind is CallKind.PLAIN:
            op.attributes.pop(CALL_ATTR, None)
        else:
            op.attributes[CALL_ATTR] = StringAttr(kind.value)
            marked.setdefault(callee, {}).setdefault(kind, []).append(op)
    taken = taken_names(analyses.module)
    for callee, calls in marked.items():
        if len(calls) > 1:
            copy = clone_function(callee, fresh_name(f"{callee.sym_name.data}_extern", taken))
            for op in calls[CallKind.EXTERN]:
                redirect(op, copy.sym_name.data)
        if CallKind.LAUNCH in calls:
            callee.attributes[KERNEL_ATTR] = UnitAttr()
    analyses.invalidate()
