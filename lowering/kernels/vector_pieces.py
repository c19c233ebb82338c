"""Vectors of any shape as vectors that a code generator has: of one axis, and of 2, 4, 8 or 16 elements.

A block of elements becomes the pieces of its rows, which loops and branches carry one by one; one element that is
left over is a number. SPIR-V has no others, and no arrays of vectors that loops carry.
"""

from collections.abc import Iterator, Sequence
from functools import cache, partial
from math import prod
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.mlir_util import Builder

_MOST = 16
"""Elements of a piece: a power of two."""

_BYTES = 64
"""Of a piece, at most: Intel's driver for CPUs gives a wider one that a loop carries a place on the stack that is
aligned to 2 GiB."""


@cache
def _split(count: int, most: int) -> tuple[tuple[int, int], ...]:
    """Where the pieces of ``count`` elements begin, and their sizes, ``most`` or less."""
    found: list[tuple[int, int]] = []
    begin, size = 0, most
    while begin < count:
        while size > count - begin:
            size //= 2
        found.append((begin, size))
        begin += size
    return tuple(found)


def _vector(size: int, element: Any) -> Any:
    return element if size == 1 else ir.VectorType.get_unchecked([size], element, context=element.context)


def _is_vector(value: Any) -> bool:
    return isinstance(value.type, ir.VectorType)


def _widest(function: Any) -> int:
    """Bytes of the widest elements of vectors: pieces of all are of as many elements, as masks and what is made
    longer or shorter have to be."""
    types = {value.type for op in mlir_util.walk(function) for value in op.results if _is_vector(value)}
    elements = {ir.VectorType(type_).element_type for type_ in types}
    return max(
        (mlir_util.element_bytes(each) for each in elements if not isinstance(each, ir.IndexType)), default=1
    )


def take_vectors_apart(function: Any) -> None:
    """Rewrite what ``function`` computes with vectors."""
    apart = _Apart(min(_MOST, _BYTES // _widest(function)))
    for block in mlir_util.blocks_of(function):
        apart.block(block)
    for op in reversed(apart.done):
        op.erase()
    for block, carried in apart.blocks:
        for _ in range(carried):
            block.erase_argument(1)


class _Apart:
    """``done``: operations that are replaced, to be erased behind what uses them. ``blocks``: of loops, with how
    many of their arguments are replaced. Nothing is erased until all is made: values are known by their addresses.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._pieces: dict[Any, list[Any]] = {}
        self.done: list[Any] = []
        self.blocks: list[tuple[Any, int]] = []

    def _split(self, count: int) -> tuple[tuple[int, int], ...]:
        return _split(count, self._most)

    def _parts(self, type_: Any) -> tuple[tuple[int, int], ...]:
        (count,) = ir.VectorType(type_).shape
        return self._split(count)

    def _has_pieces(self, type_: Any) -> bool:
        if not isinstance(type_, ir.VectorType):
            return False
        shape = ir.VectorType(type_).shape
        return len(shape) != 1 or len(self._split(shape[0])) != 1 or shape[0] == 1

    def _piece_types(self, type_: Any) -> list[Any]:
        if not self._has_pieces(type_):
            return [type_]
        *outer, count = ir.VectorType(type_).shape
        row = [_vector(size, ir.VectorType(type_).element_type) for _, size in self._split(count)]
        return row * prod(outer)

    def block(self, block: Any) -> None:
        for each in list(block.operations):
            op = each.operation
            values = (*op.operands, *op.results)
            if op.name in ("scf.for", "scf.if"):
                self._structured(op, any(self._has_pieces(value.type) for value in op.results))
            elif op.name == "scf.yield":
                self._yield(op)
            elif any(self._has_pieces(value.type) for value in values):
                self._operation(op)
            else:
                for region in op.regions:
                    for inner in region.blocks:
                        self.block(inner)

    def _parts_of_result(self, op: Any) -> Iterator[tuple[tuple[int, int], Any]]:
        type_ = op.results[0].type
        return zip(self._parts(type_), self._piece_types(type_), strict=True)

    def _of(self, value: Any) -> list[Any]:
        return self._pieces.get(value, [value])

    def _structured(self, op: Any, carries: bool) -> None:
        if not carries:
            for region in op.regions:
                for block in region.blocks:
                    self.block(block)
            return
        operands, carried = list(op.operands), len(op.results) if op.name == "scf.for" else 0
        fixed, initial = operands[: len(operands) - carried], operands[len(operands) - carried :]
        types = [type_ for result in op.results for type_ in self._piece_types(result.type)]
        first = [piece for value in initial for piece in self._of(value)]
        made = Builder(op).op(op.name, [*fixed, *first], types, dict(op.attributes.items()), len(op.regions))
        self._name(op.results, list(made.results))
        for old, new in zip(op.regions, made.regions, strict=True):
            old.blocks[0].append_to(new)
            block = new.blocks[0]
            arguments = list(block.arguments)[1:] if carried else []
            parts = [
                block.add_argument(type_, op.location)
                for each in arguments
                for type_ in self._piece_types(each.type)
            ]
            self._name(arguments, parts)
            for argument in arguments:
                if not self._has_pieces(argument.type):
                    argument.replace_all_uses_with(self._pieces.pop(argument)[0])
            self.block(block)
        for result in op.results:
            if not self._has_pieces(result.type):
                result.replace_all_uses_with(self._pieces.pop(result)[0])
        self.done.append(op)
        if carried:
            self.blocks.append((made.regions[0].blocks[0], carried))

    def _name(self, values: Sequence[Any], pieces: list[Any]) -> None:
        left = iter(pieces)
        for value in values:
            self._pieces[value] = [next(left) for _ in self._piece_types(value.type)]

    def _yield(self, op: Any) -> None:
        if any(self._has_pieces(value.type) for value in op.operands):
            Builder(op).op("scf.yield", [piece for value in op.operands for piece in self._of(value)])
            self.done.append(op)

    def _operation(self, op: Any) -> None:
        build = Builder(op)
        rule = _RULES.get(op.name, _Apart.elementwise)
        made = rule(self, build, op)
        for number, result in enumerate(op.results):
            if self._has_pieces(result.type):
                self._pieces[result] = made
            else:
                result.replace_all_uses_with(made[number])
        self.done.append(op)

    def elementwise(self, build: Builder, op: Any) -> list[Any]:
        attributes = dict(op.attributes.items())
        types = self._piece_types(op.results[0].type)
        splat = attributes.get("value") if op.name == "arith.constant" else None
        made: list[Any] = []
        known: dict[Any, Any] = {}
        for number, type_ in enumerate(types):
            if splat is not None:
                value = ir.DenseElementsAttr(splat).get_splat_value()
                is_vector = isinstance(type_, ir.VectorType)
                attributes["value"] = ir.DenseElementsAttr.get_splat(type_, value) if is_vector else value
            if not len(op.operands):
                if type_ not in known:
                    known[type_] = build.value(op.name, [], type_, attributes)
                made.append(known[type_])
                continue
            operands = [self._of(v)[number] if _is_vector(v) else v for v in op.operands]
            name = _fma(type_) if op.name == "vector.fma" else op.name
            made.append(build.value(name, operands, type_, attributes))
        return made

    def broadcast(self, build: Builder, op: Any) -> list[Any]:
        (source,), types = list(op.operands), self._piece_types(op.results[0].type)
        if _is_vector(source):
            row = self._of(source)
            return row * (len(types) // len(row))
        known = {type_: _spread(build, source, type_) for type_ in dict.fromkeys(types)}
        return [known[type_] for type_ in types]

    def outer_product(self, build: Builder, op: Any) -> list[Any]:
        a, b, *sums = list(op.operands)
        (rows,) = ir.VectorType(a.type).shape
        columns, so_far = self._of(b), iter(self._of(sums[0]))
        is_float = isinstance(ir.VectorType(b.type).element_type, ir.FloatType)
        made: list[Any] = []
        for row in range(rows):
            number = self._element(build, a, row)
            spread = {c.type: _spread(build, number, c.type) for c in columns}
            for column in columns:
                factor, sum_ = spread[column.type], next(so_far)
                if is_float:
                    made.append(build.value(_fma(column.type), [factor, column, sum_], column.type))
                else:
                    product_ = build.value("arith.muli", [factor, column], column.type)
                    made.append(build.value("arith.addi", [product_, sum_], column.type))
        return made

    def _element(self, build: Builder, value: Any, position: int) -> Any:
        (count,) = ir.VectorType(value.type).shape
        parts = self._split(count) if self._has_pieces(value.type) else ((0, count),)
        for piece, (begin, size) in zip(self._of(value), parts, strict=True):
            if begin <= position < begin + size:
                return _extract(build, piece, position - begin) if _is_vector(piece) else piece
        raise IndexError(position)

    def extract(self, build: Builder, op: Any) -> list[Any]:
        value, place = op.operands[0], list(ir.DenseI64ArrayAttr(op.attributes["static_position"]))
        if len(op.operands) > 1:
            return [self._element_at(build, op)]
        pieces, (*outer, count) = self._of(value), ir.VectorType(value.type).shape
        in_row = len(self._split(count))
        if len(place) <= len(outer):
            size = in_row * prod(outer[len(place) :])
            begin = _linear(place, outer[: len(place)]) * size
            return pieces[begin : begin + size]
        begin = _linear(place[:-1], outer) * in_row
        for piece, (first, size) in zip(pieces[begin : begin + in_row], self._split(count), strict=True):
            if first <= place[-1] < first + size:
                made = _extract(build, piece, place[-1] - first) if size > 1 else piece
                return [made]
        raise IndexError(place)

    def insert(self, build: Builder, op: Any) -> list[Any]:
        if len(op.operands) > 2:
            return self._insert_at(build, op)
        new, value = list(op.operands)
        place = list(ir.DenseI64ArrayAttr(op.attributes["static_position"]))
        pieces, (*outer, count) = list(self._of(value)), ir.VectorType(value.type).shape
        in_row = len(self._split(count))
        if len(place) <= len(outer):
            size = in_row * prod(outer[len(place) :])
            begin = _linear(place, outer[: len(place)]) * size
            pieces[begin : begin + size] = self._of(new)
            return pieces
        begin = _linear(place[:-1], outer) * in_row
        for number, (first, size) in enumerate(self._split(count), begin):
            if first <= place[-1] < first + size:
                at = {"static_position": ir.DenseI64ArrayAttr.get([place[-1] - first], op.context)}
                old = pieces[number]
                pieces[number] = new if size == 1 else build.value("vector.insert", [new, old], old.type, at)
        return pieces

    def _element_at(self, build: Builder, op: Any) -> Any:
        """An element of a vector of one axis, at a position that is known at run time only."""
        value, position = list(op.operands)
        made: Any = None
        for piece, place, is_here in self._places(build, value, position):
            element = piece
            if _is_vector(piece):
                element = build.value(op.name, [piece, place], op.results[0].type, dict(op.attributes.items()))
            made = element if made is None else build.value("arith.select", [is_here, element, made], element.type)
        return made

    def _insert_at(self, build: Builder, op: Any) -> list[Any]:
        """A vector of one axis with another element at a position that is known at run time only."""
        new, value, position = list(op.operands)
        made: list[Any] = []
        for piece, place, is_here in self._places(build, value, position):
            other = new
            if _is_vector(piece):
                other = build.value(op.name, [new, piece, place], piece.type, dict(op.attributes.items()))
            made.append(build.value("arith.select", [is_here, other, piece], piece.type))
        return made

    def _places(self, build: Builder, value: Any, position: Any) -> Iterator[tuple[Any, Any, Any]]:
        """The pieces of a vector of one axis, for each a place in it, and whether ``position`` is that place.

        In other pieces it is any place, since there is none behind the last element.
        """
        for (begin, size), piece in zip(self._parts(value.type), self._of(value), strict=True):
            place = build.value("arith.subi", [position, build.constant(begin)], build.index)
            is_here = _compare(build, _UNSIGNED_LESS, place, build.constant(size))
            yield piece, build.value("arith.andi", [place, build.constant(size - 1)], build.index), is_here

    def to_elements(self, build: Builder, op: Any) -> list[Any]:
        value = op.operands[0]
        return [self._element(build, value, number) for number in range(len(op.results))]

    def from_elements(self, build: Builder, op: Any) -> list[Any]:
        elements, made = iter(list(op.operands)), list[Any]()
        for type_ in self._piece_types(op.results[0].type):
            if isinstance(type_, ir.VectorType):
                parts = [next(elements) for _ in range(ir.VectorType(type_).shape[0])]
                made.append(build.value("vector.from_elements", parts, type_))
            else:
                made.append(next(elements))
        return made

    def load(self, build: Builder, op: Any) -> list[Any]:
        buffer, *at = list(op.operands)
        made: list[Any] = []
        for (begin, size), type_ in self._parts_of_result(op):
            name = "vector.load" if size > 1 else "memref.load"
            made.append(build.value(name, [buffer, *_behind(build, at, begin)], type_))
        return made

    def store(self, build: Builder, op: Any) -> list[Any]:
        value, buffer, *at = list(op.operands)
        for (begin, size), piece in zip(self._parts(value.type), self._of(value), strict=True):
            name = "vector.store" if size > 1 else "memref.store"
            bytes_ = size * mlir_util.element_bytes(ir.VectorType(value.type).element_type)
            build.op(name, [piece, buffer, *_behind(build, at, begin)], attributes=_hints(op, bytes_))
        return []

    def read(self, build: Builder, op: Any) -> list[Any]:
        (buffer,), at, padding, _ = mlir_util.operand_groups(op)
        axis = _axis(op)
        made: list[Any] = []
        for (begin, _), type_ in self._parts_of_result(op):
            vector = type_ if isinstance(type_, ir.VectorType) else _one(type_)
            groups = [[buffer], _behind(build, at, begin, axis), padding, []]
            read = build.grouped(op.name, groups, [vector], dict(op.attributes.items())).results[0]
            made.append(read if vector == type_ else _extract(build, read, 0))
        return made

    def write(self, build: Builder, op: Any) -> list[Any]:
        (value,), (buffer,), at, _ = mlir_util.operand_groups(op)
        axis = _axis(op)
        for (begin, _), piece in zip(self._parts(value.type), self._of(value), strict=True):
            vector = _as_vector(build, piece)
            groups = [[vector], [buffer], _behind(build, at, begin, axis), []]
            build.grouped(op.name, groups, [], dict(op.attributes.items()))
        return []

    def create_mask(self, build: Builder, op: Any) -> list[Any]:
        made: list[Any] = []
        for (begin, size), type_ in self._parts_of_result(op):
            end = build.value("arith.subi", [op.operands[0], build.constant(begin)], build.index)
            if size == 1:
                made.append(_compare(build, _SIGNED_GREATER, end, build.constant(0)))
            else:
                made.append(build.value(op.name, [end], type_))
        return made

    def constant_mask(self, build: Builder, op: Any) -> list[Any]:
        (end,) = list(ir.DenseI64ArrayAttr(op.attributes["mask_dim_sizes"]))
        made: list[Any] = []
        for (begin, size), type_ in self._parts_of_result(op):
            lanes = min(max(end - begin, 0), size)
            if size == 1:
                made.append(build.constant(lanes, type_))
            else:
                sizes = {"mask_dim_sizes": ir.DenseI64ArrayAttr.get([lanes], op.context)}
                made.append(build.value(op.name, [], type_, sizes))
        return made

    def masked_load(self, build: Builder, op: Any) -> list[Any]:
        buffer, *at, mask, others = list(op.operands)
        made: list[Any] = []
        pieces = zip(self._parts(others.type), self._of(mask), self._of(others), strict=True)
        for (begin, _), flags, other in pieces:
            vectors = [_as_vector(build, each) for each in (flags, other)]
            read = build.value(op.name, [buffer, *_behind(build, at, begin), *vectors], vectors[1].type)
            made.append(read if _is_vector(other) else _extract(build, read, 0))
        return made

    def masked_store(self, build: Builder, op: Any) -> list[Any]:
        buffer, *at, mask, value = list(op.operands)
        for (begin, _), flags, piece in zip(self._parts(value.type), self._of(mask), self._of(value), strict=True):
            vectors = [_as_vector(build, each) for each in (flags, piece)]
            build.op(op.name, [buffer, *_behind(build, at, begin), *vectors])
        return []

    def gather(self, build: Builder, op: Any) -> list[Any]:
        buffer, *at, index, mask, others = list(op.operands)
        made: list[Any] = []
        for parts in zip(self._of(index), self._of(mask), self._of(others), strict=True):
            vectors = [_as_vector(build, each) for each in parts]
            read = build.value(op.name, [buffer, *at, *vectors], vectors[2].type)
            made.append(read if _is_vector(parts[2]) else _extract(build, read, 0))
        return made

    def step(self, build: Builder, op: Any) -> list[Any]:
        made: list[Any] = []
        for (begin, size), type_ in self._parts_of_result(op):
            parts = [build.constant(begin + lane) for lane in range(size)]
            made.append(parts[0] if size == 1 else build.value("vector.from_elements", parts, type_))
        return made

    def shuffle(self, build: Builder, op: Any) -> list[Any]:
        lanes = list(ir.DenseI64ArrayAttr(op.attributes["mask"]))
        pieces: list[tuple[Any, int]] = []  # with where each begins among the lanes of both
        begin = 0
        for value in op.operands:
            for (first, _), piece in zip(self._parts(value.type), self._of(value), strict=True):
                pieces.append((piece, begin + first))
            begin += sum(size for _, size in self._parts(value.type))
        return [
            self._lanes_of(build, pieces, lanes[first : first + size])
            for first, size in self._parts(op.results[0].type)
        ]

    def _lanes_of(self, build: Builder, pieces: Sequence[tuple[Any, int]], lanes: Sequence[int]) -> Any:
        """A piece with these ``lanes`` of vectors of which there are ``pieces``."""
        made: Any = None
        done: set[int] = set()  # lanes of the result
        size = len(lanes)
        used: list[tuple[Any, int, dict[int, int]]] = []  # a piece, how many lanes it has, and which are where
        for piece, begin in pieces:
            count = ir.VectorType(piece.type).shape[0] if _is_vector(piece) else 1
            if here := {to: lane - begin for to, lane in enumerate(lanes) if begin <= lane < begin + count}:
                used.append((piece, count, here))
        if size == 1:
            piece, count, here = used[0]
            return _extract(build, piece, here[0]) if count > 1 else piece
        if len(used) > 1 and used[0][1] == used[1][1] > 1:
            (one, count, here), (other, _, there), *used = used
            here |= {to: count + lane for to, lane in there.items()}
            made, done = _shuffle(build, one, other, [here.get(to, 0) for to in range(size)]), set(here)
        for piece, count, here in used:
            if count == 1 or (made is not None and count != size):
                for to, lane in here.items():
                    number = _extract(build, piece, lane) if count > 1 else piece
                    type_ = _vector(size, number.type)
                    made = _spread(build, number, type_) if made is None else made
                    at = {"static_position": ir.DenseI64ArrayAttr.get([to], piece.type.context)}
                    made = build.value("vector.insert", [number, made], type_, at)
            elif made is None:
                made = _shuffle(build, piece, piece, [here.get(to, 0) for to in range(size)])
            else:
                order = [to if to in done else size + here.get(to, 0) for to in range(size)]
                made = _shuffle(build, made, piece, order)
            done |= set(here)
        return made

    def interleave(self, build: Builder, op: Any) -> list[Any]:
        made: list[Any] = []
        for one, other in zip(*map(self._of, op.operands), strict=True):
            (size,) = ir.VectorType(one.type).shape
            order = [lane + side for lane in range(size) for side in (0, size)]
            for begin in range(0, 2 * size, min(self._most, 2 * size)):
                part = order[begin : begin + min(self._most, 2 * size)]
                made.append(_shuffle(build, one, other, part))
        return made

    def slice(self, build: Builder, op: Any) -> list[Any]:
        value = op.operands[0]
        (begin,) = (ir.IntegerAttr(each).value for each in ir.ArrayAttr(op.attributes["offsets"]))
        (size,) = ir.VectorType(op.results[0].type).shape
        for piece, (first, count) in zip(self._of(value), self._parts(value.type), strict=True):
            if first <= begin and begin + size <= first + count:
                lanes = list(range(begin - first, begin - first + size))
                made = piece if size == count else _shuffle(build, piece, piece, lanes)
                return [made]
        raise IndexError(begin)

    def reduction(self, build: Builder, op: Any) -> list[Any]:
        value, *so_far = list(op.operands)
        for piece in self._of(value):
            operands = [_as_vector(build, piece), *so_far]
            so_far = [build.value(op.name, operands, op.results[0].type, dict(op.attributes.items()))]
        return so_far


_SIGNED_GREATER, _UNSIGNED_LESS = 4, 6
"""Numbers that ``arith.cmpi`` has for its predicates."""


def _compare(build: Builder, predicate: int, one: Any, other: Any) -> Any:
    integer = partial(ir.IntegerType.get_signless, context=one.type.context)
    attributes = {"predicate": ir.IntegerAttr.get(integer(64), predicate)}
    return build.value("arith.cmpi", [one, other], integer(1), attributes)


def _one(element: Any) -> Any:
    return ir.VectorType.get_unchecked([1], element, context=element.context)


def _as_vector(build: Builder, piece: Any) -> Any:
    return piece if _is_vector(piece) else build.value("vector.broadcast", [piece], _one(piece.type))


def _fma(type_: Any) -> str:
    return "vector.fma" if isinstance(type_, ir.VectorType) else "math.fma"


def _hints(op: Any, bytes_: int) -> dict[str, Any]:
    """The attributes of a store, for one of its pieces, of ``bytes_``, all of them powers of two."""
    hints = dict(op.attributes.items())
    if "alignment" in hints:
        known = ir.IntegerAttr(hints["alignment"])
        hints["alignment"] = ir.IntegerAttr.get(known.type, min(known.value, bytes_))
    return hints


def _axis(op: Any) -> int:
    """The axis of the buffer that a vector is read along."""
    (index,) = ir.AffineMapAttr(op.attributes["permutation_map"]).value.results
    return ir.AffineDimExpr(index).position


def _behind(build: Builder, at: Sequence[Any], begin: int, axis: int = -1) -> list[Any]:
    made = list(at)
    if begin:
        made[axis] = build.value("arith.addi", [made[axis], build.constant(begin)], build.index)
    return made


def _spread(build: Builder, number: Any, type_: Any) -> Any:
    return build.value("vector.broadcast", [number], type_) if isinstance(type_, ir.VectorType) else number


def _extract(build: Builder, vector: Any, position: int) -> Any:
    at = {"static_position": ir.DenseI64ArrayAttr.get([position], vector.type.context)}
    return build.value("vector.extract", [vector], ir.VectorType(vector.type).element_type, at)


def _shuffle(build: Builder, one: Any, other: Any, lanes: Sequence[int]) -> Any:
    order = {"mask": ir.DenseI64ArrayAttr.get(list(lanes), one.type.context)}
    return build.value(
        "vector.shuffle", [one, other], _vector(len(lanes), ir.VectorType(one.type).element_type), order
    )


def _linear(place: Sequence[int], shape: Sequence[int]) -> int:
    number = 0
    for position, size in zip(place, shape, strict=True):
        number = number * size + position
    return number


_RULES = {
    "vector.broadcast": _Apart.broadcast,
    "vector.outerproduct": _Apart.outer_product,
    "vector.extract": _Apart.extract,
    "vector.insert": _Apart.insert,
    "vector.from_elements": _Apart.from_elements,
    "vector.to_elements": _Apart.to_elements,
    "vector.load": _Apart.load,
    "vector.store": _Apart.store,
    "vector.transfer_read": _Apart.read,
    "vector.transfer_write": _Apart.write,
    "vector.create_mask": _Apart.create_mask,
    "vector.constant_mask": _Apart.constant_mask,
    "vector.maskedload": _Apart.masked_load,
    "vector.maskedstore": _Apart.masked_store,
    "vector.gather": _Apart.gather,
    "vector.step": _Apart.step,
    "vector.shuffle": _Apart.shuffle,
    "vector.interleave": _Apart.interleave,
    "vector.extract_strided_slice": _Apart.slice,
    "vector.reduction": _Apart.reduction,
}
