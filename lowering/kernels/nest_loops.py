"""The loops of one nest, by parts where those stay in a cache, with sums that stay in registers."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels.control_flow import for_loop
from devscope.lowering.kernels.nest import Nest, Numbers, Operand
from devscope.lowering.kernels.nest_blocks import lines_of, room, turn, turned_inputs
from devscope.lowering.kernels.nest_bodies import clone_body, mostly_stays, uses
from devscope.lowering.kernels.streams import store_line, streamed_lanes, whole_lines
from devscope.lowering.kernels.tiles import LINE
from devscope.lowering.kernels.vector_bodies import (
    PART,
    as_vector,
    clone_as_vectors,
    compare,
    is_vectorisable,
    load_vector,
)
from devscope.lowering.kernels.vector_extrema import ExtremumLoop, are_extrema
from devscope.lowering.kernels.vector_loads import goes_along
from devscope.lowering.kernels.vector_loops import VectorLoop, can_reduce, lanes_of_loop, lanes_of_sums
from devscope.lowering.kernels.vector_products import ProductLoop, are_products
from devscope.lowering.mlir_util import Builder


class _Step(NamedTuple):
    """A loop of a nest: over parts of ``tile`` iterations, or over all of what is left of it."""

    loop: int
    tile: int | None = None


class Emitter:
    """Makes the loops of one nest, in the order ``order``; ``again``: whether the task reads the result, too."""

    _most_lanes, _has_masks = PART, True

    def __init__(self, nest: Nest, order: Sequence[int], numbers: Numbers, again: bool = False) -> None:
        self._nest = nest
        self._order = order
        self._block = mlir_util.entry_block(nest.op)
        self._turned: dict[int, int] = {}
        self._rooms: dict[int, Any] = {}
        self._blocks: dict[int, tuple[Any, dict[int, Any]]] = {}
        self._steps = self._make_steps(numbers)
        # Trailing loops that sum up, and the results that none of them indexes: those are carried.
        self._sums = 0
        while self._sums < len(order) and not nest.parallel[order[-1 - self._sums]]:
            self._sums += 1
        summed = set(order[len(order) - self._sums :])
        self._carried = [n for n, o in enumerate(nest.results) if self._sums and summed.isdisjoint(o.dims)]
        is_choice = self._sums == 1 and mostly_stays(nest.op, len(self._carried))
        self._is_guarded = is_choice and is_vectorisable(nest, order[-1])
        may_stream = order and not self._sums and not again
        self._lanes = streamed_lanes(nest, order[-1], numbers, may_load=goes_along) if may_stream else 0
        self._numbers = numbers
        used = uses(nest.op)
        self._used = [argument in used for argument in self._block.arguments]
        self._vector_loop: VectorLoop | None = None
        sums = [loop for loop in order if not nest.parallel[loop]]
        # A loop that some results have and others lack, which it makes again and again, adds up nothing.
        self._adds_rows = bool(sums) and not self._sums and not any(set(sums) & set(o.dims) for o in nest.results)

    def _make_steps(self, numbers: Numbers) -> list[_Step]:
        nest, order = self._nest, self._order
        if not order or not nest.parallel[order[-1]]:
            return [_Step(loop) for loop in order]
        innermost = order[-1]
        tiles: dict[int, int] = {}
        if any(not nest.parallel[loop] for loop in order):
            tiles[innermost] = numbers["row_part"]
        else:
            for operand in nest.operands:
                other = operand.contiguous()
                # What is the same all along the innermost loop is read once before it.
                if other is not None and other != innermost and other in order and innermost in operand.dims:
                    size = max(numbers["block"], lines_of(operand), tiles.get(innermost, 0))
                    tiles[other] = tiles[innermost] = size
        for loop in list(tiles):
            extent = nest.static_extent(loop)
            if extent is not None and extent <= tiles[loop]:
                del tiles[loop]
        self._turned = turned_inputs(nest, innermost, tiles)
        parallel = [loop for loop in order[:-1] if nest.parallel[loop]]
        sums = [loop for loop in order if not nest.parallel[loop]]
        outer = [_Step(loop, tiles.get(loop)) for loop in parallel]
        if innermost in tiles:
            outer.append(_Step(innermost, tiles[innermost]))
        inner = [_Step(loop) for loop in parallel if loop in tiles]
        return [*outer, *inner, *map(_Step, sums), _Step(innermost)]

    def emit(self, build: Builder, outer: Mapping[int, Any], ranges: Mapping[int, tuple[Any, Any]]) -> None:
        """``outer``: the indices of loops that are around the nest; ``ranges``: of those that are cut."""
        self._ranges = dict(ranges)
        self._vector_loop = self._find_vector_loop()
        self._zero, self._one = build.constant(0), build.constant(1)
        for loop in self._order:
            if loop not in self._ranges:
                self._ranges[loop] = self._zero, self._nest.extent(build, loop)
        sizes = {step.loop: step.tile for step in self._steps if step.tile}
        for number, other in self._turned.items():
            block = sizes[other], sizes[self._order[-1]]
            self._rooms[number] = room(build, self._nest.operands[number], block)
        self._level(build, self._steps, dict(outer), {}, None)

    def _find_vector_loop(self) -> VectorLoop | None:
        """Of the innermost loop, if it is not left to LLVM."""
        nest, order = self._nest, self._order
        if not order or self._turned or self._is_guarded:
            return None
        is_product = self._sums > 0 and are_products(nest)
        if self._sums and not (len(self._carried) == len(nest.results) and (is_product or can_reduce(nest))):
            return None
        if not self._sums and not all(order[-1] in result.dims for result in nest.results):
            return None
        if self._sums:
            lanes = lanes_of_sums(nest, order[-1], self._numbers)
        else:
            lanes = lanes_of_loop(nest, order[-1], self._numbers.get("vector", 0))
        if not lanes:
            return None
        if is_product:
            return ProductLoop(nest, order[-1], lanes, self._used)
        kind = ExtremumLoop if self._sums and are_extrema(nest, lanes) else VectorLoop
        return kind(nest, order[-1], lanes, self._used)

    def _level(
        self,
        build: Builder,
        steps: Sequence[_Step],
        indices: dict[int, Any],
        loaded: dict[int, Any],
        carried: list[Any] | None,
    ) -> list[Any]:
        """``loaded``: inputs by number; each is loaded as far outside as its indices are known."""
        nest = self._nest
        loaded = self._load_known(build, indices, loaded)
        if carried is None and self._carried and len(steps) == self._sums:
            outputs = [nest.results[number] for number in self._carried]
            first = [self._load(build, output, indices) for output in outputs]
            level = self._guarded if self._is_guarded else self._level
            for output, value in zip(outputs, level(build, steps, indices, loaded, first), strict=True):
                build.op("memref.store", [value, output.value, *self._at(output, indices)])
            return []
        if not steps:
            return self._body(build, indices, loaded, carried or [])
        step, *rest = steps
        begin, end = self._ranges[step.loop]
        if not rest and self._lanes:
            return self._streamed(build, indices, loaded)
        if self._vector_loop and step.tile is None and len(rest) <= self._adds_rows:
            return self._by_vectors(build, steps, indices, loaded, carried)
        if step.tile is None:

            def point(inside: Builder, index: Any, values: list[Any]) -> list[Any]:
                return self._level(inside, rest, {**indices, step.loop: index}, loaded, carried and values)

            return for_loop(build, (begin, end, self._one), carried or [], point)
        tile = build.constant(step.tile)

        def part(inside: Builder, index: Any, values: list[Any]) -> list[Any]:
            left = inside.value("arith.subi", [end, index], inside.index)
            size = inside.value("arith.minui", [left, tile], inside.index)
            old = self._ranges[step.loop]
            self._ranges[step.loop] = index, inside.value("arith.addi", [index, size], inside.index)
            if self._turned and all(later.tile is None for later in rest):
                self._turn(inside, indices)
            results = self._level(inside, rest, indices, loaded, carried and values)
            self._ranges[step.loop] = old
            return results

        return for_loop(build, (begin, end, tile), carried or [], part)

    def _by_vectors(
        self,
        build: Builder,
        steps: Sequence[_Step],
        indices: dict[int, Any],
        loaded: dict[int, Any],
        carried: list[Any] | None,
    ) -> list[Any]:
        """The innermost loop, or the one that adds up rows around it as well."""
        assert self._vector_loop is not None
        step, bounds = steps[0], self._ranges[steps[-1].loop]
        if carried is not None:
            return self._vector_loop.reduce(build, bounds, indices, loaded, carried)
        if len(steps) == 1:
            self._vector_loop.write(build, bounds, indices, loaded)
            return []

        def load(inside: Builder, here: Mapping[int, Any]) -> Mapping[int, Any]:
            return self._load_known(inside, here, loaded)

        self._vector_loop.add_rows(build, (step.loop, *self._ranges[step.loop]), bounds, indices, load)
        return []

    def _load_known(self, build: Builder, indices: Mapping[int, Any], loaded: Mapping[int, Any]) -> dict[int, Any]:
        """``loaded``, and the inputs whose indices are all known."""
        found = dict(loaded)
        for number, operand in enumerate(self._nest.operands[: self._nest.inputs]):
            if self._used[number] and number not in found and all(loop in indices for loop in operand.dims):
                found[number] = self._load_input(build, number, indices)
        return found

    def _streamed(self, build: Builder, indices: dict[int, Any], loaded: dict[int, Any]) -> list[Any]:
        """The innermost loop, whose result goes to memory by whole lines; then what is before and behind those."""
        nest, loop, lanes = self._nest, self._order[-1], self._lanes
        (begin, end), (result,) = self._ranges[loop], nest.results
        at = self._at(result, {**indices, loop: begin})
        first, stop = whole_lines(build, result.value, at, (begin, end), lanes, self._numbers)

        def line(inside: Builder, index: Any, _: list[Any]) -> list[Any]:
            here = {**indices, loop: index}
            mapping = self._vectors(inside, here, loaded, lanes)
            if self._used[nest.inputs]:
                old = load_vector(inside, result.value, self._at(result, here), lanes)
                mapping[self._block.arguments[nest.inputs]] = old
            (value,) = clone_as_vectors(inside, nest.op, mapping, here, loop, lanes)
            store_line(inside, as_vector(inside, value, lanes), result.value, self._at(result, here))
            return []

        for_loop(build, (first, stop, build.constant(lanes)), [], line)

        def side(inside: Builder, number: Any, _: list[Any]) -> list[Any]:
            is_first = compare(inside, "arith.cmpi", 0, number, self._zero)
            low = inside.value("arith.select", [is_first, begin, stop], inside.index)
            high = inside.value("arith.select", [is_first, first, end], inside.index)
            self._part_of_line(inside, (low, high), indices, loaded)
            return []

        return for_loop(build, (self._zero, build.constant(2), self._one), [], side)

    def _part_of_line(
        self, build: Builder, bounds: tuple[Any, Any], indices: dict[int, Any], loaded: dict[int, Any]
    ) -> None:
        loop = self._order[-1]

        def point(inside: Builder, index: Any, _: list[Any]) -> list[Any]:
            return self._level(inside, [], {**indices, loop: index}, loaded, None)

        for_loop(build, (*bounds, self._one), [], point)

    def _guarded(
        self,
        build: Builder,
        steps: Sequence[_Step],
        indices: dict[int, Any],
        loaded: dict[int, Any],
        carried: list[Any],
    ) -> list[Any]:
        """The innermost loop, of which few iterations change what is carried: only those are done."""
        from devscope.lowering.kernels.choice_loops import ChoiceLoop

        nest, loop = self._nest, steps[0].loop
        types = [ir.MemRefType(o.value.type).element_type for o in nest.operands[: nest.inputs]]
        lanes = LINE // min(map(mlir_util.element_bytes, types), default=8)
        choices = ChoiceLoop(nest, loop, min(lanes, self._most_lanes), self._has_masks)

        def point(inside: Builder, place: Any, values: list[Any]) -> list[Any]:
            return self._level(inside, [], {**indices, loop: place}, loaded, values)

        def load(inside: Builder, place: Any) -> tuple[dict[Any, Any], dict[int, Any]]:
            here = {**indices, loop: place}
            return self._vectors(inside, here, loaded, choices.lanes), here

        return choices.write(build, self._ranges[loop], carried, point, load)

    def _vectors(
        self, build: Builder, here: Mapping[int, Any], loaded: Mapping[int, Any], lanes: int
    ) -> dict[Any, Any]:
        """What arguments of the body are for inputs: those that are loaded already, and vectors."""
        found = {self._block.arguments[number]: value for number, value in loaded.items()}
        for number, operand in enumerate(self._nest.operands[: self._nest.inputs]):
            if self._used[number] and number not in loaded:
                vector = load_vector(build, operand.value, self._at(operand, here), lanes)
                found[self._block.arguments[number]] = vector
        return found

    def _turn(self, build: Builder, indices: Mapping[int, Any]) -> None:
        """Have the block of each input that is transposed where `_load_input` finds it."""
        inner = self._order[-1]
        begins = {loop: begin for loop, (begin, _) in self._ranges.items()}
        for number, other in self._turned.items():
            operand = self._nest.operands[number]
            ranges = self._ranges[other], self._ranges[inner]
            high, wide = (build.value("arith.subi", [end, begin], build.index) for begin, end in ranges)
            at = self._at(operand, {**begins, **indices})
            turn(build, operand, at, (high, wide), operand.dims.index(inner), self._rooms[number])
            self._blocks[number] = self._rooms[number], {other: begins[other], inner: begins[inner]}

    def _load_input(self, build: Builder, number: int, indices: Mapping[int, Any]) -> Any:
        operand = self._nest.operands[number]
        if number not in self._blocks:
            return self._load(build, operand, indices)
        block, begins = self._blocks[number]
        at = [build.value("arith.subi", [indices[loop], begin], build.index) for loop, begin in begins.items()]
        return build.value("memref.load", [block, *at], ir.MemRefType(block.type).element_type)

    def _at(self, operand: Operand, indices: Mapping[int, Any]) -> list[Any]:
        return [indices[loop] for loop in operand.dims]

    def _load(self, build: Builder, operand: Operand, indices: Mapping[int, Any]) -> Any:
        if not operand.is_buffer:
            return operand.value
        element = ir.MemRefType(operand.value.type).element_type
        return build.value("memref.load", [operand.value, *self._at(operand, indices)], element)

    def _body(
        self, build: Builder, indices: Mapping[int, Any], loaded: Mapping[int, Any], carried: list[Any]
    ) -> list[Any]:
        nest = self._nest
        mapping: dict[Any, Any] = {self._block.arguments[number]: value for number, value in loaded.items()}
        mapping |= {
            self._block.arguments[nest.inputs + number]: value
            for number, value in zip(self._carried, carried, strict=True)
        }
        for number, output in enumerate(nest.results):
            argument = self._block.arguments[nest.inputs + number]
            if number not in self._carried and self._used[nest.inputs + number]:
                mapping[argument] = self._load(build, output, indices)
        yielded = clone_body(build, nest.op, mapping, indices, reassociate=bool(self._carried))
        for number, output in enumerate(nest.results):
            if number not in self._carried:
                build.op("memref.store", [yielded[number], output.value, *self._at(output, indices)])
        return [yielded[number] for number in self._carried]
