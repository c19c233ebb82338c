"""The pass ``device-plan``: give every operation and every value one scope, and write it into the module.

The phases, for each unit of the call graph (`specialise`): `build` applies `rules` to its functions, which make a
`system` of `domains` and `edges`; `solve` unifies and, with `propagation`, or `min_cost` chooses what is
left open; `capture` writes attributes and copies. `report` has explanations and errors.

How annotations work
--------------------
* ``device.on_device`` follows TVM's planner. Body-only, it puts the operation that computes its operand, and
  through it that operation's own un-annotated producers, on the scope. What uses the annotated value is not
  dragged along. Returned from a function, it fixes the function's result.
* ``device.scope`` on an operation places that operation alone: its operands come from elsewhere by copies, its
  results are copied to where they are used. Un-annotated producers and consumers stay on the default scope.
  On an operation with regions, a ``func.func`` or as ``device.region`` it places everything inside that has no
  scope of its own.
* ``device.scope`` on a function's argument or result fixes that argument or result, and un-annotated operations
  follow it (TVM's rule).
* Arguments, results and loop-carried values that only placed operations touch are where these are.
* Views are where their source is, scalars and shapes on the host.
* Constants, empty tensors, splats and fills are made on every scope that needs them, whatever scope they carry.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from devscope.analysis.user_kernels import check_kernels
from devscope.dialects.device import HOST_SCOPE, ScopeAttr
from devscope.dialects.location import source_location
from devscope.dialects.verifier import near_misses
from devscope.errors import OptionError
from devscope.gc_pause import gc_paused
from devscope.passes.device_plan.capture import capture
from devscope.passes.device_plan.remarks import Remark
from devscope.passes.device_plan.report.diagnostics import DiagnosticFormatter
from devscope.passes.device_plan.report.plan import Clone, Copy, Placement, Plan
from devscope.passes.device_plan.report.source_names import SourceNames
from devscope.passes.device_plan.rules import register_rule
from devscope.passes.device_plan.scope_table import close_scope
from devscope.passes.device_plan.specialise import Specialiser
from devscope.passes.device_plan.specialise.call_graph import functions_of
from devscope.passes.device_plan.specialise.instances import insert_clones, one_constant_per_use

__all__ = ["Clone", "Copy", "DevicePlanPass", "Placement", "Plan", "PlanOptions", "plan_module", "register_rule"]

if TYPE_CHECKING:
    from devscope.analysis.machine import Machine
    from devscope.passes.device_plan.min_cost import MinCost


COMPLETIONS = ("default", "min-cost")
"""Ways to choose the scopes that the program leaves open: see `solve` and `min_cost`."""


@dataclass(frozen=True)
class PlanOptions:
    """How to plan. Raises `OptionError` for values that do not exist."""

    default: ScopeAttr = HOST_SCOPE
    """Where what nothing demands is placed. Open fields are filled in from ``host``, an open id is 0."""
    host: ScopeAttr = HOST_SCOPE
    """The scope of scalars, shapes and control flow."""
    arguments: str = "open"
    """``host`` pins tensor arguments and results of public functions to the host, unless they carry a scope."""
    completion: str = "default"
    """How open scopes are chosen: one of `COMPLETIONS`."""
    machine: Machine | None = None
    """What ``min-cost`` knows of the machine; without it, `machine.NOMINAL` figures of the devices in use."""
    clones: int = 64
    """How many clones of one function planning may make for uses on different scopes."""

    def __post_init__(self) -> None:
        for name, legal in (("arguments", ("host", "open")), ("completion", COMPLETIONS)):
            value = getattr(self, name)
            if value not in legal:
                raise OptionError(f"'{value}' is not a value of '{name}'", notes=[f"legal: {', '.join(legal)}"])
        if self.clones < 0:
            raise OptionError(f"'clones' is {self.clones}", notes=["it is the number of clones allowed"])
        if self.machine is not None and self.completion != "min-cost":
            raise OptionError("a machine description is for completion 'min-cost' only")
        if not self.host.type_name:
            raise OptionError("the host scope must name a device type", notes=["such as cpu:0"])


def plan_module(module: ModuleOp, options: PlanOptions | None = None, names: SourceNames | None = None) -> Plan:
    """Plan every function of ``module``, in place.

    Afterwards every tensor argument and result carries ``device.scope``, every function the scope that its body
    runs on by default, every operation that runs elsewhere its own, and data moves only by
    ``device.device_copy``. Planning a planned module changes nothing.

    ``names`` says what values are called in messages; by default the files are read that locations name.

    Raises `PlanError`, and leaves the module as it was, when the program demands two scopes for one value. It has
    all such errors of the module. Raises `VerifyError` for launches that do not fit their kernels.
    """
    options = options or PlanOptions()
    host = close_scope(options.host, ScopeAttr.get(options.host.type_name, 0))
    default = close_scope(options.default, host)
    pin_to_host = options.arguments == "host"
    names = names or SourceNames()
    formatter = DiagnosticFormatter(names)
    check_kernels(module)
    functions = functions_of(module)
    with gc_paused(), one_constant_per_use(functions) as split:
        min_cost = _min_cost(module, host, default, options)
        specialiser = Specialiser(functions, host, default, min_cost, pin_to_host, options.clones, formatter)
        instances = specialiser.run()
        externals = specialiser.externals()
        clones = insert_clones(module, instances, formatter)
        if split:
            split += [func for instance in instances for func in instance.functions.values()]
        parts = [capture(system) for system in (*(instance.system for instance in instances), externals)]
        predicted = min_cost.remarks(instance.system for instance in instances) if min_cost is not None else []
        return Plan([*specialiser.remarks, *predicted], clones, parts, names)


def _min_cost(module: ModuleOp, host: ScopeAttr, default: ScopeAttr, options: PlanOptions) -> MinCost | None:
    if options.completion != "min-cost":
        return None
    from devscope.passes.device_plan.min_cost import MinCost, machine_of

    return MinCost(options.machine or machine_of(module, host, default))


@dataclass(frozen=True)
class DevicePlanPass(ModulePass):
    """Plan the module, see `plan_module`. Scopes are written as in ``opencl:0`` or ``cpu:0@global``."""

    name = "device-plan"

    default: str = "cpu:0"
    host: str = "cpu:0"
    arguments: str = "open"
    completion: str = "default"
    machine: str = ""
    """A file, see `devscope.analysis.machine_file`; for completion ``min-cost``."""
    clones: int = 64
    """How many clones of one function may be made, for uses on different scopes."""
    remarks: bool = False
    """Report every copy, and operations that are planned by the rule for unknown ones."""

    def options(self) -> PlanOptions:
        """The options, checked. Raises `OptionError`."""
        from devscope.analysis.machine_file import read_machine

        return PlanOptions(
            default=ScopeAttr.parse_text(self.default),
            host=ScopeAttr.parse_text(self.host),
            arguments=self.arguments,
            completion=self.completion,
            clones=self.clones,
            machine=read_machine(self.machine) if self.machine else None,
        )

    def __post_init__(self) -> None:
        self.options()

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        plan_module(op, self.options())

    def apply_with_remarks(self, ctx: Context, op: ModuleOp) -> list[Remark]:
        """As `apply`, for tools that print what it has to say: warnings, and remarks where they are asked for."""
        suspects = [
            Remark("warning", text, source_location(inner)) for inner in op.walk() for text in near_misses(inner)
        ]
        plan = plan_module(op, self.options())
        if self.remarks:
            return [*suspects, *plan.remarks, *plan.copy_remarks]
        return [*suspects, *(remark for remark in plan.remarks if remark.severity == "warning")]
