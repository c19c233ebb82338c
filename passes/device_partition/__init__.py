"""The pass ``device-partition``: what backends take becomes private functions of theirs.

`analysis.patterns` says what patterns are and where they match, `claims` and `graph` which matches are valid.
`eager` takes them in table order; `candidates`, `costs`, `placement` and `search` choose at the least cost, and
place what nobody takes. `outline` makes the functions. See docs/partitioning.md.

Functions that carry ``device.compiler`` already are left alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from devscope.analysis.symbols import Symbols, has_foreign_body
from devscope.analysis.target_binding import named_devices
from devscope.dialects.target import computes_anything
from devscope.errors import OptionError
from devscope.passes.device_partition.backends import PartitionBackend
from devscope.passes.device_partition.claims import Claims, Refusal
from devscope.passes.device_partition.eager import Claimed, eager_claims, regions_of
from devscope.passes.device_partition.graph import Graph
from devscope.passes.device_partition.outline import Outliner
from devscope.passes.device_partition.report import Decision, Partition, Taken, taken
from devscope.passes.device_partition.sizes import ask_operands
from devscope.passes.device_plan.remarks import Remark

if TYPE_CHECKING:
    from devscope.passes.device_partition.candidates import Candidate
    from devscope.passes.device_partition.costs import CostModel
    from devscope.passes.device_partition.placement import Placed

__all__ = [
    "Decision",
    "DevicePartitionPass",
    "Partition",
    "PartitionBackend",
    "PartitionOptions",
    "Refusal",
    "Taken",
    "offers",
    "partition_module",
    "searched",
]

STRATEGIES = ("eager", "search")


@dataclass(frozen=True)
class PartitionOptions:
    """How to partition. Raises `OptionError` for values that do not exist."""

    strategy: str = "eager"
    devices: Sequence[str] = ("cpu:0",)
    """The devices for which ``search`` may have code generated, the host first."""
    costs: CostModel | None = None
    """Of ``search``; without it, what the machine description gives, or nominal devices."""
    pinned: bool = True
    """Whether arguments and results are on the host."""
    depth: int = 4
    """How many operations in a row ``search`` looks at as one kernel of generated code."""
    backend_depth: int = 4
    """... and as one function of a backend that merges its matches; it also merges what turns out to be
    neighbours.
    """
    time_limit: float = 10.0
    """Seconds of one function after which ``search`` takes the best that it knows."""
    prune: bool = False
    """Look at maximal candidates only, and at smaller ones where these overlap; this may lose the optimum."""
    places: bool = True
    """Whether ``search`` also says where what nobody takes is computed."""

    def __post_init__(self) -> None:
        if self.strategy not in STRATEGIES:
            raise OptionError(
                f"'{self.strategy}' is not a strategy to partition", notes=[f"legal: {', '.join(STRATEGIES)}"]
            )
        for name in ("depth", "backend_depth"):
            if (value := getattr(self, name)) < 1:
                raise OptionError(f"'{name}' is {value}", notes=["it is a number of operations, 1 or more"])
        if not self.time_limit > 0:
            raise OptionError(f"'time_limit' is {self.time_limit}", notes=["it is in seconds, above 0"])


def partition_module(
    module: ModuleOp, backends: Sequence[PartitionBackend], options: PartitionOptions | None = None
) -> Partition:
    """Partition every function of ``module``, in place.

    Raises OptionError and LoweringError, and leaves the module as it was, for backends that cannot be asked.
    """
    options = options or PartitionOptions()
    found, outliner = Partition(options.strategy), Outliner(module)
    if not backends and options.strategy == "eager":
        return found
    functions = _functions(module)
    if options.strategy == "search":
        options = _with_devices(module, backends, options)
    decide = _by_search if options.strategy == "search" else _in_table_order
    decided = [decide(function, backends, options, found) for function in functions]
    for graph, regions, rows in decided:
        names = outliner.outline(graph, regions)
        found.taken += (replace(row, called=name) for row, name in zip(rows, names, strict=True))
    order = {function.sym_name.data: number for number, function in enumerate(functions)}
    found.taken.sort(key=lambda row: order[row.function])
    return found


def offers(
    module: ModuleOp, backends: Sequence[PartitionBackend], options: PartitionOptions
) -> list[tuple[Graph, list[Candidate]]]:
    """What a search has to choose from, per function."""
    from devscope.passes.device_partition.candidates import candidates

    options = _with_devices(module, backends, options)
    graphs = [Graph(function) for function in _functions(module)]
    return [
        (graph, candidates(Claims(graph), backends, options.devices, options.depth, options.backend_depth))
        for graph in graphs
    ]


def searched(module: ModuleOp, backends: Sequence[PartitionBackend], options: PartitionOptions) -> list[Placed]:
    """What a search decides of each function; ``module`` stays what it is."""
    options = _with_devices(module, backends, options)
    return [_placed(function, backends, options)[1] for function in _functions(module)]


def _functions(module: ModuleOp) -> list[FuncOp]:
    """Those with a body that nobody has taken, with sizes asked of operands."""
    found = [
        function
        for function in Symbols(module).functions.values()
        if function.body.blocks and not has_foreign_body(function)
    ]
    for function in found:
        ask_operands(function)
    return found


_Decided = tuple[Graph, list[Claimed], list[Taken]]


def _in_table_order(
    function: FuncOp, backends: Sequence[PartitionBackend], options: PartitionOptions, found: Partition
) -> _Decided:
    graph = Graph(function)
    claims = Claims(graph)
    regions = regions_of(graph, eager_claims(claims, backends))
    found.refusals += claims.refusals(_takers(regions))
    return graph, regions, [taken(graph, sorted(region.nodes), region.name) for region in regions]


def _takers(regions: Sequence[Claimed]) -> dict[int, str]:
    return {node: region.backend.name for region in regions for node in region.nodes}


def _by_search(
    function: FuncOp, backends: Sequence[PartitionBackend], options: PartitionOptions, found: Partition
) -> _Decided:
    from devscope.passes.device_partition.wholes import annotate, claimed_regions

    claims, placed = _placed(function, backends, options)
    graph, offered, result = placed.graph, placed.candidates, placed.found
    regions = claimed_regions(graph, placed.chosen)
    found.placed.append(placed)
    found.decisions.append(
        Decision(
            function.sym_name.data,
            result.seconds,
            result.bound,
            result.complete,
            placed.known,
            len(offered),
            result.states,
        )
    )
    found.refusals += claims.refusals(_takers(regions))
    rows = [taken(graph, sorted(region.nodes), region.name, **placed.details(region.nodes)) for region in regions]
    for candidate in placed.chosen:
        if candidate.spec.device and candidate.spec.backend is None:
            nodes = sorted(candidate.nodes)
            found.taken.append(taken(graph, nodes, candidate.name, **placed.details(candidate.nodes)))
    if placed.several_devices and options.places:
        annotate(graph, placed.chosen)
    return graph, regions, rows


def _placed(
    function: FuncOp, backends: Sequence[PartitionBackend], options: PartitionOptions
) -> tuple[Claims, Placed]:
    from devscope.passes.device_partition.candidates import candidates, pruned
    from devscope.passes.device_partition.placement import Settings, Ways, place

    graph = Graph(function)
    claims = Claims(graph)
    offered = candidates(claims, backends, options.devices, options.depth, options.backend_depth)
    if options.prune:
        offered = pruned(offered)
    asked = {"table order": backends, **{f"{backend.name} alone": [backend] for backend in backends}}
    known: Ways = {
        name: ([(claim.name, claim.nodes) for claim in eager_claims(claims, each)], "")
        for name, each in asked.items()
    }
    known |= {f"{device} alone": ([], device) for device in options.devices}
    assert options.costs is not None
    settings = Settings(options.devices[0], options.pinned, options.time_limit)
    return claims, place(graph, offered, options.costs, settings, known)


def _with_devices(
    module: ModuleOp, backends: Sequence[PartitionBackend], options: PartitionOptions
) -> PartitionOptions:
    """``options`` with the devices that the program names, too, and with costs."""
    from devscope.analysis.machine import nominal_machine
    from devscope.passes.device_partition.costs import Costs

    own = {backend.device for backend in backends}
    found = [*options.devices, *(device for device in named_devices(module) if device not in own)]
    devices = [one for one in dict.fromkeys(found) if computes_anything(one.partition(":")[0])]
    costs = options.costs
    if costs is None:
        costs = Costs(nominal_machine([*devices, *own], devices[0]))
    return replace(options, devices=devices, costs=costs)


@dataclass(frozen=True)
class DevicePartitionPass(ModulePass):
    """Partition the module, see `partition_module`. ``backends`` are written as in ``blas`` or
    ``NAME:OPTION=VALUE``.
    """

    name = "device-partition"

    strategy: str = "eager"
    backends: tuple[str, ...] = ()
    devices: tuple[str, ...] = ("cpu:0",)
    """For which ``search`` may have code generated, the host first."""
    machine: str = ""
    """A file, see `devscope.analysis.machine_file`."""
    costs: str = ""
    """A file, see docs/partitioning.md."""
    depth: int = 4
    backend_depth: int = 4
    time_limit: float = 10.0
    prune: bool = False
    remarks: bool = False
    """Report who took what, and why others did not."""

    def options(self) -> PartitionOptions:
        """The options, checked. Raises `OptionError`."""
        return PartitionOptions(
            self.strategy,
            self.devices,
            depth=self.depth,
            backend_depth=self.backend_depth,
            time_limit=self.time_limit,
            prune=self.prune,
        )

    def __post_init__(self) -> None:
        self.options()

    def _partition(self, module: ModuleOp) -> Partition:
        from devscope.backends.registry import find_backends
        from devscope.passes.device_partition import costs

        backends, options = find_backends(self.backends), self.options()
        if self.strategy == "search":
            from devscope.analysis.machine_file import read_machine
            from devscope.passes.device_partition.cost_file import read_costs

            devices = [*self.devices, *named_devices(module), *(backend.device for backend in backends)]
            machine = read_machine(self.machine) if self.machine else None
            rows = read_costs(self.costs) if self.costs else ()
            options = replace(options, costs=costs.cost_model(devices, machine, rows))
        return partition_module(module, backends, options)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        self._partition(op)

    def apply_with_remarks(self, ctx: Context, op: ModuleOp) -> list[Remark]:
        """As `apply`, for tools that print what it has to say."""
        found = self._partition(op)
        return found.remarks() if self.remarks else []
