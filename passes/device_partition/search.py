"""The cheapest way to cover all nodes: a shortest path over covered sets, with copies between devices (Collage's).

A state is what is covered, and where the values are that what is not covered needs. As the order in which nodes
are covered does not matter, only choices that have the first uncovered node are tried. What is left costs at
least the cheapest share of each node, which makes the search an A*; the first goal that it reaches is the optimum.

A value lies where its producer runs. It is copied from there, once per device that needs it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from heapq import heappop, heappush
from typing import NamedTuple

from devscope.passes.device_partition.exact_cover import some_cover

ANYWHERE = -1
"""The device of choices that run nowhere in particular, and that copy nothing."""

_UNKNOWN = -2
_CHECKED_EVERY = 64


class Choice(NamedTuple):
    """Nodes that can be covered together, at this cost; ``number`` is the caller's."""

    nodes: tuple[int, ...]
    seconds: float
    device: int = ANYWHERE
    number: int = 0


@dataclass(frozen=True)
class Value:
    """What nodes pass on. ``producer`` is None for an argument, which is on device ``origin``.

    ``copies[source][destination]`` are seconds; ``wanted``: devices that need it in any case.
    """

    producer: int | None
    consumers: tuple[int, ...]
    copies: Sequence[Sequence[float]]
    origin: int = _UNKNOWN
    wanted: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Problem:
    """Nodes 0 to ``count`` - 1, which ``choices`` cover."""

    count: int
    choices: Sequence[Choice]
    values: Sequence[Value] = ()

    @cached_property
    def by_first(self) -> Mapping[int, list[int]]:
        """The choices whose first node each is."""
        found: dict[int, list[int]] = {node: [] for node in range(self.count)}
        for number, choice in enumerate(self.choices):
            if math.isfinite(choice.seconds):
                found[min(choice.nodes)].append(number)
        return found

    @cached_property
    def some_cover(self) -> tuple[int, ...] | None:
        """One of finite cost, see `exact_cover`; None if none was found."""
        return some_cover(self)

    def seconds(self, chosen: Iterable[int]) -> float:
        """What a cover costs, with its copies."""
        choices = [self.choices[number] for number in chosen]
        owner = {node: choice for choice in choices for node in choice.nodes}
        total = math.fsum(choice.seconds for choice in choices)
        for value in self.values:
            producer = owner[value.producer] if value.producer is not None else None
            origin = producer.device if producer is not None else value.origin
            needed = set(value.wanted)
            needed |= {owner[node].device for node in value.consumers if owner[node] is not producer}
            if origin != ANYWHERE:
                total += sum(value.copies[origin][device] for device in needed - {ANYWHERE, origin})
        return total


@dataclass(frozen=True)
class Found:
    """A cover. ``bound``: no cover costs less; it is ``seconds`` where the search came to its end."""

    chosen: tuple[int, ...]
    seconds: float
    bound: float
    complete: bool
    states: int = 0


class _State(NamedTuple):
    """``first``: the first node that is not covered; bit i of ``rest`` says whether node ``first`` + i is.

    ``live``: values that nodes on both sides touch, each with its origin, and the devices that need it so far.
    """

    first: int
    rest: int
    live: tuple[tuple[int, int, int], ...]


@dataclass
class _Search:
    problem: Problem
    least: list[float] = field(init=False)
    """Per node, the least that it costs to cover it and those behind it."""
    touched: list[list[tuple[int, bool, bool]]] = field(init=False)
    """Per choice, the values that it makes or takes from outside: number, made, taken."""

    def __post_init__(self) -> None:
        problem = self.problem
        share = [math.inf] * problem.count
        for choice in problem.choices:
            for node in choice.nodes:
                share[node] = min(share[node], choice.seconds / len(choice.nodes))
        self.share = share
        made: dict[int, list[int]] = {}
        taken: dict[int, list[int]] = {}
        for number, value in enumerate(problem.values):
            if value.producer is not None:
                made.setdefault(value.producer, []).append(number)
            for node in value.consumers:
                taken.setdefault(node, []).append(number)
        self.touched = []
        for choice in problem.choices:
            makes = {number for node in choice.nodes for number in made.get(node, ())}
            takes = {number for node in choice.nodes for number in taken.get(node, ())} - makes
            self.touched.append([(n, n in makes, n in takes) for n in sorted(makes | takes)])
        self.nodes = [
            sum(
                1 << node for node in {*value.consumers, *([value.producer] if value.producer is not None else [])}
            )
            for value in problem.values
        ]
        self.needs = [sum(1 << device for device in value.wanted) for value in problem.values]

    def step(self, state: _State, number: int) -> tuple[_State, float] | None:
        """The state after a choice that has the first uncovered node, and what it costs; None if they overlap."""
        choice = self.problem.choices[number]
        covered = _with(state.first, state.rest, choice.nodes)
        if covered is None:
            return None
        first, rest = covered
        seconds = choice.seconds
        live = {value: (origin, needs) for value, origin, needs in state.live}
        for value, makes, _ in self.touched[number]:
            origin, needs = live.get(value) or (self.problem.values[value].origin, self.needs[value])
            copies = self.problem.values[value].copies
            if makes:
                origin = choice.device
                if origin != ANYWHERE:
                    seconds += sum(copies[origin][d] for d in _devices(needs) if d != origin)
            elif choice.device != ANYWHERE and not needs >> choice.device & 1:
                needs |= 1 << choice.device
                if origin not in (_UNKNOWN, ANYWHERE, choice.device):
                    seconds += copies[origin][choice.device]
            live[value] = origin, needs
        kept = tuple(
            sorted(
                (value, origin, needs)
                for value, (origin, needs) in live.items()
                if (self.nodes[value] >> first) & ~rest
            )
        )
        return _State(first, rest, kept), seconds

    def lower_bound(self, number: int) -> float:
        return math.fsum(self.share[node] for node in self.problem.choices[number].nodes)

    def completion(self, state: _State) -> list[int] | None:
        """Choices that cover what a state leaves, each the best next one; None where that ends before all is."""
        chosen: list[int] = []
        while state.first < self.problem.count:
            steps = [
                (stepped[1] - self.lower_bound(number), number, stepped[0])
                for number in self.problem.by_first[state.first]
                if (stepped := self.step(state, number)) is not None
            ]
            if not steps:
                return None
            _, number, state = min(steps)
            chosen.append(number)
        return chosen


def _with(first: int, rest: int, nodes: Sequence[int]) -> tuple[int, int] | None:
    """`_State.first` and `_State.rest` when ``nodes`` are covered, too; None if some are already."""
    mask = 0
    for node in nodes:
        mask |= 1 << (node - first)
    if mask & rest:
        return None
    rest |= mask
    ones = (~rest & (rest + 1)).bit_length() - 1
    return first + ones, rest >> ones


def _devices(mask: int) -> Iterable[int]:
    device = 0
    while mask:
        if mask & 1:
            yield device
        mask >>= 1
        device += 1


def cheapest_cover(problem: Problem, known: Sequence[Sequence[int]] = (), time_limit: float = math.inf) -> Found:
    """The cheapest cover; the best of ``known``, or else some, where ``time_limit``, in seconds, is over.

    There must be one. Of equal ones always the same.
    """
    covers = known or (problem.some_cover or (),)
    best = min((problem.seconds(cover), tuple(sorted(cover))) for cover in covers)
    search = _Search(problem)
    deadline = time.monotonic() + time_limit
    arguments = tuple(
        (number, value.origin, search.needs[number])
        for number, value in enumerate(problem.values)
        if value.producer is None and value.consumers
    )
    # What arguments cost that are wanted somewhere else in any case.
    always = sum(
        value.copies[value.origin][device]
        for value in problem.values
        if value.producer is None and value.origin >= 0
        for device in value.wanted - {value.origin}
    )
    start = _State(0, 0, arguments)
    reached: dict[_State, float] = {start: always}
    came: dict[_State, tuple[_State, int]] = {}
    left = math.fsum(search.share) + always
    queue: list[tuple[float, int, _State]] = [(left, 0, start)]
    closed: set[_State] = set()
    states = 0
    while queue:
        estimate, _, state = heappop(queue)
        if state in closed:
            continue
        closed.add(state)
        states += 1
        if state.first >= problem.count:
            chosen = tuple(sorted(_path(came, state)))
            seconds = problem.seconds(chosen)
            if best[0] <= seconds:  # equal up to rounding: what is known
                seconds, chosen = best
            return Found(chosen, seconds, seconds, True, states)
        if states & (states - 1) == 0 and (rest := search.completion(state)) is not None:
            chosen = tuple(sorted([*_path(came, state), *rest]))
            best = min(best, (problem.seconds(chosen), chosen))
        if states % _CHECKED_EVERY == 0 and time.monotonic() > deadline:
            return Found(best[1], best[0], min(estimate, best[0]), False, states)
        cost = reached[state]
        rest = estimate - cost
        for number in problem.by_first[state.first]:
            stepped = search.step(state, number)
            if stepped is None:
                continue
            after, seconds = stepped
            total = cost + seconds
            if total < reached.get(after, math.inf):
                reached[after] = total
                came[after] = state, number
                guess = max(total + rest - search.lower_bound(number), estimate)
                if guess <= best[0] * (1 + 1e-12):
                    heappush(queue, (guess, after.first, after))
    return Found(best[1], best[0], best[0], True, states)


def _path(came: Mapping[_State, tuple[_State, int]], state: _State) -> Iterable[int]:
    while state in came:
        state, number = came[state]
        yield number
