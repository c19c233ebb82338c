"""Binds user kernels to what launches them."""

from __future__ import annotations

from xdsl.dialects.builtin import SymbolRefAttr
from xdsl.dialects.func import FuncOp

from devscope.analysis.manager import AnalysisManager
from devscope.analysis.scope_analysis import ScopeAnalysis
from devscope.analysis.symbols import Symbols, function_of
from devscope.analysis.target_binding import HOST_KIND, TargetBinding
from devscope.analysis.user_kernels import kernel_name, launches_in
from devscope.analysis.user_kernels.calls import calls_in
from devscope.analysis.user_kernels.check import check_launch
from devscope.dialects.device import SCOPE_ATTR, TARGET_ATTR, LaunchOp, ScopeAttr, TargetAttr
from devscope.dialects.location import source_location
from devscope.errors import VerifyError
from devscope.passes.device_inline import inline_call
from devscope.rewriting.functions import clone_function, fresh_name, taken_names

_Side = tuple[ScopeAttr, TargetAttr]
"""Where a kernel runs, and what it is compiled for."""


def bind_kernels(analyses: AnalysisManager, binding: TargetBinding) -> None:
    """Write ``device.target`` and ``device.scope`` on the kernels of a planned module, by where they are launched.

    A kernel that several devices or targets launch stays with the first; the others launch private copies,
    ``NAME_opencl1``. One that has a target already stays with the side of that target, if there is one. Raises
    VerifyError, located, for a launch on the host.
    """
    module, kernels = analyses.module, analyses.get(Symbols).kernels
    if not kernels:
        return
    analysis = analyses.get(ScopeAnalysis)
    launches: dict[str, dict[_Side, list[LaunchOp]]] = {}
    for launch in launches_in(module):
        check_launch(launch)
        side = _side(launch, analysis, binding)
        launches.setdefault(kernel_name(launch), {}).setdefault(side, []).append(launch)
    taken = taken_names(module)
    for name, sides in launches.items():
        own = _own_side(kernels[name], list(sides))
        for (scope, target), found in sides.items():
            kernel = kernels[name]
            if (scope, target) != own:
                kernel = clone_function(kernel, fresh_name(f"{name}_{scope.symbol_name}", taken))
                for launch in found:
                    launch.kernel = SymbolRefAttr(kernel.sym_name)
            kernel.attributes[SCOPE_ATTR] = scope
            kernel.attributes[TARGET_ATTR] = target
    analyses.invalidate()


def inline_in_kernels(analyses: AnalysisManager) -> None:
    """Replace the calls in user kernels, which `check_calls` accepts, by what they call."""
    symbols = analyses.get(Symbols)
    work = [op for kernel in symbols.kernels.values() for op in calls_in(kernel)]
    if not work:
        return
    while work:
        call = work.pop()
        callee = symbols.callee(call)
        assert callee is not None
        work += (inner for op in inline_call(call, callee) for inner in calls_in(op))
    analyses.invalidate()


def _side(launch: LaunchOp, analysis: ScopeAnalysis, binding: TargetBinding) -> _Side:
    scope = analysis.of_op(launch)
    function = function_of(launch)
    target = binding.target_in(scope, function.attributes.get(TARGET_ATTR) if function is not None else None)
    if target.kind_name == HOST_KIND:
        raise VerifyError(
            f"kernel '{kernel_name(launch)}' is launched on {scope.short()}, whose target '{HOST_KIND}' has no "
            "kernels",
            source_location(launch),
            [f'place the launch on a device: {{{SCOPE_ATTR} = #device.scope<"opencl", 0 : i64, "", "">}}'],
        )
    return scope.memory_location, target


def _own_side(kernel: FuncOp, sides: list[_Side]) -> _Side | None:
    """The side that the original stays with."""
    target = kernel.attributes.get(TARGET_ATTR)
    return sides[0] if target is None else next((side for side in sides if side[1] == target), None)
