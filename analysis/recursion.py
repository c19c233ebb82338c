"""Functions that call themselves, directly or in circles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from devscope.analysis.strongly_connected import strongly_connected_components


class Recursion:
    """The circles of a call graph: per function the names of those that it calls."""

    def __init__(self, callees: Mapping[str, Sequence[str]]) -> None:
        self._callees = callees
        self._circle_of: dict[str, frozenset[str]] = {}
        for names in strongly_connected_components(callees):
            if len(names) > 1 or names[0] in callees[names[0]]:
                self._circle_of.update(dict.fromkeys(names, frozenset(names)))

    def below(self, name: str) -> list[str] | None:
        """A circle that calls of ``name`` lead to: its functions in the order of calls, the first one again last.

        None if calls of ``name`` always end.
        """
        seen = {name: None}
        stack = [name]
        while stack and self._circle_of:
            current = stack.pop()
            if current in self._circle_of:
                return self._circle(current)
            for callee in self._callees.get(current, ()):
                if callee not in seen:
                    seen[callee] = None
                    stack.append(callee)
        return None

    def _circle(self, start: str) -> list[str]:
        """A shortest way from ``start`` back to it."""
        members = self._circle_of[start]
        came_from: dict[str, str] = {}
        queue = [start]
        for current in queue:
            for callee in self._callees[current]:
                if callee == start:
                    way = [start, current]
                    while way[-1] != start:
                        way.append(came_from[way[-1]])
                    return way[::-1]
                if callee in members and callee not in came_from:
                    came_from[callee] = current
                    queue.append(callee)
        raise AssertionError("a member of a circle leads back to itself")
