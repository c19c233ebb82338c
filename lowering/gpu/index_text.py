"""Text of kernels: the extents of loops, the loops of an index that is several of them, places of elements."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from devscope.lowering.gpu.contraction_match import Index


@dataclass(frozen=True)
class Extent:
    """Of a loop: None where it is not known; that of an axis of a parameter of a kernel."""

    known: int | None
    parameter: str
    axis: int
    type: str


@dataclass
class Text:
    """Lines of MLIR; ``numbers`` make names."""

    lines: list[str]
    numbers: "count[int]"

    def index(self, op: str, *operands: str) -> str:
        name = f"%i{next(self.numbers)}"
        self.lines.append(f"{name} = arith.{op} {', '.join(operands)} : index")
        return name

    def constant(self, number: int) -> str:
        name = f"%i{next(self.numbers)}"
        self.lines.append(f"{name} = arith.constant {number} : index")
        return name

    def value(self, text: str, results: int = 1) -> str:
        """The name of the first of ``results``."""
        name = f"%v{next(self.numbers)}"
        if results > 1:
            self.lines.append(f"{name}:{results} = {text}")
            return f"{name}#0"
        self.lines.append(f"{name} = {text}")
        return name

    def new_name(self) -> str:
        return f"%v{next(self.numbers)}"

    def plus(self, index: str, number: int) -> str:
        return index if number == 0 else self.index("addi", index, self.constant(number))

    def nested(self) -> "Text":
        return Text([], self.numbers)

    def sizes(self, prefix: str, product: str, loops: Sequence[int], extent_of: Callable[[int], Extent]) -> None:
        """The extents of loops, ``%PREFIXloop0`` and so on, and their product."""
        made = self.constant(1)
        for loop in loops:
            extent = extent_of(loop)
            text = f"arith.constant {extent.known} : index"
            if extent.known is None:
                text = f"memref.dim %{extent.parameter}, {self.constant(extent.axis)} : {extent.type}"
            self.lines.append(f"%{prefix}loop{loop} = {text}")
            made = self.index("muli", made, f"%{prefix}loop{loop}")
        self.lines.append(f"%{prefix}{product} = arith.addi {made}, {self.constant(0)} : index")

    def split(self, index: str, loops: Sequence[int]) -> dict[int, str]:
        """The indices of ``loops``, outermost first, of the one that they are together, inside a kernel."""
        made: dict[int, str] = {}
        for loop in reversed(loops):
            if loop == loops[0]:
                made[loop] = index
            else:
                made[loop] = self.index("remui", index, f"%inside_loop{loop}")
                index = self.index("divui", index, f"%inside_loop{loop}")
        return made

    def place(self, indices: Sequence[Index], loops: Mapping[int, str]) -> str:
        """The indices of an element, of those of loops."""
        made: list[str] = []
        for index in indices:
            terms = [
                loops[loop] if factor == 1 else self.index("muli", loops[loop], self.constant(factor))
                for loop, factor in index
            ]
            sum_ = terms[0] if terms else self.constant(0)
            for term in terms[1:]:
                sum_ = self.index("addi", sum_, term)
            made.append(sum_)
        return ", ".join(made)

    def joined(self) -> str:
        return "\n".join(self.lines)
