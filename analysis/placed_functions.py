"""The functions of a split module, by where they run."""

from __future__ import annotations

from xdsl.dialects.func import FuncOp

from devscope.analysis.manager import AnalysisManager
from devscope.analysis.symbols import Symbols
from devscope.dialects.device import SCOPE_ATTR, ScopeAttr

HOST_TYPE = "cpu"


def scope_of_function(function: FuncOp) -> ScopeAttr | None:
    """The device that a function of a split module runs on; None for the host."""
    scope = function.attributes.get(SCOPE_ATTR)
    return scope if isinstance(scope, ScopeAttr) and scope.type_name not in ("", HOST_TYPE) else None


def split_by_host(analyses: AnalysisManager) -> tuple[list[FuncOp], set[str]]:
    """The functions of a split module that run on the host, in order, and the names of all others."""
    here: list[FuncOp] = []
    elsewhere: set[str] = set()
    for name, function in analyses.get(Symbols).functions.items():
        scope = function.attributes.get(SCOPE_ATTR)
        if isinstance(scope, ScopeAttr) and not scope.is_open and not scope.same_device(analyses.host):
            elsewhere.add(name)
        else:
            here.append(function)
    return here, elsewhere


def functions_on_devices(symbols: Symbols) -> list[FuncOp]:
    """The functions that run on devices, in order."""
    return [function for function in symbols.functions.values() if scope_of_function(function) is not None]
