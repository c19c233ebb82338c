"""The pass ``device-partition``: what backends take becomes private functions of theirs.

`analysis.patterns` says what patterns are and where they match, `graph` which matches are valid. `eager` takes them
in table order. `outline` makes the functions. See docs/partitioning.md.

Functions that carry ``device.compiler`` already are left alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from devscope.analysis.symbols import Symbols, has_foreign_body
from devscope.errors import OptionError
from devscope.passes.device_partition.backends import PartitionBackend
from devscope.passes.device_partition.claims import Claims, Refusal
from devscope.passes.device_partition.eager import Claimed, eager_claims, regions_of
from devscope.passes.device_partition.graph import Graph
from devscope.passes.device_partition.outline import Outliner

__all__ = ["DevicePartitionPass", "Partition", "PartitionBackend", "PartitionOptions", "partition_module"]

STRATEGIES = ("eager", "search")


@dataclass(frozen=True)
class PartitionOptions:
    """How to partition. Raises `OptionError` for values that do not exist."""

    strategy: str = "eager"

    def __post_init__(self) -> None:
        if self.strategy not in STRATEGIES:
            raise OptionError(
                f"'{self.strategy}' is not a strategy to partition", notes=[f"legal: {', '.join(STRATEGIES)}"]
            )


@dataclass
class Partition:
    """What was decided."""

    taken: list[tuple[str, Claimed]] = field(default_factory=list[tuple[str, Claimed]])
    """Names of functions that are called now, and what they were made of."""
    refusals: list[Refusal] = field(default_factory=list[Refusal])


def partition_module(
    module: ModuleOp, backends: Sequence[PartitionBackend], options: PartitionOptions | None = None
) -> Partition:
    """Partition every function of ``module``, in place."""
    options = options or PartitionOptions()
    found, outliner = Partition(), Outliner(module)
    for function in list(Symbols(module).functions.values()):
        if has_foreign_body(function) or not function.body.blocks or not backends:
            continue
        _partition_function(function, backends, outliner, found)
    return found


def _partition_function(
    function: FuncOp, backends: Sequence[PartitionBackend], outliner: Outliner, found: Partition
) -> None:
    graph = Graph(function)
    claims = Claims(graph)
    regions = regions_of(graph, eager_claims(claims, backends))
    names = outliner.outline(graph, regions)
    found.taken += zip(names, regions, strict=True)
    found.refusals += claims.refusals


@dataclass(frozen=True)
class DevicePartitionPass(ModulePass):
    """Partition the module, see `partition_module`. ``backends`` are written as in ``blas`` or ``NAME:OPTION=VALUE``."""

    name = "device-partition"

    strategy: str = "eager"
    backends: tuple[str, ...] = ()

    def options(self) -> PartitionOptions:
        return PartitionOptions(self.strategy)

    def __post_init__(self) -> None:
        self.options()

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        from devscope.backends.registry import find_backends

        partition_module(op, find_backends(self.backends), self.options())
