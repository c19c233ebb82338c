"""The best labels for a problem, part by part.

Variables without a choice separate the problem into parts. A part that has two labels in all is one minimum cut,
exact at any size; one that has more is a mixed-integer program, exact, up to `PROGRAM_LIMIT`; above, moves are
repeated until none helps (Boykov, Veksler, Zabih: alpha-expansion and alpha-beta swap), joint moves included.

*Joint moves*: a variable and its nearest neighbours take any labels, all at once. A binary move knows two labels.
Where cost goes down only if several variables take several labels at the same time, no sequence of binary moves
leads there: with links that differ, the optimum can be half as expensive. Small groups are tried in all
combinations.

Where costs are equal, label 0 is preferred. What only passes data on stays where its neighbours are.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import combinations, product

from xdsl.utils.disjoint_set import IntDisjointSet

from devscope.passes.device_plan.min_cost.cuts import Move, best_move
from devscope.passes.device_plan.min_cost.problem import Part, Problem, Transfer

PROGRAM_LIMIT = 2000
"""Most pairs of a variable and a label in a part that is solved as a mixed-integer program."""

STARTS_LIMIT = 2000
"""Most variables in a part for which repeated moves are started from every label, and not from the first only."""

_COMBINATIONS = 81
"""Most combinations of labels that a group may have: of four variables with three labels each, say."""

_ALL_COMBINATIONS = 20_000
"""Most for all groups of a part together: the larger the part, the smaller the groups."""


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
        elif (together := pairs.setdefault(tuple(part.labels), part)) is not part:  # One cut for all of them.
            together.variables += part.variables
            together.transfers += part.transfers
    for (first, second), part in pairs.items():
        labels = best_move(part, labels, dict.fromkeys(part.variables, (first, second)))
    for part in parts:
        labels = _solve(part, labels, program_limit)
    return labels


def _connected(variables: set[int], links: Iterable[Sequence[int]]) -> list[list[int]]:
    """``variables`` in groups that links between them connect, in the order of their first variables."""
    members = sorted(variables)
    index = {variable: number for number, variable in enumerate(members)}
    sets = IntDisjointSet(size=len(members))
    for link in links:
        inside = [index[variable] for variable in link if variable in index]
        for number in inside[1:]:
            sets.union(inside[0], number)
    groups: dict[int, list[int]] = {}
    for variable in members:
        groups.setdefault(sets[index[variable]], []).append(variable)
    return list(groups.values())


def split(problem: Problem, choice: set[int]) -> list[Part]:
    """The parts of a problem: variables of ``choice`` that a transfer connects."""
    ends = [tuple(transfer.ends) for transfer in problem.transfers]
    parts = [Part(problem, variables) for variables in _connected(choice, ends)]
    part_of = {variable: part for part in parts for variable in part.variables}
    for transfer, touched in zip(problem.transfers, ends, strict=True):
        part = next((part_of[variable] for variable in touched if variable in part_of), None)
        if part is not None:
            part.transfers.append(transfer)
    return parts


def _fix_passive(problem: Problem, labels: list[int], choice: set[int]) -> None:
    """Decide about variables without work whose neighbours are all decided, and agree: it costs nothing there.

    Without neighbours, they take the first preferred label, else the first that they all may have. This keeps a
    planned program as it is: in one, only carried values have a choice, between operations that are placed.
    """
    passive = choice.difference(problem.work_units)
    around: dict[int, set[int]] = {variable: set() for variable in passive}
    pairs = [(transfer.source, user) for transfer in problem.transfers for user in transfer.users]
    for one, other in (*pairs, *((user, source) for source, user in pairs)):
        if one in passive and other not in passive:
            around[one].add(other)
    for members in _connected(passive, pairs):
        neighbours = set[int]().union(*(around[variable] for variable in members))
        common = set.intersection(*(set(problem.candidates[variable]) for variable in members))
        wished = (problem.preferred.get(variable, -1) for variable in members)
        isolated = [label for label in (*wished, *sorted(common)) if label in common][:1]
        options = {labels[variable] for variable in neighbours} or set(isolated)
        if len(options) == 1 and options <= common and not neighbours & choice:
            for variable in members:
                (labels[variable],) = options
            choice.difference_update(members)


def _solve(part: Part, labels: list[int], program_limit: int) -> list[int]:
    size = sum(len(part.problem.candidates[variable]) for variable in part.variables)
    found: list[int] | None = None
    if size <= program_limit:
        from devscope.passes.device_plan.min_cost.program import solve_program

        found = solve_program(part, labels)
    few = len(part.variables) <= STARTS_LIMIT
    uniform = (_uniform(part, labels, label) for label in (part.labels if few else part.labels[:1]))
    starts = uniform if found is None else [found]
    best = min((_descend(part, start) for start in starts), key=part.cost)
    while (better := _improve_jointly(part, best)) != best:
        best = _descend(part, better)
    # As much as possible on label 0, where that costs nothing.
    preferred = best_move(part, best, _expansion(part, 0, best), prefer_sink=True)
    return preferred if part.cost(preferred) <= part.cost(best) else best


def _uniform(part: Part, labels: Sequence[int], label: int) -> list[int]:
    """Every variable of the part on ``label`` where that is legal."""
    start = list(labels)
    for variable in _expansion(part, label, labels):
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
                moved = best_move(part, labels, pairs)
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
    candidates = part.problem.candidates
    return {v: pair for v in part.variables if labels[v] in pair and set(pair).issubset(candidates[v])}


def _improve_jointly(part: Part, labels: Sequence[int]) -> list[int]:
    """One joint move for each variable, where it makes the labels better."""
    touching: dict[int, dict[Transfer, None]] = {variable: {} for variable in part.variables}
    for transfer in part.transfers:
        for end in touching.keys() & transfer.ends:
            touching[end][transfer] = None
    most = min(_COMBINATIONS, _ALL_COMBINATIONS // len(part.variables))
    improved = list(labels)
    for variable in part.variables:
        group = _group(part.problem, touching, variable, most)
        if len(group) > 1:
            touched = list(dict.fromkeys(transfer for member in group for transfer in touching[member]))
            _take_best(part.problem, group, touched, improved)
    return improved


def _group(
    problem: Problem, touching: dict[int, dict[Transfer, None]], variable: int, combinations: int
) -> list[int]:
    """``variable`` and its nearest neighbours, as many as have so many combinations of labels at most."""
    group, size = [variable], len(problem.candidates[variable])
    for member in group:
        for end in (end for transfer in touching[member] for end in transfer.ends):
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
