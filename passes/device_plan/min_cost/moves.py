"""Binary moves: every variable keeps one label or takes another, all at once, by one minimum cut.

With two labels in all, one move from the first to the second finds the optimum: a node of the network is a
variable, on the source's side with the first label. A transfer is a tree of nodes between the variable that makes
the value and those that use it, its places; cutting an edge of the tree means a copy in that place, and shared
copies are cut once.

With more labels, a copy can cost more where nothing moves than where its source does, which no cut can express.
Such a copy counts as what it costs now. So a move never costs more than it seems to, and none makes things worse.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from devscope.passes.device_plan.min_cost.cut import SINK, SOURCE, UNLIMITED, Network
from devscope.passes.device_plan.min_cost.problem import Problem, Transfer

Move: TypeAlias = Mapping[int, tuple[int, int]]
"""Per variable that may move, its label on the source's side and on the sink's."""


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
                copies = _Copies(self, transfer, label, made)
                if 0 in movable:
                    copies.to_source_side()
                else:
                    copies.to_sink_side()

    def price(self, transfer: Transfer, node: int, source: int, destination: int) -> int:
        return self._problem.prices(transfer, transfer.tree[node])[source][destination]

    def end(self, user: int, always: int, label: int) -> int | None:
        """What stands for a user: its node, ``always`` if it has the label in any case, None if in none."""
        options = self._options(user)
        if label not in options:
            return None
        return always if options[0] == options[1] else self.nodes[user]


class _Copies:
    """The copies of one value to one label.

    Users that have the label in any case, and those that have it on one side; never some on one side and some on
    the other, as a move has each label on one side only.
    """

    def __init__(self, builder: _Builder, transfer: Transfer, label: int, made: tuple[int, int]) -> None:
        self._builder, self._transfer, self._label = builder, transfer, label
        self._maker = builder.nodes.get(transfer.source)
        count = len(transfer.tree)
        self._first = [builder.price(transfer, node, made[0], label) for node in range(count)]
        """Prices where the maker is on the source's side."""
        self._second = [builder.price(transfer, node, made[1], label) for node in range(count)]

    def to_sink_side(self) -> None:
        """To users that have the label on the sink's side, or in any case."""
        self._tree(SOURCE, SINK, list(map(min, self._first, self._second)), downwards=True)
        if self._maker is not None:
            self._tree(self._maker, SINK, _excess(self._first, self._second), downwards=True)
            # More with the maker on the sink's side: only where no user moves, as the label is not the move's.
            self._tree(self._maker, SOURCE, _excess(self._second, self._first), downwards=False)

    def to_source_side(self) -> None:
        """To users that have the label on the source's side. What would cost less if the maker moved does not."""
        self._tree(SINK, SOURCE, self._first, downwards=False)
        if self._maker is not None:
            self._tree(self._maker, SOURCE, _excess(self._second, self._first), downwards=False)

    def _tree(self, maker: int, always: int, prices: Sequence[int], downwards: bool) -> None:
        """A tree of places from ``maker`` to the users, the price of a copy on the edge into each place.

        ``always`` is the terminal for users that have the label in any case; ``downwards`` tells whether edges
        lead from the maker to the users, or back.
        """
        if not any(prices):
            return
        tree = self._transfer.tree
        ends = [self._ends(node.users, always) for node in tree]
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
            places[index] = here[0] if alone else self._builder.network.node()
            self._edge(above, places[index], prices[index], downwards)
            if not alone:
                for end in here:
                    self._edge(places[index], end, UNLIMITED, downwards)

    def _ends(self, users: Iterable[int], always: int) -> list[int]:
        ends = (self._builder.end(user, always, self._label) for user in users)
        return [end for end in ends if end is not None]

    def _edge(self, near: int, far: int, capacity: int, downwards: bool) -> None:
        tail, head = (near, far) if downwards else (far, near)
        self._builder.network.edge(tail, head, capacity)


def _excess(prices: Sequence[int], others: Sequence[int]) -> list[int]:
    return [max(price - other, 0) for price, other in zip(prices, others, strict=True)]
