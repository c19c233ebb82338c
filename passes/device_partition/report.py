"""Who took what, and why: what `devscope plan` shows of a partition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from devscope.analysis.machine import duration
from devscope.dialects.location import source_location
from devscope.dialects.names import op_name
from devscope.errors import SourceLocation
from devscope.passes.device_partition.claims import Refusal
from devscope.passes.device_partition.graph import Graph
from devscope.passes.device_plan.remarks import Remark

if TYPE_CHECKING:
    from devscope.passes.device_partition.placement import Placed


@dataclass(frozen=True)
class Taken:
    """Operations that somebody took: ``by`` a pattern of a backend, or a device for which code is generated."""

    function: str
    by: str
    operations: tuple[str, ...]
    location: SourceLocation | None
    called: str = ""
    """The function that was made of them."""
    seconds: float | None = None
    """Of one call of the function; None where nobody asked."""
    source: str = ""
    """Who says so."""
    others: tuple[tuple[str, float], ...] = ()
    """What others would have needed for the same operations, the cheapest first."""

    @property
    def price(self) -> str:
        """What it costs, and what the next best would."""
        if self.seconds is None:
            return ""
        text = f", {duration(self.seconds)} ({self.source})"
        return text + (f"; {self.others[0][0]} would need {duration(self.others[0][1])}" if self.others else "")


@dataclass(frozen=True)
class Decision:
    """Of one function. ``seconds``: what it all costs, with copies; ``bound``: what no partition is below."""

    function: str
    seconds: float
    bound: float
    complete: bool
    known: Mapping[str, float]
    """What other partitions would cost: in table order, and of each backend alone."""
    candidates: int
    states: int


@dataclass
class Partition:
    """What was decided."""

    strategy: str = "eager"
    taken: list[Taken] = field(default_factory=list[Taken])
    refusals: list[Refusal] = field(default_factory=list[Refusal])
    decisions: list[Decision] = field(default_factory=list[Decision])
    placed: list[Placed] = field(default_factory=list["Placed"], repr=False)

    def offers(self) -> list[dict[str, Any]]:
        """Every candidate of a search: who, which operations, where the last stands, the seconds, and who says
        so.
        """
        return [
            {
                "function": placed.graph.function.sym_name.data,
                "by": candidate.name,
                "nodes": sorted(candidate.nodes),
                "operations": [op_name(placed.graph.nodes[node].op) for node in sorted(candidate.nodes)],
                "location": str(source_location(placed.graph.nodes[max(candidate.nodes)].op) or ""),
                "seconds": placed.costs[candidate.order].seconds,
                "source": placed.costs[candidate.order].source,
                "chosen": candidate in placed.chosen,
            }
            for placed in self.placed
            for candidate in placed.candidates
            if candidate.spec.device
        ]

    def remarks(self) -> list[Remark]:
        """Who took what, then why others did not."""
        found = [
            Remark("remark", f"{', '.join(row.operations)}: taken by {row.by}{row.price}", row.location)
            for row in self.taken
        ]
        return [*found, *(Remark("remark", one.message, one.location) for one in self.refusals)]

    def to_json(self) -> dict[str, Any]:
        """For programs; locations as text."""

        def plain(one: Any) -> dict[str, Any]:
            found = asdict(one)
            if "location" in found:
                found["location"] = str(one.location) if one.location is not None else None
            return found

        parts = {"taken": self.taken, "refusals": self.refusals, "decisions": self.decisions}
        return {"strategy": self.strategy, **{name: [plain(one) for one in each] for name, each in parts.items()}}


def taken(graph: Graph, nodes: Sequence[int], by: str, **details: Any) -> Taken:
    """A row for nodes that are still there."""
    ops = [graph.nodes[node].op for node in nodes]
    where = source_location(ops[-1])
    return Taken(graph.function.sym_name.data, by, tuple(op_name(op) for op in ops), where, **details)
