"""Minimum cuts, exact for capacities of up to 62 bits.

scipy's maximum flow takes 32 bits. So the flow is found in rounds: with the leading bits of all capacities first,
then in the residual graph with the next ones. What a round leaves to push is less than one of its units per edge,
so capacities beyond that can be cut off, and each round gains about 29 bits less the bits of the number of edges.
"""

from __future__ import annotations

from typing import Any

SOURCE, SINK = 0, 1

UNLIMITED = 2**61
"""Capacity of edges that no cut may contain; finite ones must sum up to less."""

_BITS = 29


class Network:
    """A directed graph with capacities; nodes 0 and 1 are source and sink."""

    def __init__(self) -> None:
        self.count = 2
        self._tails: list[int] = []
        self._heads: list[int] = []
        self._capacities: list[int] = []

    def node(self) -> int:
        self.count += 1
        return self.count - 1

    def edge(self, tail: int, head: int, capacity: int) -> None:
        if capacity > 0 and tail != head:
            self._tails.append(tail)
            self._heads.append(head)
            self._capacities.append(capacity)

    def sink_side(self, largest: bool) -> list[bool]:
        """Per node, whether a minimum cut has it on the sink's side.

        Of all minimum cuts the one with the ``largest`` or the smallest such side, which is unique.
        """
        residual = self._residual()
        from scipy.sparse.csgraph import breadth_first_order

        start, graph = (SOURCE, residual) if largest else (SINK, residual.T.tocsr())
        reached = [False] * self.count
        for node in breadth_first_order(graph, start, return_predecessors=False):
            reached[node] = True
        return [not found for found in reached] if largest else reached

    def _residual(self) -> Any:
        """What a maximum flow leaves of the capacities, without the edges that it saturates."""
        import numpy as np
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import maximum_flow

        finite = sum(capacity for capacity in self._capacities if capacity < UNLIMITED)
        bound = finite + 1
        capacities = np.array([min(capacity, bound) for capacity in self._capacities], dtype=np.int64)
        shape = (self.count, self.count)
        residual = coo_array((capacities, (self._tails, self._heads)), shape=shape).tocsr()
        residual.sum_duplicates()
        while residual.nnz:
            clamped = residual.copy()
            np.minimum(clamped.data, bound, out=clamped.data)
            shift = max(int(clamped.data.max()).bit_length() - _BITS, 0)
            leading = clamped.copy()
            leading.data = clamped.data >> shift
            leading = leading.astype(np.int32)
            leading.eliminate_zeros()
            flow = maximum_flow(leading, SOURCE, SINK).flow.astype(np.int64)
            flow.data <<= shift
            residual = (residual - flow).tocsr()
            residual.eliminate_zeros()
            if shift == 0:
                break
            bound = residual.nnz << shift
        return residual
