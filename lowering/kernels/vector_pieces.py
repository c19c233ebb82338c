"""Vectors of any shape as vectors that a code generator has: of one axis, and of 2, 4, 8 or 16 elements.

A block of elements becomes the pieces of its rows, which loops and branches carry one by one; one element that is
left over is a number. SPIR-V has no others, and no arrays of vectors that loops carry.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from math import prod
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels.vector_piece_ops import is_vector, vector_type
from devscope.lowering.kernels.vector_piece_rules import RULES, elementwise
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


def _widest(function: Any) -> int:
    """Bytes of the widest elements of vectors: pieces of all are of as many elements, as masks and what is made
    longer or shorter have to be."""
    types = {value.type for op in mlir_util.walk(function) for value in op.results if is_vector(value)}
    elements = {ir.VectorType(type_).element_type for type_ in types}
    return max(
        (mlir_util.element_bytes(each) for each in elements if not isinstance(each, ir.IndexType)), default=1
    )


def take_vectors_apart(function: Any) -> None:
    """Rewrite what ``function`` computes with vectors."""
    splitter = Splitter(min(_MOST, _BYTES // _widest(function)))
    for block in mlir_util.blocks_of(function):
        splitter.block(block)
    for op in reversed(splitter.done):
        op.erase()
    for block, carried in splitter.blocks:
        for _ in range(carried):
            block.erase_argument(1)


class Splitter:
    """``done``: operations that are replaced, to be erased behind what uses them. ``blocks``: of loops, with how
    many of their arguments are replaced. Nothing is erased until all is made: values are known by their addresses.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._pieces: dict[Any, list[Any]] = {}
        self.done: list[Any] = []
        self.blocks: list[tuple[Any, int]] = []

    def split(self, count: int) -> tuple[tuple[int, int], ...]:
        return _split(count, self.most)

    def parts(self, type_: Any) -> tuple[tuple[int, int], ...]:
        (count,) = ir.VectorType(type_).shape
        return self.split(count)

    def has_pieces(self, type_: Any) -> bool:
        if not isinstance(type_, ir.VectorType):
            return False
        shape = ir.VectorType(type_).shape
        return len(shape) != 1 or len(self.split(shape[0])) != 1 or shape[0] == 1

    def piece_types(self, type_: Any) -> list[Any]:
        if not self.has_pieces(type_):
            return [type_]
        *outer, count = ir.VectorType(type_).shape
        row = [vector_type(size, ir.VectorType(type_).element_type) for _, size in self.split(count)]
        return row * prod(outer)

    def block(self, block: Any) -> None:
        for each in list(block.operations):
            op = each.operation
            values = (*op.operands, *op.results)
            if op.name in ("scf.for", "scf.if"):
                self._structured(op, any(self.has_pieces(value.type) for value in op.results))
            elif op.name == "scf.yield":
                self._yield(op)
            elif any(self.has_pieces(value.type) for value in values):
                self._operation(op)
            else:
                for region in op.regions:
                    for inner in region.blocks:
                        self.block(inner)

    def parts_of_result(self, op: Any) -> Iterator[tuple[tuple[int, int], Any]]:
        type_ = op.results[0].type
        return zip(self.parts(type_), self.piece_types(type_), strict=True)

    def of(self, value: Any) -> list[Any]:
        return self._pieces.get(value, [value])

    def _structured(self, op: Any, carries: bool) -> None:
        if not carries:
            for region in op.regions:
                for block in region.blocks:
                    self.block(block)
            return
        operands, carried = list(op.operands), len(op.results) if op.name == "scf.for" else 0
        fixed, initial = operands[: len(operands) - carried], operands[len(operands) - carried :]
        types = [type_ for result in op.results for type_ in self.piece_types(result.type)]
        first = [piece for value in initial for piece in self.of(value)]
        made = Builder(op).op(op.name, [*fixed, *first], types, dict(op.attributes.items()), len(op.regions))
        self._name(op.results, list(made.results))
        for old, new in zip(op.regions, made.regions, strict=True):
            old.blocks[0].append_to(new)
            block = new.blocks[0]
            arguments = list(block.arguments)[1:] if carried else []
            parts = [
                block.add_argument(type_, op.location)
                for each in arguments
                for type_ in self.piece_types(each.type)
            ]
            self._name(arguments, parts)
            for argument in arguments:
                if not self.has_pieces(argument.type):
                    argument.replace_all_uses_with(self._pieces.pop(argument)[0])
            self.block(block)
        for result in op.results:
            if not self.has_pieces(result.type):
                result.replace_all_uses_with(self._pieces.pop(result)[0])
        self.done.append(op)
        if carried:
            self.blocks.append((made.regions[0].blocks[0], carried))

    def _name(self, values: Sequence[Any], pieces: list[Any]) -> None:
        left = iter(pieces)
        for value in values:
            self._pieces[value] = [next(left) for _ in self.piece_types(value.type)]

    def _yield(self, op: Any) -> None:
        if any(self.has_pieces(value.type) for value in op.operands):
            Builder(op).op("scf.yield", [piece for value in op.operands for piece in self.of(value)])
            self.done.append(op)

    def _operation(self, op: Any) -> None:
        build = Builder(op)
        rule = RULES.get(op.name, elementwise)
        made = rule(self, build, op)
        for number, result in enumerate(op.results):
            if self.has_pieces(result.type):
                self._pieces[result] = made
            else:
                result.replace_all_uses_with(made[number])
        self.done.append(op)
