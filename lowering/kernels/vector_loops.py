"""Innermost loops by vectors, written out; a mask does what is left over.

LLVM's vectoriser does the iterations that fill no vector one after the other, half of the time of a softmax over
31 elements, and all of them where a result has the place of an operand, or where there are many buffers. Rows of
sums stay in registers here, or take several rows each time that they are read and written.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels.control_flow import for_loop, if_then
from devscope.lowering.kernels.nest import Nest, Numbers
from devscope.lowering.kernels.nest_bodies import combiners, has_neutral, neutral
from devscope.lowering.kernels.vector_bodies import (
    as_vector,
    clone_as_vectors,
    compare,
    is_vectorisable,
    vector_of,
)
from devscope.lowering.kernels.vector_loads import LOAD, goes_along
from devscope.lowering.mlir_util import Builder

_AT_ONCE = 4
"""Vectors of sums that do not wait for each other; rows that are added to a row of sums."""

_FEW_OPS = 4
"""Of the body of a loop of sums that memory is the limit of."""

_BYTES = (4, 8)
"""Of elements: masked loads of smaller ones are calls on some processors."""

_SHORT = 128
"""Iterations of loops that compute with elements of 16 bits: LLVM vectorises longer ones as well."""

_WIDE_REGISTER = 64
"""Bytes of those of processors that have masks for all elements."""

INTEGER_DIVISIONS = {"divsi", "divui", "remsi", "remui", "ceildivsi", "ceildivui", "floordivsi"}
"""Operations of arith that no processor has for vectors."""

_EXTREMA = {"arith.maximumf", "arith.minimumf"}

_REDUCTIONS = {"addf", "addi", "mulf", "muli", "andi", "ori", "xori"}

Indices = Mapping[int, Any]
Loaded = Mapping[int, Any]


def lanes_of_sums(nest: Nest, loop: int, numbers: Numbers) -> int:
    """As `lanes_of_loop`, of a loop that sums up; by the numbers of a row, which has its own for light bodies."""
    register = numbers.get("vector", 0)
    if is_light(nest):
        register = min(register, numbers.get("summed", 0) or register)
    return lanes_of_loop(nest, loop, register)


def is_light(nest: Nest) -> bool:
    """Whether memory is the limit of a loop of sums: extrema of floats take several instructions each."""
    ops = mlir_util.children(nest.op)
    return len(ops) <= _FEW_OPS and not any(op.name in _EXTREMA for op in ops)


def lanes_of_loop(nest: Nest, loop: int, register: int) -> int:
    """Iterations of ``loop`` that a register of so many bytes takes, or 0 for what is left to LLVM."""
    extent = nest.static_extent(loop)
    if not register or extent == 1:
        return 0
    if not nest.is_pure or not is_vectorisable(nest, loop, may_load=goes_along):
        return 0
    names = {op.name.partition(".")[2] for op in mlir_util.children(nest.op)}
    if names & INTEGER_DIVISIONS:
        return 0
    operands = [o for o in nest.operands if o.is_buffer and loop in o.dims]
    sizes = {mlir_util.element_bytes(ir.MemRefType(o.value.type).element_type) for o in operands}
    if not sizes or (register < _WIDE_REGISTER and not sizes.issubset(_BYTES)):
        return 0
    if not sizes.issubset(_BYTES) and not _only_moves(nest):
        if 1 in sizes or extent is None or extent > _SHORT:
            return 0
        sizes.add(4)  # what is computed with 16 bits takes 32 on the way
    lanes = register // max(sizes)
    while extent is not None and lanes > 2 and lanes // 2 >= extent:
        lanes //= 2
    return lanes


def _only_moves(nest: Nest) -> bool:
    """Whether elements are what is loaded: LLVM leaves many such loops of 8 or 16 bits as they are."""
    ops = mlir_util.children(nest.op)
    computed = [op for op in ops if op.name not in (LOAD, "linalg.index", "linalg.yield")]
    return all(isinstance(value.type, ir.IndexType) for op in computed for value in op.results)


def can_reduce(nest: Nest) -> bool:
    """Whether sums of parts are combined to those of all."""
    types = [ir.MemRefType(result.value.type).element_type for result in nest.results]
    pairs = zip(combiners(nest.op), types, strict=True)
    return all(combiner is not None and has_neutral(combiner.name, type_) for combiner, type_ in pairs)


class VectorLoop:
    """The loop ``loop`` of ``nest``, ``lanes`` iterations at once; ``used``: which arguments of the body are.

    ``registers``: how many of the processor so many elements take.
    """

    def __init__(self, nest: Nest, loop: int, lanes: int, used: Sequence[bool], registers: int = 1) -> None:
        self._nest = nest
        self._loop = loop
        self._lanes = lanes
        self._used = used
        self._sums_at_once = max(1, _AT_ONCE // registers)
        self._combiners: list[Any] = combiners(nest.op)  # none is None where they are used
        self._arguments = list(mlir_util.entry_block(nest.op).arguments)
        self._yielded = list(mlir_util.children(nest.op)[-1].operands)

    def write(self, build: Builder, bounds: tuple[Any, Any], indices: Indices, loaded: Loaded) -> None:
        """All iterations write results of their own. ``loaded``: inputs that are the same for all, by number."""

        def vector(inside: Builder, index: Any, mask: Any) -> None:
            here = {**indices, self._loop: index}
            old = self._load_results(inside, here, mask)
            self._store_results(inside, here, self._values(inside, here, loaded, old, mask), mask)

        self._vectors(build, bounds, vector)

    def reduce(
        self, build: Builder, bounds: tuple[Any, Any], indices: Indices, loaded: Loaded, carried: Sequence[Any]
    ) -> list[Any]:
        """All iterations are combined with ``carried``, a number for each result."""
        lanes, length, sums = self._lanes, _length(bounds), self._first(build, carried)
        count = len(sums)
        begin, whole = bounds[0], _whole_steps(build, *bounds, lanes)

        def add(inside: Builder, index: Any, values: list[Any], mask: Any = None) -> list[Any]:
            here = {**indices, self._loop: index}
            made = self._add(inside, here, loaded, values, mask)
            if mask is None:
                return made
            return [
                inside.value("arith.select", [mask, new, old], new.type)
                for new, old in zip(made, values, strict=True)
            ]

        if length is None or length >= 2 * lanes:
            at_once = self._sums_at_once * (2 if is_light(self._nest) else 1)
            at_once = at_once if length is None else min(at_once, length // lanes)

            def several(inside: Builder, index: Any, values: list[Any]) -> list[Any]:
                made: list[Any] = []
                for number in range(at_once):
                    at = inside.value("arith.addi", [index, inside.constant(number * lanes)], inside.index)
                    made += add(inside, at, values[number * count : (number + 1) * count])
                return made

            behind = _whole_steps(build, begin, whole, at_once * lanes)
            found = for_loop(build, (begin, behind, build.constant(at_once * lanes)), sums * at_once, several)
            sums, begin = self._total(build, found, count), behind
        if length is None or length >= lanes:
            sums = for_loop(build, (begin, whole, build.constant(lanes)), sums, add)
        sums = self._rest(build, bounds, whole, sums, lambda inside, mask: add(inside, whole, sums, mask))
        return self._last(build, sums, carried)

    def _first(self, build: Builder, carried: Sequence[Any]) -> list[Any]:
        """What changes nothing, as vectors."""
        return self._neutral(build, [value.type for value in carried])

    def _add(self, build: Builder, here: Indices, loaded: Loaded, old: Sequence[Any], mask: Any) -> list[Any]:
        return self._values(build, here, loaded, old, mask)

    def _last(self, build: Builder, sums: Sequence[Any], carried: Sequence[Any]) -> list[Any]:
        """All elements of vectors, combined with ``carried``."""
        each = zip(self._combiners, sums, carried, strict=True)
        return [across(build, op.name.partition(".")[2], vector, number) for op, vector, number in each]

    def add_rows(
        self,
        build: Builder,
        rows: tuple[int, Any, Any],
        bounds: tuple[Any, Any],
        indices: Indices,
        load: Callable[[Builder, Indices], Loaded],
    ) -> None:
        """The rows of a loop of sums (its number, begin and end) are added to a row of results.

        ``load``: of a place, the inputs that are the same for a row, by number.
        """
        loop, first, last = rows
        length = _length(bounds)
        if length is not None and length <= self._sums_at_once * self._lanes and can_reduce(self._nest):
            self._keep_row(build, rows, (bounds[0], length), indices, load)
            return

        def some(at_once: int) -> Callable[[Builder, Any, list[Any]], list[Any]]:
            def step(inside: Builder, row: Any, _: list[Any]) -> list[Any]:
                places = [
                    inside.value("arith.addi", [row, inside.constant(number)], inside.index)
                    for number in range(at_once)
                ]
                around = [{**indices, loop: place} for place in places]
                loaded = [load(inside, each) for each in around]

                def vector(build: Builder, index: Any, mask: Any) -> None:
                    values = self._load_results(build, {**indices, self._loop: index}, mask)
                    for each, known in zip(around, loaded, strict=True):
                        values = self._values(build, {**each, self._loop: index}, known, values, mask)
                    self._store_results(build, {**indices, self._loop: index}, values, mask)

                self._vectors(inside, bounds, vector)
                return []

            return step

        behind = _whole_steps(build, first, last, _AT_ONCE)
        for_loop(build, (first, behind, build.constant(_AT_ONCE)), [], some(_AT_ONCE))
        for_loop(build, (behind, last, build.constant(1)), [], some(1))

    def _keep_row(
        self,
        build: Builder,
        rows: tuple[int, Any, Any],
        part: tuple[Any, int],
        indices: Indices,
        load: Callable[[Builder, Indices], Loaded],
    ) -> None:
        """A row of results that is in registers; ``part``: where it begins, and how long it is."""
        (loop, first, last), (begin, length), lanes = rows, part, self._lanes
        pieces: list[tuple[Any, Any]] = []
        for at in range(0, length, lanes):
            index = build.value("arith.addi", [begin, build.constant(at)], build.index)
            pieces.append((index, _mask(build, length - at, lanes) if length - at < lanes else None))
        count, at_once = len(pieces) * len(self._nest.results), max(1, self._sums_at_once // len(pieces))

        def row(inside: Builder, place: Any, values: list[Any]) -> list[Any]:
            around = {**indices, loop: place}
            loaded = load(inside, around)
            each = len(self._nest.results)
            made: list[Any] = []
            for number, (index, mask) in enumerate(pieces):
                old = values[number * each : (number + 1) * each]
                made += self._values(inside, {**around, self._loop: index}, loaded, old, mask)
            return made

        def several(inside: Builder, place: Any, values: list[Any]) -> list[Any]:
            made: list[Any] = []
            for number in range(at_once):
                at = inside.value("arith.addi", [place, inside.constant(number)], inside.index)
                made += row(inside, at, values[number * count : (number + 1) * count])
            return made

        types = [ir.MemRefType(result.value.type).element_type for result in self._nest.results]
        sums = self._neutral(build, types) * (len(pieces) * at_once)
        behind = _whole_steps(build, first, last, at_once)
        sums = for_loop(build, (first, behind, build.constant(at_once)), sums, several)
        sums = self._total(build, sums, count)
        sums = for_loop(build, (behind, last, build.constant(1)), sums, row)
        for number, (index, mask) in enumerate(pieces):
            here, each = {**indices, self._loop: index}, len(types)
            old = self._load_results(build, here, mask)
            new = self._combine(build, old, sums[number * each : (number + 1) * each])
            self._store_results(build, here, new, mask)

    def _vectors(
        self, build: Builder, bounds: tuple[Any, Any], vector: Callable[[Builder, Any, Any], None]
    ) -> None:
        """``vector`` makes some iterations, from an index on, with a mask or without (None)."""
        length = _length(bounds)
        begin, whole = bounds[0], _whole_steps(build, *bounds, self._lanes)
        if length is None or length >= self._lanes:

            def step(inside: Builder, index: Any, _: list[Any]) -> list[Any]:
                vector(inside, index, None)
                return []

            for_loop(build, (begin, whole, build.constant(self._lanes)), [], step)

        def rest(inside: Builder, mask: Any) -> list[Any]:
            vector(inside, whole, mask)
            return []

        self._rest(build, bounds, whole, [], rest)

    def _rest(
        self,
        build: Builder,
        bounds: tuple[Any, Any],
        whole: Any,
        values: list[Any],
        branch: Callable[[Builder, Any], list[Any]],
    ) -> list[Any]:
        """What ``branch`` makes with a mask of the iterations from ``whole`` on; ``values`` if there are none."""
        length = _length(bounds)
        if length is not None:
            left = length % self._lanes
            return branch(build, _mask(build, left, self._lanes)) if left else values
        some = compare(build, "arith.cmpi", 1, whole, bounds[1])

        def make(inside: Builder) -> list[Any]:
            left = inside.value("arith.subi", [bounds[1], whole], inside.index)
            return branch(inside, _mask(inside, left, self._lanes))

        return if_then(build, some, make, values)

    def _values(self, build: Builder, here: Indices, loaded: Loaded, old: Sequence[Any], mask: Any) -> list[Any]:
        """What the body yields, as vectors; ``old``: of the results, None where it does not use them."""
        return self._values_of(build, self._yielded, here, loaded, old, mask)

    def _values_of(
        self,
        build: Builder,
        values: Sequence[Any],
        here: Indices,
        loaded: Loaded,
        old: Sequence[Any],
        mask: Any,
    ) -> list[Any]:
        mapping = {self._arguments[number]: value for number, value in loaded.items()}
        for number, operand in enumerate(self._nest.operands[: self._nest.inputs]):
            if self._used[number] and number not in loaded:
                mapping[self._arguments[number]] = self._load(build, operand, here, mask)
        for argument, value in zip(self._arguments[self._nest.inputs :], old, strict=True):
            if value is not None:
                mapping[argument] = value
        clone_as_vectors(build, self._nest.op, mapping, here, self._loop, self._lanes, mask)
        return [as_vector(build, mapping.get(value, value), self._lanes) for value in values]

    def _load_results(self, build: Builder, here: Indices, mask: Any) -> list[Any]:
        results = enumerate(self._nest.results, self._nest.inputs)
        return [self._load(build, o, here, mask) if self._used[number] else None for number, o in results]

    def _load(self, build: Builder, operand: Any, here: Indices, mask: Any) -> Any:
        at = [here[loop] for loop in operand.dims]
        type_ = vector_of(self._lanes, ir.MemRefType(operand.value.type).element_type)
        if mask is None:
            return build.value("vector.load", [operand.value, *at], type_)
        zero = _zeros(build, type_)
        return build.value("vector.maskedload", [operand.value, *at, mask, zero], type_)

    def _store_results(self, build: Builder, here: Indices, values: Sequence[Any], mask: Any) -> None:
        for result, value in zip(self._nest.results, values, strict=True):
            at = [here[loop] for loop in result.dims]
            if mask is None:
                build.op("vector.store", [value, result.value, *at])
            else:
                build.op("vector.maskedstore", [result.value, *at, mask, value])

    def _neutral(self, build: Builder, types: Sequence[Any]) -> list[Any]:
        numbers = [neutral(build, op.name, type_) for op, type_ in zip(self._combiners, types, strict=True)]
        return [as_vector(build, number, self._lanes) for number in numbers]

    def _combine(self, build: Builder, left: Sequence[Any], right: Sequence[Any]) -> list[Any]:
        """Results, or several sets of them, one after the other."""
        made: list[Any] = []
        for number, (one, other) in enumerate(zip(left, right, strict=True)):
            op = self._combiners[number % len(self._combiners)]
            made.append(build.value(op.name, [one, other], one.type, dict(op.attributes.items())))
        return made

    def _total(self, build: Builder, found: list[Any], count: int) -> list[Any]:
        """Of several sets of ``count`` results, one."""
        while len(found) > count:
            half = len(found) // count // 2 * count
            found = [*self._combine(build, found[:half], found[half : 2 * half]), *found[2 * half :]]
        return found


def _length(bounds: tuple[Any, Any]) -> int | None:
    begin, end = map(mlir_util.constant_integer, bounds)
    return None if begin is None or end is None else max(0, end - begin)


def _whole_steps(build: Builder, begin: Any, end: Any, step: int) -> Any:
    """Where the last step that is a whole one ends."""
    first, last = map(mlir_util.constant_integer, (begin, end))
    if first is not None and last is not None:
        return build.constant(first + max(0, last - first) // step * step)
    length = build.value("arith.subi", [end, begin], build.index)
    rest = build.value("arith.remui", [length, build.constant(step)], build.index)
    return build.value("arith.subi", [end, rest], build.index)


def _mask(build: Builder, left: Any, lanes: int) -> Any:
    """Of the first ``left`` lanes, a number or a value."""
    left = build.constant(left) if isinstance(left, int) else left
    return build.value(
        "vector.create_mask", [left], vector_of(lanes, ir.IntegerType.get_signless(1, left.context))
    )


def _zeros(build: Builder, type_: Any) -> Any:
    zero = "0.0" if isinstance(type_.element_type, ir.FloatType) else "0"
    value = ir.Attribute.parse(f"dense<{zero}> : {type_}", type_.context)
    return build.value("arith.constant", [], type_, {"value": value})


def across(build: Builder, name: str, vector: Any, number: Any) -> Any:
    """All elements of a vector, and a number, combined by the operation ``name`` of arith, in any order."""
    order = " fastmath<reassoc>" if name in ("addf", "mulf") else ""
    kind, types = name[:-1] if name in _REDUCTIONS else name, f"{vector.type} into {number.type}"
    text = f"vector.reduction <{kind}>, %0, %1{order} : {types}"
    return build.insert(text, [vector, number])[0].result
