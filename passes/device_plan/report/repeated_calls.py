"""Which functions run in every iteration of a loop, since something in the loop calls them.

Only calls by name count: which functions a function value stands for is not known in general.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from xdsl.dialects.builtin import SymbolRefAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from devscope.dialects.names import op_name
from devscope.passes.device_plan.loops import Loop, innermost_loop
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
            caller = function_around(site.op)
            # Planning may have written the name of a clone.
            symbol = site.op.get_attr_or_prop(site.key)
            callee = functions.get(symbol.string_value()) if isinstance(symbol, SymbolRefAttr) else None
            if caller is None or callee is None or op_name(site.op) != "func.call":
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


def function_around(op: Operation) -> FuncOp | None:
    """The function that ``op`` stands in."""
    current: Operation | None = op
    while current is not None and not isinstance(current, FuncOp):
        current = current.parent_op()
    return current
