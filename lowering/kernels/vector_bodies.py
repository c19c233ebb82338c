"""Bodies of operations of linalg, computed for several neighbouring iterations at once."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels.nest import Nest
from devscope.lowering.kernels.nest_bodies import neutral
from devscope.lowering.kernels.tiles import ELEMENTS
from devscope.lowering.kernels.vector_loads import LOAD, Loads, load_along
from devscope.lowering.mlir_util import Builder

PART = 64
"""Iterations of a reduction that are looked at together: the bits of a number say something of each."""

_MATH = frozenset(
    f"math.{name}"
    for name in ("absf", "absi", "ceil", "copysign", "floor", "fma", "roundeven", "rsqrt", "sqrt", "trunc")
)
"""What LLVM has for vectors; other functions may become calls for one number after the other."""


def is_vectorisable(nest: Nest, loop: int, functions: Collection[str] = (), may_load: Loads | None = None) -> bool:
    """Whether iterations of ``loop`` can be done with vectors: all operands have elements side by side, or one.

    ``functions``: operations of `math` that vectors can do, too. ``may_load``: which loads the body may
    have.
    """
    for operand in nest.operands:
        if operand.is_buffer and loop in operand.dims:
            element = ir.MemRefType(operand.value.type).element_type
            if operand.contiguous() != loop or operand.dims[-1] != loop or str(element) not in ELEMENTS:
                return False
    for op in mlir_util.children(nest.op):
        if may_load is not None and op.name == LOAD and may_load(op, nest, loop):
            continue
        types = [value.type for value in (*op.operands, *op.results)]
        if not all(isinstance(type_, ir.IntegerType | ir.FloatType | ir.IndexType) for type_ in types):
            return False
        if not op.name.startswith(("arith.", "linalg.")) and op.name not in _MATH and op.name not in functions:
            return False
    return True


def load_vector(build: Builder, buffer: Any, at: list[Any], lanes: int) -> Any:
    element = ir.MemRefType(buffer.type).element_type
    return build.value("vector.load", [buffer, *at], vector_of(lanes, element))


def clone_as_vectors(
    build: Builder,
    of: Any,
    mapping: dict[Any, Any],
    indices: Mapping[int, Any],
    loop: int,
    lanes: int,
    mask: Any = None,
) -> list[Any]:
    """What the body of ``of`` yields in ``lanes`` iterations of ``loop``, the first of which is in ``indices``.

    ``mapping``: values for those of the body, vectors or numbers for all iterations; results are of either kind.
    ``mask``: of the iterations that there are; None for all.
    """
    *ops, end = mlir_util.children(of)
    for op in ops:
        if op.name == "linalg.index":
            number = ir.IntegerAttr(op.attributes["dim"]).value
            mapping[op.results[0]] = indices[number]
            if number == loop:
                type_ = vector_of(lanes, build.index)
                first = build.value("vector.broadcast", [indices[number]], type_)
                mapping[op.results[0]] = build.value(
                    "arith.addi", [first, build.value("vector.step", [], type_)], type_
                )
            continue
        operands = [mapping.get(value, value) for value in op.operands]
        if not any(isinstance(value.type, ir.VectorType) for value in operands):
            copy = build.clone(op)
            mlir_util.remap_operands(copy, mapping)
        elif op.name == LOAD:
            type_ = vector_of(lanes, op.results[0].type)
            mapping[op.results[0]] = load_along(build, op, mapping, indices, type_, mask)
            continue
        else:
            types = [vector_of(lanes, result.type) for result in op.results]
            attributes = dict(op.attributes.items())
            copy = build.op(op.name, [as_vector(build, value, lanes) for value in operands], types, attributes)
        mapping.update(zip(op.results, copy.results, strict=True))
    return [mapping.get(value, value) for value in end.operands]


def as_vector(build: Builder, value: Any, lanes: int) -> Any:
    """``value`` in all lanes, if it is a number."""
    if isinstance(value.type, ir.VectorType):
        return value
    return build.value("vector.broadcast", [value], vector_of(lanes, value.type))


def vector_of(lanes: int, element: Any) -> Any:
    return ir.VectorType.get_unchecked([lanes], element, context=element.context)


def may_change(
    build: Builder, of: Any, mapping: Mapping[Any, Any], old: Sequence[Any], new: Sequence[Any], lanes: int
) -> Any:
    """For which lanes the body of ``of`` may make another of the numbers ``old``, as a mask.

    ``mapping``: of the values of the body; ``new``: what it yields in the place of ``old``.
    """
    *ops, end = mlir_util.children(of)
    makers = {result: op for op in ops for result in op.results}
    arguments = list(mlir_util.entry_block(of).arguments)[-len(old) :]
    extrema = {
        (argument, better(makers[value], argument))
        for value, argument in zip(end.operands, arguments, strict=True)
        if makers[value].name in EXTREMA
    }
    found: dict[Any, None] = {}
    for value, argument, before, after in zip(end.operands, arguments, old, new, strict=True):
        op = makers[value]
        if op.name in EXTREMA:
            number = op.operands[int(op.operands[0] == argument)]
            found[_may_be_better(build, op.name, as_vector(build, mapping.get(number, number), lanes), before)] = (
                None
            )
        elif op.name == "arith.select" and op.operands[2] == argument:
            condition = op.operands[0]
            maker = makers.get(condition)
            if maker is None or not any((other, better(maker, other)) in extrema for other in arguments):
                found[as_vector(build, mapping.get(condition, condition), lanes)] = None
        else:
            pair = [as_vector(build, each, lanes) for each in (before, after)]
            if isinstance(before.type, ir.FloatType):
                bits = vector_of(lanes, ir.IntegerType.get_signless(before.type.width, of.context))
                pair = [build.value("arith.bitcast", [each], bits) for each in pair]
            found[compare(build, "arith.cmpi", 1, *pair)] = None
    total, *others = found
    for other in others:
        total = build.value("arith.ori", [total, other], total.type)
    return total


#: The comparison by which one number is better than another, and one that holds where it may be.
EXTREMA = {
    "arith.maxsi": (4, 4),
    "arith.minsi": (2, 2),
    "arith.maxui": (8, 8),
    "arith.minui": (6, 6),
    "arith.maximumf": (2, 9),
    "arith.minimumf": (4, 11),
}


def better(op: Any, argument: Any) -> tuple[str, int, Any] | None:
    """What ``op``, an extremum or a comparison, asks of which number: whether it is better than ``argument``."""
    if op.name in EXTREMA:
        number = op.operands[int(op.operands[0] == argument)]
        return "arith.cmpf" if op.name.endswith("f") else "arith.cmpi", EXTREMA[op.name][0], number
    if op.name in ("arith.cmpf", "arith.cmpi") and op.operands[1] == argument:
        return op.name, ir.IntegerAttr(op.attributes["predicate"]).value, op.operands[0]
    return None


def _may_be_better(build: Builder, name: str, new: Any, old: Any) -> Any:
    """Whether one of ``new`` may replace ``old``: a zero may do so by its sign, and a NaN does."""
    lanes, (_, predicate) = lanes_of(new), EXTREMA[name]
    if not isinstance(old.type, ir.FloatType):
        return compare(build, "arith.cmpi", predicate, new, as_vector(build, old, lanes))
    width, is_max = old.type.width, name == "arith.maximumf"
    integer = ir.IntegerType.get_signless(width, old.context)
    # The zero that the other one is better than counts as the number next to it, a NaN as infinite.
    zero = -(1 << (width - 1)) if is_max else 0
    bits = build.value("arith.bitcast", [old], integer)
    is_zero = compare(build, "arith.cmpi", 0, bits, build.constant(zero, integer))
    beside = build.value("arith.bitcast", [build.constant(zero + 1, integer)], old.type)
    limit = build.value("arith.select", [is_zero, beside, old], old.type)
    best = neutral(build, "arith.minimumf" if is_max else "arith.maximumf", old.type)
    limit = build.value("arith.select", [compare(build, "arith.cmpf", 7, old, old), limit, best], old.type)
    return compare(build, "arith.cmpf", predicate, new, as_vector(build, limit, lanes))


def lanes_of(vector: Any) -> int:
    return ir.VectorType(vector.type).shape[0]


def compare(build: Builder, name: str, predicate: int, left: Any, right: Any) -> Any:
    """Of numbers or vectors; ``predicate``: of ``name``, by its number."""
    i1 = ir.IntegerType.get_signless(1, left.context)
    mask = vector_of(lanes_of(left), i1) if isinstance(left.type, ir.VectorType) else i1
    return build.value(name, [left, right], mask, {"predicate": ir.IntegerAttr.get(build.i64, predicate)})


def as_bits(build: Builder, masks: Sequence[Any]) -> Any:
    """`PART` lanes of masks, a power of two of them, as the bits of a number."""
    found = list(masks)
    while len(found) > 1:
        lanes = 2 * lanes_of(found[0])
        order = {"mask": ir.DenseI64ArrayAttr.get(list(range(lanes)), masks[0].context)}
        type_ = vector_of(lanes, ir.IntegerType.get_signless(1, masks[0].context))
        pairs = zip(found[::2], found[1::2], strict=True)
        found = [build.value("vector.shuffle", pair, type_, order) for pair in pairs]
    number = build.value("vector.bitcast", found, vector_of(1, build.i64))
    place = {"static_position": ir.DenseI64ArrayAttr.get([0], masks[0].context)}
    return build.value("vector.extract", [number], build.i64, place)


def first_bit(build: Builder, bits: Any) -> tuple[Any, Any]:
    """The number of the lowest bit that is set, `PART` if there is none, and a mask of all that are higher."""
    number = build.value("math.cttz", [bits], build.i64)
    behind = build.value("arith.shli", [build.constant(-2, build.i64), number], build.i64)
    return build.value("arith.index_cast", [number], build.index), behind
