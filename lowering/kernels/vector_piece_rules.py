"""What operations on vectors become on the pieces of `.vector_pieces`: a rule for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels import vector_piece_memory as memory
from devscope.lowering.kernels.vector_piece_ops import (
    UNSIGNED_LESS,
    as_vector,
    compare,
    extract_element,
    is_vector,
    shuffle_lanes,
    spread,
    vector_type,
)
from devscope.lowering.mlir_util import Builder

if TYPE_CHECKING:
    from devscope.lowering.kernels.vector_pieces import Splitter


def elementwise(splitter: Splitter, build: Builder, op: Any) -> list[Any]:
    attributes = dict(op.attributes.items())
    types = splitter.piece_types(op.results[0].type)
    splat = attributes.get("value") if op.name == "arith.constant" else None
    made: list[Any] = []
    known: dict[Any, Any] = {}
    for number, type_ in enumerate(types):
        if splat is not None:
            value = ir.DenseElementsAttr(splat).get_splat_value()
            is_number = not isinstance(type_, ir.VectorType)
            attributes["value"] = value if is_number else ir.DenseElementsAttr.get_splat(type_, value)
        if not len(op.operands):
            if type_ not in known:
                known[type_] = build.value(op.name, [], type_, attributes)
            made.append(known[type_])
            continue
        operands = [splitter.of(v)[number] if is_vector(v) else v for v in op.operands]
        name = _fma(type_) if op.name == "vector.fma" else op.name
        made.append(build.value(name, operands, type_, attributes))
    return made


def _broadcast(splitter: Splitter, build: Builder, op: Any) -> list[Any]:
    (source,), types = list(op.operands), splitter.piece_types(op.results[0].type)
    if is_vector(source):
        row = splitter.of(source)
        return row * (len(types) // len(row))
    known = {type_: spread(build, source, type_) for type_ in dict.fromkeys(types)}
    return [known[type_] for type_ in types]


def _outer_product(splitter: Splitter, build: Builder, op: Any) -> list[Any]:
    a, b, *sums = list(op.operands)
    (rows,) = ir.VectorType(a.type).shape
    columns, so_far = splitter.of(b), iter(splitter.of(sums[0]))
    is_float = isinstance(ir.VectorType(b.type).element_type, ir.FloatType)
    made: list[Any] = []
    for row in range(rows):
        number = _element(splitter, build, a, row)
        factors = {c.type: spread(build, number, c.type) for c in columns}
        for column in columns:
            factor, sum_ = factors[column.type], next(so_far)
            if is_float:
                made.append(build.value(_fma(column.type), [factor, column, sum_], column.type))
            else:
                product_ = build.value("arith.muli", [factor, column], column.type)
                made.append(build.value("arith.addi", [product_, sum_], column.type))
    return made


def _element(splitter: Splitter, build: Builder, value: Any, position: int) -> Any:
    (count,) = ir.VectorType(value.type).shape
    parts = splitter.split(count) if splitter.has_pieces(value.type) else ((0, count),)
    for piece, (begin, size) in zip(splitter.of(value), parts, strict=True):
        if begin <= position < begin + size:
            return extract_element(build, piece, position - begin) if is_vector(piece) else piece
    raise IndexError(position)


def _extract(splitter: Splitter, build: Builder, op: Any) -> list[Any]:
    value, place = op.operands[0], list(ir.DenseI64ArrayAttr(op.attributes["static_position"]))
    if len(op.operands) > 1:
        return [_element_at(splitter, build, op)]
    pieces, (*outer, count) = splitter.of(value), ir.VectorType(value.type).shape
    in_row = len(splitter.split(count))
    if len(place) <= len(outer):
        size = in_row * prod(outer[len(place) :])
        begin = _linear(place, outer[: len(place)]) * size
        return pieces[begin : begin + size]
    begin = _linear(place[:-1], outer) * in_row
    for piece, (first, size) in zip(pieces[begin : begin + in_row], splitter.split(count), strict=True):
        if first <= place[-1] < first + size:
            made = extract_element(build, piece, place[-1] - first) if size > 1 else piece
            return [made]
    raise IndexError(place)


def _insert(splitter: Splitter, build: Builder, op: Any) -> list[Any]:
    if len(op.operands) > 2:
        return _insert_at(splitter, build, op)
    new, value = list(op.operands)
    place = list(ir.DenseI64ArrayAttr(op.attributes["static_position"]))
    pieces, (*outer, count) = list(splitter.of(value)), ir.VectorType(value.type).shape
    in_row = len(splitter.split(count))
    if len(place) <= len(outer):
        size = in_row * prod(outer[len(place) :])
        begin = _linear(place, outer[: len(place)]) * size
        pieces[begin : begin + size] = splitter.of(new)
        return pieces
    begin = _linear(place[:-1], outer) * in_row
    for number, (first, size) in enumerate(splitter.split(count), begin):
        if first <= place[-1] < first + size:
            at = {"static_position": ir.DenseI64ArrayAttr.get([place[-1] - first], op.context)}
            old = pieces[number]
            pieces[number] = new if size == 1 else build.value("vector.insert", [new, old], old.type, at)
    return pieces


def _element_at(splitter: Splitter, build: Builder, op: Any) -> Any:
    """An element of a vector of one axis, at a position that is known at run time only."""
    value, position = list(op.operands)
    made: Any = None
    for piece, place, is_here in _places(splitter, build, value, position):
        element = piece
        if is_vector(piece):
            element = build.value(op.name, [piece, place], op.results[0].type, dict(op.attributes.items()))
        made = element if made is None else build.value("arith.select", [is_here, element, made], element.type)
    return made


def _insert_at(splitter: Splitter, build: Builder, op: Any) -> list[Any]:
    """A vector of one axis with another element at a position that is known at run time only."""
    new, value, position = list(op.operands)
    made: list[Any] = []
    for piece, place, is_here in _places(splitter, build, value, position):
        other = new
        if is_vector(piece):
            other = build.value(op.name, [new, piece, place], piece.type, dict(op.attributes.items()))
        made.append(build.value("arith.select", [is_here, other, piece], piece.type))
    return made


def _places(splitter: Splitter, build: Builder, value: Any, position: Any) -> Iterator[tuple[Any, Any, Any]]:
    """The pieces of a vector of one axis, for each a place in it, and whether ``position`` is that place.

    In other pieces it is any place, since there is none behind the last element.
    """
    for (begin, size), piece in zip(splitter.parts(value.type), splitter.of(value), strict=True):
        place = build.value("arith.subi", [position, build.constant(begin)], build.index)
        is_here = compare(build, UNSIGNED_LESS, place, build.constant(size))
        yield piece, build.value("arith.andi", [place, build.constant(size - 1)], build.index), is_here


def _to_elements(splitter: Splitter, build: Builder, op: Any) -> list[Any]:
    value = op.operands[0]
    return [_element(splitter, build, value, number) for number in range(len(op.results))]


def _from_elements(splitter: Splitter, build: Builder, op: Any) -> list[Any]:
    elements, made = iter(list(op.operands)), list[Any]()
    for type_ in splitter.piece_types(op.results[0].type):
        if isinstance(type_, ir.VectorType):
            parts = [next(elements) for _ in range(ir.VectorType(type_).shape[0])]
            made.append(build.value("vector.from_elements", parts, type_))
        else:
            made.append(next(elements))
    return made


def _step(splitter: Splitter, build: Builder, op: Any) -> list[Any]:
    made: list[Any] = []
    for (begin, size), type_ in splitter.parts_of_result(op):
        parts = [build.constant(begin + lane) for lane in range(size)]
        made.append(parts[0] if size == 1 else build.value("vector.from_elements", parts, type_))
    return made


def _shuffle(splitter: Splitter, build: Builder, op: Any) -> list[Any]:
    lanes = list(ir.DenseI64ArrayAttr(op.attributes["mask"]))
    pieces: list[tuple[Any, int]] = []  # with where each begins among the lanes of both
    begin = 0
    for value in op.operands:
        for (first, _), piece in zip(splitter.parts(value.type), splitter.of(value), strict=True):
            pieces.append((piece, begin + first))
        begin += sum(size for _, size in splitter.parts(value.type))
    return [
        _lanes_of(splitter, build, pieces, lanes[first : first + size])
        for first, size in splitter.parts(op.results[0].type)
    ]


def _lanes_of(splitter: Splitter, build: Builder, pieces: Sequence[tuple[Any, int]], lanes: Sequence[int]) -> Any:
    """A piece with these ``lanes`` of vectors of which there are ``pieces``."""
    made: Any = None
    done: set[int] = set()  # lanes of the result
    size = len(lanes)
    used: list[tuple[Any, int, dict[int, int]]] = []  # a piece, how many lanes it has, and which are where
    for piece, begin in pieces:
        count = ir.VectorType(piece.type).shape[0] if is_vector(piece) else 1
        if here := {to: lane - begin for to, lane in enumerate(lanes) if begin <= lane < begin + count}:
            used.append((piece, count, here))
    if size == 1:
        piece, count, here = used[0]
        return extract_element(build, piece, here[0]) if count > 1 else piece
    if len(used) > 1 and used[0][1] == used[1][1] > 1:
        (one, count, here), (other, _, there), *used = used
        here |= {to: count + lane for to, lane in there.items()}
        made, done = shuffle_lanes(build, one, other, [here.get(to, 0) for to in range(size)]), set(here)
    for piece, count, here in used:
        if count == 1 or (made is not None and count != size):
            for to, lane in here.items():
                number = extract_element(build, piece, lane) if count > 1 else piece
                type_ = vector_type(size, number.type)
                made = spread(build, number, type_) if made is None else made
                at = {"static_position": ir.DenseI64ArrayAttr.get([to], piece.type.context)}
                made = build.value("vector.insert", [number, made], type_, at)
        elif made is None:
            made = shuffle_lanes(build, piece, piece, [here.get(to, 0) for to in range(size)])
        else:
            order = [to if to in done else size + here.get(to, 0) for to in range(size)]
            made = shuffle_lanes(build, made, piece, order)
        done |= set(here)
    return made


def _interleave(splitter: Splitter, build: Builder, op: Any) -> list[Any]:
    made: list[Any] = []
    for one, other in zip(*map(splitter.of, op.operands), strict=True):
        if not is_vector(one):
            made.append(build.value("vector.from_elements", [one, other], vector_type(2, one.type)))
            continue
        (size,) = ir.VectorType(one.type).shape
        order = [lane + side for lane in range(size) for side in (0, size)]
        for begin in range(0, 2 * size, min(splitter.most, 2 * size)):
            part = order[begin : begin + min(splitter.most, 2 * size)]
            made.append(shuffle_lanes(build, one, other, part))
    return made


def _slice(splitter: Splitter, build: Builder, op: Any) -> list[Any]:
    value = op.operands[0]
    (begin,) = (ir.IntegerAttr(each).value for each in ir.ArrayAttr(op.attributes["offsets"]))
    (size,) = ir.VectorType(op.results[0].type).shape
    for piece, (first, count) in zip(splitter.of(value), splitter.parts(value.type), strict=True):
        if first <= begin and begin + size <= first + count:
            lanes = list(range(begin - first, begin - first + size))
            made = piece if size == count else shuffle_lanes(build, piece, piece, lanes)
            return [made]
    raise IndexError(begin)


def _reduction(splitter: Splitter, build: Builder, op: Any) -> list[Any]:
    value, *so_far = list(op.operands)
    for piece in splitter.of(value):
        operands = [as_vector(build, piece), *so_far]
        so_far = [build.value(op.name, operands, op.results[0].type, dict(op.attributes.items()))]
    return so_far


def _fma(type_: Any) -> str:
    return "vector.fma" if isinstance(type_, ir.VectorType) else "math.fma"


def _linear(place: Sequence[int], shape: Sequence[int]) -> int:
    number = 0
    for position, size in zip(place, shape, strict=True):
        number = number * size + position
    return number


RULES: dict[str, Callable[[Splitter, Builder, Any], list[Any]]] = {
    "vector.broadcast": _broadcast,
    "vector.outerproduct": _outer_product,
    "vector.extract": _extract,
    "vector.insert": _insert,
    "vector.from_elements": _from_elements,
    "vector.to_elements": _to_elements,
    "vector.load": memory.load,
    "vector.store": memory.store,
    "vector.transfer_read": memory.read,
    "vector.transfer_write": memory.write,
    "vector.create_mask": memory.create_mask,
    "vector.constant_mask": memory.constant_mask,
    "vector.maskedload": memory.masked_load,
    "vector.maskedstore": memory.masked_store,
    "vector.gather": memory.gather,
    "vector.step": _step,
    "vector.shuffle": _shuffle,
    "vector.interleave": _interleave,
    "vector.extract_strided_slice": _slice,
    "vector.reduction": _reduction,
}
