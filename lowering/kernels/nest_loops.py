"""The loops of one nest, by parts where those stay in a cache, with sums that stay in registers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels.nest import Nest, Numbers, Operand
from devscope.lowering.kernels.nest_bodies import boolean, changes, clone_body, mostly_stays, uses
from devscope.lowering.kernels.streams import store_line, streamed_lanes, whole_lines
from devscope.lowering.kernels.vector_bodies import as_vector, clone_as_vectors, load_vector
from devscope.lowering.mlir_util import Builder


def for_loop(
    build: Builder,
    bounds: tuple[Any, Any, Any],
    initial: Sequence[Any],
    body: Callable[[Builder, Any, list[Any]], list[Any]],
) -> list[Any]:
    """``scf.for`` over the bounds (begin, end, step); ``body`` makes what it yields from what it carries."""
    types = [value.type for value in initial]
    loop = build.op("scf.for", [*bounds, *initial], types, regions=1)
    location = loop.location
    block = ir.Block.create_at_start(loop.regions[0], [build.index, *types], [location] * (1 + len(types)))
    end = ir.Operation.create("scf.yield", loc=location, ip=ir.InsertionPoint(block))
    index, *carried = block.arguments
    results = body(Builder(end), index, carried)
    if results:
        ir.Operation.create("scf.yield", operands=results, loc=location, ip=ir.InsertionPoint(end))
        end.erase()
    return list(loop.results)


@dataclass(frozen=True)
class _Step:
    """A loop of a nest: over parts of ``tile`` iterations, or over all of what is left of it."""

    loop: int
    tile: int | None = None


class Emitter:
    """Makes the loops of one nest, in the order ``order``; ``again``: whether the task reads the result, too."""

    def __init__(self, nest: Nest, order: Sequence[int], numbers: Numbers, again: bool = False) -> None:
        self._nest = nest
        self._order = order
        self._block = mlir_util.entry_block(nest.op)
        self._steps = self._make_steps(numbers)
        # Trailing loops that sum up, and the results that none of them indexes: those are carried.
        self._sums = 0
        while self._sums < len(order) and not nest.parallel[order[-1 - self._sums]]:
            self._sums += 1
        summed = set(order[len(order) - self._sums :])
        self._carried = [n for n, o in enumerate(nest.results) if self._sums and summed.isdisjoint(o.dims)]
        self._guard = numbers["guard"] if self._sums == 1 and mostly_stays(nest.op, len(self._carried)) else 0
        self._lanes = streamed_lanes(nest, order[-1], numbers) if order and not self._sums and not again else 0
        self._numbers = numbers
        used = uses(nest.op)
        self._used = [argument in used for argument in self._block.arguments]

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
                if other is not None and other != innermost and other in order:
                    tiles[other] = tiles[innermost] = numbers["block"]
        for loop in list(tiles):
            extent = nest.static_extent(loop)
            if extent is not None and extent <= tiles[loop]:
                del tiles[loop]
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
        self._zero, self._one = build.constant(0), build.constant(1)
        for loop in self._order:
            if loop not in self._ranges:
                self._ranges[loop] = self._zero, self._nest.extent(build, loop)
        self._level(build, self._steps, dict(outer), {}, None)

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
        loaded = dict(loaded)
        for number, operand in enumerate(nest.operands[: nest.inputs]):
            is_known = all(loop in indices for loop in operand.dims)
            if self._used[number] and number not in loaded and is_known:
                loaded[number] = self._load(build, operand, indices)
        if carried is None and self._carried and len(steps) == self._sums:
            outputs = [nest.results[number] for number in self._carried]
            first = [self._load(build, output, indices) for output in outputs]
            level = self._guarded if self._guard else self._level
            for output, value in zip(outputs, level(build, steps, indices, loaded, first), strict=True):
                build.op("memref.store", [value, output.value, *self._at(output, indices)])
            return []
        if not steps:
            return self._body(build, indices, loaded, carried or [])
        step, *rest = steps
        begin, end = self._ranges[step.loop]
        if not rest and self._lanes:
            return self._streamed(build, indices, loaded)
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
            results = self._level(inside, rest, indices, loaded, carried and values)
            self._ranges[step.loop] = old
            return results

        return for_loop(build, (begin, end, tile), carried or [], part)

    def _streamed(self, build: Builder, indices: dict[int, Any], loaded: dict[int, Any]) -> list[Any]:
        """The innermost loop, whose result goes to memory by whole lines; then what is before and behind those."""
        nest, loop, lanes = self._nest, self._order[-1], self._lanes
        (begin, end), (result,) = self._ranges[loop], nest.results
        at = self._at(result, {**indices, loop: begin})
        first, stop = whole_lines(build, result.value, at, (begin, end), lanes, self._numbers)

        def line(inside: Builder, index: Any, _: list[Any]) -> list[Any]:
            here = {**indices, loop: index}
            mapping: dict[Any, Any] = {}
            for number, operand in enumerate(nest.operands):
                if number in loaded:
                    mapping[self._block.arguments[number]] = loaded[number]
                elif self._used[number]:
                    vector = load_vector(inside, operand.value, self._at(operand, here), lanes)
                    mapping[self._block.arguments[number]] = vector
            (value,) = clone_as_vectors(inside, nest.op, mapping, here, loop, lanes)
            store_line(inside, as_vector(inside, value, lanes), result.value, self._at(result, here))
            return []

        for_loop(build, (first, stop, build.constant(lanes)), [], line)

        def side(inside: Builder, number: Any, _: list[Any]) -> list[Any]:
            is_first = inside.value(
                "arith.cmpi",
                [number, self._zero],
                boolean(inside),
                {"predicate": ir.IntegerAttr.get(inside.i64, 0)},
            )
            low = inside.value("arith.select", [is_first, begin, stop], inside.index)
            high = inside.value("arith.select", [is_first, first, end], inside.index)

            def point(build: Builder, index: Any, _: list[Any]) -> list[Any]:
                return self._level(build, [], {**indices, loop: index}, loaded, None)

            return for_loop(inside, (low, high, self._one), [], point)

        return for_loop(build, (self._zero, build.constant(2), self._one), [], side)

    def _guarded(
        self,
        build: Builder,
        steps: Sequence[_Step],
        indices: dict[int, Any],
        loaded: dict[int, Any],
        carried: list[Any],
    ) -> list[Any]:
        """The innermost loop, by parts: one that changes nothing of what is carried is found out with vectors."""
        loop = steps[0].loop
        begin, end = self._ranges[loop]
        index, i32 = build.index, ir.IntegerType.get_signless(32, build.index.context)
        guard, none = build.constant(self._guard), build.constant(0, i32)
        length = build.value("arith.subi", [end, begin], index)
        rest = build.value("arith.remui", [length, guard], index)
        whole = build.value("arith.subi", [end, rest], index)

        def in_order(inside: Builder, bounds: tuple[Any, Any], values: list[Any]) -> list[Any]:
            def point(build: Builder, index: Any, values: list[Any]) -> list[Any]:
                return self._level(build, [], {**indices, loop: index}, loaded, values)

            return for_loop(inside, (*bounds, self._one), values, point)

        def part(inside: Builder, first: Any, values: list[Any]) -> list[Any]:
            def look(build: Builder, number: Any, flags: list[Any]) -> list[Any]:
                place = build.value("arith.addi", [first, number], index)
                new = self._level(build, [], {**indices, loop: place}, loaded, values)
                differs = changes(build, values, new)
                flag = build.value("arith.extui", [differs], i32)
                return [build.value("arith.ori", [flags[0], flag], i32)]

            (flag,) = for_loop(inside, (self._zero, guard, self._one), [none], look)
            unequal = {"predicate": ir.IntegerAttr.get(inside.i64, 1)}
            is_new = inside.value("arith.cmpi", [flag, none], boolean(build), unequal)
            types = [value.type for value in values]
            choice = inside.op("scf.if", [is_new], types, regions=2)
            for number, region in enumerate(choice.regions):
                block = ir.Block.create_at_start(region, [])
                end = ir.Operation.create("scf.yield", loc=choice.location, ip=ir.InsertionPoint(block))
                branch, results = Builder(end), values
                if number == 0:
                    behind = branch.value("arith.addi", [first, guard], index)
                    results = in_order(branch, (first, behind), values)
                branch.op("scf.yield", results)
                end.erase()
            return list(choice.results)

        return in_order(build, (whole, end), for_loop(build, (begin, whole, guard), carried, part))

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
