"""Slices that must be inside of what they are taken from, or put into."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.checks.assertions import RANGE, Assertions
from devscope.lowering.checks.sizes import (
    IN_PARALLEL,
    LOOPS,
    TAKES,
    Range,
    Size,
    Sizes,
    bounds,
    kept_dimensions,
    leaves,
    term,
)
from devscope.lowering.interop.bindings import ir

_INSIDE = "devscope.inside"
"""On slices that a lowering made so that they are inside."""


class SliceChecks:
    """Of one function, with its sizes and assertions."""

    def __init__(self, sizes: Sizes, checks: Assertions) -> None:
        self._sizes, self._checks = sizes, checks

    def check(self, op: Any, whole: int) -> None:
        if _INSIDE in op.attributes:
            return
        offsets, sizes, strides = self._sizes.slice_of(op)
        for axis, numbers in enumerate(zip(offsets, sizes, strides, strict=True)):
            offset, size, stride = map(self._sizes.number, numbers)
            extent, what = self._sizes.size(op.operands[whole], axis), f"dimension {axis} of operand {whole}"
            backwards = isinstance(stride, int) and stride < 0
            known = isinstance(extent, int) and isinstance(offset, int) and isinstance(size, int)
            if known and isinstance(stride, int) and not backwards:
                continue  # MLIR has verified it
            if backwards:
                self._check_backwards(op, self._checks.described(extent, what), offset, size, stride, extent)
            elif self._checks.root(size) != self._checks.root(extent) or offset != 0 or stride != 1:
                self._check_range(op, self._checks.described(extent, what), offset, size, stride, extent)
        if op.name not in TAKES:
            shape = ir.ShapedType(op.operands[0].type).shape
            for axis, kept in enumerate(kept_dimensions(sizes, shape)):
                size = self._sizes.size(op.operands[0], axis), f"dimension {axis} of operand 0"
                self._checks.require_equal(op, size, (self._sizes.number(sizes[kept]), "the size of the slice"))

    def _check_range(self, op: Any, what: str, offset: Size, size: Size, stride: Size, extent: Size) -> None:
        """A slice of no or of a negative size, of which allocations complain, reads nothing."""
        loop, range_ = self._sizes.loop_of.get(offset, (None, None))
        last = None
        if range_ is not None:
            first, end = self._sizes.number(range_.lower), self._sizes.number(range_.upper)
            from_start = isinstance(first, int) and first >= 0
            if size == 1 and from_start and self._checks.root(end) == self._checks.root(extent):
                return  # the loop over the dimension
            last = self._last(op, loop, range_, [size, stride, extent])
            # What holds of the first and of the last iteration holds of all.
            for begin in [] if last is None else [last] if from_start else [first, last]:
                text = f"{RANGE}: '{op.name}' begins at {{0}} of {what}, which is {{1}}"
                self._checks.require(op, "ule", begin, extent, text, around=loop)
        if last is not None:
            offset = last
        elif not isinstance(offset, int) or offset != 0:
            text = f"{RANGE}: '{op.name}' begins at {{0}} of {what}, which is {{1}}"
            self._checks.require(op, "ule", offset, extent, text)
        text = f"{RANGE}: '{op.name}' takes {{0}} of {what}, where {{1}} are left"
        around = None if last is None else loop
        taken, left = size, term("subi", extent, offset)
        if stride != 1:
            taken = term("addi", term("muli", term("subi", size, 1), stride), 1)
            for number, name in ((size, "size"), (stride, "stride")):  # so that the product does not wrap around
                if not isinstance(number, int):
                    self._checks.require(
                        op, "ult", number, 1 << 31, f"{RANGE}: the {name} of '{op.name}' is {{0}}"
                    )
        self._checks.require(op, "sle", taken, left, text, around=around)

    def _check_backwards(self, op: Any, what: str, offset: Size, size: Size, stride: int, extent: Size) -> None:
        text = f"{RANGE}: '{op.name}' begins at {{0}} of {what}, which is {{1}}"
        self._checks.require(op, "ult", offset, extent, text)
        if not isinstance(size, int):
            self._checks.require(op, "ult", size, 1 << 31, f"{RANGE}: the size of '{op.name}' is {{0}}")
        back = term("muli", term("subi", size, 1), -stride)
        text = f"{RANGE}: '{op.name}' goes back by {{0}} from {{1}} of {what}"
        self._checks.require(op, "sle", back, offset, text)

    def _last(self, op: Any, loop: Any, range_: Range, sizes: Sequence[Size]) -> Size | None:
        """The last index of a loop with which ``op`` always runs; None for others, and if it changes ``sizes``."""
        between: list[Any] = []
        parent = op.parent.operation
        while parent != loop and parent.name in (*LOOPS, IN_PARALLEL):
            between.append(parent)
            parent = parent.parent.operation
        lower, upper, step = map(self._sizes.number, range_)
        if parent != loop or not isinstance(step, int) or step < 1 or mlir_util.is_unsigned(loop):
            return None
        values = [value for size in (*sizes, lower, upper) for value in leaves(size)]
        if self._sizes.is_inside(loop, [*values, *bounds(between)]):
            return None
        rounds = term("divsi", term("subi", term("subi", upper, 1), lower), step)
        return term("addi", lower, term("muli", rounds, step))
