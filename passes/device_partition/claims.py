"""Which nodes a backend's patterns match, and why others are not taken."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from xdsl.ir import Operation

from devscope.analysis.patterns.matcher import Match, Matcher, may_root
from devscope.dialects.location import source_location
from devscope.dialects.names import op_name
from devscope.errors import LoweringError
from devscope.passes.device_partition.backends import PartitionBackend, Row, refusal, scope_of
from devscope.passes.device_partition.graph import Graph, Limits, invalid, numbers


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
    op: Operation
    reason: str
    near: bool = False

    @property
    def text(self) -> str:
        what = "nearly matches" if self.near else "does not take"
        name = f"'{op_name(self.op)}'" if self.op.parent is not None else "an operation"
        return f"{self.backend}.{self.pattern} {what} {name}: {self.reason}"


class Claims:
    """Finds claims in one graph, and keeps the reasons of all that are none."""

    def __init__(self, graph: Graph, limits: Limits | None = None) -> None:
        self.graph = graph
        self.refusals: list[Refusal] = []
        self._limits = limits or Limits()

    def at(
        self, backend: PartitionBackend, row: Row, node: int, allowed: Callable[[frozenset[int]], str | None]
    ) -> Claim | None:
        """The first match of a pattern with root ``node`` that is valid, and that ``allowed`` has nothing against."""
        op = self.graph.nodes[node].op
        name, pattern, predicate = row[0], row[1], row[2]
        if not may_root(pattern, op_name(op)):
            return None
        reasons: dict[str, None] = {}
        matcher = Matcher(pattern, explain=True)
        for found in matcher.matches(op):
            match = replace(found, options=backend.options)
            nodes = numbers(self.graph, match.ops)
            reason = (
                "all that it matches is constant"
                if not nodes
                else invalid(self.graph, nodes, scope_of(backend), self._limits) or allowed(nodes)
            )
            if reason is None:
                reason = self._asked(backend, name, predicate, match)
            if reason is None:
                return Claim(backend, name, match, nodes)
            reasons[reason] = None
        for reason in reasons:
            self.refusals.append(Refusal(backend.name, name, op, reason))
        miss = matcher.nearest
        if not reasons and miss is not None and miss.matched:
            self.refusals.append(Refusal(backend.name, name, op, str(miss), near=True))
        return None

    def _asked(
        self, backend: PartitionBackend, name: str, predicate: Callable[[Match], bool | str | None] | None, match: Match
    ) -> str | None:
        try:
            return refusal(predicate, match)
        except Exception as error:
            raise LoweringError(
                f"the predicate of '{backend.name}.{name}' failed: {type(error).__name__}: {error}",
                source_location(match.root),
            ) from error

    def all(self, backend: PartitionBackend) -> Iterator[Claim]:
        """Every claim of a backend, overlapping ones too, by pattern and node."""
        for row in backend.patterns:
            for node in range(len(self.graph)):
                found = self.at(backend, row, node, lambda nodes: None)
                if found is not None:
                    yield found
