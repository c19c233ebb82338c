"""Some cover of all nodes, or that there is none: Knuth's Algorithm X, each connected component by itself.

Nodes that somebody takes alone are covered so in the end; they only keep choices apart that share them. What is
left is hard in general: after `_MOST_STEPS` the answer is that none was found.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from devscope.passes.device_partition.search import Problem

_MOST_STEPS = 2000
"""Nodes of which several choices are tried: about a second. A number, so that the answer is always the same."""
_MOST_DEPTH = 200


def some_cover(problem: Problem) -> tuple[int, ...] | None:
    """Numbers of choices of finite cost that cover each node once, cheap ones first; None if none was found."""
    return _Covering(problem).whole()


class _TooHardError(Exception):
    pass


class _Covering:
    def __init__(self, problem: Problem) -> None:
        self._nodes = [choice.nodes for choice in problem.choices]
        finite = [number for number, choice in enumerate(problem.choices) if math.isfinite(choice.seconds)]
        finite.sort(key=lambda number: problem.choices[number].seconds / len(self._nodes[number]))
        self._order = {number: position for position, number in enumerate(finite)}
        singles = [number for number in finite if len(self._nodes[number]) == 1]
        self._alone = {self._nodes[number][0]: number for number in reversed(singles)}
        self._all = range(problem.count)
        self._needy = set(self._all) - self._alone.keys()
        self._failed: set[frozenset[int]] = set()
        self._steps = 0

    def whole(self) -> tuple[int, ...] | None:
        live = [number for number in self._order if not self._needy.isdisjoint(self._nodes[number])]
        try:
            found = self._cover(self._needy, live, 0)
        except _TooHardError:
            return None
        if found is None:
            return None
        covered = {node for number in found for node in self._nodes[number]}
        return (*found, *(self._alone[node] for node in self._all if node not in covered))

    def _cover(self, needy: Collection[int], live: Collection[int], depth: int) -> list[int] | None:
        """Choices of ``live`` that cover ``needy``: those that are a node's only ones, then by component."""
        having: dict[int, set[int]] = {node: set() for node in needy}
        for number in live:
            for node in self._nodes[number]:
                having.setdefault(node, set()).add(number)
        left, chosen = set(needy), list[int]()
        waiting = [node for node in left if len(having[node]) < 2]
        while waiting:
            if (node := waiting.pop()) not in left:
                continue
            if not having[node]:
                return None
            (number,) = having[node]
            chosen.append(number)
            left.difference_update(self._nodes[number])
            for other in {other for node in self._nodes[number] for other in having.pop(node)}:
                for near in having.keys() & self._nodes[other]:
                    having[near].discard(other)
                    if near in left and len(having[near]) < 2:
                        waiting.append(near)
        for part in self._components(left, having):
            found = self._branch(left, part, having, depth)
            if found is None:
                return None
            chosen += found
        return chosen

    def _components(self, needy: Collection[int], having: dict[int, set[int]]) -> Iterator[frozenset[int]]:
        """The choices of ``needy`` nodes, apart where they share no nodes."""
        seen: set[int] = set()
        for start in sorted(needy):
            part: set[int] = set()
            stack = [] if start in seen else [start]
            while stack:
                for number in having[stack.pop()] - part:
                    part.add(number)
                    stack += set(self._nodes[number]) - seen
                    seen.update(self._nodes[number])
            if part:
                yield frozenset(part)

    def _branch(
        self, needy: Collection[int], live: frozenset[int], having: dict[int, set[int]], depth: int
    ) -> list[int] | None:
        """As `_cover`, of a component, by trying all choices of one of its nodes, of which it has the fewest."""
        if live in self._failed:
            return None
        self._steps += 1
        if self._steps > _MOST_STEPS or depth > _MOST_DEPTH:
            raise _TooHardError
        needed = {node for number in live for node in self._nodes[number] if node in needy}
        counts = {len(needed.intersection(self._nodes[number])) for number in live}
        if len(needed) % math.gcd(*counts) == 0:
            first = min(sorted(needed), key=lambda node: len(having[node]))
            for number in sorted(having[first], key=self._order.__getitem__):
                taken = {*self._nodes[number]}
                rest = [other for other in live if taken.isdisjoint(self._nodes[other])]
                found = self._cover(needed - taken, rest, depth + 1)
                if found is not None:
                    return [number, *found]
        self._failed.add(live)
        return None
