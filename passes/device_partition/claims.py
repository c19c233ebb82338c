"""Which nodes a backend's patterns match, and why others are not taken."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from devscope.analysis.patterns.matcher import Matcher
from devscope.analysis.patterns.matches import Match
from devscope.analysis.patterns.roots import may_root
from devscope.dialects.location import source_location
from devscope.dialects.names import op_name
from devscope.errors import LoweringError, SourceLocation, raised_as
from devscope.passes.device_partition.backends import PartitionBackend, Row, refusal, scope_of
from devscope.passes.device_partition.graph import Graph, Limits, invalid, numbers

Allowed = Callable[[frozenset[int]], str | None]
"""What there is against taking nodes; None if nothing."""


@dataclass(frozen=True)
class Claim:
    """Nodes that a pattern of a backend matched; ``pattern`` is its name without the backend's."""

    backend: PartitionBackend
    pattern: str
    match: Match
    nodes: frozenset[int]

    @property
    def name(self) -> str:
        return f"{self.backend.name}.{self.pattern}"


@dataclass(frozen=True)
class Refusal:
    """Why a match of a backend's pattern was not taken, or why a pattern nearly matched (``near``)."""

    backend: str
    pattern: str
    op: str
    """The name of the root."""
    location: SourceLocation | None
    reason: str
    near: int = 0
    """How many operations nearly matched; 0 for a match that was not taken."""

    @property
    def text(self) -> str:
        where = f"{self.location}: " if self.location is not None else ""
        return f"{where}{self.message}"

    @property
    def message(self) -> str:
        """What to say at the location."""
        what = "nearly matches" if self.near else "does not take"
        return f"{self.backend}.{self.pattern} {what} '{self.op}': {self.reason}"


class Claims:
    """Finds claims in one graph, and keeps the reasons of all that are none."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._refusals: dict[Refusal, int] = {}
        """Each with its root."""
        self._matched: set[tuple[str, int]] = set()
        """Backends, and nodes at which a pattern of theirs matched."""
        self._all: dict[tuple[str, str, int], list[Claim]] = {}
        """By backend, pattern and root, where all were asked for."""

    def refusals(self, taken: Mapping[int, str]) -> list[Refusal]:
        """What to say of nodes that a backend did not take; ``taken``: by whom nodes were.

        Of patterns that nearly match, the one that got furthest, where none matched.
        """
        found = {one: node for one, node in self._refusals.items() if taken.get(node) != one.backend}
        matched = self._matched | {(one.backend, node) for one, node in found.items() if not one.near}
        nearest: dict[tuple[str, int], Refusal] = {}
        for one, node in found.items():
            best = nearest.get((one.backend, node))
            if one.near and (best is None or one.near > best.near):
                nearest[one.backend, node] = one
        return [
            one
            for one, node in found.items()
            if not one.near or ((one.backend, node) not in matched and nearest[one.backend, node] is one)
        ]

    def at(self, backend: PartitionBackend, row: Row, node: int, allowed: Allowed) -> Claim | None:
        """The first match of a pattern with root ``node`` that is valid, and that ``allowed`` has nothing
        against.
        """
        known = self._all.get((backend.name, row[0], node))
        if known is not None:
            return next((claim for claim in known if allowed(claim.nodes) is None), None)
        return next(self._each(backend, row, node, allowed), None)

    def all(self, backend: PartitionBackend) -> Iterator[Claim]:
        """Every claim of a backend, overlapping ones too, by pattern and node."""
        for row in backend.patterns:
            for node in range(len(self.graph)):
                found = [*self._each(backend, row, node, lambda nodes: None)]
                self._all[backend.name, row[0], node] = found
                yield from found

    def _each(self, backend: PartitionBackend, row: Row, node: int, allowed: Allowed) -> Iterator[Claim]:
        op = self.graph.nodes[node].op
        name, pattern, predicate = row[0], row[1], row[2]
        if not may_root(pattern, op_name(op)):
            return
        reasons: dict[str, None] = {}
        seen: set[frozenset[int]] = set()
        matcher = Matcher(pattern, explain=True)
        where = source_location(op)
        matches = matcher.matches(op)
        while True:
            with raised_as(LoweringError, f"the pattern '{backend.name}.{name}' failed", where):
                found = next(matches, None)
            if found is None:
                break
            match = replace(found, options=backend.options)
            nodes = numbers(self.graph, match.ops)
            if nodes in seen:
                continue
            reason = self._against(backend, nodes) or allowed(nodes)
            if reason is None:
                with raised_as(LoweringError, f"the predicate of '{backend.name}.{name}' failed", where):
                    reason = refusal(predicate, match)
            if reason is None:
                seen.add(nodes)
                self._matched.add((backend.name, node))
                yield Claim(backend, name, match, nodes)
            else:
                reasons[reason] = None
        if seen:
            return
        for reason in reasons:
            self._refusals[Refusal(backend.name, name, op_name(op), where, reason)] = node
        miss = matcher.nearest
        if not reasons and miss is not None and miss.matched:
            self._refusals[Refusal(backend.name, name, op_name(op), where, str(miss), miss.matched)] = node

    def _against(self, backend: PartitionBackend, nodes: frozenset[int]) -> str | None:
        if not nodes:
            return "all that it matches is constant"
        return invalid(self.graph, nodes, scope_of(backend), Limits())
