"""Loops whose innermost one is written by vectors as a whole, for code generators that vectorise none, or badly.

What is left over is done by a vector, too, of which only some elements are loaded and stored.
"""

from collections.abc import Collection, Sequence
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels.best_elements import best_of
from devscope.lowering.kernels.nest import Nest, Numbers
from devscope.lowering.kernels.nest_bodies import mostly_stays
from devscope.lowering.kernels.nest_loops import Emitter
from devscope.lowering.kernels.streams import streamed_lanes
from devscope.lowering.kernels.tiles import LINE
from devscope.lowering.kernels.vector_bodies import PART, is_vectorisable
from devscope.lowering.kernels.vector_extrema import ExtremumLoop, are_extrema
from devscope.lowering.kernels.vector_loads import can_load
from devscope.lowering.kernels.vector_loops import INTEGER_DIVISIONS, VectorLoop, can_reduce
from devscope.lowering.mlir_util import Builder

_MOST = 16
"""Elements of a vector."""

_WIDTHS = (1, 8, 16, 32, 64)

_BUILT_INS = {
    *("absf", "absi", "ceil", "copysign", "floor", "fma", "roundeven", "rsqrt", "sqrt", "trunc"),
    *("maxnumf", "maxsi", "maxui", "minnumf", "minsi", "minui"),
}
"""Of `arith` and `math`, what becomes a call of a device's own function of vectors."""

_FEWEST_OF_BUILT_INS = 8
"""Intel's OpenCL driver vectorises loops over calls of shorter ones once more, and crashes (``vplan-vec``)."""


class WholeVectors(Emitter):
    """Of a nest that there are `whole_lanes` for."""

    _most_lanes, _has_masks = _MOST, False

    def __init__(
        self,
        nest: Nest,
        order: Sequence[int],
        numbers: Numbers,
        again: bool = False,
        functions: Collection[str] = (),
    ) -> None:
        super().__init__(nest, order, numbers, again)
        found = whole_lanes(nest, order, functions)
        assert found is not None
        self._width, self._is_guarded = found, bool(order) and _is_choice(nest, order)
        may_stream = found and not self._sums and not again
        lines = streamed_lanes(nest, order[-1], numbers, functions, can_load) if may_stream else 0
        self._lanes = lines if lines == found else 0

    def _find_vector_loop(self) -> VectorLoop | None:
        if not self._width or self._is_guarded:
            return None
        register = self._numbers.get("vector") or LINE
        registers = max(1, self._width * _widest(self._nest) // register)
        kind = ExtremumLoop if self._sums and are_extrema(self._nest, self._width) else VectorLoop
        return kind(self._nest, self._order[-1], self._width, self._used, registers)

    def _part_of_line(
        self, build: Builder, bounds: tuple[Any, Any], indices: dict[int, Any], loaded: dict[int, Any]
    ) -> None:
        assert self._vector_loop is not None
        self._vector_loop.write(build, bounds, indices, loaded)


def whole_lanes(nest: Nest, order: Sequence[int], functions: Collection[str]) -> int | None:
    """Iterations of the innermost loop that are done at once; 0 without a loop, None for what vectors cannot do.

    ``functions``: operations of `math` that there is arithmetic for, of vectors.
    """
    if not nest.is_pure or not _has_numbers(nest):
        return None
    if not order:
        return 0
    loop = order[-1]
    if not is_vectorisable(nest, loop, functions, can_load):
        return None
    names = {op.name.partition(".")[2] for op in mlir_util.children(nest.op)}
    if names & INTEGER_DIVISIONS or nest.static_extent(loop) == 1:
        return None
    if nest.parallel[loop]:
        if not all(loop in result.dims for result in nest.results):
            return None
    elif not (can_reduce(nest) or _is_choice(nest, order)):
        return None
    lanes, extent = min(_MOST, LINE // _widest(nest)), nest.static_extent(loop)
    while extent is not None and lanes > 2 and lanes // 2 >= extent:
        lanes //= 2
    return None if lanes < _FEWEST_OF_BUILT_INS and names & _BUILT_INS else lanes


def _is_choice(nest: Nest, order: Sequence[int]) -> bool:
    """Whether the innermost loop finds the best of some elements, and no other sums up anything.

    Where there is no whole part of them, all is done one by one; Intel's OpenCL driver crashes on loops around
    that.
    """
    extent = nest.static_extent(order[-1])
    if extent is not None and extent < PART:
        return False
    sums = [loop for loop in order if not nest.parallel[loop]]
    carried = sum(order[-1] not in result.dims for result in nest.results)
    return sums == [order[-1]] and mostly_stays(nest.op, carried) and best_of(nest.op) is not None


def _scalars(nest: Nest) -> list[Any]:
    """The types of numbers that the body computes with; a copy has none."""
    if not list(nest.op.regions):
        return [ir.MemRefType(operand.value.type).element_type for operand in nest.operands]
    values = list(mlir_util.entry_block(nest.op).arguments)
    values += [result for op in mlir_util.children(nest.op) for result in op.results]
    return [value.type for value in values]


def _has_numbers(nest: Nest) -> bool:
    """Whether each operation makes one number of a size that all code generators know."""
    ops = mlir_util.children(nest.op)
    return all(len(op.results) == 1 for op in ops[:-1]) and all(map(_is_number, _scalars(nest)))


def _is_number(type_: Any) -> bool:
    if isinstance(type_, ir.IntegerType):
        return type_.width in _WIDTHS and type_.is_signless
    return isinstance(type_, ir.IndexType | ir.F16Type | ir.BF16Type | ir.F32Type | ir.F64Type)


def _widest(nest: Nest) -> int:
    """Bytes of the widest number but indices, most of which are only places."""
    numbers = [type_ for type_ in _scalars(nest) if not isinstance(type_, ir.IndexType)]
    return max(map(mlir_util.element_bytes, numbers), default=8)
