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

from enum import Enum

from xdsl.dialects import func

from devscope.analysis.target_binding import HOST_KIND
from devscope.dialects.device import SCOPE_ATTR, TARGET_ATTR, ScopeAttr, TargetAttr


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
