"""Tables of schedules: which numbers a kernel is made with, by what it computes, its element type and its sizes.

Free of MLIR: options are checked before a compiler is loaded.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

TURNED = "turned"
"""The template of contractions whose blocks have `Row`'s rows along n and its columns along m."""


@dataclass(frozen=True)
class Row:
    """A schedule: ``numbers`` is what a template of kernels for ``kind`` takes.

    ``element``: the type that is computed in, such as ``"f32"``, or ``"any"``. ``at_most`` and ``at_least``:
    sizes, by the names that the kind has for its loops, which must be known and not larger or smaller.
    ``dynamic``: loops whose sizes must be unknown. ``contiguous``: the loops along which elements stand side by
    side in the operands that the kind says, ``"m, k"`` or ``"m, any"``, or in the last, ``"k"``; None is any.
    ``saves``: per cent of the sums that the next row would make its kernel compute, in blocks of ``rows`` and
    ``columns``, which this one must leave out at least; 0 for a row that is not compared.
    ``constant``: whether the last operand must be a constant, which is packed beforehand.
    ``instructions``: the vector instructions that code is made for; None is any.
    ``place``: file and number, for people.
    """

    kind: str
    template: str
    element: str
    numbers: Mapping[str, int]
    at_most: Mapping[str, int] = field(default_factory=dict[str, int])
    at_least: Mapping[str, int] = field(default_factory=dict[str, int])
    dynamic: Sequence[str] = ()
    contiguous: str | None = None
    instructions: str | None = None
    saves: int = 0
    constant: bool = False
    place: str = ""

    def holds(
        self, element: str, sizes: Mapping[str, int | None], contiguous: str | None, constant: bool = False
    ) -> bool:
        if self.element not in ("any", element) or self.constant > constant:
            return False
        if self.contiguous is not None and not _stand(self.contiguous.split(", "), (contiguous or "").split(", ")):
            return False
        if any(sizes.get(name, 0) is not None for name in self.dynamic):
            return False
        largest = {name: sizes.get(name) for name in self.at_most}
        least = {name: sizes.get(name) for name in self.at_least}
        return all(size is not None and size <= self.at_most[name] for name, size in largest.items()) and all(
            size is not None and size >= self.at_least[name] for name, size in least.items()
        )

    def sums(self, sizes: Mapping[str, int | None]) -> int | None:
        """Of a matrix, in whole blocks; None where its size is not known."""
        m, n = (sizes[name] for name in ("nm" if self.template == TURNED else "mn"))
        if m is None or n is None:
            return None
        rows, columns = self.numbers.get("rows", 1), self.numbers["columns"]
        return -(-m // rows) * rows * -(-n // columns) * columns

    def saves_enough(self, other: "Row", sizes: Mapping[str, int | None]) -> bool:
        mine, its = self.sums(sizes), other.sums(sizes)
        return mine is not None and its is not None and 100 * (its - mine) >= self.saves * its


def _stand(wanted: Sequence[str], loops: Sequence[str]) -> bool:
    """Whether the last of ``loops`` are those ``wanted``."""
    last = loops[-len(wanted) :]
    return len(last) == len(wanted) and all(want in ("any", loop) for want, loop in zip(wanted, last, strict=True))


class Choice(NamedTuple):
    """What an operation got: ``row`` is None for one that stays loops.

    ``location`` is the operation's, of MLIR's bindings; ``sizes`` those of its loops, None where not known.
    ``within``: the choice of another operation whose kernel computes this one, too.
    """

    location: Any
    operation: str
    kind: str
    element: str
    sizes: Mapping[str, int | None]
    contiguous: str | None = None
    row: Row | None = None
    within: "Choice | None" = None


class Schedules:
    """Rows, the first of which that holds is taken, and what was ``chosen`` from them, in order.

    ``instructions``: what code is made for, and ``others`` that it may use: rows for any else are left out.
    """

    def __init__(self, rows: Sequence[Row], instructions: str, *others: str) -> None:
        self.rows = [row for row in rows if row.instructions in (None, instructions, *others)]
        self.instructions = instructions
        self.chosen: list[Choice] = []

    @property
    def loops(self) -> Mapping[str, int]:
        """The numbers of the loops that all operations without a kernel become."""
        return next(row.numbers for row in self.rows if row.kind == "loops")

    def choose(
        self, op: Any, kind: str, element: str, sizes: Mapping[str, int | None], contiguous: str | None = None
    ) -> Row | None:
        """The row for an operation that is a ``kind``; it is noted. ``sizes``: those of the loops, by name."""
        row = self.find(kind, element, sizes, contiguous)
        if row is not None:
            self.note(op, row, element, sizes, contiguous)
        return row

    def find(
        self,
        kind: str,
        element: str,
        sizes: Mapping[str, int | None],
        contiguous: str | None,
        narrow: str | None = None,
        without: str | None = None,
        constant: bool = False,
    ) -> Row | None:
        """What `choose` returns, not noted. ``narrow``: another type that it may be computed in; ``without``: a
        template whose rows are left out; ``constant``: whether the last operand is one."""
        fitting: list[Row] = []
        for row in self.rows:
            of = row.element if row.element == narrow else element
            if row.kind == kind and row.template != without and row.holds(of, sizes, contiguous, constant):
                if not row.saves:
                    return next((each for each in fitting if each.saves_enough(row, sizes)), row)
                fitting.append(row)
        return None

    def note(
        self, op: Any, row: Row, element: str, sizes: Mapping[str, int | None], contiguous: str | None
    ) -> None:
        """That ``op`` got ``row``."""
        self.chosen.append(Choice(op.location, op.name, row.kind, element, sizes, contiguous, row))

    def include(self, op: Any, element: str, sizes: Mapping[str, int | None]) -> None:
        """Note that the kernel of the last choice computes ``op``, too."""
        last = self.chosen[-1]
        self.chosen.append(Choice(op.location, op.name, last.kind, element, sizes, within=last.within or last))

    def note_loops(self, op: Any, element: str, sizes: Mapping[str, int | None], within: Choice | None) -> Choice:
        """Note that ``op`` becomes loops, those of ``within`` if there is one: the choice that has the loops."""
        choice = Choice(op.location, op.name, "loops", element, sizes, within=within)
        self.chosen.append(choice)
        return within or choice


@cache
def read_table(path: Path) -> Sequence[Row]:
    """The rows of a file of devscope's, in order."""
    return parse_rows(tomllib.loads(path.read_text(encoding="utf-8")), path.name)


def parse_rows(table: Mapping[str, Sequence[Mapping[str, Any]]], name: str) -> list[Row]:
    """The rows of a table that is known to be right; ``name`` is that of its file."""
    return [
        Row(kind, **row, place=f"{name}, {kind} {number}")
        for kind, rows in table.items()
        for number, row in enumerate(rows, 1)
    ]
