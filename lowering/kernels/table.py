"""Tables of schedules: which numbers a kernel is made with, by what it computes, its element type and its sizes."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path


@dataclass(frozen=True)
class Row:
    """A schedule: ``numbers`` is what a template of kernels for ``kind`` takes.

    ``element``: the type that is computed in, such as ``"f32"``. ``at_most``: sizes, by the names that the kind has
    for its loops, which must be known and not larger. ``contiguous``: the loop along which elements stand side by
    side in the operand that the kind says; None is any.
    """

    kind: str
    template: str
    element: str
    numbers: Mapping[str, int]
    at_most: Mapping[str, int] = field(default_factory=dict[str, int])
    contiguous: str | None = None

    def holds(self, element: str, sizes: Mapping[str, int | None], contiguous: str) -> bool:
        if self.element != element or self.contiguous not in (None, contiguous):
            return False
        known = {name: sizes.get(name) for name in self.at_most}
        return all(size is not None and size <= self.at_most[name] for name, size in known.items())


@cache
def read_table(path: Path) -> Sequence[Row]:
    """The rows of a file, in order."""
    with path.open("rb") as file:
        table = tomllib.load(file)
    return [Row(kind, **row) for kind, rows in table.items() for row in rows]


def choose_row(
    rows: Sequence[Row], kind: str, element: str, sizes: Mapping[str, int | None], contiguous: str
) -> Row | None:
    """The first row that holds. ``sizes``: those of the loops, by name, None where they are not known."""
    return next((row for row in rows if row.kind == kind and row.holds(element, sizes, contiguous)), None)
