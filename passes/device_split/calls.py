"""Writes the kinds of calls (`devscope.analysis.call_kinds`) into a split module."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, StringAttr, UnitAttr
from xdsl.ir import Operation

from devscope.analysis.call_kinds import CallKind, call_kind
from devscope.analysis.symbols import callee_name
from devscope.analysis.user_kernels import functions_of
from devscope.dialects.device import CALL_ATTR, KERNEL_ATTR
from devscope.rewriting.functions import clone_function, fresh_name, redirect, taken_names


def calls_of(module: ModuleOp) -> Iterator[tuple[Operation, func.FuncOp, func.FuncOp]]:
    """Each ``func.call`` whose callee is in the module, with caller and callee."""
    functions = {f.sym_name.data: f for f in functions_of(module)}
    for caller in list(functions.values()):
        for op in caller.walk():
            name = callee_name(op)
            if name is not None and (callee := functions.get(name)) is not None:
                yield op, caller, callee


def separate_kinds(module: ModuleOp) -> None:
    """Give functions that are both launched and called as external ones a private copy for the latter.

    What is launched runs as a unit of its own, so that it must not be a part of another one at the same time.
    """
    launched: set[func.FuncOp] = set()
    external: dict[func.FuncOp, list[Operation]] = {}
    for op, caller, callee in calls_of(module):
        match call_kind(caller, callee):
            case CallKind.LAUNCH:
                launched.add(callee)
            case CallKind.EXTERN:
                external.setdefault(callee, []).append(op)
            case CallKind.PLAIN:
                pass
    taken = taken_names(module)
    for callee in [callee for callee in external if callee in launched]:
        copy = clone_function(callee, fresh_name(f"{callee.sym_name.data}_extern", taken))
        for op in external[callee]:
            redirect(op, copy.sym_name.data)


def write_kinds(module: ModuleOp) -> None:
    """Mark calls with ``device.call`` and launched functions with ``device.kernel``; marks that stand go."""
    for function in functions_of(module):
        function.attributes.pop(KERNEL_ATTR, None)
    for op, caller, callee in calls_of(module):
        kind = call_kind(caller, callee)
        if kind is CallKind.PLAIN:
            op.attributes.pop(CALL_ATTR, None)
            continue
        op.attributes[CALL_ATTR] = StringAttr(kind.value)
        if kind is CallKind.LAUNCH:
            callee.attributes[KERNEL_ATTR] = UnitAttr()
