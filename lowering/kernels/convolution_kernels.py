"""Convolutions with a loop of filters, as products of an image's pixels and filters: their loops for a kernel."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels.accumulators import zeros_before
from devscope.lowering.kernels.contraction_words import Words
from devscope.lowering.kernels.convolution_calls import Call
from devscope.lowering.kernels.convolution_words import InWords, channels_last, in_words
from devscope.lowering.kernels.epilogue import Epilogue, epilogue_of
from devscope.lowering.kernels.library import KernelLibrary
from devscope.lowering.kernels.packed_constants import PackedConstants
from devscope.lowering.kernels.phases import Shift, have_everything, of_same_sizes, phases
from devscope.lowering.kernels.table import Row, Schedules
from devscope.lowering.kernels.windowed import Windowed, element_of, strides_of

KIND = "convolution"

PLANES = "planes"
"""The template of filters so few that a kernel of `window_kernels` computes one after the other."""


def plan(found: Windowed, shifts: Sequence[Shift] = ()) -> "Plan | None":
    """How ``found`` is a product of matrices; None if it is none. ``shifts``: see `Plan`."""
    if found.w is None or found.weights is None or not found.combine.startswith("arith.add"):
        return None
    result, weights = found.axes_of_result, found.axes_of_weights
    in_image = {loop for axis in found.axes for loop in (axis.outer, axis.inner) if loop is not None}
    by_axis = sorted(result, key=lambda loop: result[loop])
    pixels = [loop for loop in by_axis if loop in in_image and loop not in weights]
    filters = [loop for loop in by_axis if loop not in in_image and loop in weights]
    groups = [loop for loop in by_axis if loop in in_image and loop in weights]
    sums = [loop for loop in sorted(weights, key=lambda loop: weights[loop]) if loop not in result]
    if len(pixels) + len(filters) + len(groups) != len(result) or not filters or not pixels:
        return None
    if set(sums) != {axis.inner for axis in found.axes if axis.inner is not None} or not sums:
        return None
    last = by_axis[-1]
    if (strides_of(found.result)[-1] != 1 and not shifts) or last in groups:
        return None
    # Pixels that are side by side in the result are one axis of a matrix.
    chain = [pixels[-1]]
    whole = bool(shifts) or mlir_util.is_whole_buffer(found.result.type)
    while whole and len(pixels) > len(chain) and result[pixels[-len(chain) - 1]] == result[chain[0]] - 1:
        chain.insert(0, pixels[-len(chain) - 1])
    if last not in (*filters, chain[-1]):
        return None
    others = pixels[: -len(chain)]
    filter_ = last if last in filters else filters[-1]
    batch = others[-1] if others else None
    outer = [loop for loop in by_axis if loop not in (*chain, filter_, batch)]
    for loop in outer:
        number = found.axis_with(loop)
        if number is not None and (found.axes[number].place.checked or found.axes[number].place.holes != 1):
            return None
    padded = _padded(found, chain)
    outermost = [found.axes[number].inner for number in padded]
    sums.sort(key=lambda loop: outermost.index(loop) if loop in outermost else len(outermost))
    if found.words is not None:  # whose elements are along the innermost loop
        sums = channels_last(found, sums)
    return Plan(found, chain, filter_, batch, outer, sums, padded, shifts)


def _padded(found: Windowed, chain: Sequence[int]) -> list[int]:
    """Up to two axes of the image along which windows reach into zeros around it and pixels that stand side by
    side are rarely apart."""
    if found.x.minus is not None:
        return []
    numbers = [number for loop in chain if (number := found.axis_with(loop)) is not None]
    windows = [number for number in numbers if found.axes[number].inner is not None]
    places = {number: found.axes[number].place for number in windows[:-1] or windows}
    return [number for number, place in places.items() if place.checked and place.holes == 1][:2]


@dataclass
class Plan:
    """``chain``: pixels as one axis of a matrix. ``outer``: loops around the call. ``sums``: as in the filters,
    but those of the window along ``padded``, axes of the image, are the outermost.

    ``shifts``: of phases that are computed together, whose pixels are apart; none if it is not one.
    ``in_words``: what is known of its words, if it has such.
    """

    found: Windowed
    chain: list[int]
    filter: int
    batch: int | None
    outer: list[int]
    sums: list[int]
    padded: list[int]
    shifts: Sequence[Shift] = field(default=())
    in_words: InWords | None = None

    @property
    def filters_last(self) -> bool:
        """Whether filters are side by side in the result; otherwise pixels are."""
        result = self.found.axes_of_result
        return result[self.filter] > result[self.chain[-1]]

    def contiguous(self) -> str | None:
        """The loop along which elements of the result stand side by side; None for what has phases."""
        if any(axis.place.holes != 1 for axis in self.found.axes):
            return None
        return "filters" if self.filters_last else "pixels"

    def of_words(
        self, words: Words, row: Row, library: KernelLibrary, constants: PackedConstants
    ) -> "Plan | None":
        """The same over words, if that is worth it."""
        sums = channels_last(self.found, self.sums)
        made = in_words(self.found, sums, words, row.numbers["columns"], library, constants)
        if made is None:
            return None
        over_words = plan(made[0])
        assert over_words is not None
        return replace(over_words, in_words=made[1])

    def sizes(self) -> dict[str, int | None]:
        found = self.found
        return {
            "pixels": found.size(self.chain),
            "filters": found.extent(self.filter),
            "sums": found.size(self.sums),
        }

    def replace(self, row: Row, schedules: Schedules, library: KernelLibrary, constants: PackedConstants) -> None:
        found, op = self.found, self.found.op
        fill = zeros_before(op, found.result)
        if (parts := phases(found)) is not None:
            for phase, shifts in of_same_sizes(parts):
                made = plan(phase, shifts)
                assert made is not None
                packed, finite = made.packed(row, constants)
                Call(made, row, phase.result, fill is None, None, packed, finite).insert(op, library)
            if fill is not None and have_everything(found):
                fill.erase()
            op.erase()
            return
        follows = None
        if fill is not None and not self.outer:
            follows = epilogue_of(op, found.result, library.functions, found.sources)
        if follows is not None and not self._fits(follows):
            follows = None
        if follows is not None:
            schedules.include(follows.op, element_of(follows.result), self.sizes())
        packed, finite = self.packed(row, constants)
        Call(self, row, found.result, fill is None, follows, packed, finite).insert(op, library)
        for old in (follows, fill, op):
            if old is not None:
                old.erase()

    def packed(self, row: Row, constants: PackedConstants) -> tuple[Any | None, bool]:
        """The filters, if they are constants, of all phases; whether they are known to be finite."""
        if self.in_words is not None:
            return self.in_words.filters, self.in_words.finite
        weights, axes = self.found.weights, self.found.axes_of_weights
        if any(loop in axes for loop in self.outer):
            return None, False
        groups = ([], [axes[self.filter]], [axes[loop] for loop in self.sums])
        shifts = [shift.filters for shift in self.shifts] or [0]
        packed = constants.pack(self.found.op, weights, groups, row.numbers["columns"], shifts=shifts)
        return packed, packed is not None and constants.is_finite(weights)

    def _fits(self, follows: Epilogue) -> bool:
        """Whether the kernel can write the result of ``follows`` and read its operands: slices may be neither."""
        result, axes = follows.result, range(len(self.found.axes_of_result))
        if strides_of(result)[-1] != 1 or not self._is_one_axis(result, axes):
            return False
        return all(
            (places := self.places(axes)) is not None and (not places[1] or self._is_one_axis(value, axes))
            for value, axes in follows.operands
        )

    def _is_one_axis(self, value: Any, axes: Sequence[int]) -> bool:
        """Whether the pixels of `chain` are one axis in ``value``, too, with these axes of the result."""
        places = [list(axes).index(self.found.axes_of_result[loop]) for loop in self.chain]
        if any(place + 1 != after for place, after in pairwise(places)):
            return False
        if len(places) == 1 or mlir_util.is_whole_buffer(value.type):
            return True
        dynamic = ir.ShapedType.get_dynamic_size()
        strides: list[Any] = strides_of(value)
        sizes = [None if size == dynamic else size for size in ir.MemRefType(value.type).shape]
        return all(
            None not in (strides[before], strides[after], sizes[after])
            and strides[before] == strides[after] * sizes[after]
            for before, after in pairwise(places)
        )

    def places(self, axes: Sequence[int]) -> tuple[bool, bool, bool] | None:
        """Whether an operand with these axes of the result differs by batch, pixel and filter; None if some of
        its pixels do."""
        result = self.found.axes_of_result
        has = [result[loop] in axes for loop in self.chain]
        if any(has) != all(has):
            return None
        return (self.batch is not None and result[self.batch] in axes, has[0], result[self.filter] in axes)

    def matrix(self) -> tuple[int | None, int, int]:
        """The loops that the axes of the result are for the kernel."""
        m, n = (self.chain[-1], self.filter) if self.filters_last else (self.filter, self.chain[-1])
        return self.batch, m, n

    def buffer_axes(self, axes: Sequence[int]) -> list[int | None]:
        """Of an operand with these axes of the result, the axes that the kernel's loops go along."""
        result = self.found.axes_of_result
        loops = self.matrix()
        return [None if x is None or result[x] not in axes else list(axes).index(result[x]) for x in loops]
