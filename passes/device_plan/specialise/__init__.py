"""Planning unit by unit: every function once per distinct assignment of scopes to its signature.

Callees are summarised before their callers (`summary`). Then callers are planned before their callees: when a
caller is complete, its calls say on which scopes they pass and expect data, which is an *assignment*. Each
distinct assignment of a function becomes one instance of it: the first is the function itself, the others are
private clones of it. Functions that call each other in cycles are one unit, with one assignment for all calls
inside the cycle. A declaration has one signature for all its uses; the first use decides what its attributes
leave open.

Naming a memory scope late can refine a signature after its callers were planned. Then all is planned again with
what was learnt, until nothing new is learnt; scopes only ever get closed fields, so this ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from devscope.dialects.device import ScopeAttr
from devscope.dialects.location import source_location
from devscope.errors import PlanError
from devscope.passes.device_plan.build import build_signature, build_unit, demand_assignment
from devscope.passes.device_plan.remarks import Remark
from devscope.passes.device_plan.report.conflicts import check
from devscope.passes.device_plan.report.diagnostics import DiagnosticFormatter
from devscope.passes.device_plan.scope_table import CONFLICT, OPEN, ScopeTable
from devscope.passes.device_plan.signatures import Assignment, InstanceRequest, Signature
from devscope.passes.device_plan.solve import complete, refine, unify, unify_and_propagate
from devscope.passes.device_plan.specialise.call_graph import CallGraph, Unit, build_call_graph
from devscope.passes.device_plan.specialise.instances import Instance, final_assignment, request_of
from devscope.passes.device_plan.specialise.summary import Summary, instantiate, summarise
from devscope.passes.device_plan.system import System

if TYPE_CHECKING:
    from devscope.passes.device_plan.min_cost import MinCost


@dataclass
class Specialiser:
    """Plans the functions of one module. They stay as they are."""

    functions: Sequence[FuncOp]
    host: ScopeAttr
    default: ScopeAttr
    min_cost: MinCost | None
    """What chooses scopes, instead of `solve`, in which uses pull values to one scope whatever else is chosen."""
    pin_to_host: bool
    most_clones: int
    formatter: DiagnosticFormatter

    def __post_init__(self) -> None:
        self._scopes = ScopeTable()
        self.graph: CallGraph = build_call_graph(self.functions)
        self.remarks: list[Remark] = []
        self._unknown_names: set[str] = set()
        self._refused: list[System] = []
        """Systems with conflicts or other errors."""
        self._summaries: dict[str, Summary] = {}
        self._open: dict[Unit, System] = {}
        """Systems that summaries were made of, and that nobody has completed."""
        self._bound: dict[str, Assignment] = {}
        """The scopes of declarations, as far as uses have decided them."""
        self._refined: dict[tuple[str, Assignment, int], Assignment] = {}
        """What became of an assignment when the function was planned for it."""
        self._learnt = False

    def run(self) -> list[Instance]:
        """All instances, callers before callees. Raises `PlanError`."""
        for unit in self.graph.units:
            if unit.called:
                self._summarise(unit)
        if self._refused:
            self._refuse()
        instances = self._plan_all()
        while self._learnt:
            instances = self._plan_all()
        return instances

    def _refuse(self) -> None:
        """Look for errors in the functions that are not called too, then raise `PlanError` for all there are."""
        for unit in self.graph.units:
            if not unit.called:
                system = self._new_system()
                build_unit(system, unit.functions)
                self._refused.append(system)
        check(self._refused, self.formatter)

    def _signature(self, system: System, name: str, op: Operation) -> Signature | None:
        """See `System.find_signature`."""
        summary = self._summaries.get(name)
        if summary is not None:
            return instantiate(system, summary, op)
        func = self.graph.externals.get(name)
        if func is None:
            return None
        found = system.externals.get(name)
        if found is None:
            found = system.externals[name] = build_signature(system, func)
            if name in self._bound:
                demand_assignment(system, found, InstanceRequest(name, self._bound[name], None))
        return found

    def externals(self) -> System:
        """A completed system of all declarations; to be called after `run`."""
        system = self._new_system()
        for name, func in self.graph.externals.items():
            self._signature(system, name, func)
        check([system], self.formatter)
        self._complete(system)
        system.signatures = system.externals
        return system

    def _keep_errors(self, system: System) -> None:
        if system.errors or system.domains.conflicts:
            self._refused.append(system)

    # Bottom-up

    def _new_system(self) -> System:
        shared = (self.host, self.default, self._signature, self._scopes)
        return System(*shared, remarks=self.remarks, unknown_names=self._unknown_names)

    def _summarise(self, unit: Unit) -> None:
        system = self._new_system()
        build_unit(system, unit.functions)
        self._keep_errors(system)
        unify(system)
        seconds = self.min_cost.measure(system) if self.min_cost is not None else {}
        for name, signature in system.signatures.items():
            if name in unit.called:
                self._summaries[name] = summarise(system, signature, seconds)
        if self.min_cost is None:
            self._open[unit] = system

    # Top-down

    def _plan_all(self) -> list[Instance]:
        self._learnt = False
        requests: dict[Unit, list[InstanceRequest]] = {}
        planned: list[Instance] = []
        for unit in reversed(self.graph.units):
            for instance in self._plan_unit(unit, requests.pop(unit, [])):
                planned.append(instance)
                for site in instance.system.sites if not self._refused else ():
                    if site.name not in instance.system.signatures:  # It is of another unit.
                        request = request_of(instance.system, site)
                        requests.setdefault(self.graph.unit_of[site.name], []).append(request)
        self._open.clear()
        check(self._refused, self.formatter)
        return planned

    def _plan_unit(self, unit: Unit, requests: Sequence[InstanceRequest]) -> list[Instance]:
        pinned = self.pin_to_host and unit.is_public
        instances: list[Instance] = []
        if pinned or not requests:
            instances.append(self._instance(unit, None, pinned, instances))
        # Calls that were placed first: what they need serves other calls with the same scopes, too.
        for request in sorted(requests, key=lambda request: request.frame == OPEN):
            if any(request.key in instance.asked for instance in instances):
                continue
            found = next((instance for instance in instances if instance.serves(request)), None)
            if found is None:
                found = self._instance(unit, request, False, instances)
                instances.append(found)
                if (final := found.assignment(request.name)) != request.assignment:
                    self._refined[request.key] = final
                    self._learnt = True
            found.asked.add(request.key)
        return instances

    def _instance(
        self, unit: Unit, request: InstanceRequest | None, pinned: bool, others: Sequence[Instance]
    ) -> Instance:
        functions = unit.functions
        if others:
            if len(others) > self.most_clones:
                assert request is not None
                raise self._too_many(unit, request)
            functions = {name: _clone(func) for name, func in functions.items()}
        system = self._open.pop(unit, None)
        framed = request is not None and request.frame != OPEN
        if system is None or pinned or framed or any(name in self._bound for name in system.externals):
            system = self._new_system()
            wanted = {request.name: request} if request is not None else {}
            build_unit(system, functions, pinned, wanted)
            if self.min_cost is None:
                unify(system)
        elif request is not None:
            demand_assignment(system, system.signatures[request.name], request)
        self._keep_errors(system)
        if not self._refused:
            self._complete(system)
            self._refine(system)
        return Instance(unit, functions, system, request)

    def _too_many(self, unit: Unit, request: InstanceRequest) -> PlanError:
        return PlanError(
            f"@{request.name} is used with more than {self.most_clones + 1} different assignments of scopes",
            source_location(unit.functions[request.name]),
            [
                "each of them needs a function of its own: put device.scope on arguments and results of the "
                "function, so that its callers copy",
                "or allow more clones: option 'clones' of device-plan",
            ],
        )

    def _complete(self, system: System) -> None:
        if self.min_cost is not None:
            self.min_cost(system)
        else:
            complete(system, unify_and_propagate(system))

    def _refine(self, system: System) -> None:
        """Refine a completed system, with what is known of its callees."""
        domains = system.domains
        changed = True
        while changed:
            refine(system)
            changed = False
            for site in system.sites:
                refined = self._refined.get(request_of(system, site).key)
                for node, scope in zip(domains.first_order(site.signature.node), refined or (), strict=False):
                    if domains.scope_of(node) != scope:
                        changed |= domains.demand(node, scope, ("refined", site.op, 0))
        for name, signature in system.externals.items():
            self._bind(name, final_assignment(system, signature))

    def _bind(self, name: str, assignment: Assignment) -> None:
        """Keep what a unit decided about a declaration."""
        known = self._bound.setdefault(name, assignment)
        if known != assignment:
            joined = tuple(map(self._scopes.join, known, assignment))
            assert CONFLICT not in joined
            self._learnt = True
            self._bound[name] = joined


def _clone(func: FuncOp) -> FuncOp:
    clone = func.clone()
    clone.properties["sym_visibility"] = StringAttr("private")
    return clone
