"""The problem as a mixed-integer program, solved by HiGHS through scipy.

One binary per variable and label; one continuous unknown per value, place, destination and price: how much of
the copy is made there. With the binaries fixed, what is left is a covering problem on paths of a tree, whose
optimum is whole by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from devscope.passes.device_plan.min_cost.problem import Problem, Transfer

NODE_LIMIT = 5000
"""Of HiGHS' search tree. A limit of nodes, unlike one of time, makes for equal plans on all machines."""

_LARGEST = 1e6
"""Largest coefficient of the objective; HiGHS takes differences below 1e-6 for equal."""


def solve_program(
    problem: Problem, variables: Sequence[int], transfers: Sequence[Transfer], labels: Sequence[int]
) -> list[int] | None:
    """The best labels for ``variables``, all others fixed; None when HiGHS finds none within its limit."""
    import numpy as np
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import coo_array

    program = _Program(problem, variables, labels)
    for transfer in transfers:
        program.transfer(transfer)
    objective = np.array(program.objective, dtype=float)
    scale = _LARGEST / max(float(objective.max()), 1.0)
    rows, columns, values = zip(*program.entries, strict=True)
    shape = (len(program.lower), len(objective))
    # scipy's own annotations take numbers for what its documentation calls arrays.
    lower: Any = np.array(program.lower)
    upper: Any = np.array(program.upper)
    binary = np.zeros(len(objective))
    binary[: program.binaries] = 1
    most: Any = np.where(binary > 0, 1, np.inf)
    outcome = milp(
        objective * scale,
        integrality=binary,
        bounds=Bounds(0, most),
        constraints=LinearConstraint(coo_array((values, (rows, columns)), shape=shape).tocsc(), lower, upper),
        options={"mip_rel_gap": 0, "node_limit": NODE_LIMIT, "disp": False},
    )
    if outcome.x is None:
        return None
    found: list[float] = outcome.x.tolist()
    solved = list(labels)
    for variable, options in program.columns.items():
        _, solved[variable] = max((found[column], label) for label, column in options.items())
    return solved


class _Program:
    """Columns and rows. A row is lower <= sum of entries <= upper."""

    def __init__(self, problem: Problem, variables: Sequence[int], labels: Sequence[int]) -> None:
        self._problem, self._labels = problem, labels
        self.objective: list[int] = []
        self.entries: list[tuple[int, int, float]] = []
        self.lower: list[float] = []
        self.upper: list[float] = []
        self.columns: dict[int, dict[int, int]] = {}
        for variable in variables:
            units = problem.work_units.get(variable, [0] * problem.labels)
            least = min(units[label] for label in problem.candidates[variable])
            self.columns[variable] = {
                label: self._column(units[label] - least) for label in problem.candidates[variable]
            }
        self.binaries = len(self.objective)
        for options in self.columns.values():
            self._row([(column, 1.0) for column in options.values()], 1.0, 1.0)

    def _column(self, cost: int) -> int:
        self.objective.append(cost)
        return len(self.objective) - 1

    def _row(self, entries: Sequence[tuple[int, float]], lower: float, upper: float) -> None:
        self.entries += ((len(self.lower), column, value) for column, value in entries)
        self.lower.append(lower)
        self.upper.append(upper)

    def _has(self, variable: int, label: int) -> tuple[list[tuple[int, float]], float]:
        """Whether a variable has a label: as columns, or as a constant."""
        options = self.columns.get(variable)
        if options is None:
            return [], float(self._labels[variable] == label)
        return ([(options[label], 1.0)], 0.0) if label in options else ([], 0.0)

    def _options(self, variable: int) -> Sequence[int]:
        options = self.columns.get(variable)
        return list(options) if options is not None else [self._labels[variable]]

    def transfer(self, transfer: Transfer) -> None:
        wanted = dict.fromkeys(label for user in transfer.users for label in self._options(user))
        for label in wanted:
            if label not in transfer.free:
                self._copies(transfer, label)

    def _copies(self, transfer: Transfer, label: int) -> None:
        """Where some user has ``label`` and the source has not, some place on the user's path has a copy."""
        groups: dict[tuple[int, ...], list[int]] = {}
        for source in self._options(transfer.source):
            if source != label:
                prices = (self._problem.prices(transfer, node)[source][label] for node in transfer.tree)
                groups.setdefault(tuple(prices), []).append(source)
        if not groups:
            return
        made_there, made_always = self._has(transfer.source, label)
        above: list[list[tuple[int, float]]] = []
        for index, node in enumerate(transfer.tree):
            here = [(self._column(prices[index]), 1.0) for prices in groups]
            if len(groups) > 1:
                for (column, _), sources in zip(here, groups.values(), strict=True):
                    self._only_from(transfer.source, sources, column)
            above.append([*(above[node.parent] if node.parent >= 0 else ()), *here])
            for user in node.users:
                used_there, used_always = self._has(user, label)
                if used_there or used_always:
                    entries = [*above[index], *made_there, *((column, -1.0) for column, _ in used_there)]
                    self._row(entries, used_always - made_always, float("inf"))

    def _only_from(self, variable: int, sources: Sequence[int], column: int) -> None:
        """A copy at the price for ``sources`` is one from there."""
        there = [(self.columns[variable][source], 1.0) for source in sources]
        self._row([(column, -1.0), *there], 0.0, float("inf"))
