"""Reductions that only the best element of a row decides, such as an argmax: it is found by vectors.

Each lane has its best number so far and the part of the row that this was in; then lanes are compared, and the
first number of that part that is the best one is looked for. The body of the reduction is done once, for that
element. Rows with NaN, or whose best number is a zero, are not decided so: a NaN ends what comparisons find, and
zeros of both signs are equal, but not the same.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels.control_flow import for_loop
from devscope.lowering.kernels.nest_bodies import neutral
from devscope.lowering.kernels.tiles import ELEMENTS
from devscope.lowering.kernels.vector_bodies import EXTREMA, PART, as_vector, better, compare, lanes_of, vector_of
from devscope.lowering.kernels.vector_loops import across
from devscope.lowering.mlir_util import Builder

_MOST = 2**31 - PART
"""Elements of a row, whose places are numbers of 32 bits."""

_ORDERED = (7, 14)
"""The predicates ord and uno."""

_Pair = tuple[Any, Any]
"""Vectors: numbers, and the parts that they are in."""


class Best(NamedTuple):
    """All results of a body are those of the first of the best elements: the extremum ``name`` of ``number``."""

    number: Any
    name: str

    @property
    def is_float(self) -> bool:
        return isinstance(self.number.type, ir.FloatType)

    def is_better(self, build: Builder, new: Any, old: Any) -> Any:
        return compare(build, "arith.cmpf" if self.is_float else "arith.cmpi", EXTREMA[self.name][0], new, old)


def best_of(of: Any) -> Best | None:
    """None if other elements count, too, or the last of equal ones does."""
    *ops, end = mlir_util.children(of)
    makers = {result: op for op in ops for result in op.results}
    arguments = list(mlir_util.entry_block(of).arguments)[-len(end.operands) :]
    old = set(arguments)
    for op in ops:
        if old.intersection(op.operands):
            old.update(op.results)
    if not all(value in makers for value in end.operands):
        return None
    made = {argument: makers[value] for value, argument in zip(end.operands, arguments, strict=True)}
    extrema = {argument: name for argument, op in made.items() if (name := _extremum(op, argument, makers))}
    if len(extrema) != 1:
        return None
    (best,) = extrema
    op = made[best]
    comparison = better(makers[op.operands[0]] if op.name == "arith.select" else op, best)
    for argument, op in made.items():
        if argument == best:
            continue
        if op.name != "arith.select" or op.operands[2] != argument or op.operands[1] in old:
            return None
        maker = _of_numbers(makers.get(op.operands[0]), makers)
        if maker is None or better(maker, best) != comparison:
            return None
    number = comparison[2] if comparison else None
    if number is None or number in old or str(number.type) not in ELEMENTS:
        return None
    return Best(number, extrema[best])


def _of_numbers(op: Any | None, makers: Mapping[Any, Any]) -> Any | None:
    """The comparison in "better, or the first NaN", which is all of it without NaN; others are as they are."""
    if op is None or op.name != "arith.ori":
        return op
    one, other = (makers.get(operand) for operand in op.operands)
    tests = [makers.get(operand) for operand in other.operands] if other is not None else []
    return one if tests and all(map(_is_of_nan, tests)) else op


def _is_of_nan(op: Any | None) -> bool:
    """Whether ``op`` asks if a number is NaN or not."""
    if op is None or op.name != "arith.cmpf" or op.operands[0] != op.operands[1]:
        return False
    return ir.IntegerAttr(op.attributes["predicate"]).value in _ORDERED


def _extremum(op: Any, argument: Any, makers: Mapping[Any, Any]) -> str | None:
    """The extremum that ``op`` is of ``argument`` and another number, but for NaN."""
    if op.name in EXTREMA:
        return op.name
    maker = makers.get(op.operands[0]) if op.name == "arith.select" else None
    comparison = None if maker is None else better(maker, argument)
    if comparison is None or list(op.operands)[1:] != [comparison[2], argument]:
        return None
    kind = [name for name in EXTREMA if name.endswith("f") == (comparison[0] == "arith.cmpf")]
    return next((name for name in kind if EXTREMA[name][0] == comparison[1]), None)


def find_best(
    build: Builder,
    best: Best,
    bounds: tuple[Any, Any],
    lanes: int,
    numbers: Callable[[Builder, Any], Sequence[Any]],
) -> tuple[Any, Any]:
    """The index of the element that decides, and whether it is known.

    ``bounds``: of whole parts; ``numbers``: vectors of those of the part that begins at an index.
    """
    (begin, end), index = bounds, build.index
    i32 = ir.IntegerType.get_signless(32, index.context)
    size, number_type = build.constant(PART), best.number.type

    def value(name: str, *operands: Any, at: Builder = build) -> Any:
        return at.value(f"arith.{name}", operands, operands[-1].type)

    length = value("subi", end, begin)
    short = compare(build, "arith.cmpi", 6, length, build.constant(_MOST))
    state = [as_vector(build, neutral(build, best.name, number_type), lanes)]
    state.append(as_vector(build, build.constant(0, i32), lanes))
    if best.is_float:  # a sum is NaN if a number was
        state.append(as_vector(build, neutral(build, "arith.addf", number_type), lanes))

    def part(inside: Builder, first: Any, states: list[Any]) -> list[Any]:
        """One vector, of the best of all in the part, is compared: few registers hold what is known of others."""

        def better_of(old: Any, new: Any) -> Any:
            return value("select", best.is_better(inside, new, old), new, old, at=inside)

        number, place, *sums = states
        done = value("divui", value("subi", first, begin, at=inside), size, at=inside)
        now = as_vector(inside, inside.value("arith.index_cast", [done], i32), lanes)
        vectors = [as_vector(inside, each, lanes) for each in numbers(inside, first)]
        here = _by_pairs(vectors, better_of)
        is_better = best.is_better(inside, here, number)
        new = [value("select", is_better, *pair, at=inside) for pair in ((here, number), (now, place))]
        for sum_ in sums:
            total = _by_pairs(vectors, lambda one, other: value("addf", one, other, at=inside))
            new.append(value("addf", total, sum_, at=inside))
        return new

    stop = build.value("arith.select", [short, end, begin], index)
    numbers_found, parts, *sums = for_loop(build, (begin, stop, size), state, part)
    number, place = _first_best(build, best, (numbers_found, parts))
    first = value("addi", value("muli", build.value("arith.index_cast", [place], index), size), begin)
    offset = _first_equal(build, best, number, lanes, numbers(build, first))
    known = compare(build, "arith.cmpi", 6, offset, build.constant(PART, i32))
    known = build.value("arith.andi", [_is_known(build, number, short, sums), known], known.type)
    return value("addi", build.value("arith.index_cast", [offset], index), first), known


def _by_pairs(found: Sequence[Any], combine: Callable[[Any, Any], Any]) -> Any:
    while len(found) > 1:
        found = [combine(*pair) for pair in zip(found[::2], found[1::2], strict=True)]
    return found[0]


def _first_equal(build: Builder, best: Best, number: Any, lanes: int, numbers: Sequence[Any]) -> Any:
    """Which number of a part is the first one that is ``number``; `PART` if none is."""
    i32 = ir.IntegerType.get_signless(32, number.type.context)
    wanted, none = as_vector(build, number, lanes), build.constant(PART, i32)
    far = as_vector(build, none, lanes)
    first = far
    kind, is_equal = ("arith.cmpf", 1) if best.is_float else ("arith.cmpi", 0)
    for at, each in enumerate(numbers):
        text = ", ".join(str(at * lanes + lane) for lane in range(lanes))
        offsets = ir.Attribute.parse(f"dense<[{text}]> : {far.type}", i32.context)
        offset = build.value("arith.constant", [], far.type, {"value": offsets})
        found = compare(build, kind, is_equal, as_vector(build, each, lanes), wanted)
        first = build.value(
            "arith.minsi", [first, build.value("arith.select", [found, offset, far], far.type)], far.type
        )
    return across(build, "minsi", first, none)


def _first_best(build: Builder, best: Best, found: _Pair) -> tuple[Any, Any]:
    """The best number of all lanes, and its place, the first one of equal numbers."""

    def choose(first: _Pair, second: _Pair) -> _Pair:
        (number, place), (other, there) = first, second
        is_worse = best.is_better(build, number, other)
        is_before = compare(build, "arith.cmpi", 2, there, place)
        is_better = best.is_better(build, other, number)
        is_no_worse = build.value("arith.select", [is_worse, is_better, is_before], is_better.type)
        chosen = build.value("arith.ori", [is_better, is_no_worse], is_better.type)
        values = ([chosen, other, number], [chosen, there, place])
        number, place = (build.value("arith.select", each, each[1].type) for each in values)
        return number, place

    number, place = found
    while (half := lanes_of(number) // 2) > 0:
        low, high = (
            (_lanes(build, number, begin, half), _lanes(build, place, begin, half)) for begin in (0, half)
        )
        number, place = choose(low, high)
        if half == 1:
            break
    return number, place


def _is_known(build: Builder, number: Any, short: Any, sums: Sequence[Any]) -> Any:
    """Whether no number was NaN, and the best one is not zero."""
    if not sums:
        return short
    (total,) = sums
    zero = neutral(build, "arith.addf", number.type)
    total = across(build, "addf", total, zero)
    real = compare(build, "arith.cmpf", 7, total, total)
    known = build.value("arith.andi", [compare(build, "arith.cmpf", 6, number, zero), real], real.type)
    return build.value("arith.andi", [known, short], real.type)


def _lanes(build: Builder, vector: Any, begin: int, count: int) -> Any:
    """``count`` of them from ``begin`` on; one is a number."""
    if count == 1:
        place = {"static_position": ir.DenseI64ArrayAttr.get([begin], vector.context)}
        return build.value("vector.extract", [vector], ir.VectorType(vector.type).element_type, place)
    order = {"mask": ir.DenseI64ArrayAttr.get(list(range(begin, begin + count)), vector.context)}
    element = ir.VectorType(vector.type).element_type
    return build.value("vector.shuffle", [vector, vector], vector_of(count, element), order)
