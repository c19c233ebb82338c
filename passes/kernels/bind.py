"""Binds hand-written kernels to what launches them."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp, SymbolRefAttr
from xdsl.dialects.func import FuncOp

from devscope.analysis.scope_analysis import ScopeAnalysis
from devscope.analysis.symbols import function_of
from devscope.analysis.user_kernels import kernel_name, kernels_of, launches_in
from devscope.dialects.device import SCOPE_ATTR, TARGET_ATTR, LaunchOp, ScopeAttr, TargetAttr
from devscope.dialects.location import source_location
from devscope.errors import VerifyError
from devscope.passes.kernels.check import check_launch
from devscope.passes.split.places import place_of, symbol_part
from devscope.passes.split.symbols import clone_function, fresh_name, taken_names
from devscope.passes.split.targets import HOST_KIND, TargetBinding

_Side = tuple[ScopeAttr, TargetAttr]
"""Where a kernel runs, and what it is compiled for."""


def bind_kernels(module: ModuleOp, host: ScopeAttr, binding: TargetBinding) -> None:
    """Write ``device.target`` and ``device.scope`` on the kernels of a planned module, by where they are launched.

    A kernel that several devices or targets launch stays with the first; the others launch private copies,
    ``NAME_opencl1``. One that has a target already stays with the side of that target, if there is one. Raises
    VerifyError, located, for a launch on the host.
    """
    kernels = kernels_of(module)
    if not kernels:
        return
    analysis = ScopeAnalysis(module, host)
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
                kernel = clone_function(kernel, fresh_name(f"{name}_{symbol_part(scope)}", taken))
                for launch in found:
                    launch.kernel = SymbolRefAttr(kernel.sym_name)
            kernel.attributes[SCOPE_ATTR] = scope
            kernel.attributes[TARGET_ATTR] = target


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
    return place_of(scope), target


def _own_side(kernel: FuncOp, sides: list[_Side]) -> _Side | None:
    """The side that the original stays with."""
    target = kernel.attributes.get(TARGET_ATTR)
    return sides[0] if target is None else next((side for side in sides if side[1] == target), None)
