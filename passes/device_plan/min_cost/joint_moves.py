"""Joint moves: a variable and its nearest neighbours take any labels, all at once.

A binary move knows two labels. Where cost goes down only if several variables take several labels at the same
time, no sequence of binary moves leads there: with links that differ, the optimum can be half as expensive. Small
groups are tried in all combinations.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from devscope.passes.device_plan.min_cost.problem import Problem, Transfer

_COMBINATIONS = 81
"""Most combinations of labels that a group may have: of four variables with three labels each, say."""

_ALL_COMBINATIONS = 20_000
"""Most for all groups of a part together: the larger the part, the smaller the groups."""


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
