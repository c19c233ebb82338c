"""Why a node of a completed system is where it is: the chain of reasons to the demand that decided.

The chain follows unions, edge by edge, to the nearest demand that names a device. Where none does, planning
chose, and `System.choices` or the default says how. A chain goes on in another class when the demand took its
scope from there, and in another function's system where a call did.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache, cached_property
from itertools import islice

from xdsl.ir import Operation, SSAValue

from devscope.errors import Note
from devscope.passes.device_plan.domains import HOST_NODE, REMATERIALISED, Demand, Domains, Reason
from devscope.passes.device_plan.edges import FIRM, Edge
from devscope.passes.device_plan.report.diagnostics import DiagnosticFormatter
from devscope.passes.device_plan.signatures import Signature
from devscope.passes.device_plan.system import System

_AFTER_COMPLETION = frozenset({"refined"})
"""Kinds of demands on classes that had their device already."""


def united_neighbours(domains: Domains, count: int | None = None) -> dict[int, list[tuple[int, Reason]]]:
    """Per node, those that the first ``count`` unions, or all, made one with it, and why."""
    neighbours: dict[int, list[tuple[int, Reason]]] = {}
    for union in domains.unions(count):
        neighbours.setdefault(union.left, []).append((union.right, union.reason))
        neighbours.setdefault(union.right, []).append((union.left, union.reason))
    return neighbours


class Provenance:
    """The chains of one completed system. Worked out for all nodes at once, when the first one is asked for."""

    def __init__(self, system: System, summarised: bool = False) -> None:
        """With ``summarised``, as the system was when its functions were summarised for their callers."""
        self.system = system
        end = (system.completed_unions, None)
        self._unions, self._demanded = (system.summarised or end) if summarised else end
        self._choices = {} if summarised else system.choices

    @cached_property
    def _next(self) -> dict[int, tuple[int, Reason, int]]:
        """Per node that says nothing itself: the next on the way to its end, why they are one, and the end."""
        neighbours = united_neighbours(self.system.domains, self._unions)
        found: dict[int, tuple[int, Reason, int]] = {}
        seen: set[int] = set()
        for starts in (self._demands, self._choices):
            queue = [node for node in starts if node not in seen]
            seen.update(starts)
            for node in queue:
                end = found[node][2] if node in found else node
                for neighbour, reason in neighbours.get(node, ()):
                    if neighbour not in seen:
                        seen.add(neighbour)
                        found[neighbour] = (node, reason, end)
                        queue.append(neighbour)
        return found

    @cached_property
    def _demands(self) -> dict[int, Demand]:
        """Per node, the first demand on it that names a device."""
        has_type = self.system.scopes.has_type
        found: dict[int, Demand] = {}
        for demand in islice(self.system.domains.demands, self._demanded):
            if has_type[demand.scope] and demand.reason[0] not in _AFTER_COMPLETION:
                found.setdefault(demand.node, demand)
        return found

    def path(self, node: int) -> tuple[list[Reason], int]:
        """The reasons that lead from ``node`` to the node that decided for it, and that node."""
        reasons: list[Reason] = []
        while (step := self._next.get(node)) is not None:
            node, reason, _ = step
            reasons.append(reason)
        return reasons, node

    def end(self, node: int) -> int:
        """The node that decided for ``node``."""
        step = self._next.get(node)
        return step[2] if step is not None else node

    def decision(self, node: int) -> tuple[Reason, int]:
        """What decided at a node where a path ends: reason and scope."""
        demand = self._demands.get(node)
        if demand is not None:
            return demand.reason, demand.scope
        return self._choices.get(node, ("default", None, 0)), self.system.domains.scope_of(node)

    def neighbour(self, node: int, reason: Reason) -> int | None:
        """The node in another class that a propagated scope came from."""
        find = self.system.domains.find
        root, scope = find(node), self.system.domains.scope_of(node)
        for edge in self._edges.get((reason[1], reason[2]), ()):
            for here, there in ((edge.src, edge.dst), (edge.dst, edge.src)):
                if find(here) == root != find(there) and self.system.domains.scope_of(there) == scope:
                    return there
        return None

    def placed_neighbour(self, node: int, scope: int) -> int | None:
        """The first node next to ``node``'s class that is on ``scope``: what an open class would follow."""
        find, final = self.system.domains.find, self.system.domains.scope_of
        root = find(node)
        for edge in self.system.edges:
            if edge.kind != FIRM and root in (src := find(edge.src), dst := find(edge.dst)) and src != dst:
                other = edge.dst if src == root else edge.src
                if final(other) == scope:
                    return other
        return None

    @cached_property
    def _edges(self) -> dict[tuple[Operation | None, int], list[Edge]]:
        found: dict[tuple[Operation | None, int], list[Edge]] = {}
        for edges in (self.system.edges, self.system.soft_constraints):
            for edge in edges:
                found.setdefault((edge.op, edge.operand), []).append(edge)
        return found

    def destination(self, op: Operation, operand: int) -> int | None:
        """The node that an operand is used on; None where no scope is asked of it."""
        edges = self._edges.get((op, operand))
        if edges:
            return edges[0].dst
        uses = (use.dst for use in self.system.remat_uses if use.op is op and use.operand == operand)
        return next(uses, None)


class Explainer:
    """Chains of reasons in words, across the systems of a module."""

    def __init__(self, systems: Sequence[System], formatter: DiagnosticFormatter) -> None:
        self.formatter = formatter
        self.provenance = cache(Provenance)
        """The chains of a system, or of the summary that was made of it."""
        self._systems = list(systems)
        self._decision = cache(formatter.reason)  # mostly one for many nodes
        self._note = cache(formatter.note)
        self._positions = cache(_signature_positions)

    def chain_of_value(self, system: System, value: SSAValue) -> list[Note]:
        """Why ``value`` is where it is."""
        views = [self.formatter.note(reason) for reason in view_steps(system, value)]
        # A function value is where its first part is.
        node = system.node_of(value)
        parts = [node] if node < 0 else [*system.domains.first_order(node), HOST_NODE]
        return [*views, *self.chain(system, parts[0])]

    def chain(self, system: System, node: int) -> list[Note]:
        """Why ``node`` is where it is: one note per step, from the node to what decided."""
        if node == HOST_NODE:
            return [Note("scalars are on the host")]
        if node == REMATERIALISED:
            return [self.formatter.note(("rematerialised", None, 0))]
        return list(dict.fromkeys(self._notes(self._steps(system, node))))

    def decision(self, system: System, node: int) -> str:
        """The last step of a node's chain before it leaves the class, in one sentence."""
        if node == REMATERIALISED:
            return self.formatter.reason(("rematerialised", None, 0))
        provenance = self.provenance(system)
        reason, scope = provenance.decision(provenance.end(node))
        return self._decision(reason, system.scopes.short(scope))

    def _notes(self, steps: Iterable[tuple[Reason, str]]) -> Iterator[Note]:
        for reason, scope in steps:
            if reason[0] == "default":
                yield Note(f"no demand reaches it: {self.formatter.default}, {scope}")
            elif reason[1] is not None or reason[0] not in ("same", "use"):
                yield self._note(reason, scope)

    def _steps(self, system: System, node: int) -> Iterator[tuple[Reason, str]]:
        """Reasons, each with the scope that it demands if it is a demand."""
        seen: set[tuple[Provenance, int]] = set()
        place: tuple[Provenance, int] | None = (self.provenance(system), node)
        while place is not None:
            provenance, node = place
            reasons, node = provenance.path(node)
            if (provenance, node) in seen:
                break
            seen.add((provenance, node))
            reason, scope = provenance.decision(node)
            yield from ((link, "") for link in reasons if link != reason)
            yield reason, provenance.system.scopes.short(scope)
            place = self._continuation(provenance, node, reason)

    def _continuation(self, here: Provenance, node: int, reason: Reason) -> tuple[Provenance, int] | None:
        """Where a decision was taken over from."""
        kind, op, _ = reason
        match kind:
            case "propagated" | "preferred":
                neighbour = here.neighbour(node, reason)
                if neighbour is None or kind == "propagated":
                    return (here, neighbour) if neighbour is not None else None
                callee, part = here.system.imported.get(neighbour, (here.system, neighbour))
                inside = self.provenance(callee, summarised=True)
                placed = inside.placed_neighbour(part, here.system.domains.scope_of(neighbour))
                return (inside, placed) if placed is not None else None
            case "callee" if node in here.system.imported:
                callee, part = here.system.imported[node]
                inside = self.provenance(callee, summarised=True)
                # What a loop in there would do is no demand that could be shown.
                is_demand = inside.decision(inside.end(part))[0][0] != "default"
                return (inside, part) if is_demand else None
            case "assigned":
                return self._caller(here.system, node, op)
            case "first_result":
                results = [s.results[0] for s in here.system.signatures.values() if s.op is op and s.results]
                return (here, results[0]) if results else None
            case _:
                return None

    def _caller(self, callee: System, node: int, op: Operation | None) -> tuple[Provenance, int] | None:
        """The node that the call ``op`` has for a signature's ``node``, in the system of the caller."""
        position = self._positions(callee).get(node)
        system, signature = self._sites.get(op, (None, None))
        if position is None or system is None or signature is None:
            return None
        return self.provenance(system), system.domains.first_order(signature.node)[position]

    @cached_property
    def _sites(self) -> dict[Operation | None, tuple[System, Signature]]:
        """Per use of a function, its system and what it has as the function's signature."""
        return {
            site.op: (system, site.signature) for system in reversed(self._systems) for site in system.sites[::-1]
        }


def _signature_positions(system: System) -> dict[int, int]:
    """Per node in a function's signature, which one of that it is."""
    found: dict[int, int] = {}
    for signature in system.signatures.values():
        for position, node in enumerate(system.domains.first_order(signature.node)):
            found.setdefault(node, position)
    return found


def view_steps(system: System, value: SSAValue) -> list[Reason]:
    """The operations between ``value`` and the value that it is a view of: all of them have one node."""
    reasons: list[Reason] = []
    node = system.nodes.get(value, HOST_NODE)
    while node >= 0 and isinstance(op := value.owner, Operation) and op.operands:
        value = op.operands[0]
        if system.nodes.get(value) != node:
            break
        reasons.append(("view", op, 0))
    return reasons
