"""Partitioning in table order: who comes first takes what it matches.

Backends in the order in which they are named, and the patterns of each in the order of its table, each over the
whole function from its end to its beginning, so that the last operation of a chain is the root of its match.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from devscope.passes.device_partition.backends import PartitionBackend
from devscope.passes.device_partition.claims import Claim, Claims
from devscope.passes.device_partition.graph import Graph, Quotient, merged


@dataclass(frozen=True)
class Claimed:
    """Claims of one backend that become one function."""

    claims: tuple[Claim, ...]

    @property
    def backend(self) -> PartitionBackend:
        return self.claims[0].backend

    @property
    def name(self) -> str:
        """Of its patterns: ``BACKEND.PATTERN``, with ``+`` between several."""
        return f"{self.backend.name}.{'+'.join(claim.pattern for claim in self.claims)}"

    @property
    def nodes(self) -> frozenset[int]:
        return frozenset[int]().union(*(claim.nodes for claim in self.claims))


def eager_claims(claims: Claims, backends: Sequence[PartitionBackend]) -> list[Claim]:
    """The claims that are taken. Each has one exit, to which all of it leads: no two wait for each other."""
    graph = claims.graph
    taken: dict[int, Claim] = {}
    found: list[Claim] = []

    def allowed(nodes: frozenset[int]) -> str | None:
        other = next((taken[node] for node in sorted(nodes) if node in taken), None)
        return f"{other.name} has a part of it already" if other is not None else None

    for backend in backends:
        for row in backend.patterns:
            for node in reversed(range(len(graph))):
                if node in taken:
                    continue
                claim = claims.at(backend, row, node, allowed)
                if claim is not None:
                    found.append(claim)
                    taken.update(dict.fromkeys(claim.nodes, claim))
    return found


def regions_of(graph: Graph, claims: Sequence[Claim]) -> list[Claimed]:
    """Claims as functions: neighbours of a backend that wants so as one; in program order."""
    quotient = Quotient(graph)
    ordered = sorted(claims, key=lambda claim: min(claim.nodes))
    for claim in ordered:
        quotient.add(claim.nodes)
    regions: list[Claimed] = []
    for name in dict.fromkeys(claim.backend.name for claim in ordered):
        own = [claim for claim in ordered if claim.backend.name == name]
        groups = merged(graph, quotient, [claim.nodes for claim in own]) if own[0].backend.merge else None
        regions += [Claimed(tuple(own[n] for n in group)) for group in groups or [[n] for n in range(len(own))]]
    return sorted(regions, key=lambda region: min(region.nodes))
