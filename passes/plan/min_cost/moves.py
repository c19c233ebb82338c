"""Binary moves: every variable keeps one label or takes another, all at once, by one minimum cut.

With two labels in all, one move from the first to the second finds the optimum: a node of the network is a
variable, on the source's side with the first label. A transfer is a tree of nodes between the variable that makes
the value and those that use it, its places; cutting an edge of the tree means a copy in that place, and shared
copies are cut once.

With more labels, a copy can cost more where nothing moves than where its source does, which no cut can express.
Such a copy counts as what it costs now. So a move never costs more than it seems to, and none makes things worse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from devscope.passes.plan.min_cost.cut import SINK, SOURCE, UNLIMITED, Network
from devscope.passes.plan.min_cost.problem import Problem, Transfer

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
        found = self._move.get(variable)
        return found if found is not None else (self._labels[variable],) * 2

    def unary(self, variable: int, first: int, second: int) -> None:
        """Costs of the two sides of one variable; what both cost has no influence."""
        least = min(first, second)
        self.network.edge(self.nodes[variable], SINK, first - least)
        self.network.edge(SOURCE, self.nodes[variable], second - least)

    def transfer(self, transfer: Transfer) -> None:
        wanted = [option for user in transfer.users for option in self._options(user)]
        made = self._options(transfer.source)
        for label in dict.fromkeys(wanted):
            if label in transfer.free or made == (label, label):
                continue
            always = any(self._options(user) == (label, label) for user in transfer.users)
            sink = any(self._options(user)[1] == label != self._options(user)[0] for user in transfer.users)
            source = any(self._options(user)[0] == label != self._options(user)[1] for user in transfer.users)
            if source:
                assert not sink
                self._on_source_side(transfer, made, label)
            elif sink or always:
                self._on_sink_side(transfer, made, label)

    def _on_sink_side(self, transfer: Transfer, made: tuple[int, int], label: int) -> None:
        """Copies to a label that users have on the sink's side, or have in any case."""
        first, second = self._price_functions(transfer, made, label)
        self._tree(transfer, label, SOURCE, SINK, lambda node: min(first(node), second(node)), True)
        maker = self.nodes.get(transfer.source)
        if maker is not None:
            self._tree(transfer, label, maker, SINK, lambda node: max(first(node) - second(node), 0), True)
            if any(first(node) < second(node) for node in range(len(transfer.tree))):
                # Only where no user moves can it cost more with the maker on the sink's side.
                self._tree(transfer, label, maker, SOURCE, lambda node: max(second(node) - first(node), 0), False)

    def _on_source_side(self, transfer: Transfer, made: tuple[int, int], label: int) -> None:
        """Copies to a label that users have on the source's side."""
        first, second = self._price_functions(transfer, made, label)
        self._tree(transfer, label, SINK, SOURCE, first, False)
        maker = self.nodes.get(transfer.source)
        if maker is not None:
            self._tree(transfer, label, maker, SOURCE, lambda node: max(second(node) - first(node), 0), False)

    def _price_functions(
        self, transfer: Transfer, made: tuple[int, int], label: int
    ) -> tuple[Callable[[int], int], Callable[[int], int]]:
        """The price of a copy at each node of the tree, with the maker on the source's and on the sink's side."""

        def price(label_of_maker: int) -> Callable[[int], int]:
            return lambda node: self._problem.prices(transfer, transfer.tree[node])[label_of_maker][label]

        return price(made[0]), price(made[1])

    def _tree(
        self,
        transfer: Transfer,
        label: int,
        maker: int,
        always: int,
        price: Callable[[int], int],
        downwards: bool,
    ) -> None:
        """A tree of places from ``maker`` to the users of ``label``, with ``price`` on the edge into each place.

        Users that have the label in any case are the terminal ``always``. ``downwards`` tells whether edges lead
        from the maker to the users, or back.
        """
        if not any(price(node) for node in range(len(transfer.tree))):
            return
        ends = [
            [self.nodes[u] if u in self.nodes and self._options(u)[0] != self._options(u)[1] else always for u in node.users if label in self._options(u)]
            for node in transfer.tree
        ]
        needed = [bool(here) for here in ends]
        for index in range(len(ends) - 1, 0, -1):
            if needed[index]:
                needed[transfer.tree[index].parent] = True
        places: list[int] = []
        for index, here in enumerate(ends):
            if not needed[index]:
                places.append(-1)
                continue
            parent = transfer.tree[index].parent
            above = places[parent] if parent >= 0 else maker
            single = len(here) == 1 and not any(needed[i] and transfer.tree[i].parent == index for i in range(index + 1, len(ends)))
            place = here[0] if single else self.network.node()
            places.append(place)
            self._edge(above, place, price(index), downwards)
            if not single:
                for end in here:
                    self._edge(place, end, UNLIMITED, downwards)

    def _edge(self, near: int, far: int, capacity: int, downwards: bool) -> None:
        tail, head = (near, far) if downwards else (far, near)
        self.network.edge(tail, head, capacity)
