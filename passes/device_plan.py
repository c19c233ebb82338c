"""The pass ``device-plan``: gives every operation and every value a scope."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from devscope.dialects.device import ScopeAttr
from devscope.passes.machine_file import read_machine
from devscope.passes.plan import PlanOptions, plan_module
from devscope.passes.plan.remarks import Remark


@dataclass(frozen=True)
class DevicePlanPass(ModulePass):
    """Plan the module, see `devscope.passes.plan`. Scopes are written as in ``opencl:0`` or ``cpu:0@global``."""

    name = "device-plan"

    default: str = "cpu:0"
    host: str = "cpu:0"
    arguments: str = "open"
    completion: str = "default"
    machine: str = ""
    """A file, see `devscope.passes.machine_file`; for completion ``min-cost``."""
    clones: int = 64
    """How many clones of one function may be made, for uses on different scopes."""
    remarks: bool = False
    """Report every copy, and operations that are planned by the rule for unknown ones."""

    def options(self) -> PlanOptions:
        """The options, checked. Raises `OptionError`."""
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
        plan = plan_module(op, self.options())
        if self.remarks:
            return [*plan.remarks, *plan.copy_remarks]
        return [remark for remark in plan.remarks if remark.severity == "warning"]
