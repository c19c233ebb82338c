"""Which functions run in every iteration of a loop, since something in the loop calls them.

Only calls by name count: which functions a function value stands for is not known in general.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from devscope.analysis.loops import Loop, innermost_loop
from devscope.analysis.symbols import callee_name, function_of
from devscope.passes.device_plan.system import System


class RepeatedCall(NamedTuple):
    """A call in a loop."""

    loop: Loop
    op: Operation


def repeated_functions(systems: Iterable[System]) -> Mapping[FuncOp, RepeatedCall]:
    """The functions of a planned module that loops call, directly or not, each with the call in the loop."""
    systems = list(systems)
    functions = {s.op.sym_name.data: s.op for system in systems for s in system.signatures.values()}
    found: dict[FuncOp, RepeatedCall] = {}
    callees: dict[FuncOp, list[FuncOp]] = {}
    for system in systems:
        for site in system.sites:
            # Planning may have written the name of a clone.
            caller, callee = function_of(site.op), functions.get(callee_name(site.op) or "")
            if caller is None or callee is None:
                continue
            callees.setdefault(caller, []).append(callee)
            if callee not in found and (loop := innermost_loop(site.op, system.graphs)) is not None:
                found[callee] = RepeatedCall(loop, site.op)
    work = list(found)
    while work:
        caller = work.pop()
        for callee in callees.get(caller, ()):
            if callee not in found:
                found[callee] = found[caller]
                work.append(callee)
    return found
