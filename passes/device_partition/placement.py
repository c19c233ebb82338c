"""From a graph, candidates and costs to the problem that `search` solves, and back."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from xdsl.ir import BlockArgument, Operation, SSAValue

from devscope.analysis.frequencies import Frequencies
from devscope.analysis.target_binding import device_name
from devscope.analysis.value_flow import ValueFlow
from devscope.analysis.value_kinds import HOST, kind_of
from devscope.dialects.device import ScopeAttr
from devscope.dialects.location import source_location
from devscope.dialects.names import op_name
from devscope.dialects.op_facts import facts_of
from devscope.dialects.scope_attribute import ARGUMENTS, RESULTS, signature_attributes
from devscope.errors import LoweringError
from devscope.passes.device_partition.candidates import Candidate, Order
from devscope.passes.device_partition.costs import Cost, CostModel
from devscope.passes.device_partition.graph import Graph, is_transparent
from devscope.passes.device_partition.search import ANYWHERE, Choice, Found, Problem, Value, cheapest_cover


@dataclass(frozen=True)
class Settings:
    """``host``: where arguments and results are if ``pinned``; else they are wherever they are needed."""

    host: str = "cpu:0"
    pinned: bool = True
    time_limit: float = 10.0
    trip_count: int = 10


@dataclass(frozen=True)
class Placed:
    """The candidates that cover a graph, what each costs per call of the function, and what was known of it
    all.
    """

    graph: Graph
    chosen: tuple[Candidate, ...]
    found: Found
    costs: Mapping[Order, Cost]
    """By `Candidate.order`; of one execution."""
    known: Mapping[str, float]
    """What other partitions cost: eager, and of each backend alone."""
    runners_up: Mapping[Order, tuple[tuple[str, float], ...]]
    """Per chosen candidate, what others would take for the same nodes, cheapest first."""
    candidates: Sequence[Candidate]
    """All that there was to choose from."""
    times: Mapping[Order, float]
    """Per chosen candidate, how often it runs per call of the function."""
    covers: Mapping[str, Sequence[Candidate]]
    """The other partitions, and ``search``: the best by the costs of candidates."""

    @property
    def several_devices(self) -> bool:
        """Whether there was more than one to choose from."""
        return len({candidate.spec.device for candidate in self.candidates if candidate.spec.device}) > 1

    def details(self, nodes: frozenset[int]) -> dict[str, Any]:
        """What the chosen candidates in ``nodes`` cost, who says so, and what others would need."""
        parts = [candidate for candidate in self.chosen if candidate.nodes <= nodes and candidate.spec.device]
        seconds = math.fsum(self.costs[c.order].seconds * self.times[c.order] for c in parts)
        sources = dict.fromkeys(self.costs[candidate.order].source for candidate in parts)
        others = self.runners_up.get(parts[0].order, ()) if len(parts) == 1 else ()
        return {"seconds": seconds, "source": ", ".join(sources), "others": others}


Ways = Mapping[str, tuple[Sequence[tuple[str, frozenset[int]]], str]]
"""Partitions by name: names and nodes of the candidates that they take, and a device for all else, "" for the
best."""


def place(
    graph: Graph,
    found: Sequence[Candidate],
    model: CostModel,
    settings: Settings,
    known: Ways,
) -> Placed:
    """Choose from candidates at the least cost; of partitions that were measured as a whole the best.

    ``known``: partitions that the result is never worse than.
    Raises LoweringError, located, for an operation that nobody can take.
    """
    costs = {candidate.order: model.of(graph, candidate) for candidate in found}
    frequencies = Frequencies(settings.trip_count)
    often = [frequencies.of_block(node.op.parent) if node.op.parent is not None else 1.0 for node in graph.nodes]
    devices = list(dict.fromkeys([settings.host, *(c.spec.device for c in found if c.spec.device)]))
    number_of = {device: number for number, device in enumerate(devices)}
    choices = [
        Choice(
            tuple(sorted(candidate.nodes)),
            _times(costs[candidate.order].seconds, often[min(candidate.nodes)]),
            number_of.get(candidate.spec.device, ANYWHERE),
            number,
        )
        for number, candidate in enumerate(found)
    ]
    values = _values(graph, model, settings, devices, often) if len(devices) > 1 else []
    problem = Problem(len(graph), choices, values)
    covers = {name: cover for name, way in known.items() if (cover := _cover(problem, found, *way)) is not None}
    if not covers and problem.some_cover is None:
        raise _uncoverable(graph, problem, found)
    result = cheapest_cover(problem, list(covers.values()), settings.time_limit)
    covers["search"] = list(result.chosen)
    ways = {name: tuple(found[number] for number in cover) for name, cover in covers.items()}
    seconds = _wholes(graph, ways, model)
    if seconds:
        best = min(reversed(seconds), key=lambda name: seconds[name])  # of equal ones that of the search
        least = seconds[best]
        result = replace(result, chosen=tuple(covers[best]), seconds=least, bound=min(least, result.bound))
    else:
        seconds = {name: problem.seconds(cover) for name, cover in covers.items()}
    chosen = tuple(found[number] for number in result.chosen)
    return Placed(
        graph,
        chosen,
        result,
        costs,
        {name: seconds[name] for name in covers if name != "search"},
        {c.order: _others(c, found, problem) for c in chosen if c.spec.device},
        found,
        {c.order: often[min(c.nodes)] for c in chosen},
        ways,
    )


def _uncoverable(graph: Graph, problem: Problem, found: Sequence[Candidate]) -> LoweringError:
    asked = f"asked: {', '.join(dict.fromkeys(c.spec.name for c in found if c.spec.device)) or 'none'}"
    covered = {node for choice in problem.choices if math.isfinite(choice.seconds) for node in choice.nodes}
    for node in graph.nodes:
        if node.index not in covered:
            message = f"no backend and no device can take '{op_name(node.op)}'"
            return LoweringError(message, source_location(node.op), [asked])
    return LoweringError(
        f"found no backends and devices that take all operations of @{graph.function.sym_name.data}",
        source_location(graph.function),
        [asked, "each can be taken, but only together with others that have to be taken in another way"],
    )


def _wholes(graph: Graph, ways: Mapping[str, Sequence[Candidate]], model: CostModel) -> dict[str, float]:
    """What was measured of partitions as a whole; nothing unless it was of all, which else cannot be compared."""
    found = {name: model.whole(graph, chosen) for name, chosen in ways.items()}
    known = {name: seconds for name, seconds in found.items() if seconds is not None}
    return known if len(known) == len(found) else {}


def _times(seconds: float, often: float) -> float:
    return seconds * often if math.isfinite(seconds) else seconds


def _cover(
    problem: Problem, found: Sequence[Candidate], taken: Sequence[tuple[str, frozenset[int]]], device: str
) -> list[int] | None:
    """Choices for what is taken, and for every other node what generated code, or nobody, takes, on ``device``
    where that can be; None if none can.
    """

    def rank(number: int) -> tuple[bool, float]:
        return found[number].spec.device != device, problem.choices[number].seconds

    named: dict[tuple[str, frozenset[int]], int] = {}
    alone: dict[int, int] = {}
    for number, candidate in enumerate(found):
        seconds = problem.choices[number].seconds
        if not math.isfinite(seconds):
            continue
        named[candidate.name, candidate.nodes] = number
        if len(candidate.nodes) == 1 and candidate.spec.backend is None:
            (node,) = candidate.nodes
            if node not in alone or rank(number) < rank(alone[node]):
                alone[node] = number
    cover = [named.get(one) for one in taken]
    covered = {node for _, nodes in taken for node in nodes}
    cover += [alone.get(node) for node in range(problem.count) if node not in covered]
    complete = [number for number in cover if number is not None]
    return complete if len(complete) == len(cover) else None


def _others(candidate: Candidate, found: Sequence[Candidate], problem: Problem) -> tuple[tuple[str, float], ...]:
    """What the nodes of a candidate cost without it, copies aside: at best, and by each other spec alone."""
    nodes = sorted(candidate.nodes)
    position = {node: number for number, node in enumerate(nodes)}
    inside = [
        (
            other,
            problem.choices[number]._replace(
                nodes=tuple(position[n] for n in sorted(other.nodes)), device=ANYWHERE
            ),
        )
        for number, other in enumerate(found)
        if other.nodes <= candidate.nodes and other is not candidate
    ]
    answers: dict[str, float] = {}
    for name in (None, *dict.fromkeys(other.spec.name for other, _ in inside if other.spec.device)):
        own = [one for one in inside if name is None or one[0].spec.name == name or not one[0].spec.device]
        part = Problem(len(nodes), [choice for _, choice in own])
        if name != candidate.spec.name and part.some_cover is not None:
            best = cheapest_cover(part)
            names = (own[number][0].name for number in best.chosen if own[number][0].spec.device)
            answers.setdefault(_counted(names), best.seconds)
    return tuple(sorted(answers.items(), key=lambda one: (one[1], one[0])))


def _counted(names: Iterable[str]) -> str:
    """Names with how often each stands there: ``cpu:0 x2 + blas.matmul``."""
    return " + ".join(f"{name} x{n}" if n > 1 else name for name, n in Counter(names).items())


def _values(
    graph: Graph, model: CostModel, settings: Settings, devices: Sequence[str], often: Sequence[float]
) -> list[Value]:
    """The data that nodes pass on; views, and what loops and branches carry, are other names of what they show.

    What a loop carries is so needed in each iteration where the next one uses it, once where the first one does,
    and once where what the loop gives is used.
    """
    flow = ValueFlow()
    consumers = _consumers(graph, flow)
    wanted: dict[SSAValue, set[int]] = {}
    for value, device in _results(graph, settings):
        for root in _roots(value, flow) if device in devices else ():
            wanted.setdefault(root, set()).add(devices.index(device))
            consumers.setdefault(root, set())
    placed_arguments = _arguments(graph, settings)
    values: list[Value] = []
    for root, users in consumers.items():
        bytes_ = model.bytes(root.type)
        owner = root.owner
        producer = graph.of.get(owner) if isinstance(owner, Operation) else None
        origin = ANYWHERE
        if producer is None and isinstance(root, BlockArgument):
            device = placed_arguments.get(root)
            origin = devices.index(device) if device in devices else ANYWHERE
        elif producer is None:
            continue
        # A copy of what stands outside of a loop, and of what is used outside only, stands there, too.
        here = often[producer] if producer is not None else 1.0
        at: dict[float, list[int]] = {min(here, 1.0): []} if root in wanted else {}
        for user in sorted(users):
            at.setdefault(min(here, often[user]), []).append(user)
        for times, group in at.items():
            copies = [
                [_times(model.copy(a, b, bytes_), times) if a != b else 0.0 for b in devices] for a in devices
            ]
            want = frozenset(wanted.get(root, ())) if times == min(here, 1.0) else frozenset[int]()
            if producer is None:
                values.append(Value(None, tuple(group), copies, origin, want))
            else:
                values.append(Value(producer, tuple(group), copies, wanted=want))
    return values


def _consumers(graph: Graph, flow: ValueFlow) -> dict[SSAValue, set[int]]:
    """Per piece of data, the nodes that read it."""
    found: dict[SSAValue, set[int]] = {}
    for node in graph.nodes:
        facts = facts_of(node.op)
        if facts.is_entered or facts.view_of is not None or facts.control is not None:
            continue
        for value in node.op.operands:
            for root in _roots(value, flow):
                found.setdefault(root, set()).add(node.index)
    return found


def _roots(value: SSAValue, flow: ValueFlow) -> list[SSAValue]:
    """All data that a value may be: more than one where control flow carries it."""
    found: dict[SSAValue, None] = {}
    seen: set[SSAValue] = set()
    stack = [value]
    while stack:
        root = _root(stack.pop())
        if root is None or root in seen:
            continue
        seen.add(root)
        sources = list(flow.sources(root))
        stack += reversed(sources)
        if not sources:
            found[root] = None
    return list(found)


def _results(graph: Graph, settings: Settings) -> list[tuple[SSAValue, str]]:
    """What the function returns, and the device that it must be on; "" where that is open."""
    function = graph.function
    scopes = signature_attributes(function, RESULTS, len(function.function_type.outputs))
    found: list[tuple[SSAValue, str]] = []
    for block in function.body.blocks:
        last = block.last_op
        if last is not None and op_name(last) == "func.return":
            found += zip(last.operands, (_device(scope, settings) for scope in scopes), strict=True)
    return found


def _root(value: SSAValue) -> SSAValue | None:
    """The data that a value shows; None for scalars, and for what is made where it is needed."""
    while True:
        if kind_of(value.type) == HOST:
            return None
        owner = value.owner
        if not isinstance(owner, Operation):
            return value
        if is_transparent(owner):
            return None
        source = facts_of(owner).view_of
        if source is None:
            return value
        value = owner.operands[source]


def _arguments(graph: Graph, settings: Settings) -> dict[SSAValue, str]:
    function = graph.function
    scopes = signature_attributes(function, ARGUMENTS, len(function.function_type.inputs))
    block = function.body.blocks[0]
    return {value: _device(scope, settings) for value, scope in zip(block.args, scopes, strict=True)}


def _device(scope: object, settings: Settings) -> str:
    if isinstance(scope, ScopeAttr) and scope.type_name:
        return device_name(scope)
    return settings.host if settings.pinned else ""
