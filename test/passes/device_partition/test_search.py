"""The search itself: against all covers of random problems, on random programs, and its limits."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from partitioned import Claimer, Mock, chain, module_of, partitioned
from partitioned import registered_kinds as registered_kinds

from devscope.dialects.names import op_name
from devscope.errors import LoweringError
from devscope.passes.device_partition import PartitionOptions, partition_module
from devscope.passes.device_partition.candidates import Candidate
from devscope.passes.device_partition.costs import Cost
from devscope.passes.device_partition.graph import Graph
from devscope.passes.device_partition.search import ANYWHERE, Choice, Problem, Value, cheapest_cover
from devscope.patterns import elementwise, op, wildcard

SECONDS = st.sampled_from([0.0, 0.5, 1.0, 1.5, 2.0, 3.25, 7.0])
MAYBE_NEVER = st.one_of(SECONDS, SECONDS, st.just(math.inf))


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    count, devices = draw(st.integers(1, 6)), draw(st.integers(1, 3))
    nodes = st.lists(st.integers(0, count - 1), min_size=1, max_size=4, unique=True)
    choices = [Choice((node,), draw(MAYBE_NEVER), draw(st.integers(0, devices - 1))) for node in range(count)]
    for _ in range(draw(st.integers(0, 8))):
        device = draw(st.integers(ANYWHERE, devices - 1))
        choices.append(Choice(tuple(sorted(draw(nodes))), draw(MAYBE_NEVER), device))
    values: list[Value] = []
    for _ in range(draw(st.integers(0, 4))):
        copies = [[0.0 if a == b else draw(SECONDS) for b in range(devices)] for a in range(devices)]
        producer = draw(st.one_of(st.none(), st.integers(0, count - 1)))
        consumers = draw(st.lists(st.sampled_from(range(count)), unique=True))  # loops carry values back
        wanted = frozenset(draw(st.lists(st.integers(0, devices - 1), max_size=1)))
        origin = draw(st.integers(ANYWHERE, devices - 1)) if producer is None else -2
        values.append(Value(producer, tuple(sorted(consumers)), copies, origin, wanted))
    return Problem(count, choices, values)


def covers(
    problem: Problem, covered: frozenset[int] = frozenset(), chosen: tuple[int, ...] = ()
) -> Sequence[float]:
    """What every cover costs."""
    first = next((node for node in range(problem.count) if node not in covered), None)
    if first is None:
        return [problem.seconds(chosen)]
    return [
        seconds
        for number, choice in enumerate(problem.choices)
        if first in choice.nodes and not covered & set(choice.nodes)
        for seconds in covers(problem, covered | set(choice.nodes), (*chosen, number))
    ]


@settings(max_examples=150, deadline=None)
@given(problems())
def test_it_finds_the_cheapest_of_all_covers(problem: Problem) -> None:
    least = min(covers(problem), default=math.inf)
    assert (problem.some_cover is not None) == math.isfinite(least)
    if problem.some_cover is None:
        return
    assert sorted(node for number in problem.some_cover for node in problem.choices[number].nodes) == [
        *range(problem.count)
    ]
    found = cheapest_cover(problem)
    assert found.complete
    assert found.seconds == pytest.approx(least)
    assert problem.seconds(found.chosen) == pytest.approx(found.seconds)
    assert cheapest_cover(problem) == found
    soon = cheapest_cover(problem, time_limit=0.0)
    assert soon.bound <= found.seconds <= soon.seconds == pytest.approx(problem.seconds(soon.chosen))


@st.composite
def programs(draw: st.DrawFn) -> str:
    """Up to 12 operations, each on values before it."""
    values, body = ["%x"], ""
    for number in range(draw(st.integers(1, 12))):
        name = draw(st.sampled_from(["math.tanh", "math.absf", "arith.addf", "arith.mulf"]))
        operands = [draw(st.sampled_from(values[-4:])) for _ in range(2 if name.startswith("arith") else 1)]
        body += f"  %{number} = {name} {', '.join(operands)} : !t\n"
        values.append(f"%{number}")
    results = draw(st.lists(st.sampled_from(values[1:]), min_size=1, max_size=3, unique=True))
    return chain(body, ", ".join(results), len(results))


ONE = Claimer(
    "byoc",
    [
        ("tanh_add", elementwise("add", op("math.tanh", wildcard()), wildcard()), None),
        ("tanh", op("math.tanh", wildcard()), None),
        ("add", elementwise("add", wildcard(), wildcard()), None),
    ],
)
TWO = Claimer(
    "board", [("abs", op("math.absf", wildcard()).optional(lambda a: op("math.tanh", a)), None)], "board:0"
)


@settings(max_examples=40, deadline=None)
@given(programs(), st.tuples(SECONDS, SECONDS, SECONDS, SECONDS), st.booleans())
def test_it_is_never_worse_than_table_order_or_one_backend(
    text: str, seconds: tuple[float, float, float, float], merge: bool
) -> None:
    cpu, byoc, board, copy = seconds
    costs = Mock({"cpu": cpu + 0.1, "byoc": byoc, "board": board}, copy)
    one = Claimer("byoc", ONE.patterns, merge=merge)
    first, found = partitioned(text, [one, TWO], strategy="search", costs=costs)
    (decision,) = found.decisions
    assert decision.complete
    assert {"table order", "byoc alone", "board alone", "cpu:0 alone"} == {*decision.known}
    assert all(decision.seconds <= other * (1 + 1e-9) for other in decision.known.values())
    again, _ = partitioned(text, [one, TWO], strategy="search", costs=costs)
    assert first == again  # MLIR verified both: nothing waits for itself


def test_copies_decide() -> None:
    """A device that is faster takes a chain if what it saves is more than the copies there and back."""
    board = Claimer("board", [("tanh", op("math.tanh", wildcard()), None)], "board:0", merge=False)
    body = "  %0 = math.tanh %x : !t\n  %1 = math.tanh %0 : !t\n  %r = math.tanh %1 : !t\n"

    def takers(copy: float) -> set[str]:
        costs = Mock({"cpu": 3, "board": 2}, copy)
        _, found = partitioned(chain(body), [board], strategy="search", costs=costs, depth=1)
        return {row.by for row in found.taken}

    assert takers(1.4) == {"board.tanh"}
    assert takers(1.6) == {"cpu:0"}


LOOP = """  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c10 = arith.constant 10 : index
  %r = scf.for %i = %c0 to %c10 step %c1 iter_args(%a = %x) -> (!t) {
    %0 = math.tanh %a : !t
    REST
  }
"""


@pytest.mark.parametrize(
    ("rest", "copies"),
    [
        ("scf.yield %0 : !t", 2),
        ("%1 = math.absf %0 : !t\n    scf.yield %1 : !t", 21),
        ("%1 = arith.addf %0, %a : !t\n    scf.yield %1 : !t", 21),
        ("%d = tensor.dim %0, %c0 : !t\n    %1 = math.absf %x : !t\n    scf.yield %1 : !t", 11),
        ("%d = tensor.dim %0, %c0 : !t\n    scf.yield %a : !t", 1),
    ],
    ids=[
        "stays there",
        "goes there and back",
        "is used beside it",
        "comes from elsewhere",
        "is carried unchanged",
    ],
)
def test_copies_of_what_loops_carry(rest: str, copies: int) -> None:
    """Of ten iterations: one of what the loop begins with, one per iteration where another device gives what is
    carried, or needs what is made, one of what the loop ends with."""
    board = Claimer("board", [("tanh", op("math.tanh", wildcard()), None)], "board:0", merge=False)

    def decided(copy: float) -> tuple[bool, float]:
        costs = Mock({"cpu": 3, "board": 2}, copy)
        _, found = partitioned(chain(LOOP.replace("REST", rest)), [board], strategy="search", costs=costs, depth=1)
        (decision,) = found.decisions
        return "board.tanh" in {row.by for row in found.taken}, decision.seconds

    (_, free), (is_taken, some), (is_taken_still, _) = decided(0.0), decided(0.125), decided(11.0)
    assert (is_taken, is_taken_still) == (True, False)
    assert some - free == 0.125 * copies


def test_copies_of_what_branches_give() -> None:
    """A branch that is on another device is left half of the times."""
    board = Claimer("board", [("tanh", op("math.tanh", wildcard()), None)], "board:0", merge=False)
    body = """  %c = arith.constant true
  %r = scf.if %c -> (!t) {
    %0 = math.tanh %x : !t
    scf.yield %0 : !t
  } else {
    scf.yield %x : !t
  }
"""
    costs = Mock({"cpu": 3, "board": 2}, 0.125)
    _, found = partitioned(chain(body), [board], strategy="search", costs=costs)
    (decision,) = found.decisions
    assert decision.seconds == (2 + 2 * 0.125) / 2


@pytest.mark.parametrize("merge", [False, True])
@pytest.mark.parametrize("names", [("cheap", "dear"), ("dear", "cheap")])
def test_patterns_that_match_the_same(merge: bool, names: tuple[str, str]) -> None:
    """All are candidates, also where matches are merged."""

    class ByPattern(Mock):
        def of(self, graph: Graph, candidate: Candidate) -> Cost:
            own = [1.0 if claim.pattern == "cheap" else 5.0 for claim in candidate.claims]
            return Cost(sum(own), "mock") if own else super().of(graph, candidate)

    one = Claimer("byoc", [(name, op("math.tanh", wildcard()), None) for name in names], merge=merge)
    body = "  %0 = math.tanh %x : !t\n  %r = math.tanh %0 : !t\n"
    _, found = partitioned(chain(body), [one], strategy="search", costs=ByPattern({"cpu": 3.0}))
    (decision,) = found.decisions
    assert decision.seconds == 2.0
    assert decision.known["table order"] == (2.0 if names[0] == "cheap" else 10.0)


def test_generated_code_is_placed_too() -> None:
    body = "  %0 = math.tanh %x : !t\n  %r = math.absf %0 : !t\n"
    costs = Mock({"cpu": 3, "opencl": 1}, 1)
    text, _ = partitioned(chain(body), [], strategy="search", costs=costs, devices=("cpu:0", "opencl:0"))
    assert text.count("device.scope = #opencl0") == 2


def test_annotations_hold() -> None:
    dev = '{device.scope = #device.scope<"opencl", 0 : i64, "", "">}'
    body = f"  %0 = math.tanh %x {dev} : !t\n  %r = math.tanh %0 : !t\n"
    text, found = partitioned(
        chain(body), [ONE], strategy="search", costs=Mock({"cpu": 3, "byoc": 1, "opencl": 9})
    )
    assert [(row.by, len(row.operations)) for row in found.taken] == [("opencl:0", 1), ("byoc.tanh", 1)]
    assert "tanh %arg0 {device.scope = #opencl0}" in text


def test_nobody_can_take_it() -> None:
    body = "  %r = math.tanh %x : !t\n"
    with pytest.raises(LoweringError, match=r"no backend and no device can take 'math\.tanh'"):
        partitioned(chain(body), [ONE], strategy="search", costs=Mock({"cpu": math.inf, "byoc": math.inf}))


def test_nobody_can_take_all_of_it() -> None:
    """Each operation could be taken, but only together with one that somebody else would have to take, too."""
    pair = Claimer("byoc", [("pair", op("math.tanh", op("math.tanh", wildcard())), None)], merge=False)
    body = "  %0 = math.tanh %x : !t\n  %1 = math.tanh %0 : !t\n  %r = math.tanh %1 : !t\n"
    with pytest.raises(LoweringError, match=r"found no backends and devices that take all operations of @f"):
        partitioned(chain(body), [pair], strategy="search", costs=Mock({"cpu": math.inf, "byoc": 1.0}))


@pytest.mark.parametrize("last", [0, 50])
def test_that_there_is_no_cover_is_known_soon(last: int) -> None:
    """Of two operations that can only be taken together with the same one, behind a hundred with many ways."""
    pairs = [*((n, n + 50) for n in range(50)), *((n, n + 25) for n in range(75)), (100, 0), (101, last)]
    problem = Problem(102, [Choice(tuple(sorted(nodes)), 1.0) for nodes in pairs])
    start = time.process_time()
    assert (problem.some_cover is None) == (last == 0)
    assert time.process_time() - start < 2.0


def _large(count: int) -> str:
    """Residual blocks: every fourth operation adds what went in three before."""
    body, residual = "", "%x"
    for number in range(count):
        before = f"%{number - 1}" if number else "%x"
        if number % 4 == 3:
            body += f"  %{number} = arith.addf {before}, {residual} : !t\n"
            residual = f"%{number}"
        else:
            body += f"  %{number} = {['math.tanh', 'math.absf'][number % 2]} {before} : !t\n"
    return chain(body, f"%{count - 1}")


def test_hundred_operations_are_searched_soon() -> None:
    _, module = module_of(_large(100))
    costs = Mock({"cpu": 3.0, "byoc": 2.9, "board": 2.0, "opencl": 2.5}, 1.0)
    options = PartitionOptions("search", ("cpu:0", "opencl:0"), costs)
    start = time.process_time()
    found = partition_module(module, [ONE, TWO], options)
    assert time.process_time() - start < 2.0
    assert found.decisions[0].complete


def test_operations_with_many_operands_are_searched_soon() -> None:
    """Of those that may be fused with one of 40 operands there are 2^40 sets."""
    body = "".join(f"  %{n} = math.tanh %x : !t\n" for n in range(40))
    operands, types = ", ".join(f"%{n}" for n in range(40)), ", ".join(["!t"] * 40)
    body += f"  %s = tensor.concat dim(0) {operands} : ({types}) -> tensor<320xf32>\n"
    body += "  %r = tensor.extract_slice %s[0] [8] [1] : tensor<320xf32> to !t\n"
    _, module = module_of(chain(body))
    start = time.process_time()
    partition_module(module, [], PartitionOptions("search", costs=Mock({"cpu": 3.0})))
    assert time.process_time() - start < 2.0


class NeverFirst(Mock):
    """What generated code cannot add, and the first pattern neither."""

    def of(self, graph: Graph, candidate: Candidate) -> Cost:
        adds = any(op_name(graph.nodes[node].op) == "arith.addf" for node in candidate.nodes)
        if adds and [claim.pattern for claim in candidate.claims] != ["second"]:
            return Cost(math.inf, "mock")
        return super().of(graph, candidate)


@pytest.mark.parametrize("model", [Mock, NeverFirst])
def test_limit_of_time(model: type[Mock]) -> None:
    """The best that is known, and how much better one might be; where table order and each backend alone take what
    they cannot compute, some cover."""
    body = "".join(f"  %{n} = math.tanh %x : !t\n" for n in range(40))
    body += "  %s0 = arith.addf %0, %1 : !t\n"
    body += "".join(f"  %s{n} = arith.addf %s{n - 1}, %{n + 1} : !t\n" for n in range(1, 39))
    costs = model({"cpu": 3.0, "byoc": 2.9, "board": 2.0, "opencl": 2.5}, 1.0)
    options = {"devices": ("cpu:0", "opencl:0"), "costs": costs, "time_limit": 1e-3}
    add = elementwise("add", wildcard(), wildcard())
    one = Claimer("byoc", [*ONE.patterns, ("first", add, None), ("second", add, None)])
    _, found = partitioned(chain(body, "%s38"), [one, TWO], strategy="search", **options)
    (decision,) = found.decisions
    assert not decision.complete
    assert bool(decision.known) == (model is Mock)
    assert 0 < decision.bound <= decision.seconds <= min(decision.known.values(), default=decision.seconds)
    assert math.isfinite(decision.seconds)
