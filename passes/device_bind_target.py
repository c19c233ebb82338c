"""``device-bind-target``: gives every function of a planned module a target.

A target that stands already is never overwritten; only a missing host part (``device.host_target``) is added.

| function | ``device.target`` by default |
|---|---|
| public, its ``device.scope`` on a device | the device's; its own code between computations is for the host part |
| public, private and not on one device, without a body | the host's |
| private, all on one device | the device's, without a host part |
| private over scalars, that kernels can call | by who calls it |
| user kernel | by what launches it |

Each side that calls such a portable function, or launches a kernel, gets a version of its own: a side is a device
and what is compiled for there, or the host. The original is for the first device that reaches it, else for the
host; every other side gets a private copy, ``NAME_opencl1``, or ``NAME_host``. A portable function with a target
that none of its callers is on is gone.
"""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from devscope.analysis.classify import device_functions, portable_functions
from devscope.analysis.function_values import has_function_values
from devscope.analysis.manager import AnalysisManager, ManagedPass
from devscope.analysis.scope_analysis import ScopeAnalysis
from devscope.analysis.symbols import Symbols, is_claimed, is_public, named_function
from devscope.analysis.target_binding import HOST_KIND, TargetBinding
from devscope.analysis.user_kernels import calls_in_kernels, check_launch
from devscope.dialects.device import HOST_TARGET_ATTR, SCOPE_ATTR, TARGET_ATTR, LaunchOp, ScopeAttr, TargetAttr
from devscope.dialects.location import error_at
from devscope.dialects.scope_attribute import scope_on
from devscope.passes.device_inline import inline_all
from devscope.rewriting.blocks import erase_operations
from devscope.rewriting.functions import clone_function, fresh_name, redirect, taken_names

_Side = tuple[ScopeAttr, TargetAttr]
"""Where code runs, and what it is compiled for."""


@dataclass(frozen=True)
class DeviceBindTargetPass(ManagedPass):
    """Give every function of a planned module a target; never overwrite one."""

    name = "device-bind-target"

    host: str = "cpu:0"
    """The scope that host code runs on."""
    targets: tuple[str, ...] = ()
    """Overrides of targets, ``DEVICE=KIND`` each: ``opencl:1=cpu`` builds code for opencl:1 for the host."""

    def run(self, analyses: AnalysisManager) -> bool:
        """Bind the functions of a planned module in place. Binding it again changes nothing.

        Function values go first (`DeviceDefunctionalizePass`): what each function is called by decides.

        Raises VerifyError, located, for a host part that is for a device, and for a function without a body that
        is for one: only the host can call what is defined elsewhere.
        """
        if has_function_values(analyses.get(Symbols)):
            from devscope.passes.device_defunctionalize import DeviceDefunctionalizePass

            analyses.run(DeviceDefunctionalizePass())
        binding, host = TargetBinding.parse(self.targets), analyses.host
        _inline_in_kernels(analyses)
        _bind_versions(analyses, binding)
        functions = list(analyses.get(Symbols).functions.values())
        on_device = device_functions(functions, analyses.get(ScopeAnalysis))
        for function in functions:
            scope = on_device.get(function.sym_name.data)
            if scope is not None or is_claimed(function):
                function.attributes.setdefault(TARGET_ATTR, binding.target_of(scope or host))
            else:
                _bind_host_code(function, host, binding)
        return True


def _inline_in_kernels(analyses: AnalysisManager) -> None:
    """Replace the calls in user kernels, which `check_kernels` accepts, by what they call."""
    symbols = analyses.get(Symbols)
    calls = [op for _, op in calls_in_kernels(symbols)]
    if calls:
        inline_all(calls, symbols, lambda call: True)
        analyses.invalidate()


def _bind_host_code(function: FuncOp, host: ScopeAttr, binding: TargetBinding) -> None:
    """Bind a function whose own code, at least what stands between computations, runs on the host."""
    host_target = binding.target_of(host)
    own = scope_on(function)
    default = host_target if own is None or not is_public(function) else binding.target_of(own)
    target = function.attributes.setdefault(TARGET_ATTR, default)
    if not isinstance(target, TargetAttr) or target.kind_name == HOST_KIND:
        return
    if not function.body.blocks:
        message = f"function '{function.sym_name.data}' has no body and is for target '{target.kind_name}'"
        remedy = "what is defined elsewhere runs on the host; give it a body, or drop its target"
        raise error_at(function, message, remedy)
    part = function.attributes.setdefault(HOST_TARGET_ATTR, host_target)
    if isinstance(part, TargetAttr) and part.kind_name != HOST_KIND:
        message = f"the host part of the target of '{function.sym_name.data}' is '{part.kind_name}', a device's"
        raise error_at(function, message, f"'{HOST_TARGET_ATTR}' is of kind '{HOST_KIND}'")


def _bind_versions(analyses: AnalysisManager, binding: TargetBinding) -> None:
    """Write ``device.target`` and ``device.scope`` on portable functions and on kernels that something launches.

    Raises VerifyError, located, for a launch on the host.
    """
    symbols = analyses.get(Symbols)
    portable = {f.sym_name.data: f for f in portable_functions(symbols.functions.values())}
    if not portable and not symbols.kernels:
        return
    host_side = (analyses.host.memory_location, binding.target_of(analyses.host))
    uses = list(_uses(analyses, portable, host_side, binding))
    callers = [(name, side) for op, side in uses if (name := named_function(op)) is not None]
    bound = portable | {name: symbols.kernels[name] for name, _ in callers if name in symbols.kernels}
    sides = _sides(bound, callers)
    idle = [f for name, f in bound.items() if not sides[name] and TARGET_ATTR in f.attributes]
    sides = _sides(bound, [*callers, *((f.sym_name.data, _own_side(f, (), host_side)) for f in idle)])
    taken = taken_names(analyses.module)
    versions: dict[tuple[str | None, _Side], FuncOp] = {}
    for name, function in bound.items():
        own = _own_side(function, sides[name], host_side)
        for side in [side for side in sides[name] if side != own]:
            suffix = "host" if side == host_side else side[0].symbol_name
            versions[name, side] = clone_function(function, fresh_name(f"{name}_{suffix}", taken))
        if own in sides[name] or not sides[name]:
            versions[name, own] = function
        elif name not in symbols.kernels:  # those go with others that nothing launches
            erase_operations([function])
    for (_, side), function in versions.items():
        _write(function, side)
        uses += [(op, side) for op in function.walk() if named_function(op) in bound]
    for op, side in uses:
        version = versions.get((named_function(op), side))
        if version is not None:
            redirect(op, version.sym_name.data)
    analyses.invalidate()


def _uses(
    analyses: AnalysisManager, portable: Container[str | None], host_side: _Side, binding: TargetBinding
) -> Iterator[tuple[Operation, _Side]]:
    """What calls portable functions or launches kernels, but in such; with its side."""
    scopes = analyses.get(ScopeAnalysis)
    for name, function in scopes.symbols.functions.items():
        for op in function.walk() if name not in portable else ():
            is_launch = isinstance(op, LaunchOp)
            if not is_launch and named_function(op) not in portable:
                continue
            # Only the bodies of computations run on a device; what stands between them runs on the host.
            on_host = not is_launch and scopes.computation(op) is op
            scope = analyses.host if on_host else scopes.of_op(op)
            target = binding.target_in(scope, function.attributes.get(TARGET_ATTR))
            if is_launch:
                check_launch(op)
                _refuse_host(op, scope, target)
            if scope.is_open or scope.same_device(analyses.host) or binding.in_host_memory(scope):
                yield op, host_side
            else:
                yield op, (scope.memory_location, target)


def _refuse_host(launch: LaunchOp, scope: ScopeAttr, target: TargetAttr) -> None:
    if target.kind_name == HOST_KIND:
        where = f"is launched on {scope.short()}, whose target '{HOST_KIND}' has no kernels"
        remedy = f'place the launch on a device: {{{SCOPE_ATTR} = #device.scope<"opencl", 0 : i64, "", "">}}'
        raise error_at(launch, f"kernel '{named_function(launch)}' {where}", remedy)


def _sides(bound: Mapping[str, FuncOp], callers: Iterable[tuple[str, _Side]]) -> dict[str, list[_Side]]:
    """The sides that reach each function from ``callers`` on, first ones first."""
    found: dict[str, dict[_Side, None]] = {name: {} for name in bound}
    work = list(callers)[::-1]
    while work:
        name, side = work.pop()
        if side not in found[name]:
            found[name][side] = None
            callees = (named_function(op) for op in bound[name].walk())
            work += ((callee, side) for callee in callees if callee is not None and callee in bound)
    return {name: list(sides) for name, sides in found.items()}


def _own_side(function: FuncOp, sides: Sequence[_Side], host_side: _Side) -> _Side:
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


def _write(function: FuncOp, side: _Side) -> None:
    scope, target = side
    function.attributes[SCOPE_ATTR] = scope
    function.attributes.pop(HOST_TARGET_ATTR, None)
    old = function.attributes.get(TARGET_ATTR)
    # The options of a target of the host that stands already are not lost.
    if not (isinstance(old, TargetAttr) and old.kind_name == target.kind_name == HOST_KIND):
        function.attributes[TARGET_ATTR] = target
