"""Measures what the candidates of a partition take: each is compiled by itself and timed, warm.

Candidates that are the same, whatever they are called, are timed once; of a backend's merged matches each by
itself. Sizes that are not known are as the machine description says. What is timed on a device is a call with its
copies in and out, less what the description says of these.

Then what a search makes of that, and what it competes with, are timed as they run, in turn: whole functions.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, ModuleOp, StringAttr, TensorType
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Region

from devscope.agreement import random_array
from devscope.api import compile
from devscope.compile_options import CompileOptions
from devscope.dialects.names import op_name
from devscope.errors import DevscopeError, LoweringError
from devscope.frontends.mlir import read_module
from devscope.machine_name import machine_name
from devscope.partitioning import Offers, offers_of
from devscope.passes.device_partition.candidates import Candidate
from devscope.passes.device_partition.cost_file import CostRow
from devscope.passes.device_partition.costs import CostModel
from devscope.passes.device_partition.graph import Graph
from devscope.passes.device_partition.outline import outlined
from devscope.passes.device_partition.placement import Placed
from devscope.passes.device_partition.structure import structure_of
from devscope.passes.device_partition.wholes import key_of, partitioned_alone
from devscope.runtime.dtypes import ENTRY_DTYPES
from devscope.runtime.executable import Executable
from devscope.runtime.program import TensorSpec

Key = tuple[str, str, str]
"""Structure, pattern and place of a row."""

REPEATS = 5
"""Times, of which the median counts."""

LONG_ENOUGH = 2e-3
"""Seconds that are timed at least, by several calls if one takes less."""

WARM_UP = 0.02
"""Seconds of calls before."""

TURNS = 3
"""Of partitions as a whole, each timed once per turn: what disturbs the machine disturbs all of them."""

_ALIGNMENT = 64
_LEAST_SHARE = 0.1
"""Of a call, what it computes takes at least this share."""


@dataclass(frozen=True)
class Subject:
    """One candidate to time; ``name`` is for people."""

    graph: Graph
    candidate: Candidate
    structure: str

    @property
    def name(self) -> str:
        ops = [self.graph.nodes[node].op for node in sorted(self.candidate.nodes)]
        return f"{self.candidate.name}: {', '.join(map(op_name, ops))}"


class Profiler:
    """The candidates of a program; ``seconds`` times calls. Raises as planning does."""

    def __init__(
        self, source: Any, options: CompileOptions, seconds: Callable[[Callable[[], object]], float] | None = None
    ) -> None:
        self._time = seconds or _median
        self._offers: Offers = offers_of(source, options)
        self._options = options
        self.machine = machine_name()
        self.left_out: list[tuple[str, str]] = []
        """What could not be timed, and why."""
        self.subjects = list(self._subjects())

    def _subjects(self) -> Iterator[Subject]:
        seen: set[tuple[str, str]] = set()
        for graph, candidates in self._offers.candidates:
            for candidate in candidates:
                if not candidate.spec.device or len(candidate.claims) > 1:
                    continue
                structure = structure_of(graph, candidate.nodes)
                if (structure, candidate.name) not in seen:
                    seen.add((structure, candidate.name))
                    yield Subject(graph, candidate, structure)

    def measured(self, known: Sequence[CostRow]) -> Iterator[tuple[Subject, CostRow | None, bool]]:
        """Per subject the row that it has now, None if it could not be timed, and whether ``known`` had it.

        What cannot be compiled takes forever, and is tried again the next time.
        """
        finite = (row for row in known if row.structure and math.isfinite(row.seconds))
        had = {(row.structure, row.pattern, row.where, row.machine): row for row in finite}
        for subject in self.subjects:
            spec = subject.candidate.spec
            pattern = subject.candidate.name if spec.backend is not None else ""
            row = had.get((subject.structure, pattern, spec.name, self.machine))
            if row is not None:
                yield subject, row, True
                continue
            try:
                seconds = self._seconds(subject)
            except DevscopeError as error:
                self.left_out.append((subject.name, error.message))
                if not isinstance(error, LoweringError):
                    yield subject, None, False
                    continue
                seconds = math.inf
            yield subject, CostRow(spec.name, seconds, "", pattern, "", subject.structure, self.machine), False

    def wholes(self, rows: Sequence[CostRow]) -> Iterator[tuple[str, CostRow | None, bool]]:
        """Of every function the partitions that a search compares, as `measured`; ``rows``: what that gave.

        One by itself is compared with nothing. Arguments that may be on devices are not made up.
        """
        if self._options.arguments != "host":
            return
        had = {(row.structure, row.pattern, row.where): row for row in rows if row.machine == self.machine}
        for placed in self._offers.search([row for row in rows if row.machine in ("", self.machine)]):
            ways = {key: (name, c) for name, c in placed.covers.items() if (key := key_of(placed.graph, c))}
            if len(ways) < 2:
                continue
            new = {key: way for key, way in ways.items() if key not in had}
            times = self._in_turn(placed, new)
            for key, (name, _) in ways.items():
                row, label = had.get(key), f"{placed.graph.function.sym_name.data}: {name}"
                if row is None and key in times:
                    structure, partition, where = key
                    row = CostRow(where, times[key], "", partition, "", structure, self.machine)
                yield label, row, key in had

    def _in_turn(self, placed: Placed, ways: Mapping[Key, tuple[str, Sequence[Candidate]]]) -> dict[Key, float]:
        """The median time per call of each partition that can be compiled."""
        unknown = self._offers.costs.dynamic_size
        types = placed.graph.function.function_type.inputs.data
        runs: dict[Key, Callable[[], object]] = {}
        try:
            values = [_argument(type_, number, unknown) for number, type_ in enumerate(map(_tensor, types))]
        except DevscopeError as error:
            self.left_out += ((name, error.message) for name, _ in ways.values())
            return {}
        for key, (name, chosen) in ways.items():
            module = partitioned_alone(placed.graph, chosen, placed.several_devices)
            try:
                executable = self._loaded(module, "cpu:0", False)
            except DevscopeError as error:
                self.left_out.append((name, error.message))
                continue
            runs[key] = partial(executable, *values)
        times: dict[Key, list[float]] = {key: [] for key in runs}
        for _ in range(TURNS):
            for key, run in runs.items():
                times[key].append(self._time(run))
        return {key: statistics.median(found) for key, found in times.items()}

    def _seconds(self, subject: Subject) -> float:
        module, types = standalone(subject.graph, subject.candidate)
        device = subject.candidate.spec.device
        generated = subject.candidate.spec.backend is None
        with self._loaded(module, device if generated else "cpu:0", generated) as executable:
            taken, given = types
            unknown = self._offers.costs.dynamic_size
            values = [_argument(type_, number, unknown) for number, type_ in enumerate(taken)]
            seconds = self._time(lambda: executable(*values))
        copied = _copies(self._offers.costs, device, taken) + _copies(self._offers.costs, device, given, True)
        return max(seconds - copied, seconds * _LEAST_SHARE)

    def _loaded(self, module: ModuleOp, default: str, generated: bool) -> Executable:
        source = replace(read_module(self._offers.session.to_mlir(module)), literals=self._offers.literals)
        return compile(source, default=default, arguments="open" if generated else "host", cache=False)


def _copies(costs: CostModel, device: str, types: Iterable[Any], back: bool = False) -> float:
    if device == "cpu:0":
        return 0.0
    ends = (device, "cpu:0") if back else ("cpu:0", device)
    return sum(costs.copy(*ends, costs.bytes(type_)) for type_ in types)


def standalone(graph: Graph, candidate: Candidate) -> tuple[ModuleOp, tuple[Sequence[Any], Sequence[Any]]]:
    """A module whose ``@main`` does what a candidate does, and the types that it takes and gives.

    Raises DevscopeError for arguments that are neither tensors nor sizes.
    """
    members = [graph.nodes[node].op for node in sorted(candidate.nodes)]
    backend = candidate.spec.backend
    function, inputs, outputs = outlined(members, backend, candidate.name if backend is not None else None)
    types = [_tensor(value.type) for value in inputs], [value.type for value in outputs]
    if backend is None:
        function.properties["sym_name"] = StringAttr("main")
        function.properties.pop("sym_visibility", None)
        return ModuleOp([function]), types
    function.properties["sym_name"] = StringAttr("claimed")
    block = Block(arg_types=types[0])
    call = CallOp("claimed", block.args, types[1])
    block.add_ops([call, ReturnOp(*call.results)])
    return ModuleOp([FuncOp("main", types, Region(block)), function]), types


def _tensor(type_: Attribute) -> TensorType[Any] | IndexType:
    """Raises DevscopeError for types of which there are no arguments to time with."""
    if not isinstance(type_, TensorType | IndexType):
        raise DevscopeError(f"an argument is {type_}: only tensors and sizes are made up")
    return type_


def _argument(type_: Any, number: int, unknown: int) -> Any:
    """Random numbers. Sizes that are not known are ``unknown``, and so are numbers of type index, which are sizes
    mostly.

    Data is at multiples of 64 bytes, as programs and frameworks allocate it. numpy's own is sometimes at 16 more,
    where one product of oneDNN's takes 3.1 ms instead of 4.4: what is timed would differ from run to run.
    """
    if isinstance(type_, IndexType):
        return unknown
    element = str(type_.element_type)
    if element not in ENTRY_DTYPES:
        raise DevscopeError(f"an argument is of {element}: such are not timed")
    shape = [None if size == DYNAMIC_INDEX else size for size in type_.get_shape()]
    return _aligned(random_array((0, number), TensorSpec(element, shape), unknown))


def _aligned(array: NDArray[Any]) -> NDArray[Any]:
    memory = np.empty(array.nbytes + _ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    copy = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def _median(call: Any) -> float:
    """Seconds of one call: the median of several times, warm."""
    end = time.perf_counter() + WARM_UP
    calls, first = 0, time.perf_counter()
    while calls < 2 or time.perf_counter() < end:
        call()
        calls += 1
    each = (time.perf_counter() - first) / calls
    runs = max(1, int(LONG_ENOUGH / each))
    times: list[float] = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        for _ in range(runs):
            call()
        times.append((time.perf_counter() - begin) / runs)
    return statistics.median(times)


def merged(old: Sequence[CostRow], new: Sequence[CostRow]) -> list[CostRow]:
    """Rows of the user first, then measured ones, each once."""

    def key(row: CostRow) -> tuple[str, str, str, str]:
        return row.structure, row.pattern, row.where, row.machine

    said = [row for row in old if not row.structure]
    measured: Mapping[Any, CostRow] = {key(row): row for row in [*old, *new] if row.structure}
    return [*said, *(measured[one] for one in sorted(measured))]
