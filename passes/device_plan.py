"""The pass ``device-plan``: gives every operation and every value a scope."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from devscope.dialects.device import ScopeAttr
from devscope.passes.plan import PlanOptions, plan_module


@dataclass(frozen=True)
class DevicePlanPass(ModulePass):
    """Plan the module, see `devscope.passes.plan`. Scopes are written as in ``opencl:0`` or ``cpu:0@global``."""

    name = "device-plan"

    default: str = "cpu:0"
    host: str = "cpu:0"
    arguments: str = "open"
    completion: str = "default"

    def options(self) -> PlanOptions:
        """The options, checked. Raises `OptionError`."""
        return PlanOptions(
            default=ScopeAttr.parse_text(self.default),
            host=ScopeAttr.parse_text(self.host),
            arguments=self.arguments,
            completion=self.completion,
        )

    def __post_init__(self) -> None:
        self.options()

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        plan_module(op, self.options())
