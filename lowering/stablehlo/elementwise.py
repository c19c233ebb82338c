"""Operations on the elements of arrays that have several results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from devscope.lowering.stablehlo.arrays import Array, Text
from devscope.lowering.stablehlo.butterflies import Body, Scalar
from devscope.lowering.stablehlo.templates import axes_map, commas, tensor


class Elementwise:
    """An operation on elements of three dimensions."""

    def __init__(self, text: Text, extents: tuple[int, ...], of: str) -> None:
        self._text, self._extents, self._of = text, extents, of
        self._operands: list[tuple[Array, list[int]]] = []

    def operand(self, array: Array, axes: list[int]) -> str:
        """What an element of ``array``, which has these dimensions, is called."""
        self._operands.append((array, axes))
        return f"%e{len(self._operands) - 1}"

    def constant(self, numbers: Any, axes: list[int]) -> tuple[str, str]:
        """What the parts of complex constants are called."""
        squeezed = numbers.reshape([extent for extent in numbers.shape if extent > 1])
        re, im = (
            self.operand(self._text.constant(part, self._of), axes) for part in (squeezed.real, squeezed.imag)
        )
        return re, im

    def done(self, body: Body, results: Sequence[Scalar]) -> list[Array]:
        of, count, arrays = self._of, len(results), [array for array, _ in self._operands]
        names = [body.named(result) for result in results]
        type_ = tensor(self._extents, of)
        types, parallel = commas([type_] * count), commas(['"parallel"'] * 3)
        maps = [axes_map(3, axes) for axes in (*(axes for _, axes in self._operands), *[range(3)] * count)]
        arguments = [
            f"%{kind}{n}: {of}" for kind, total in (("e", len(arrays)), ("o", count)) for n in range(total)
        ]
        name = self._text.add(
            f"linalg.generic {{indexing_maps = [{commas(maps)}], iterator_types = [{parallel}]}} "
            f"ins({commas(array.name for array in arrays)} : {commas(array.type for array in arrays)}) "
            f"outs({commas([self._text.room(self._extents, of)] * count)} : {types}) {{\n"
            f"^bb0({commas(arguments)}):\n"
            + "\n".join(body.lines)
            + f"\nlinalg.yield {commas(names)} : {commas([of] * count)}\n}} -> ({types})",
            count,
        )
        numbered = [f"{name}#{n}" for n in range(count)] if count > 1 else [name]
        return [Array(self._text, each, self._extents, of) for each in numbered]
