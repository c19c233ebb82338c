"""Writes the kinds of calls (`devscope.analysis.call_kinds`) into a split module."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import func
from xdsl.dialects.builtin import StringAttr, UnitAttr
from xdsl.ir import Operation

from devscope.analysis.call_graph import CallGraph
from devscope.analysis.call_kinds import CallKind, call_kind
from devscope.analysis.manager import AnalysisManager
from devscope.analysis.symbols import Symbols
from devscope.dialects.device import CALL_ATTR, KERNEL_ATTR
from devscope.rewriting.functions import clone_function, fresh_name, redirect, taken_names


def separate_kinds(analyses: AnalysisManager) -> None:
    """Give functions that are both launched and called as external ones a private copy for the latter.

    What is launched runs as a unit of its own, so that it must not be a part of another one at the same time.
    """
    launched: set[func.FuncOp] = set()
    external: dict[func.FuncOp, list[Operation]] = {}
    for op, caller, callee in _calls(analyses):
        match call_kind(caller, callee):
            case CallKind.LAUNCH:
                launched.add(callee)
            case CallKind.EXTERN:
                external.setdefault(callee, []).append(op)
            case CallKind.PLAIN:
                pass
    taken = taken_names(analyses.module)
    shared = [callee for callee in external if callee in launched]
    for callee in shared:
        copy = clone_function(callee, fresh_name(f"{callee.sym_name.data}_extern", taken))
        for op in external[callee]:
            redirect(op, copy.sym_name.data)
    if shared:
        analyses.invalidate()


def write_kinds(analyses: AnalysisManager) -> None:
    """Mark calls with ``device.call`` and launched functions with ``device.kernel``; marks that stand go."""
    for function in analyses.get(Symbols).functions.values():
        function.attributes.pop(KERNEL_ATTR, None)
    for op, caller, callee in _calls(analyses):
        kind = call_kind(caller, callee)
        if kind is CallKind.PLAIN:
            op.attributes.pop(CALL_ATTR, None)
            continue
        op.attributes[CALL_ATTR] = StringAttr(kind.value)
        if kind is CallKind.LAUNCH:
            callee.attributes[KERNEL_ATTR] = UnitAttr()


def _calls(analyses: AnalysisManager) -> Iterator[tuple[Operation, func.FuncOp, func.FuncOp]]:
    """The calls of functions that are in the module, with caller and callee."""
    for op, caller, callee in analyses.get(CallGraph).calls:
        if caller is not None and callee is not None:
            yield op, caller, callee
