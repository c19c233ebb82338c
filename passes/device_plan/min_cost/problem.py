"""The optimisation problem: which device for each class, at the least cost of computing and copying.

*Variables* are classes of nodes; *labels* are devices. Every variable has its work, the cost per label of what
executes in it. A *transfer* is a value: the variable that it is made in, and the variables that use it. For every
label on which it is used and not made, one copy is paid, however many uses there are.

Where a copy stands decides how often it runs. The places for one use are a path in a tree of blocks: the block
of the definition, then branches inside it. A copy for several uses costs what is cheapest: one in a common place,
or several further down, whichever is less.

Costs are whole numbers of `unit` seconds. Every copy costs at least one, so that none is made for nothing.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import NamedTuple

RESOLUTION = 2**50
"""The sum of all costs that could be paid is at most about this many units."""

FINEST = 1e-12
"""No unit is smaller, in seconds."""


class TreeNode(NamedTuple):
    """A place for a copy."""

    frequency: float
    parent: int
    """An earlier node of the tree, -1 for the first one."""
    users: tuple[int, ...]
    """Variables that use the value here."""


@dataclass(eq=False)
class Transfer:
    """A value that may have to be copied."""

    source: int
    seconds: Sequence[Sequence[float]]
    """Of one copy, from the first label to the second."""
    tree: tuple[TreeNode, ...]
    """Every node after its parent."""
    free: frozenset[int] = frozenset()
    """Labels on which the value is anyway."""

    @property
    def users(self) -> Iterator[int]:
        return (user for node in self.tree for user in node.users)

    @property
    def ends(self) -> Iterator[int]:
        """The variable that makes the value, then those that use it."""
        return chain((self.source,), self.users)


@dataclass
class Problem:
    """Variables with their work, and transfers."""

    labels: int
    """How many there are. Label 0 is preferred where costs are equal."""
    candidates: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])
    """Per variable, its legal labels, ascending."""
    work: dict[int, list[float]] = field(default_factory=dict[int, list[float]])
    """Seconds per label, for the variables in which something executes."""
    transfers: list[Transfer] = field(default_factory=list[Transfer])
    preferred: dict[int, int] = field(default_factory=dict[int, int])
    """Labels for variables that have no work and no transfers."""

    def __post_init__(self) -> None:
        self._prices: dict[tuple[int, float], list[list[int]]] = {}

    @cached_property
    def unit(self) -> float:
        """In seconds. To be asked for, like all that counts units, when everything is added."""
        worst = sum(max(seconds) for seconds in self.work.values())
        worst += sum(
            max(map(max, transfer.seconds)) * sum(node.frequency for node in transfer.tree) * self.labels
            for transfer in self.transfers
        )
        return max(FINEST, worst / RESOLUTION)

    @cached_property
    def work_units(self) -> dict[int, list[int]]:
        """As `work`, in units."""
        return {v: [round(seconds / self.unit) for seconds in work] for v, work in self.work.items()}

    def prices(self, transfer: Transfer, node: TreeNode) -> list[list[int]]:
        """Units for a copy of ``transfer`` at ``node``, from the first label to the second."""
        key = (id(transfer.seconds), node.frequency)
        found = self._prices.get(key)
        if found is None:
            found = self._prices[key] = [
                [
                    max(round(seconds * node.frequency / self.unit), 1) if source != destination else 0
                    for destination, seconds in enumerate(row)
                ]
                for source, row in enumerate(transfer.seconds)
            ]
        return found

    def copies(self, labels: Sequence[int], transfers: Iterable[Transfer]) -> Iterator[tuple[int, int, int]]:
        """From, to and units of the copies of ``transfers`` that ``labels`` take."""
        for transfer in transfers:
            source = labels[transfer.source]
            for label in {labels[user] for user in transfer.users} - transfer.free - {source}:
                yield source, label, self._tree_cost(transfer, source, label, labels)

    def _tree_cost(self, transfer: Transfer, source: int, destination: int, labels: Sequence[int]) -> int:
        below = [0] * len(transfer.tree)
        for index in range(len(transfer.tree) - 1, -1, -1):
            node = transfer.tree[index]
            price = self.prices(transfer, node)[source][destination]
            used_here = any(labels[user] == destination for user in node.users)
            below[index] = price if used_here else min(price, below[index])
            if node.parent >= 0:
                below[node.parent] += below[index]
        return below[0]

    def cost(
        self,
        labels: Sequence[int],
        variables: Iterable[int] | None = None,
        transfers: Iterable[Transfer] | None = None,
    ) -> int:
        """Units for everything, or for what ``variables`` compute and ``transfers`` copy."""
        work = self.work_units
        total = sum(work[v][labels[v]] for v in (work if variables is None else variables) if v in work)
        copies = self.copies(labels, self.transfers if transfers is None else transfers)
        return total + sum(units for _, _, units in copies)


@dataclass
class Part:
    """Variables that have a choice, connected by transfers, and all transfers that touch them."""

    problem: Problem
    variables: list[int]
    transfers: list[Transfer] = field(default_factory=list[Transfer])

    def __post_init__(self) -> None:
        self.labels = sorted({label for v in self.variables for label in self.problem.candidates[v]})

    def cost(self, labels: Sequence[int]) -> int:
        """Units for what the part's variables have an influence on."""
        return self.problem.cost(labels, self.variables, self.transfers)


def place_tree(paths: Iterable[tuple[int, Sequence[tuple[object, float]]]]) -> tuple[TreeNode, ...]:
    """The tree of (user, path) pairs; a path is places with their frequencies, outermost first.

    All paths begin at the same place. A user in a place is served by a copy there or further out, so uses below
    one of the same user count for nothing.
    """
    index: dict[tuple[int, object], int] = {}
    nodes: list[tuple[float, int, dict[int, None]]] = []
    for user, path in paths:
        parent = -1
        for place, frequency in path:
            number = index.setdefault((parent, place), len(nodes))
            if number == len(nodes):
                nodes.append((frequency, parent, {}))
            parent = number
        nodes[parent][2][user] = None
    return tuple(TreeNode(frequency, parent, tuple(users)) for frequency, parent, users in nodes)
