"""The way from a node to a demand on its class, through the unions that made the class."""

from __future__ import annotations

from collections import deque

from devscope.passes.device_plan.domains import Demand, Domains, Reason
from devscope.passes.device_plan.scope_table import CONFLICT


class DemandSearch:
    """Searches the log of `Domains` as it was when this was made. For messages only: it is linear in its size."""

    def __init__(self, domains: Domains) -> None:
        self._scopes = domains.scopes
        self._neighbours: dict[int, list[tuple[int, Reason]]] = {}
        for union in domains.unions():
            self._neighbours.setdefault(union.left, []).append((union.right, union.reason))
            self._neighbours.setdefault(union.right, []).append((union.left, union.reason))
        self._demands: dict[int, list[Demand]] = {}
        for demand in domains.demands:
            self._demands.setdefault(demand.node, []).append(demand)

    def against(self, start: int, opposing: int) -> tuple[list[Reason], Demand] | None:
        """Why the class of ``start`` cannot be on scope ``opposing``.

        The reasons that lead from ``start`` to the nearest demand in its class that does not join ``opposing``,
        and that demand; None when the class demands no such thing.
        """
        came_from: dict[int, tuple[int, Reason] | None] = {start: None}
        queue = deque([start])
        while queue:
            node = queue.popleft()
            for demand in self._demands.get(node, ()):
                if self._scopes.join(demand.scope, opposing) == CONFLICT:
                    return _path(came_from, node), demand
            for neighbour, reason in self._neighbours.get(node, ()):
                if neighbour not in came_from:
                    came_from[neighbour] = (node, reason)
                    queue.append(neighbour)
        return None


def _path(came_from: dict[int, tuple[int, Reason] | None], node: int) -> list[Reason]:
    """The reasons from the start of a search to ``node``, in that order."""
    reasons: list[Reason] = []
    step = came_from[node]
    while step is not None:
        node, reason = step
        reasons.append(reason)
        step = came_from[node]
    return reasons[::-1]
