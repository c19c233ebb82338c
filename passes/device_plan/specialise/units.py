"""Who calls whom: the units that planning solves one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from devscope.analysis.strongly_connected import strongly_connected_components
from devscope.analysis.symbols import is_kernel, is_public
from devscope.dialects.device import SCOPE_ATTR, TARGET_ATTR
from devscope.dialects.location import source_location
from devscope.errors import PlanError
from devscope.passes.device_plan.signatures import has_plan
from devscope.passes.device_plan.specialise.order import called_names, canonical_order


def functions_of(module: ModuleOp) -> list[FuncOp]:
    """The functions that planning is about. Those in a ``gpu.module``, and kernels, are device code.

    Raises `PlanError` for a module inside the module: nothing outside says where its functions are called from.
    """
    for op in module.body.ops:
        if isinstance(op, ModuleOp) and any(isinstance(inner, FuncOp) for inner in op.walk()):
            raise PlanError(
                "a module inside a module is not planned",
                source_location(op),
                ["move its functions into the outer module, or plan it as a module of its own"],
            )
    return [op for op in module.body.ops if isinstance(op, FuncOp) and not is_kernel(op)]


def has_frame(func: FuncOp) -> bool:
    """Whether a function itself says where its body runs."""
    return SCOPE_ATTR in func.attributes or TARGET_ATTR in func.attributes


@dataclass(eq=False)
class Unit:
    """Functions that are planned together: one, or several that call each other in cycles."""

    functions: list[FuncOp]
    called: set[str] = field(default_factory=set[str])
    """The names of those that functions of other units call or use as values."""

    @property
    def is_public(self) -> bool:
        return any(is_public(func) for func in self.functions)


@dataclass
class CallGraph:
    """The functions of a module, in units."""

    units: list[Unit]
    """Callees before callers."""
    unit_of: dict[str, Unit]
    """Per name of a function with a plan."""
    externals: dict[str, FuncOp]
    """Declarations, and functions whose body is not planned."""


def build_call_graph(functions: Sequence[FuncOp]) -> CallGraph:
    """The units of ``functions``; their order depends neither on names nor on the order in the module."""
    ordered = canonical_order(functions)
    planned = {func.sym_name.data: func for func in ordered if has_plan(func)}
    externals = {func.sym_name.data: func for func in ordered if not has_plan(func)}
    if len(planned) == 1:
        callees: dict[str, list[str]] = {name: [] for name in planned}
    else:
        callees = {name: [c for c in called_names(func) if c in planned] for name, func in planned.items()}
    units: list[Unit] = []
    unit_of: dict[str, Unit] = {}
    position = {name: number for number, name in enumerate(planned)}
    # From the last function to the first: what comes out last, the callers, is in canonical order then.
    backwards = {name: callees[name][::-1] for name in reversed(callees)}
    for names in strongly_connected_components(backwards):
        unit = Unit([planned[name] for name in sorted(names, key=position.__getitem__)])
        units.append(unit)
        unit_of.update((name, unit) for name in names)
    for name, targets in callees.items():
        for target in targets:
            if unit_of[target] is not unit_of[name]:
                unit_of[target].called.add(target)
    return CallGraph(units, unit_of, externals)
