"""Planning: give every operation and every value one scope, and write it into the module.

Four steps, one file each: `builder` applies the table of `constraints` to the module, `solver` unifies,
`defaults` completes what is left open, `capture` writes attributes and copies. `explain` has the report and the
errors.

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

import gc
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp

from devscope.dialects.device import ScopeAttr
from devscope.errors import OptionError
from devscope.passes.plan.builder import build_system
from devscope.passes.plan.capture import capture
from devscope.passes.plan.constraints import register_rule
from devscope.passes.plan.defaults import COMPLETIONS, refine
from devscope.passes.plan.domains import Clash
from devscope.passes.plan.explain import Copy, Placement, Plan, clash_error
from devscope.passes.plan.scopes import close_scope
from devscope.passes.plan.solver import solve
from devscope.passes.plan.system import System

__all__ = ["Copy", "Placement", "Plan", "PlanOptions", "plan_module", "register_rule"]

_HOST = ScopeAttr.get("cpu", 0)


@dataclass(frozen=True)
class PlanOptions:
    """How to plan. Raises `OptionError` for values that do not exist."""

    default: ScopeAttr = _HOST
    """Where what nothing demands is placed. Open fields are filled in from ``host``, an open id is 0."""
    host: ScopeAttr = _HOST
    """The scope of scalars, shapes and control flow."""
    arguments: str = "open"
    """``host`` pins tensor arguments and results of public functions to the host, unless they carry a scope."""
    completion: str = "default"
    """How open scopes are chosen: a key of `defaults.COMPLETIONS`."""

    def __post_init__(self) -> None:
        for name, legal in (("arguments", ("host", "open")), ("completion", tuple(COMPLETIONS))):
            value = getattr(self, name)
            if value not in legal:
                raise OptionError(f"'{value}' is not a value of '{name}'", notes=[f"legal: {', '.join(legal)}"])
        if not self.host.type_name:
            raise OptionError("the host scope must name a device type", notes=["such as cpu:0"])


def plan_module(module: ModuleOp, options: PlanOptions | None = None) -> Plan:
    """Plan every function of ``module``, in place.

    Afterwards every tensor argument and result carries ``device.scope``, every function the scope that its body
    runs on by default, every operation that runs elsewhere its own, and data moves only by
    ``device.device_copy``. Planning a planned module changes nothing.

    Raises `PlanError`, and leaves the module as it was, when the program demands two scopes for one value.
    """
    options = options or PlanOptions()
    host = close_scope(options.host, ScopeAttr.get(options.host.type_name, 0))
    default = close_scope(options.default, host)
    system = System(host, default)
    with _collection_paused():
        try:
            build_system(system, module, options.arguments == "host")
        except Clash as clash:
            raise clash_error(system, clash) from None
        adopted = solve(system)
        COMPLETIONS[options.completion](system, adopted)
        refine(system)
        return capture(system)


@contextmanager
def _collection_paused() -> Generator[None, None, None]:
    """Keep the garbage collector off. All that planning allocates lives until it ends: each collection in
    between would look through the whole module and free nothing, a third of the time for large ones."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
