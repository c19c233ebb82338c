"""The uses of values, as a table: a list per column, since there is one row per operand of the program."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from xdsl.ir import Operation, SSAValue

FIRM, BOUNDARY, LOOSE, FREE = range(4)
"""Kinds of edges; see `system`."""


class Edge(NamedTuple):
    """A use of a value: operand number ``operand`` of ``op``."""

    src: int
    dst: int
    op: Operation
    operand: int
    kind: int

    @property
    def value(self) -> SSAValue:
        return self.op.operands[self.operand]

    @property
    def reason(self) -> tuple[str, Operation, int]:
        return ("use", self.op, self.operand)


class SoftConstraint(Edge):
    """Not a use, but what the body of a called function says about open nodes of a call.

    `LOOSE`, where such a body would like them; `BOUNDARY`, that a loop in there connects them. ``op`` is the call
    or ``func.constant``, ``operand`` a position in the signature: argument ``i`` is ``i``, result ``j`` is ``~j``.
    """

    __slots__ = ()

    @property
    def value(self) -> SSAValue:
        """What is passed or returned; the function value where nothing is."""
        op, position = self.op, self.operand
        if 0 <= position < len(op.operands):
            return op.operands[position]
        return op.results[~position if position < 0 and ~position < len(op.results) else 0]

    @property
    def reason(self) -> tuple[str, Operation, int]:
        return ("through", self.op, self.operand)


class Edges:
    """All edges in the order of the walk. Loops over all of them read the columns; rows are made on demand."""

    __slots__ = ("cut", "dst", "indirect", "kind", "op", "operand", "others", "src")

    def __init__(self) -> None:
        self.src: list[int] = []
        self.dst: list[int] = []
        self.op: list[Operation] = []
        self.operand: list[int] = []
        self.kind = bytearray()
        self.others: list[int] = []
        """The edges that are not `FIRM`."""
        self.cut: list[int] | None = None
        """The firm edges that unification gave up, in no order; None when nobody has tried to unify."""
        self.indirect: list[int] = []
        """The edges whose value planning may replace by another, which can be elsewhere."""

    def add(self, src: int, dst: int, op: Operation, operand: int, kind: int = FIRM) -> int:
        """A new row; its number."""
        number = len(self.src)
        self.src.append(src)
        self.dst.append(dst)
        self.op.append(op)
        self.operand.append(operand)
        self.kind.append(kind)
        if kind != FIRM:
            self.others.append(number)
        return number

    def of_kind(self, *kinds: int) -> list[Edge]:
        """The edges of these kinds, of which `FIRM` is none, in order."""
        kind = self.kind
        return [self[number] for number in self.others if kind[number] in kinds]

    def between(self, places: Sequence[int]) -> list[int]:
        """The numbers of the edges whose ends have different ``places``, of which there is one per class."""
        src, dst = self.src, self.dst
        numbers = range(len(src)) if self.cut is None else sorted([*self.cut, *self.others])
        return [number for number in numbers if places[src[number]] != places[dst[number]]]

    def __len__(self) -> int:
        return len(self.src)

    def __getitem__(self, number: int) -> Edge:
        return Edge(self.src[number], self.dst[number], self.op[number], self.operand[number], self.kind[number])

    def __iter__(self) -> Iterator[Edge]:
        return map(Edge, self.src, self.dst, self.op, self.operand, self.kind)
