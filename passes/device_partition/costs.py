"""What candidates cost, in this order: as the user says, as measured, as the backend says, as the machine would.

A file of costs (`cost_file`) has rows of the first two kinds. For what has neither, a backend's own estimate
counts; else the time that the machine description gives: the slower of computing and of moving what goes in and
out, after one launch.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple, Protocol

from xdsl.ir import Attribute, Operation, SSAValue

from devscope.analysis.captured_values import free_values
from devscope.analysis.machine import Machine, nominal_machine
from devscope.dialects.location import source_location
from devscope.errors import LoweringError, raised_as
from devscope.passes.device_partition.candidates import NOBODY, Candidate
from devscope.passes.device_partition.claims import Claim
from devscope.passes.device_partition.cost_file import CostRow
from devscope.passes.device_partition.graph import Graph, is_transparent
from devscope.passes.device_partition.structure import structure_of
from devscope.passes.device_partition.wholes import WHERE, key_of
from devscope.passes.device_plan.min_cost.work import Estimator


class Cost(NamedTuple):
    """Seconds, infinite for what cannot be, and where they come from."""

    seconds: float
    source: str


class CostModel(Protocol):
    """Says what candidates cost."""

    def of(self, graph: Graph, candidate: Candidate) -> Cost: ...
    def copy(self, source: str, destination: str, bytes_: float) -> float:
        """Seconds of a copy between two devices."""
        ...

    def bytes(self, type_: Attribute) -> float:
        """The size of data of a type."""
        ...

    def whole(self, graph: Graph, chosen: Sequence[Candidate]) -> float | None:
        """Seconds of a call of a function where these take its nodes, if that was measured."""
        ...

    @property
    def dynamic_size(self) -> int: ...


@dataclass(frozen=True)
class Costs:
    """Of a machine, with rows that count first."""

    machine: Machine
    rows: Sequence[CostRow] = ()
    _answers: dict[tuple[str, str], float | None] = field(
        default_factory=dict[tuple[str, str], "float | None"], init=False, repr=False, compare=False
    )
    """Of backends, by pattern and structure."""

    @property
    def dynamic_size(self) -> int:
        """Of dimensions that are known at run time only."""
        return self.machine.dynamic_size

    @cached_property
    def _estimator(self) -> Estimator:
        return Estimator(self.machine.dynamic_size, self.machine.trip_count)

    def of(self, graph: Graph, candidate: Candidate) -> Cost:
        if candidate.spec is NOBODY:
            return Cost(0.0, "nothing to do")
        ops = [graph.nodes[node].op for node in sorted(candidate.nodes)]
        said = self._said(candidate, ops) or self._measured(graph, candidate)
        if said is not None:
            return said
        backend = candidate.spec.backend
        if backend is not None:
            each = [self._asked(graph, claim) for claim in candidate.claims]
            if all(seconds is not None for seconds in each):
                return Cost(math.fsum(seconds for seconds in each if seconds is not None), backend.name)
        return Cost(self._roofline(candidate.spec.device, ops), "machine description")

    def _said(self, candidate: Candidate, ops: Sequence[Operation]) -> Cost | None:
        """What rows say: of the whole candidate, else of every operation in it."""
        names, rows = (candidate.spec.name, candidate.spec.device), self._rows_of_users
        whole = next((row for row in rows if row.is_of_pattern(candidate.name, names, ops)), None)
        if whole is not None:
            return Cost(whole.seconds, whole.source)
        each = [next((row for row in rows if row.is_of(op, names)), None) for op in ops]
        if not each or any(row is None for row in each):
            return None
        return Cost(math.fsum(row.seconds for row in each if row is not None), each[0].source if each[0] else "")

    def _measured(self, graph: Graph, candidate: Candidate) -> Cost | None:
        """What was measured: of the candidate, or of each of the matches that it merges."""
        rows = self._rows_by_structure
        if not rows:
            return None
        name = candidate.spec.name
        if candidate.spec.backend is None:
            parts = [("", candidate.nodes)]
        else:
            parts = [(claim.name, claim.nodes) for claim in candidate.claims]
        found = [rows.get((structure_of(graph, nodes), pattern, name)) for pattern, nodes in parts]
        if any(row is None for row in found):
            return None
        return Cost(math.fsum(row.seconds for row in found if row is not None), "measured")

    def _asked(self, graph: Graph, claim: Claim) -> float | None:
        """What a backend says of a match; it is asked once of all that are the same."""
        key = claim.name, structure_of(graph, claim.nodes)
        if key not in self._answers:
            self._answers[key] = _answer(claim)
        return self._answers[key]

    @cached_property
    def _rows_of_users(self) -> Sequence[CostRow]:
        return [row for row in self.rows if not row.structure]

    @cached_property
    def _rows_by_structure(self) -> Mapping[tuple[str, str, str], CostRow]:
        return {(row.structure, row.pattern, row.where): row for row in reversed(self.rows) if row.structure}

    def whole(self, graph: Graph, chosen: Sequence[Candidate]) -> float | None:
        rows = self._rows_by_structure
        if not any(where == WHERE for _, _, where in rows):
            return None
        for candidate in chosen:  # what the user says counts more
            if self._said(candidate, [graph.nodes[node].op for node in sorted(candidate.nodes)]) is not None:
                return None
        key = key_of(graph, chosen)
        row = rows.get(key) if key is not None else None
        return row.seconds if row is not None else None

    def _roofline(self, device: str, ops: Sequence[Operation]) -> float:
        estimator, inside = self._estimator, set(ops)
        flops = math.fsum(estimator.work(op).flops for op in ops)
        taken = {v for op in ops for v in free_values(op) if v.owner not in inside and not _is_uninitialised(v)}
        given = {r for op in ops for r in op.results if any(not _is_in(use.operation, inside) for use in r.uses)}
        if len(ops) == 1:
            moved = estimator.work(ops[0]).bytes
        else:
            moved = float(sum(estimator.bytes(value.type) for value in (*taken, *given)))
        return self.machine.compute_seconds(device, flops, moved)

    def copy(self, source: str, destination: str, bytes_: float) -> float:
        return self.machine.copy_seconds(source, destination, bytes_)

    def bytes(self, type_: Attribute) -> float:
        return float(self._estimator.bytes(type_))


def _answer(claim: Claim) -> float | None:
    """What a backend says of a match."""
    location = source_location(claim.match.root)
    with raised_as(LoweringError, f"the cost of '{claim.name}' failed", location):
        said = claim.backend.cost(claim.match)
        seconds = None if said is None else math.fsum((said,))
    if seconds is not None and not seconds >= 0:
        message = f"the cost of '{claim.name}' is {seconds}, which is no time"
        raise LoweringError(message, location, ["a cost is in seconds, 0 or more, or None"])
    return seconds


def _is_in(op: Operation, inside: set[Operation]) -> bool:
    current: Operation | None = op
    while current is not None:
        if current in inside:
            return True
        current = current.parent_op()
    return False


def _is_uninitialised(value: SSAValue) -> bool:
    return isinstance(value.owner, Operation) and is_transparent(value.owner)


def cost_model(devices: Iterable[str], machine: Machine | None = None, rows: Sequence[CostRow] = ()) -> Costs:
    """Of a machine, where it says nothing of nominal ones; the first device is the host."""
    names = list(dict.fromkeys(devices))
    nominal = nominal_machine(names, names[0])
    return Costs(nominal if machine is None else completed(machine, nominal), rows)


def completed(machine: Machine, nominal: Machine) -> Machine:
    """``machine`` with the devices of ``nominal`` that it does not describe: those that backends bring."""
    return replace(
        machine,
        devices={**nominal.devices, **machine.devices},
        links={**nominal.links, **machine.links},
    )
