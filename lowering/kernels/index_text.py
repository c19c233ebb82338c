"""Text of MLIR that computes with indices, of which those that are known stay numbers."""

from collections.abc import Sequence
from contextlib import contextmanager
from typing import Any

Index = int | str
"""A number, or the name of a value of type index."""


class IndexText:
    """``lines`` define values with names that begin with ``prefix``."""

    def __init__(self, prefix: str) -> None:
        self.lines: list[str] = []
        self._prefix = prefix
        self._count = 0

    def __str__(self) -> str:
        return "\n".join(self.lines)

    def new(self) -> str:
        """A name for a value."""
        self._count += 1
        return f"%{self._prefix}{self._count}"

    def define(self, operation: str) -> str:
        """The name of what a line computes."""
        name = self.new()
        self.lines.append(f"{name} = {operation}")
        return name

    def value(self, index: Index) -> str:
        """The name of a value, a constant for what is known."""
        return self.define(f"arith.constant {index} : index") if isinstance(index, int) else index

    def name(self, name: str, index: Index) -> None:
        """Define ``name``; ``%0`` is zero."""
        self.lines.append(f"{name} = arith.addi {self.value(index)}, %0 : index")

    def add(self, *terms: Index) -> Index:
        known = sum(term for term in terms if isinstance(term, int))
        names = [term for term in terms if isinstance(term, str)]
        if not names:
            return known
        return self._chain("addi", [*names, *([known] if known else [])])

    def mul(self, *factors: Index) -> Index:
        known = 1
        for factor in factors:
            known *= factor if isinstance(factor, int) else 1
        names = [factor for factor in factors if isinstance(factor, str)]
        if known == 0 or not names:
            return known
        return self._chain("muli", [*names, *([known] if known != 1 else [])])

    def sub(self, left: Index, right: Index) -> Index:
        if isinstance(left, int) and isinstance(right, int):
            return left - right
        return left if right == 0 else self.binary("subi", left, right)

    def div(self, left: Index, right: Index) -> Index:
        """Of what is not negative, rounded down."""
        if isinstance(left, int) and isinstance(right, int):
            return left // right
        return left if right == 1 else self.binary("divui", left, right)

    def rem(self, left: Index, right: Index) -> Index:
        """Of what is not negative."""
        if isinstance(left, int) and isinstance(right, int):
            return left % right
        return 0 if right == 1 else self.binary("remui", left, right)

    def ceildiv(self, left: Index, right: Index) -> Index:
        """Of what is not negative."""
        if isinstance(right, int):
            return self.div(self.add(left, right - 1), right)
        return self.binary("ceildivui", left, right)

    def min(self, left: Index, right: Index) -> Index:
        if isinstance(left, int) and isinstance(right, int):
            return min(left, right)
        return self.binary("minsi", left, right)

    def max(self, left: Index, right: Index) -> Index:
        if isinstance(left, int) and isinstance(right, int):
            return max(left, right)
        return self.binary("maxsi", left, right)

    def select(self, condition: str, left: Index, right: Index) -> str:
        return self.define(f"arith.select {condition}, {self.value(left)}, {self.value(right)} : index")

    def clamp(self, index: Index, most: Index) -> Index:
        """The nearest of 0 to ``most``."""
        return self.min(self.max(index, 0), most)

    def binary(self, operation: str, left: Index, right: Index) -> str:
        left, right = self.value(left), self.value(right)
        return self.define(f"arith.{operation} {left}, {right} : index")

    def decode(self, flat: Index, extents: Sequence[Index]) -> list[Index]:
        """The indices of number ``flat`` in loops of ``extents``, the last one fastest."""
        indices: list[Index] = []
        for extent in reversed(extents[1:]):
            indices.append(self.rem(flat, extent))
            flat = self.div(flat, extent)
        return [*([flat] if extents else []), *reversed(indices)]

    @contextmanager
    def loop(self, begin: Index, end: Index, step: Index = 1) -> Any:
        """Lines inside are a loop's, whose index this gives."""
        names = [self.value(index) for index in (begin, end, step)]
        index = self.new()
        self.lines.append(f"scf.for {index} = {names[0]} to {names[1]} step {names[2]} {{")
        yield index
        self.lines.append("}")

    def _chain(self, operation: str, terms: Sequence[Index]) -> str:
        total = terms[0]
        for term in terms[1:]:
            total = self.binary(operation, total, term)
        assert isinstance(total, str)
        return total
