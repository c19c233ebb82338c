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


def split_by_host(module: ModuleOp, host: ScopeAttr) -> tuple[list[FuncOp], set[str]]:
    """The functions of a split module that run on ``host``, in order, and the names of all others."""
    here: list[FuncOp] = []
    elsewhere: set[str] = set()
    for function in module.body.block.ops:
        if isinstance(function, FuncOp):
            scope = function.attributes.get(SCOPE_ATTR)
            if isinstance(scope, ScopeAttr) and not scope.is_open and not scope.same_device(host):
                elsewhere.add(function.sym_name.data)
            else:
                here.append(function)
    return here, elsewhere


def functions_on_devices(module: ModuleOp) -> list[FuncOp]:
    """The functions that run on devices, in order."""
    return [op for op in module.body.block.ops if isinstance(op, FuncOp) and scope_of_function(op) is not None]
