"""Programs that are partitioned, with backends that only claim, and costs that tests say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from xdsl.dialects.builtin import ModuleOp

from devscope.dialects.context import make_planning_context
from devscope.dialects.target import TargetKind, register_target_kind
from devscope.lowering.interop.session import Session
from devscope.parsed_source import parse_source
from devscope.passes.device_partition import Partition, PartitionOptions, partition_module
from devscope.passes.device_partition.candidates import NOBODY, Candidate
from devscope.passes.device_partition.costs import Cost
from devscope.passes.device_partition.graph import Graph


@pytest.fixture(scope="module", autouse=True)
def registered_kinds(registries: None) -> None:  # pyright: ignore[reportUnusedParameter]
    """Makes the claimers' kinds known to the tests of a module that imports this fixture."""
    for name, device in (("byoc", "cpu"), ("second", "cpu"), ("board", "board")):
        register_target_kind(TargetKind(name, device))


@dataclass(frozen=True)
class Claimer:
    """A backend as partitioning sees one."""

    name: str
    patterns: Sequence[Any]
    device: str = "cpu:0"
    merge: bool = True
    options: dict[str, Any] = field(default_factory=dict[str, Any], hash=False)
    said: float | None = None

    def cost(self, match: Any) -> float | None:
        return self.said


@dataclass
class Mock:
    """An operation costs what is said of its spec, one behind another of the same candidate 0.9 times as much."""

    base: dict[str, float]
    per_copy: float = 0.0
    asked: list[Candidate] = field(default_factory=list[Candidate])

    def of(self, graph: Graph, candidate: Candidate) -> Cost:
        if candidate.spec is NOBODY:
            return Cost(0.0, "")
        self.asked.append(candidate)
        base = self.base[candidate.spec.name.partition(":")[0]]
        return Cost(sum(base * 0.9**position for position in range(len(candidate.nodes))), "mock")

    def whole(self, graph: Graph, chosen: Sequence[Candidate]) -> float | None:
        return None

    def copy(self, source: str, destination: str, bytes_: float) -> float:
        return self.per_copy

    def bytes(self, value: Any) -> float:
        return 1.0


def module_of(text: str) -> tuple[Session, ModuleOp]:
    parsed = parse_source(text)
    session = Session(make_planning_context(), parsed.context)
    return session, session.to_xdsl(parsed.module)


def partitioned(text: str, backends: Sequence[Any], **options: Any) -> tuple[str, Partition]:
    """The text of a partitioned program, in which MLIR verified all, and what was decided."""
    from devscope.cli.printing import module_text

    session, module = module_of(text)
    found = partition_module(module, backends, PartitionOptions(**options))
    return module_text(session.to_mlir(module)), found


def chain(body: str, results: str = "%r", count: int = 1) -> str:
    """A function ``@f`` of one argument ``%x``, all of whose values are of one type."""
    types = ", ".join(["!t"] * count)
    text = f"func.func @f(%x: !t) -> ({types}) {{\n{body}\n  return {results} : {types}\n}}"
    return text.replace("!t", "tensor<8xf32>")
