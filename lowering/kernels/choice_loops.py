"""Innermost loops that choose among elements, such as that of an argmax: few iterations change what is carried.

Where only the best element counts, it is found first (`best_elements`); else, and with NaN, each part is looked
at.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from devscope.lowering.kernels.best_elements import best_of, find_best
from devscope.lowering.kernels.control_flow import for_loop, if_else, if_then, while_loop
from devscope.lowering.kernels.nest import Nest
from devscope.lowering.kernels.vector_bodies import (
    PART,
    as_bits,
    clone_as_vectors,
    compare,
    first_bit,
    may_change,
)
from devscope.lowering.mlir_util import Builder, entry_block

_AT_ONCE = 8
"""So many iterations of a part are found by vectors; where more change something, it takes less to do all."""

Point = Callable[[Builder, Any, list[Any]], list[Any]]
"""Does the iteration of an index: what is carried before and behind."""

Load = Callable[[Builder, Any], tuple[dict[Any, Any], dict[int, Any]]]
"""Vectors of `lanes` iterations from an index on: by the arguments of the body; and the indices of all loops."""


class ChoiceLoop:
    """The loop ``loop`` of ``nest``; ``lanes``: elements of a vector, which divide `PART`.

    ``has_masks``: whether code may have masks of a part as numbers. Else what the best element does not decide is
    done one by one.
    """

    def __init__(self, nest: Nest, loop: int, lanes: int, has_masks: bool) -> None:
        self._op = nest.op
        self._arguments = list(entry_block(nest.op).arguments)[nest.inputs :]
        self._loop = loop
        self.lanes = lanes
        self._has_masks = has_masks

    def write(
        self, build: Builder, bounds: tuple[Any, Any], carried: list[Any], point: Point, load: Load
    ) -> list[Any]:
        """What is carried behind all iterations."""
        (begin, end), one = bounds, build.constant(1)
        length = build.value("arith.subi", [end, begin], build.index)
        rest = build.value("arith.remui", [length, build.constant(PART)], build.index)
        whole = build.value("arith.subi", [end, rest], build.index)

        def parts(inside: Builder) -> list[Any]:
            if not self._has_masks:
                return for_loop(inside, (begin, whole, one), carried, point)
            return self._by_parts(inside, (begin, whole), carried, point, load)

        best = best_of(self._op)

        def by_the_best(inside: Builder) -> list[Any]:
            assert best is not None
            number = best.number

            def numbers(build: Builder, first: Any) -> list[Any]:
                # A number from around the nest, such as a constant, is the same in every lane.
                return [mapping.get(number, number) for mapping, _ in self._bodies(build, first, carried, load)]

            place, is_known = find_best(inside, best, (begin, whole), self.lanes, numbers)
            types = [value.type for value in carried]
            return if_else(inside, is_known, lambda build: point(build, place, carried), parts, types)

        some = _unequal(build, whole, begin)
        found = if_then(build, some, by_the_best, carried) if best else parts(build)
        return for_loop(build, (whole, end, one), found, point)

    def _bodies(
        self, build: Builder, first: Any, carried: Sequence[Any], load: Load
    ) -> Iterator[tuple[dict[Any, Any], list[Any]]]:
        """Of a part from ``first`` on, for each vector: the values of the body, and what it yields."""
        for at in range(0, PART, self.lanes):
            place = build.value("arith.addi", [first, build.constant(at)], build.index)
            mapping, here = load(build, place)
            mapping |= zip(self._arguments, carried, strict=True)
            yield mapping, clone_as_vectors(build, self._op, mapping, here, self._loop, self.lanes)

    def _by_parts(
        self, build: Builder, bounds: tuple[Any, Any], carried: list[Any], point: Point, load: Load
    ) -> list[Any]:
        """Whole parts, of which those iterations are done that may change what is carried."""
        index, size, none = build.index, build.constant(PART), build.constant(0, build.i64)
        one = build.constant(1)

        def candidates(inside: Builder, first: Any, values: list[Any]) -> Any:
            found = self._bodies(inside, first, values, load)
            masks = [may_change(inside, self._op, mapping, values, new, self.lanes) for mapping, new in found]
            return as_bits(inside, masks)

        def part(inside: Builder, first: Any, values: list[Any]) -> list[Any]:
            bits = candidates(inside, first, values)

            def goes_on(build: Builder, state: list[Any]) -> Any:
                some, more = _unequal(build, state[0], none), _unequal(build, state[1], none)
                return build.value("arith.andi", [some, more], some.type)

            def step(build: Builder, state: list[Any]) -> list[Any]:
                bits, left, *values = state
                place, behind = first_bit(build, bits)
                values = point(build, build.value("arith.addi", [first, place], index), values)
                bits = build.value("arith.andi", [candidates(build, first, values), behind], build.i64)
                return [bits, build.value("arith.subi", [left, build.constant(1, build.i64)], build.i64), *values]

            def branch(build: Builder) -> list[Any]:
                most = build.constant(_AT_ONCE, build.i64)
                bits_left, _, *found = while_loop(build, [bits, most, *values], goes_on, step)
                place, _ = first_bit(build, bits_left)
                place = build.value("arith.addi", [first, place], index)
                bounds = place, build.value("arith.addi", [first, size], index), one
                return for_loop(build, bounds, found, point)

            return if_then(inside, _unequal(inside, bits, none), branch, values)

        return for_loop(build, (*bounds, size), carried, part)


def _unequal(build: Builder, left: Any, right: Any) -> Any:
    return compare(build, "arith.cmpi", 1, left, right)
