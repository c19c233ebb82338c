"""The functions of a split module, by where they run."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from devscope.dialects.device import SCOPE_ATTR, ScopeAttr

HOST_TYPE = "cpu"


def scope_of_function(function: FuncOp) -> ScopeAttr | None:
    """The device that a function of a split module runs on; None for the host."""
    scope = function.attributes.get(SCOPE_ATTR)
    return scope if isinstance(scope, ScopeAttr) and scope.type_name not in ("", HOST_TYPE) else None


def functions_on_devices(module: ModuleOp) -> list[FuncOp]:
    """The functions that run on devices, in order."""
    return [op for op in module.body.block.ops if isinstance(op, FuncOp) and scope_of_function(op) is not None]
