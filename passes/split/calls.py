"""How a call of a split module reaches its callee.

| caller and callee | kind | what it becomes |
|---|---|---|
| same device (or both host code), same target | plain | a call |
| same device, another target | extern | a call of a symbol of another part of the program |
| another device | launch | the callee's launcher allocates, enqueues kernels and returns |

The kind follows from ``device.scope`` and ``device.target`` of the two functions, which alone decide; the
attributes ``device.call`` and ``device.kernel`` are written for those who read the module.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, StringAttr, UnitAttr
from xdsl.ir import Operation

from devscope.dialects.device import CALL_ATTR, KERNEL_ATTR, SCOPE_ATTR, TARGET_ATTR, ScopeAttr, TargetAttr
from devscope.passes.split.classify import callee_name
from devscope.passes.split.symbols import clone_function, fresh_name, functions_of, redirect, taken_names
from devscope.passes.split.targets import HOST_KIND


class CallKind(Enum):
    PLAIN = "plain"
    EXTERN = "extern"
    LAUNCH = "launch"


def is_host_code(function: func.FuncOp) -> bool:
    """Whether a function of a split module is compiled into the program's host object."""
    target = function.attributes.get(TARGET_ATTR)
    return not isinstance(target, TargetAttr) or target.kind_name == HOST_KIND


def call_kind(caller: func.FuncOp, callee: func.FuncOp) -> CallKind:
    """The kind of a call between two functions of a split module."""
    if is_host_code(caller) and is_host_code(callee):
        return CallKind.PLAIN
    here, there = caller.attributes.get(SCOPE_ATTR), callee.attributes.get(SCOPE_ATTR)
    if not (isinstance(here, ScopeAttr) and isinstance(there, ScopeAttr) and here.same_device(there)):
        return CallKind.LAUNCH
    if is_host_code(caller) != is_host_code(callee):
        return CallKind.LAUNCH
    same = caller.attributes.get(TARGET_ATTR) == callee.attributes.get(TARGET_ATTR)
    return CallKind.PLAIN if same else CallKind.EXTERN


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
