"""The best labels for a problem, part by part.

Variables without a choice separate the problem into parts. A part that has two labels in all is one minimum cut,
exact at any size; one that has more is a mixed-integer program, exact, up to `PROGRAM_LIMIT`; above, moves are
repeated until none helps (Boykov, Veksler, Zabih: alpha-expansion and alpha-beta swap), joint moves included.

Where costs are equal, label 0 is preferred. What only passes data on stays where its neighbours are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import combinations

from xdsl.utils.disjoint_set import IntDisjointSet

from devscope.passes.device_plan.min_cost.moves import Move, best_move, improve_jointly
from devscope.passes.device_plan.min_cost.problem import Problem, Transfer

PROGRAM_LIMIT = 2000
"""Most pairs of a variable and a label in a part that is solved as a mixed-integer program."""

STARTS_LIMIT = 2000
"""Most variables in a part for which repeated moves are started from every label, and not from the first only."""


class Part:
    """Variables that have a choice, connected by transfers, and all transfers that touch them."""

    def __init__(self, problem: Problem, variables: list[int]) -> None:
        self.problem = problem
        self.variables = variables
        self.transfers: list[Transfer] = []
        self.labels = sorted({label for v in variables for label in problem.candidates[v]})

    def cost(self, labels: Sequence[int]) -> int:
        """Units for what the part's variables have an influence on."""
        return self.problem.cost(labels, self.variables, self.transfers)


def optimise(problem: Problem, program_limit: int = PROGRAM_LIMIT) -> list[int]:
    """A label for every variable, at the least cost that `PROGRAM_LIMIT` allows to find."""
    labels = [candidates[0] for candidates in problem.candidates]
    choice = {variable for variable, candidates in enumerate(problem.candidates) if len(candidates) > 1}
    _fix_passive(problem, labels, choice)
    pairs: dict[tuple[int, ...], Part] = {}
    parts: list[Part] = []
    for part in split(problem, choice):
        if len(part.labels) > 2:
            parts.append(part)
            continue
        # One cut for all of them.
        together = pairs.setdefault(tuple(part.labels), Part(problem, []))
        together.labels = part.labels
        together.variables += part.variables
        together.transfers += part.transfers
    for part in pairs.values():
        first, second = part.labels
        move = {variable: (first, second) for variable in part.variables}
        labels = best_move(problem, labels, move, part.transfers)
    for part in parts:
        labels = _solve(part, labels, program_limit)
    return labels


def _members(sets: IntDisjointSet, variables: Iterable[int]) -> dict[int, list[int]]:
    """``variables`` per set, by one of it; the sets in the order of their first variables."""
    found: dict[int, list[int]] = {}
    for variable in sorted(variables):
        found.setdefault(sets[variable], []).append(variable)
    return found


def split(problem: Problem, choice: set[int]) -> list[Part]:
    """The parts of a problem: variables of ``choice`` that a transfer connects."""
    sets = IntDisjointSet(size=len(problem.candidates))
    ends = [[v for v in (transfer.source, *transfer.users) if v in choice] for transfer in problem.transfers]
    for touched in ends:
        for variable in touched[1:]:
            sets.union(touched[0], variable)
    parts = {root: Part(problem, variables) for root, variables in _members(sets, choice).items()}
    for transfer, touched in zip(problem.transfers, ends, strict=True):
        if touched:
            parts[sets[touched[0]]].transfers.append(transfer)
    return list(parts.values())


def _fix_passive(problem: Problem, labels: list[int], choice: set[int]) -> None:
    """Decide about variables without work whose neighbours are all decided, and agree: it costs nothing there.

    Without neighbours, they take the first preferred label, else the first that they all may have. This keeps a
    planned program as it is: in one, only carried values have a choice, between operations that are placed.
    """
    passive = {variable for variable in choice if variable not in problem.work_units}
    sets = IntDisjointSet(size=len(problem.candidates))
    around: dict[int, set[int]] = {variable: set() for variable in passive}
    for transfer in problem.transfers:
        for ends in ((transfer.source, user) for user in transfer.users):
            inside = passive.intersection(ends)
            if len(inside) == 2:
                sets.union(*ends)
            for variable in inside:
                around[variable].update(inside.symmetric_difference(ends))
    for members in _members(sets, passive).values():
        neighbours = set[int]().union(*(around[variable] for variable in members))
        common = set.intersection(*(set(problem.candidates[variable]) for variable in members))
        options = {labels[variable] for variable in neighbours} or _isolated(problem, members, common)
        if len(options) == 1 and options <= common and not neighbours & choice:
            for variable in members:
                (labels[variable],) = options
            choice.difference_update(members)


def _isolated(problem: Problem, members: Sequence[int], common: set[int]) -> set[int]:
    wished = (problem.preferred.get(variable, -1) for variable in members)
    found = next((label for label in wished if label in common), None)
    return {found} if found is not None else {min(common)} if common else set()


def _solve(part: Part, labels: list[int], program_limit: int) -> list[int]:
    size = sum(len(part.problem.candidates[variable]) for variable in part.variables)
    starts: list[list[int]] = []
    if size <= program_limit:
        from devscope.passes.device_plan.min_cost.program import solve_program

        found = solve_program(part.problem, part.variables, part.transfers, labels)
        starts = [found] if found is not None else []
    if not starts:
        few = len(part.variables) <= STARTS_LIMIT
        starts = [_uniform(part, labels, label) for label in (part.labels if few else part.labels[:1])]
    best = min((_descend(part, start) for start in starts), key=part.cost)
    while (better := improve_jointly(part.problem, part.variables, part.transfers, best)) is not None:
        best = _descend(part, better)
    return _prefer_first(part, best)


def _uniform(part: Part, labels: Sequence[int], label: int) -> list[int]:
    """Every variable of the part on ``label`` where that is legal."""
    start = list(labels)
    for variable in part.variables:
        if label in part.problem.candidates[variable]:
            start[variable] = label
    return start


def _descend(part: Part, labels: list[int]) -> list[int]:
    """Repeat binary moves until none makes it better."""
    expansions = [partial(_expansion, part, label) for label in part.labels]
    swaps = [partial(_swap, part, pair) for pair in combinations(part.labels, 2)]
    cost = part.cost(labels)
    improved = True
    while improved:
        improved = False
        for move in (*expansions, *swaps):
            if pairs := move(labels):
                moved = best_move(part.problem, labels, pairs, part.transfers)
                moved_cost = part.cost(moved)
                if moved_cost < cost:
                    labels, cost, improved = moved, moved_cost, True
    return labels


def _expansion(part: Part, label: int, labels: Sequence[int]) -> Move:
    """Every variable may change to ``label``."""
    candidates = part.problem.candidates
    return {v: (labels[v], label) for v in part.variables if labels[v] != label and label in candidates[v]}


def _swap(part: Part, pair: tuple[int, int], labels: Sequence[int]) -> Move:
    """Every variable on one of two labels may change to the other."""
    (first, second), candidates = pair, part.problem.candidates
    return {
        v: pair for v in part.variables if labels[v] in pair and first in candidates[v] and second in candidates[v]
    }


def _prefer_first(part: Part, labels: list[int]) -> list[int]:
    """Move as much as possible to label 0 at no cost."""
    pairs = _expansion(part, 0, labels)
    if not pairs:
        return labels
    moved = best_move(part.problem, labels, pairs, part.transfers, prefer_sink=True)
    return moved if part.cost(moved) <= part.cost(labels) else labels
