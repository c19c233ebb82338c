"""What there is to choose from: sets of nodes, each with who would take it.

A *spec* is who takes nodes: a backend; code generated for a device; nobody, for what needs not be lowered.
Backends offer what their patterns match, generated code every operation by itself. Neighbours are combined, up to
a depth: for generated code by the kinds of operations that it can fuse; for backends that merge their matches,
any.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from devscope.dialects.device import ScopeAttr
from devscope.dialects.names import op_name
from devscope.dialects.op_facts import facts_of
from devscope.passes.device_partition.backends import PartitionBackend
from devscope.passes.device_partition.claims import Claim, Claims
from devscope.passes.device_partition.graph import Graph, Limits, invalid
from devscope.passes.device_partition.kinds import MAY_FOLLOW, Kind, kind_of

_MOST = 128
"""Candidates of one spec that end with the same operation: of one with 20 operands there are a million."""

_FOREIGN = "stablehlo.custom_call"
"""What a backend takes of these devscope cannot compile."""


@dataclass(frozen=True)
class Spec:
    """Who takes nodes. ``device`` is "" where nothing runs; ``backend`` is None for generated code."""

    name: str
    device: str = ""
    backend: PartitionBackend | None = None


NOBODY = Spec("host")
"""For control flow, views, calls, copies: they are not lowered, and cost nothing by themselves."""


Order = tuple[tuple[int, ...], str, str]


@dataclass(frozen=True)
class Candidate:
    """Nodes that ``spec`` would take, as ``name``. ``claims``: the matches of backends that they are."""

    spec: Spec
    nodes: frozenset[int]
    name: str
    claims: tuple[Claim, ...] = ()

    @property
    def order(self) -> Order:
        """Candidates in this order are in the same order whenever they are found."""
        return (tuple(sorted(self.nodes)), self.spec.name, self.name)


def candidates(
    claims: Claims,
    backends: Sequence[PartitionBackend],
    devices: Sequence[str],
    depth: int,
    backend_depth: int,
) -> list[Candidate]:
    """All candidates of a graph, in a fixed order; code is generated for ``devices``."""
    graph = claims.graph
    found: dict[Order, Candidate] = {}
    for backend in backends:
        spec = Spec(backend.name, backend.device, backend)
        own = [Candidate(spec, claim.nodes, claim.name, (claim,)) for claim in claims.all(backend)]
        found.update((candidate.order, candidate) for candidate in own)
        if backend.merge:
            own = combined(graph, own, ScopeAttr.parse_text(backend.device), backend_depth, lambda up, down: True)
            found.update((candidate.order, candidate) for candidate in own)
    claimed = dict.fromkeys(claim.nodes for one in found.values() for claim in one.claims)
    for device in devices:
        found.update((candidate.order, candidate) for candidate in _generated(graph, device, depth, claimed))
    for node in graph.nodes:
        if not must_be_lowered(graph, node.index):
            candidate = Candidate(NOBODY, frozenset((node.index,)), "host")
            found[candidate.order] = candidate
    return [found[key] for key in sorted(found)]


def must_be_lowered(graph: Graph, node: int) -> bool:
    """Whether somebody must take a node: it computes or moves data, and is nothing that the host does by
    itself.
    """
    op = graph.nodes[node].op
    return graph.nodes[node].may_be_taken and facts_of(op).view_of is None


def _generated(graph: Graph, device: str, depth: int, claimed: Collection[frozenset[int]]) -> list[Candidate]:
    """What code is generated for as one kernel, and all that a backend matches: to compare like with like."""
    scope = ScopeAttr.parse_text(device)
    spec = Spec(device, device)
    kinds = {node.index: kind_of(node.op) for node in graph.nodes}
    foreign = {node for nodes in claimed for node in nodes if op_name(graph.nodes[node].op) == _FOREIGN}
    single = [
        Candidate(spec, frozenset((node.index,)), device)
        for node in graph.nodes
        if must_be_lowered(graph, node.index) and node.scope.join(scope) is not None and node.index not in foreign
    ]

    def fuses(up: frozenset[int], down: frozenset[int]) -> bool:
        first, second = (max(kinds[node] for node in nodes) for nodes in (up, down))
        return any(first <= most and second <= then for most, then in MAY_FOLLOW)

    whole = [one for one in single if kinds[min(one.nodes)] is not Kind.OPAQUE]
    rest = [one for one in single if kinds[min(one.nodes)] is Kind.OPAQUE]
    own = [*rest, *combined(graph, whole, scope, depth, fuses)]
    known, possible = {one.nodes for one in own}, {min(one.nodes) for one in single}
    matched = [nodes for nodes in claimed if nodes not in known and nodes <= possible]
    return [*own, *(Candidate(spec, nodes, device) for nodes in matched)]


def combined(
    graph: Graph,
    single: Iterable[Candidate],
    scope: ScopeAttr,
    depth: int,
    may_follow: Callable[[frozenset[int], frozenset[int]], bool],
) -> list[Candidate]:
    """Candidates and their valid unions, of up to ``depth`` operations in a row; of equal nodes the first."""
    pool, limits = _Pool(graph), Limits(exits=1, depth=depth)
    new = [candidate for candidate in single if pool.add(candidate)]
    depths = {candidate.nodes: graph.depth(candidate.nodes) for candidate in new}
    while new:
        fresh: dict[frozenset[int], Candidate] = {}
        for candidate in new:
            for upstream, downstream in pool.touching(candidate):
                union = upstream.nodes | downstream.nodes
                if union in pool.known or union in fresh or upstream.nodes & downstream.nodes:
                    continue
                if depths[upstream.nodes] + depths[downstream.nodes] > depth and depth:
                    continue
                if not may_follow(upstream.nodes, downstream.nodes) or invalid(graph, union, scope, limits):
                    continue
                ordered = sorted((*upstream.claims, *downstream.claims), key=lambda claim: sorted(claim.nodes))
                names = "+".join(claim.pattern for claim in ordered)
                name = f"{candidate.spec.name}.{names}" if names else candidate.name
                fresh[union] = Candidate(candidate.spec, union, name, tuple(ordered))
                depths[union] = graph.depth(union)
        new = [candidate for candidate in fresh.values() if pool.add(candidate)]
    return list(pool.known.values())


class _Pool:
    """Candidates of one spec, each with a single exit: its last node."""

    def __init__(self, graph: Graph) -> None:
        self.known: dict[frozenset[int], Candidate] = {}
        self._graph = graph
        self._having: dict[int, list[Candidate]] = {}
        self._ending: dict[int, list[Candidate]] = {}

    def add(self, candidate: Candidate) -> bool:
        """Whether it is a new one, and not one too many."""
        ending = self._ending.setdefault(max(candidate.nodes), [])
        if candidate.nodes in self.known or len(ending) >= _MOST:
            return False
        self.known[candidate.nodes] = candidate
        ending.append(candidate)
        for node in candidate.nodes:
            self._having.setdefault(node, []).append(candidate)
        return True

    def touching(self, candidate: Candidate) -> list[tuple[Candidate, Candidate]]:
        """Pairs of which the second uses what the first makes, with ``candidate`` in one of the places."""
        graph, nodes = self._graph, candidate.nodes
        pairs: list[tuple[Candidate, Candidate]] = []
        users = sorted({user for node in nodes for user in graph.outputs[node] if user not in nodes})
        for user in users[:1]:  # all users of a single exit must be inside
            pairs += ((candidate, other) for other in self._having.get(user, ()))
        for source in sorted({source for node in nodes for source in graph.inputs[node] if source not in nodes}):
            pairs += ((other, candidate) for other in self._ending.get(source, ()))
        return pairs


def pruned(found: Sequence[Candidate]) -> list[Candidate]:
    """The maximal candidates of each spec, and smaller ones where those overlap. A heuristic: it may lose the
    best.

    Where kept candidates of a spec overlap without being equal, they are taken out, and the next smaller ones
    looked for, until nothing is found any more.
    """
    kept: dict[Order, Candidate] = {}
    for name in dict.fromkeys(candidate.spec.name for candidate in found):
        pool = sorted(
            (one for one in found if one.spec.name == name), key=lambda one: (-len(one.nodes), one.order)
        )
        while pool:
            largest: list[Candidate] = []
            for one in pool:
                if not any(one.nodes < other.nodes for other in largest):
                    largest.append(one)
            kept.update((one.order, one) for one in largest)
            overlapping = [
                one for one in largest if any(one is not two and one.nodes & two.nodes for two in largest)
            ]
            if not overlapping:
                break
            gone = {one.order for one in overlapping}
            pool = [one for one in pool if one.order not in gone]
            if not any(one.order not in kept for one in pool):
                break
    return [kept[key] for key in sorted(kept)]
