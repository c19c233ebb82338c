"""Gives each side that calls a portable function a version of its own.

A portable function is scalar code that a kernel can call as well as the host. By the calls of it:
only from the host: the host's; only from code of one device and target: theirs; from several sides: the
original is the first device's, and every other side calls a private copy, ``NAME_host`` for the host.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

from xdsl.dialects import func
from xdsl.ir import Operation

from devscope.analysis.device_functions import portable_functions
from devscope.analysis.manager import AnalysisManager
from devscope.analysis.scope_analysis import ScopeAnalysis
from devscope.analysis.symbols import Symbols, named_function
from devscope.analysis.target_binding import HOST_KIND, TargetBinding
from devscope.dialects.device import HOST_TARGET_ATTR, SCOPE_ATTR, TARGET_ATTR, ScopeAttr, TargetAttr
from devscope.rewriting.functions import clone_function, fresh_name, redirect, taken_names

Side = tuple[ScopeAttr, TargetAttr]
"""Where calling code runs, and what it is compiled for."""


def bind_portable_functions(analyses: AnalysisManager, binding: TargetBinding) -> None:
    """Write ``device.target`` and ``device.scope`` on the portable functions of a planned module.

    A target that stands already stays: sides that it does not serve get copies, and if it serves none of those
    that call it, the original is gone.
    """
    portable = {f.sym_name.data: f for f in portable_functions(analyses.get(Symbols).functions.values())}
    if not portable:
        return
    host_side = (analyses.host.memory_location, binding.target_of(analyses.host))
    calls = list(_calls(analyses, portable, host_side, binding))
    callers = [(name, side) for op, side in calls if (name := named_function(op)) is not None]
    sides = _sides(portable, callers)
    idle = [f for name, f in portable.items() if not sides[name] and TARGET_ATTR in f.attributes]
    sides = _sides(portable, [*callers, *((f.sym_name.data, _own_side(f, (), host_side)) for f in idle)])
    taken = taken_names(analyses.module)
    versions: dict[tuple[str, Side], func.FuncOp] = {}
    for name, function in portable.items():
        own = _own_side(function, sides[name], host_side)
        for side in [side for side in sides[name] if side != own]:
            suffix = "host" if side == host_side else side[0].symbol_name
            clone = clone_function(function, fresh_name(f"{name}_{suffix}", taken))
            _write(clone, side)
            versions[name, side] = clone
        if own in sides[name] or not sides[name]:
            _write(function, own)
            versions[name, own] = function
        else:
            function.detach()
            function.erase(safe_erase=False)
    for op, side in calls:
        _send(op, side, versions)
    for (_, side), function in versions.items():
        for op in function.walk():
            if named_function(op) in portable:
                _send(op, side, versions)
    analyses.invalidate()


def _own_side(function: func.FuncOp, sides: Sequence[Side], host_side: Side) -> Side:
    """The side that the original stays with."""
    target = function.attributes.get(TARGET_ATTR)
    if isinstance(target, TargetAttr):
        if target.kind_name == HOST_KIND:
            return host_side
        own = function.attributes.get(SCOPE_ATTR)
        if not isinstance(own, ScopeAttr) or own.type_name != target.device_type:
            own = ScopeAttr.get(target.device_type, 0)
        return next((side for side in sides if side[1] == target), (own.memory_location, target))
    return next((side for side in sides if side != host_side), host_side)


def _write(function: func.FuncOp, side: Side) -> None:
    scope, target = side
    function.attributes[SCOPE_ATTR] = scope
    function.attributes.pop(HOST_TARGET_ATTR, None)
    old = function.attributes.get(TARGET_ATTR)
    # The options of a target of the host that stands already are not lost.
    if not (isinstance(old, TargetAttr) and old.kind_name == target.kind_name == HOST_KIND):
        function.attributes[TARGET_ATTR] = target


def _send(op: Operation, side: Side, versions: dict[tuple[str, Side], func.FuncOp]) -> None:
    name = named_function(op)
    version = versions.get((name, side)) if name is not None else None
    if version is not None and version.sym_name.data != name:
        redirect(op, version.sym_name.data)


def _calls(
    analyses: AnalysisManager, portable: Container[str | None], host_side: Side, binding: TargetBinding
) -> Iterator[tuple[Operation, Side]]:
    """The calls of portable functions that others make, and what names them as values; each with its side."""
    scopes = analyses.get(ScopeAnalysis)
    for name, function in scopes.symbols.functions.items():
        for op in function.walk() if name not in portable else ():
            if named_function(op) in portable:
                # Only the bodies of computations run on a device; what stands between them runs on the host.
                scope = analyses.host if scopes.computation(op) is op else scopes.of_op(op)
                if scope.is_open or scope.same_device(analyses.host) or binding.in_host_memory(scope):
                    yield op, host_side
                else:
                    target = binding.target_in(scope, function.attributes.get(TARGET_ATTR))
                    yield op, (scope.memory_location, target)


def _sides(portable: Mapping[str, func.FuncOp], callers: Iterable[tuple[str, Side]]) -> dict[str, list[Side]]:
    """The sides that reach each portable function from ``callers`` on, first ones first."""
    found: dict[str, dict[Side, None]] = {name: {} for name in portable}
    work = list(callers)[::-1]
    while work:
        name, side = work.pop()
        if side not in found[name]:
            found[name][side] = None
            callees = (named_function(op) for op in portable[name].walk())
            work += ((callee, side) for callee in callees if callee is not None and callee in portable)
    return {name: list(sides) for name, sides in found.items()}
