"""The problem as a mixed-integer program, solved by HiGHS through scipy.

One binary per variable and label; one continuous unknown per value, place, destination and price: how much of
the copy is made there. With the binaries fixed, what is left is a covering problem on paths of a tree, whose
optimum is whole by itself.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from devscope.passes.device_plan.min_cost.problem import Part, Transfer

NODE_LIMIT = 5000
"""Of HiGHS' search tree. A limit of nodes, unlike one of time, makes for equal plans on all machines."""

_LARGEST = 1e6
"""Largest coefficient of the objective; HiGHS takes differences below 1e-6 for equal."""


def solve_program(part: Part, labels: Sequence[int]) -> list[int] | None:
    """The best labels for the variables of ``part``; None when HiGHS finds none within its limit."""
    import numpy as np
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import coo_array

    program = _Program(part, labels)
    objective = np.array(program.objective, dtype=float)
    scale = _LARGEST / max(float(objective.max()), 1.0)
    rows, columns, values = zip(*program.entries, strict=True)
    matrix = coo_array((values, (rows, columns)), shape=(len(program.lower), len(objective)))
    binary = np.zeros(len(objective))
    binary[: program.binaries] = 1
    # scipy's own annotations take numbers for what its documentation calls arrays.
    lower: Any = np.array(program.lower)
    upper: Any = np.array(program.upper)
    most: Any = np.where(binary > 0, 1, np.inf)
    outcome = milp(
        objective * scale,
        integrality=binary,
        bounds=Bounds(0, most),
        constraints=LinearConstraint(matrix.tocsc(), lower, upper),
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

    def __init__(self, part: Part, labels: Sequence[int]) -> None:
        self._problem = part.problem
        self.objective: list[int] = []
        self.entries: list[tuple[int, int, float]] = []
        self.lower: list[float] = []
        self.upper: list[float] = []
        self.columns: dict[int, dict[int, int]] = {}
        """Per variable of the part, and of what is around it, the columns of the labels that it may have."""
        candidates = {variable: part.problem.candidates[variable] for variable in part.variables}
        for end in (end for transfer in part.transfers for end in transfer.ends):
            candidates.setdefault(end, (labels[end],))
        for variable, options in candidates.items():
            units = part.problem.work_units.get(variable, [0] * part.problem.labels)
            least = min(units[label] for label in options)
            self.columns[variable] = {label: self._column(units[label] - least) for label in options}
        self.binaries = len(self.objective)
        for columns in self.columns.values():
            self._row(columns.values(), (), 1.0, 1.0)
        for transfer in part.transfers:
            for label in dict.fromkeys(label for user in transfer.users for label in self.columns[user]):
                if label not in transfer.free:
                    self._copies(transfer, label)

    def _column(self, cost: int) -> int:
        self.objective.append(cost)
        return len(self.objective) - 1

    def _row(
        self, plus: Iterable[int], minus: Iterable[int], lower: float = 0.0, upper: float = float("inf")
    ) -> None:
        """The sum of some columns, less that of others, is within bounds."""
        row = len(self.lower)
        self.entries += ((row, column, 1.0) for column in plus)
        self.entries += ((row, column, -1.0) for column in minus)
        self.lower.append(lower)
        self.upper.append(upper)

    def _copies(self, transfer: Transfer, label: int) -> None:
        """Where some user has ``label`` and the source has not, some place on the user's path has a copy."""
        made = self.columns[transfer.source]
        groups: dict[tuple[int, ...], list[int]] = {}
        for source, column in made.items():
            if source != label:
                prices = (self._problem.prices(transfer, node)[source][label] for node in transfer.tree)
                groups.setdefault(tuple(prices), []).append(column)
        if not groups:
            return
        there = [made[label]] if label in made else []
        above: list[list[int]] = []
        for index, node in enumerate(transfer.tree):
            here = [self._column(prices[index]) for prices in groups]
            if len(groups) > 1:
                for column, sources in zip(here, groups.values(), strict=True):
                    self._row(sources, [column])  # A copy at the price for these sources is one from there.
            above.append([*(above[node.parent] if node.parent >= 0 else ()), *here])
            for user in node.users:
                if label in self.columns[user]:
                    self._row([*above[index], *there], [self.columns[user][label]])
