"""The functions of a split module: where they run, and how calls reach them.

| caller and callee | kind | what it becomes |
|---|---|---|
| same device (or both host code), same target | plain | a call |
| same device, another target | extern | a call of a symbol of another part of the program |
| another device | launch | the callee's launcher allocates, enqueues kernels and returns |

All of it follows from ``device.scope`` and ``device.target`` of the functions, which alone decide; the attributes
``device.call`` and ``device.kernel`` are written for those who read the module.
"""

from enum import Enum

from xdsl.dialects.func import FuncOp

from devscope.analysis.manager import AnalysisManager
from devscope.analysis.symbols import Symbols, is_claimed
from devscope.analysis.target_binding import HOST_KIND
from devscope.dialects.device import TARGET_ATTR, ScopeAttr, TargetAttr
from devscope.dialects.scope_attribute import scope_on

HOST_TYPE = "cpu"


class CallKind(Enum):
    PLAIN = "plain"
    EXTERN = "extern"
    LAUNCH = "launch"


def is_host_code(function: FuncOp) -> bool:
    """Whether a function is compiled into the program's host object."""
    target = function.attributes.get(TARGET_ATTR)
    return not isinstance(target, TargetAttr) or target.kind_name == HOST_KIND


def scope_of_function(function: FuncOp) -> ScopeAttr | None:
    """The device that a function runs on; None for the host."""
    scope = scope_on(function)
    return scope if scope is not None and scope.type_name not in ("", HOST_TYPE) else None


def functions_on_devices(symbols: Symbols) -> list[FuncOp]:
    """The functions that run on devices, in order."""
    return [function for function in symbols.functions.values() if scope_of_function(function) is not None]


def split_by_host(analyses: AnalysisManager) -> tuple[list[FuncOp], set[str]]:
    """The functions that run on the host, in order, none where all do; and the names of all others."""
    functions = analyses.get(Symbols).functions
    scopes = {name: scope_on(function) or analyses.host for name, function in functions.items()}
    elsewhere = {name for name, scope in scopes.items() if not scope.same_device(analyses.host)}
    return [f for name, f in functions.items() if elsewhere and name not in elsewhere], elsewhere


def call_kind(caller: FuncOp, callee: FuncOp) -> CallKind:
    """The kind of a call between two functions."""
    if is_host_code(caller) and is_host_code(callee):
        return CallKind.PLAIN
    here, there = scope_on(caller), scope_on(callee)
    same_device = here is not None and there is not None and here.same_device(there)
    claimed = is_claimed(caller) or is_claimed(callee)  # on the host it is no host code, and not launched either
    if not same_device or (is_host_code(caller) != is_host_code(callee) and not claimed):
        return CallKind.LAUNCH
    same_target = caller.attributes.get(TARGET_ATTR) == callee.attributes.get(TARGET_ATTR)
    return CallKind.PLAIN if same_target else CallKind.EXTERN
