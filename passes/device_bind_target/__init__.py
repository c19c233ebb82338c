"""``device-bind-target``: gives every function of a planned module a target.

A target that stands already is never overwritten; only a missing host part (``device.host_target``) is added.

| function | ``device.target`` by default |
|---|---|
| public, its ``device.scope`` on a device | the device's; its own code between computations is for the host part |
| public, private and not on one device, without a body | the host's |
| private, all on one device | the device's, without a host part |
| private over scalars, that kernels can call | by who calls it, see `versions` |
| user kernel | by what launches it, see `versions` |
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import func

from devscope.analysis.classify import device_functions
from devscope.analysis.manager import AnalysisManager, ManagedPass
from devscope.analysis.scope_analysis import ScopeAnalysis
from devscope.analysis.symbols import Symbols, is_public
from devscope.analysis.target_binding import HOST_KIND, TargetBinding
from devscope.analysis.user_kernels.calls import calls_in
from devscope.dialects.device import HOST_TARGET_ATTR, TARGET_ATTR, ScopeAttr, TargetAttr
from devscope.dialects.location import source_location
from devscope.dialects.scope_attribute import scope_on
from devscope.errors import VerifyError
from devscope.passes.device_bind_target.versions import bind_versions
from devscope.passes.device_inline import inline_call


@dataclass(frozen=True)
class DeviceBindTargetPass(ManagedPass):
    """Give every function of a planned module a target; never overwrite one."""

    name = "device-bind-target"

    host: str = "cpu:0"
    """The scope that host code runs on."""
    targets: tuple[str, ...] = ()
    """Overrides of targets, ``DEVICE=KIND`` each, as of ``device-split``."""

    def run(self, analyses: AnalysisManager) -> bool:
        bind_targets(analyses, TargetBinding.parse(self.targets))
        return True


def bind_targets(analyses: AnalysisManager, binding: TargetBinding) -> None:
    """Bind the functions of a planned module in place. Binding it again changes nothing.

    Raises VerifyError, located, for a host part that is for a device, and for a function without a body that is
    for one: only the host can call what is defined elsewhere.
    """
    _inline_in_kernels(analyses)
    bind_versions(analyses, binding)
    host = analyses.host
    functions = list(analyses.get(Symbols).functions.values())
    on_device = device_functions(functions, analyses.get(ScopeAnalysis))
    for function in functions:
        scope = on_device.get(function.sym_name.data)
        if scope is not None:
            function.attributes.setdefault(TARGET_ATTR, binding.target_of(scope))
        else:
            _bind_host_code(function, host, binding)


def _inline_in_kernels(analyses: AnalysisManager) -> None:
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


def _bind_host_code(function: func.FuncOp, host: ScopeAttr, binding: TargetBinding) -> None:
    """Bind a function whose own code, at least what stands between computations, runs on the host."""
    host_target = binding.target_of(host)
    own = scope_on(function)
    default = host_target if own is None or not is_public(function) else binding.target_of(own)
    target = function.attributes.setdefault(TARGET_ATTR, default)
    if not isinstance(target, TargetAttr) or target.kind_name == HOST_KIND:
        return
    if not function.body.blocks:
        raise VerifyError(
            f"function '{function.sym_name.data}' has no body and is for target '{target.kind_name}'",
            source_location(function),
            ["what is defined elsewhere runs on the host; give it a body, or drop its target"],
        )
    part = function.attributes.setdefault(HOST_TARGET_ATTR, host_target)
    if isinstance(part, TargetAttr) and part.kind_name != HOST_KIND:
        raise VerifyError(
            f"the host part of the target of '{function.sym_name.data}' is '{part.kind_name}', a device's",
            source_location(function),
            [f"'{HOST_TARGET_ATTR}' is of kind '{HOST_KIND}'"],
        )
