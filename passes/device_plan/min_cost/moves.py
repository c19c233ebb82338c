"""Moves: what makes labels better.

*Binary moves*: every variable keeps one label or takes another, all at once, by one minimum cut. With two labels
in all, one move from the first to the second finds the optimum: a node of the network is a variable, on the
source's side with the first label. A transfer is a tree of nodes between the variable that makes the value and
those that use it, its places; cutting an edge of the tree means a copy in that place, and shared copies are cut
once. With more labels, a copy can cost more where nothing moves than where its source does, which no cut can
express. Such a copy counts as what it costs now. So a move never costs more than it seems to, and none makes
things worse.

*Joint moves*: a variable and its nearest neighbours take any labels, all at once. A binary move knows two labels.
Where cost goes down only if several variables take several labels at the same time, no sequence of binary moves
leads there: with links that differ, the optimum can be half as expensive. Small groups are tried in all
combinations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any, TypeAlias

from devscope.passes.device_plan.min_cost.problem import Problem, Transfer

Move: TypeAlias = Mapping[int, tuple[int, int]]
"""Per variable that may move, its label on the source's side and on the sink's."""

SOURCE, SINK = 0, 1

UNLIMITED = 2**61
"""Capacity of edges that no cut may contain; finite ones must sum up to less."""

_BITS = 29

_COMBINATIONS = 81
"""Most combinations of labels that a group may have: of four variables with three labels each, say."""

_ALL_COMBINATIONS = 20_000
"""Most for all groups of a part together: the larger the part, the smaller the groups."""


def best_move(
    problem: Problem,
    labels: Sequence[int],
    move: Move,
    transfers: Iterable[Transfer],
    prefer_sink: bool = False,
) -> list[int]:
    """The best labels that ``move`` can reach; ``transfers`` are those that touch its variables.

    Where costs are equal, as many variables as possible are on the source's side, or the sink's.
    """
    builder = _Builder(problem, labels, move)
    for variable, (first, second) in move.items():
        units = problem.work_units.get(variable)
        if units is not None:
            builder.unary(variable, units[first], units[second])
    for transfer in transfers:
        builder.transfer(transfer)
    sides = builder.network.sink_side(prefer_sink)
    moved = list(labels)
    for variable, options in move.items():
        moved[variable] = options[sides[builder.nodes[variable]]]
    return moved


class _Builder:
    def __init__(self, problem: Problem, labels: Sequence[int], move: Move) -> None:
        self._problem, self._labels, self._move = problem, labels, move
        self.network = Network()
        self.nodes = {variable: self.network.node() for variable in move}

    def _options(self, variable: int) -> tuple[int, int]:
        """The variable's label on the source's side and on the sink's."""
        found = self._move.get(variable)
        if found is None:
            found = (self._labels[variable], self._labels[variable])
        return found

    def unary(self, variable: int, first: int, second: int) -> None:
        """Costs of the two sides of one variable; what both cost has no influence."""
        least = min(first, second)
        self.network.edge(self.nodes[variable], SINK, first - least)
        self.network.edge(SOURCE, self.nodes[variable], second - least)

    def transfer(self, transfer: Transfer) -> None:
        """The copies of one value, to every label that a user may have."""
        made = self._options(transfer.source)
        sides: dict[int, set[int]] = {}
        for user in transfer.users:
            options = self._options(user)
            for side, label in enumerate(options):
                sides.setdefault(label, set())
                if options[0] != options[1]:
                    sides[label].add(side)
        for label, movable in sides.items():
            if label not in transfer.free and made != (label, label):
                self._copies(transfer, label, made, to_source_side=0 in movable)

    def _copies(self, transfer: Transfer, label: int, made: tuple[int, int], to_source_side: bool) -> None:
        """The copies of one value to one label, for users that have it in any case, or on one side.

        Never some on one side and some on the other, as a move has each label on one side only.
        """
        maker = self.nodes.get(transfer.source)
        # Prices where the maker is on the source's side, and where it is on the sink's.
        first, second = (
            [self._problem.prices(transfer, node)[source][label] for node in transfer.tree] for source in made
        )
        if to_source_side:  # What would cost less if the maker moved does not.
            self._tree(transfer, label, SINK, SOURCE, first, downwards=False)
        else:
            self._tree(transfer, label, SOURCE, SINK, list(map(min, first, second)), downwards=True)
            if maker is not None:
                self._tree(transfer, label, maker, SINK, _excess(first, second), downwards=True)
        if maker is not None:
            # More with the maker on the sink's side: only where no user moves, as the label is not the move's.
            self._tree(transfer, label, maker, SOURCE, _excess(second, first), downwards=False)

    def _tree(
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
            places[index] = here[0] if alone else self.network.node()
            edges = [(above, places[index], prices[index])]
            edges += [(places[index], end, UNLIMITED) for end in here if not alone]
            for near, far, capacity in edges:
                self.network.edge(near if downwards else far, far if downwards else near, capacity)

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


def improve_jointly(
    problem: Problem, variables: Sequence[int], transfers: Sequence[Transfer], labels: Sequence[int]
) -> list[int] | None:
    """One joint move for each of ``variables``; None if none makes it better. ``transfers`` touch them."""
    touching: dict[int, dict[Transfer, None]] = {variable: {} for variable in variables}
    for transfer in transfers:
        for end in (transfer.source, *transfer.users):
            if end in touching:
                touching[end][transfer] = None
    most = min(_COMBINATIONS, _ALL_COMBINATIONS // len(variables))
    improved = list(labels)
    for variable in variables:
        group = _group(problem, touching, variable, most)
        if len(group) > 1:
            touched = list(dict.fromkeys(transfer for member in group for transfer in touching[member]))
            _take_best(problem, group, touched, improved)
    return improved if improved != labels else None


def _group(
    problem: Problem, touching: dict[int, dict[Transfer, None]], variable: int, combinations: int
) -> list[int]:
    """``variable`` and its nearest neighbours, as many as have so many combinations of labels at most."""
    group, size = [variable], len(problem.candidates[variable])
    for member in group:
        for transfer in touching[member]:
            for end in (transfer.source, *transfer.users):
                larger = size * len(problem.candidates[end])
                if end in touching and end not in group and larger <= combinations:
                    size = larger
                    group.append(end)
    return group


def _take_best(problem: Problem, group: Sequence[int], transfers: Sequence[Transfer], labels: list[int]) -> None:
    """Give ``group`` the labels that cost least, its own if they do."""
    best = tuple(labels[member] for member in group)
    least = problem.cost(labels, group, transfers)
    for choice in product(*(problem.candidates[member] for member in group)):
        for member, label in zip(group, choice, strict=True):
            labels[member] = label
        cost = problem.cost(labels, group, transfers)
        if cost < least:
            best, least = choice, cost
    for member, label in zip(group, best, strict=True):
        labels[member] = label


class Network:
    """A directed graph with capacities; nodes 0 and 1 are source and sink. Cuts are exact up to 62 bits.

    scipy's maximum flow takes 32 bits. So the flow is found in rounds: with the leading bits of all capacities
    first, then in the residual graph with the next ones. What a round leaves to push is less than one of its units
    per edge, so capacities beyond that can be cut off, and each round gains about 29 bits less the bits of the
    number of edges.
    """

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
