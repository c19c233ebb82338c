"""Binary moves by minimum cuts.

In a *binary move* every variable keeps one label or takes another, all at once, by one minimum cut. With two
labels in all, one move from the first to the second finds the optimum: a node of the network is a variable, on the
source's side with the first label. A transfer is a tree of nodes between the variable that makes the value and
those that use it, its places; cutting an edge of the tree means a copy in that place, and shared copies are cut
once. With more labels, a copy can cost more where nothing moves than where its source does, which no cut can
express. Such a copy counts as what it costs now. So a move never costs more than it seems to, and none makes
things worse.

Cuts are exact for capacities of up to 62 bits, where scipy's maximum flow takes 32. So the flow is found in
rounds: with the leading bits of all capacities first, then in the residual graph with the next ones. What a round
leaves to push is less than one of its units per edge, so capacities beyond that can be cut off, and each round
gains about 29 bits less the bits of the number of edges.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from devscope.passes.device_plan.min_cost.problem import Part, Transfer

Move: TypeAlias = Mapping[int, tuple[int, int]]
"""Per variable that may move, its label on the source's side and on the sink's."""

SOURCE, SINK = 0, 1

UNLIMITED = 2**61
"""Capacity of edges that no cut may contain; finite ones must sum up to less."""

_BITS = 29


def best_move(part: Part, labels: Sequence[int], move: Move, prefer_sink: bool = False) -> list[int]:
    """The best labels that ``move``, of variables of ``part``, can reach.

    Where costs are equal, as many variables as possible are on the source's side, or the sink's.
    """
    if not move:
        return list(labels)
    network = _MoveNetwork(part, labels, move)
    sides = network.sink_side(prefer_sink)
    moved = list(labels)
    for variable, options in move.items():
        moved[variable] = options[sides[network.nodes[variable]]]
    return moved


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
        sides = [largest] * self.count
        for node in breadth_first_order(graph, start, return_predecessors=False):
            sides[node] = not largest
        return sides

    def _residual(self) -> Any:
        """What a maximum flow leaves of the capacities, without the edges that it saturates."""
        import numpy as np
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import maximum_flow

        bound = sum(capacity for capacity in self._capacities if capacity < UNLIMITED) + 1
        capacities = np.array([min(capacity, bound) for capacity in self._capacities], dtype=np.int64)
        shape = (self.count, self.count)
        residual = coo_array((capacities, (self._tails, self._heads)), shape=shape).tocsr()
        residual.sum_duplicates()
        while residual.nnz:
            leading = residual.copy()
            np.minimum(leading.data, bound, out=leading.data)
            shift = max(int(leading.data.max()).bit_length() - _BITS, 0)
            leading.data >>= shift
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


class _MoveNetwork(Network):
    """The network whose cuts are what a move can reach, at their costs."""

    def __init__(self, part: Part, labels: Sequence[int], move: Move) -> None:
        super().__init__()
        self._problem, self._labels, self._move = part.problem, labels, move
        self.nodes = {variable: self.node() for variable in move}
        for variable, (first, second) in move.items():
            units = part.problem.work_units.get(variable)
            if units is not None:  # What both cost has no influence.
                self.edge(self.nodes[variable], SINK, units[first] - units[second])
                self.edge(SOURCE, self.nodes[variable], units[second] - units[first])
        for transfer in part.transfers:
            self._add_transfer(transfer)

    def _options(self, variable: int) -> tuple[int, int]:
        """The variable's label on the source's side and on the sink's."""
        label = self._labels[variable]
        return self._move.get(variable, (label, label))

    def _add_transfer(self, transfer: Transfer) -> None:
        """The copies of one value, to every label that a user may have."""
        made = self._options(transfer.source)
        wanted = [self._options(user) for user in transfer.users]
        on_source_side = {first for first, second in wanted if first != second}
        for label in dict.fromkeys(label for options in wanted for label in options):
            if label not in transfer.free and made != (label, label):
                self._add_copies(transfer, label, made, label in on_source_side)

    def _add_copies(self, transfer: Transfer, label: int, made: tuple[int, int], on_source_side: bool) -> None:
        """The copies of one value to one label, for users that have it in any case, or on one side.

        Never some on one side and some on the other, as a move has each label on one side only.
        """
        maker = self.nodes.get(transfer.source)
        # Prices where the maker is on the source's side, and where it is on the sink's.
        first, second = (
            [self._problem.prices(transfer, node)[source][label] for node in transfer.tree] for source in made
        )
        if on_source_side:  # What would cost less if the maker moved does not.
            self._add_tree(transfer, label, SINK, SOURCE, first, downwards=False)
        else:
            self._add_tree(transfer, label, SOURCE, SINK, list(map(min, first, second)), downwards=True)
            if maker is not None:
                self._add_tree(transfer, label, maker, SINK, _excess(first, second), downwards=True)
        if maker is not None:
            # More with the maker on the sink's side: only where no user moves, as the label is not the move's.
            self._add_tree(transfer, label, maker, SOURCE, _excess(second, first), downwards=False)

    def _add_tree(
        self, transfer: Transfer, label: int, maker: int, always: int, prices: Sequence[int], downwards: bool
    ) -> None:
        """A tree of places from ``maker`` to the users of ``label``, the price of a copy on the edge into each.

        ``always`` is the terminal for users that have the label in any case; ``downwards`` tells whether edges
        lead from the maker to the users, or back.
        """
        if not any(prices):
            return
        tree = transfer.tree
        ends = [self._ends(node.users, label, always) for node in tree]
        below = [len(here) for here in ends]
        for index in range(len(tree) - 1, 0, -1):
            below[tree[index].parent] += below[index]
        places = [maker] * len(tree)
        for index, here in enumerate(ends):
            if not below[index]:
                continue
            above = places[tree[index].parent] if tree[index].parent >= 0 else maker
            # A place for one user needs no node of its own.
            alone = len(here) == below[index] == 1
            places[index] = here[0] if alone else self.node()
            edges = [(above, places[index], prices[index])]
            edges += [(places[index], end, UNLIMITED) for end in here if not alone]
            for near, far, capacity in edges:
                self.edge(near if downwards else far, far if downwards else near, capacity)

    def _ends(self, users: Iterable[int], label: int, always: int) -> list[int]:
        """What stands for users that may have ``label``: their nodes, ``always`` if they have it in any case."""
        options = {user: self._options(user) for user in users}
        return [
            always if first == second else self.nodes[user]
            for user, (first, second) in options.items()
            if label in (first, second)
        ]


def _excess(prices: Sequence[int], others: Sequence[int]) -> list[int]:
    return [max(price - other, 0) for price, other in zip(prices, others, strict=True)]
