"""Propagation to open classes: where to put those in which nothing executes and which no rule decides.

Such are arguments, results and carried values that only placed operations touch. Each follows a neighbour: onto
the scope that costs the fewest copies, and of copies those count most that stand in the most loops. So a loop
around placed operations carries its values where these are, whatever stands before and after it. Among equals
a use wins over a definition, and the first wins.

The choices depend on each other, through nested loops and calls. They are made for the innermost classes first and
then revised, one by one and neighbours together, as long as that saves copies. To take the first placed neighbour
in one or two passes was tried, see docs/planner.md: copy motion does not make up for the copies that it costs.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from xdsl.ir import Operation, SSAValue

from devscope.analysis.loops import LoopNest
from devscope.dialects.op_facts import Control, facts_of
from devscope.passes.device_plan.domains import PLACED, Reason
from devscope.passes.device_plan.edges import BOUNDARY, LOOSE, Edge, SoftConstraint
from devscope.passes.device_plan.scope_table import CONFLICT
from devscope.passes.device_plan.system import System

_ROUNDS = 8
"""Rounds of revision. Each saves copies, so there is an end; mostly the second finds nothing to do."""

_TOGETHER = 12
"""How many classes are revised together at most."""


class Neighbour(NamedTuple):
    """An edge between a class and a neighbour, seen from the class."""

    edge: Edge
    node: int
    """The neighbour's."""
    value: SSAValue
    """What flows, annotations looked through."""
    depth: int
    """In how many loops a copy on this edge stands."""

    @property
    def is_user(self) -> bool:
        """Whether the value flows from the class to the neighbour."""
        return self.node == self.edge.dst


def propagate(system: System, followers: set[int]) -> None:
    """Give open classes a scope from next door; those that follow what is placed join ``followers``, by root."""
    edges = [*system.edges.of_kind(LOOSE, BOUNDARY), *system.soft_constraints]
    progress = bool(edges or system.remat_uses)
    while progress:
        progress = _Propagation(system, edges, followers).run() or _follow_placed_constants(system, followers)


def _call_depths(system: System, nest: LoopNest) -> dict[int, int]:
    """Per class that a function value is called with, in how many loops such a call stands at most."""
    depths: dict[int, int] = {}
    for edge in system.edges if any(site.op.name == "func.constant" for site in system.sites) else ():
        for node, op in ((edge.dst, edge.op), (edge.src, edge.value.owner)):
            if isinstance(op, Operation) and facts_of(op).control is Control.CALL_INDIRECT:
                root = system.domains.find(node)
                depths[root] = max(nest.of_op(op), depths.get(root, 0))
    return depths


def _is_open(system: System, root: int) -> bool:
    """Whether a class has no device yet, and placing it places no computation."""
    return not system.domains.computes[root] and not system.scopes.has_type[system.domains.scope[root]]


def _follow_placed_constants(system: System, followers: set[int]) -> bool:
    """A carried value that only a placed constant flows into is where the constant was placed."""
    progress = False
    for use in system.remat_uses:
        root = system.domains.find(use.dst)
        scope = system.remat_scopes.get(system.root(use.value))
        if scope is None or not system.scopes.has_type[scope] or not _is_open(system, root):
            continue
        if system.domains.demand(root, scope, ("propagated", use.op, use.operand)):
            followers.add(root)
            progress = True
    return progress


class _Propagation:
    """One round: all open classes choose, then take what they chose."""

    def __init__(self, system: System, edges: Sequence[Edge], followers: set[int]) -> None:
        self._system = system
        self._followers = followers
        self._chosen: dict[int, int] = {}
        """Per root, the number of the scope."""
        self._followed: dict[int, tuple[int, list[Neighbour]]] = {}
        """Per root that follows a neighbour: the number of its demand, and neighbours that could be its reason.
        The first one is."""
        self._neighbours = self._collect(edges)

    def _collect(self, edges: Sequence[Edge]) -> dict[int, list[Neighbour]]:
        """Per open class, its edges: loose ones first, uses before definitions."""
        system, find = self._system, self._system.domains.find
        nest = LoopNest(system.graphs)
        called: dict[int, int] | None = None
        groups: dict[int, tuple[list[Neighbour], ...]] = {}
        for edge in edges:
            src, dst = find(edge.src), find(edge.dst)
            open_ends = [root for root in (src, dst) if _is_open(system, root)] if src != dst else []
            if not open_ends:
                continue
            value = system.root(edge.value)
            depth = nest.of_copy(value, edge.op)
            if isinstance(edge, SoftConstraint):
                # A body that does not get what it prefers copies in every call.
                called = _call_depths(system, nest) if called is None else called
                depth = max(nest.of_op(edge.op), called.get(src, 0), called.get(dst, 0))
            for root in open_ends:
                other = edge.dst if root == src else edge.src
                group = groups.setdefault(root, ([], [], [], []))[2 * (edge.kind == BOUNDARY) + (root == dst)]
                group.append(Neighbour(edge, other, value, depth))
        return {root: [neighbour for group in found for neighbour in group] for root, found in groups.items()}

    @cached_property
    def _uses(self) -> dict[SSAValue, list[Edge]]:
        """All uses of the values that flow into these classes: where one needs a copy, that copy is there."""
        uses: dict[SSAValue, list[Edge]] = {
            neighbour.value: []
            for found in self._neighbours.values()
            for neighbour in found
            if not neighbour.is_user
        }
        for edge in self._system.edges:
            if (value := edge.value) in uses:
                uses[value].append(edge)
        return uses

    def run(self) -> bool:
        """Choose, and write the choices into the classes; whether there were any."""
        order = sorted(self._neighbours, key=lambda root: -max(n.depth for n in self._neighbours[root]))
        for _ in range(_ROUNDS):
            if not any([self._choose(root) for root in order]):
                break
        for _ in range(_ROUNDS):
            if not any([self._choose_together(root) for root in order if root in self._chosen]):
                break
        progress = any([self._take(root) for root in order if root in self._chosen])
        self._break_circles()
        return progress

    # Choosing

    def _scope(self, node: int, trial: Mapping[int, int]) -> int | None:
        """The scope of a neighbour, as far as it is known by now."""
        system = self._system
        root = system.domains.find(node)
        scope = trial.get(root, self._chosen.get(root, system.domains.scope[root]))
        if system.scopes.has_type[scope]:
            return scope
        # Nothing is known that would keep computation from the default scope.
        return system.scopes.closed(scope, system.default) if system.domains.computes[root] else None

    def _choose(self, root: int) -> bool:
        """Take the best scope in view; whether that is a change."""
        own = self._chosen.get(root)
        candidates = [*([own] if own is not None else ()), *self._candidates(root)]
        if not candidates:  # The own one is kept, unless another one is better.
            return False
        self._chosen[root] = self._best([root], candidates)
        return self._chosen[root] != own

    def _choose_together(self, root: int) -> bool:
        """Move a class and the neighbours that are where it is, as many as it takes to save copies."""
        own = self._chosen[root]
        for scope in self._candidates(root):
            group, seen, number = [root], {root}, 0
            while number < len(group) and scope != own:
                if number and self._best(group[: number + 1], (own, scope)) == scope:
                    self._chosen.update(dict.fromkeys(group[: number + 1], scope))
                    return True
                for neighbour in self._neighbours[group[number]]:
                    other = self._system.domains.find(neighbour.node)
                    if self._chosen.get(other) == own and other not in seen and len(group) < _TOGETHER:
                        seen.add(other)
                        group.append(other)
                number += 1
        return False

    def _candidates(self, root: int) -> list[int]:
        """The scopes of the neighbours that a class may follow, each once, in order of preference."""
        neighbours, scopes = self._neighbours[root], self._system.scopes
        shallowest = min(neighbour.depth for neighbour in neighbours)
        found: dict[int, None] = {}
        for neighbour in neighbours:
            scope = self._scope(neighbour.node, {}) if self._may_follow(neighbour, shallowest) else None
            if scope is not None and scopes.join(scope, self._system.domains.scope_of(root)) != CONFLICT:
                found[scope] = None
        return list(found)

    def _may_follow(self, neighbour: Neighbour, shallowest: int) -> bool:
        """Whether a class may follow this neighbour.

        Not out of an annotation, which TVM's rule is not to follow, unless the value is carried around a loop.
        """
        edge = neighbour.edge
        if edge.kind == LOOSE and not neighbour.is_user and not self._system.flags[edge.src] & PLACED:
            return neighbour.depth > shallowest
        return True

    def _best(self, group: Sequence[int], scopes: Sequence[int]) -> int:
        """The scope, the first among equals, on which ``group`` costs the fewest copies."""
        if len(scopes) == 1:
            return scopes[0]
        touched = {neighbour.edge: neighbour for root in group for neighbour in self._neighbours[root]}
        return min(scopes, key=lambda scope: self._cost(touched, dict.fromkeys(group, scope)))

    def _cost(self, touched: Mapping[Edge, Neighbour], trial: Mapping[int, int]) -> list[int]:
        """Copies per loop depth, the deepest first. One value is copied once per destination."""
        copies: dict[tuple[SSAValue, int], int] = {}
        deepest = 0
        for edge, _, value, depth in touched.values():
            deepest = max(deepest, depth)
            src, dst = self._scope(edge.src, trial), self._scope(edge.dst, trial)
            if src is None or dst is None or self._system.scopes.join(src, dst) != CONFLICT:
                continue
            others = (other for other in self._uses.get(value, ()) if other not in touched)
            if not any(self._scope(other.dst, trial) == dst for other in others):
                copies[value, dst] = max(depth, copies.get((value, dst), 0))
        depths = Counter(copies.values())
        return [depths[depth] for depth in range(deepest, -1, -1)]

    # Taking

    def _take(self, root: int) -> bool:
        """Write the choice into the class: follow what is placed, else be one with a neighbour."""
        scope, domains = self._chosen[root], self._system.domains
        agreeing = [neighbour for neighbour in self._neighbours[root] if self._scope(neighbour.node, {}) == scope]
        for edge, other, value, depth in agreeing:
            if edge.kind == BOUNDARY and domains.find(other) not in self._followers:
                continue
            if domains.demand(root, scope, _reason(edge)):
                self._followers.add(domains.find(root))
                others = [neighbour for neighbour in agreeing if neighbour.edge is not edge]
                reason = Neighbour(edge, other, value, depth)
                self._followed[root] = len(domains.demands) - 1, [reason, *others]
                return True
        return any(domains.unify(edge.src, edge.dst, edge.reason) for edge, _, _, _ in agreeing)

    def _break_circles(self) -> None:
        """Let no two classes give each other as reason: each chain leads to a class that chose before.

        The first neighbour that agrees may have nothing but this class, with which it moved to save copies.
        """
        find, demands = self._system.domains.find, self._system.domains.demands
        pending: dict[int, tuple[list[int], list[Neighbour]]] = {}
        for root, (number, neighbours) in self._followed.items():
            numbers, all_neighbours = pending.setdefault(find(root), ([], []))
            numbers.append(number)
            all_neighbours += neighbours
        # First with the reasons that they have; others are for the classes of circles, and what follows these.
        for most in (1, None):
            followers: dict[int, list[tuple[int, Neighbour]]] = {}
            for root, (_, neighbours) in pending.items():
                for neighbour in neighbours[:most]:
                    followers.setdefault(find(neighbour.node), []).append((root, neighbour))
            settled = [root for root in followers if root not in pending]
            for one in settled:
                for root, neighbour in followers.get(one, ()):
                    if root in pending:
                        for number in pending.pop(root)[0]:
                            demands[number] = demands[number]._replace(reason=_reason(neighbour.edge))
                        settled.append(root)


def _reason(edge: Edge) -> Reason:
    return "preferred" if isinstance(edge, SoftConstraint) else "propagated", edge.op, edge.operand
