"""Algorithms on tensors, written as arithmetic of arrays: what they do becomes text of StableHLO, tensor and scf.

An extent that is not known is a number below zero, by which `Text.size` finds its name: equal numbers, equal extents.
The first dimensions of an array are those of a batch; most algorithms need to know all others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from devscope.lowering.stablehlo.templates import axes_map, commas, element, extents_of, shape, tensor

Number = int | float | bool


class Text:
    """The lines of a program, of whose operands ``%0`` is of that type."""

    def __init__(self, type_: Any) -> None:
        self.lines: list[str] = []
        self._count = 0
        self._sizes: list[str] = []
        self._extents = self._named("%0", "n", type_)
        self.batch = self._extents[:-2]

    def _named(self, name: str, prefix: str, type_: Any) -> list[int]:
        extents_of(self.lines.append, prefix, name, type_)
        known = shape(type_)
        names = [f"%{prefix}{axis}" for axis in range(len(known))]
        start, self._sizes = len(self._sizes), self._sizes + names
        return [extent if extent >= 0 else -1 - start - axis for axis, extent in enumerate(known)]

    def size(self, extent: int) -> int | str:
        """An extent, or its name."""
        return extent if extent >= 0 else self._sizes[-1 - extent]

    def extent(self, name: str) -> int:
        """An extent that an index is the name of."""
        self._sizes.append(name)
        return -len(self._sizes)

    def least(self, *extents: int) -> int:
        """The extent that is the smallest."""
        if min(extents) >= 0:
            return min(extents)
        return self.extent(self.index("minsi", *map(self.size, extents)))

    def add(self, line: str, count: int = 1) -> str:
        """A line that defines a value, or ``count`` of them; the name of it."""
        name = f"%v{self._count}"
        self._count += 1
        self.lines.append(f"{name}{f':{count}' if count > 1 else ''} = {line}")
        return name

    def operand(self, number: int, type_: Any) -> Array:
        """An operand, ``%0``, ``%1`` and so on, of the same batch as ``%0``; equal types may be of other sizes."""
        extents = self._extents
        if number:
            own = self._named(f"%{number}", f"n{number}_", type_)
            shared = len(self.batch)
            extents = [first if e < 0 else e for e, first in zip(own, self.batch, strict=False)] + own[shared:]
        return Array(self, f"%{number}", tuple(extents), str(element(type_)))

    def result(self, values: Sequence[Array]) -> str:
        """The whole text, which ends with the results, as `templates.expand` takes them."""
        self.lines.append(
            f'"devscope.return"({commas(v.name for v in values)}) : ({commas(v.type for v in values)}) -> ()'
        )
        return "\n".join(self.lines)

    def full(self, extents: Sequence[int], of: str, number: Number) -> Array:
        """An array of one number."""
        value = literal(number, of)
        type_ = tensor(extents, of)
        if min(extents, default=0) >= 0:
            return Array(self, self.add(f"stablehlo.constant dense<{value}> : {type_}"), tuple(extents), of)
        if of.startswith("complex"):
            parts = commas(f"{part} : {of[8:-1]}" for part in value[1:-1].split(", "))
            scalar = self.add(f"complex.constant [{parts}] : {of}")
        else:
            scalar = self.add(f"arith.constant {value}{'' if of == 'i1' else f' : {of}'}")
        room = self.room(extents, of)
        name = self.add(f"linalg.fill ins({scalar} : {of}) outs({room} : {type_}) -> {type_}")
        return Array(self, name, tuple(extents), of)

    def constant(self, values: Any, of: str) -> Array:
        """An array of real numbers that are known."""
        data = np.ascontiguousarray(values, of.replace("f", "float")).tobytes().hex().upper()
        extents = tuple(values.shape)
        return Array(self, self.add(f'stablehlo.constant dense<"0x{data}"> : {tensor(extents, of)}'), extents, of)

    def room(self, extents: Sequence[int], of: str) -> str:
        """The name of a tensor without contents."""
        sizes = commas(self.size(extent) for extent in extents if extent < 0)
        return self.add(f"tensor.empty({sizes}) : {tensor(extents, of)}")

    def iota(self, count: int) -> Array:
        type_ = tensor([count], "i64")
        if count >= 0:
            return Array(self, self.add(f"stablehlo.iota dim = 0 : {type_}"), (count,), "i64")
        sizes = self.add(f"tensor.from_elements {self.size(count)} : tensor<1xindex>")
        name = self.add(f"stablehlo.dynamic_iota {sizes}, dim = 0 : (tensor<1xindex>) -> {type_}")
        return Array(self, name, (count,), "i64")

    def elements(
        self, extents: Sequence[int], source: Array, at: Sequence[int | tuple[int, Sequence[int] | Array]]
    ) -> Array:
        """Elements of ``source``: where in each of its dimensions is said by a dimension of the result, or by one and a
        table that its places are looked up in; an array has such a table for each place of the dimensions before."""
        rank, type_ = len(extents), tensor(extents, source.of)
        room, body, places = self.room(extents, source.of), list[str](), list[str]()
        tables: list[tuple[str, str, Sequence[int]]] = []
        for dim, place in enumerate(at):
            if isinstance(place, int):
                places.append(f"%i{place}")
                continue
            axis, table = place
            if isinstance(table, Array):
                tables.append((table.name, table.type, range(axis + 1)))
            else:
                kind = f"tensor<{len(table)}xi64>"
                tables.append((self.add(f"arith.constant dense<{list(table)}> : {kind}"), kind, [axis]))
            body.append(f"%p{dim} = arith.index_cast %k{len(tables) - 1} : i64 to index")
            places.append(f"%p{dim}")
        maps = [axes_map(rank, axes) for _, _, axes in tables] + [axes_map(rank, range(rank))]
        given = ""
        if tables:
            given = f"ins({commas(name for name, _, _ in tables)} : {commas(kind for _, kind, _ in tables)}) "
        arguments = commas([*(f"%k{n}: i64" for n in range(len(tables))), f"%o: {source.of}"])
        parallel = commas(['"parallel"'] * rank)
        indices = [f"%i{axis} = linalg.index {axis} : index" for axis in range(rank)]
        name = self.add(
            f"linalg.generic {{indexing_maps = [{commas(maps)}], iterator_types = [{parallel}]}} "
            f"{given}outs({room} : {type_}) {{\n^bb0({arguments}):\n"
            + "\n".join([*indices, *body])
            + f"\n%e = tensor.extract {source.name}[{commas(places)}] : {source.type}\n"
            + f"linalg.yield %e : {source.of}\n}} -> {type_}"
        )
        return Array(self, name, tuple(extents), source.of)

    def loop(self, count: int, carried: Sequence[Array], body: Callable[..., Sequence[Array]]) -> list[Array]:
        """``body(i, *arrays)`` for ``i`` from 0 to an extent, the name of an index; it returns what is carried on."""
        zero, one, end = (self._index(number) for number in (0, 1, self.size(count)))
        step = f"%step{self._count}"
        inner = self._inner(carried)
        bound = commas(f"{new.name} = {old.name}" for new, old in zip(inner, carried, strict=True))
        types = commas(value.type for value in carried)
        name = self.add(
            f"scf.for {step} = {zero} to {end} step {one} iter_args({bound}) -> ({types}) {{", len(carried)
        )
        values = body(step, *inner)
        self.lines.append(f"scf.yield {commas(v.name for v in values)} : {types}\n}}")
        return self._results(name, carried)

    def loop_while(
        self, carried: Sequence[Array], test: Callable[..., Array], body: Callable[..., Sequence[Array]]
    ) -> list[Array]:
        """As long as ``test(*arrays)``, of one element, is true."""
        inner = self._inner(carried)
        bound = commas(f"{new.name} = {old.name}" for new, old in zip(inner, carried, strict=True))
        types = commas(value.type for value in carried)
        name = self.add(f"scf.while ({bound}) : ({types}) -> ({types}) {{", len(carried))
        decides = self.add(f"tensor.extract {test(*inner).name}[] : tensor<i1>")
        self.lines.append(f"scf.condition({decides}) {commas(v.name for v in inner)} : {types}\n}} do {{")
        again = self._inner(carried)
        self.lines.append(f"^bb0({commas(f'{v.name}: {v.type}' for v in again)}):")
        values = body(*again)
        self.lines.append(f"scf.yield {commas(v.name for v in values)} : {types}\n}}")
        return self._results(name, carried)

    def _inner(self, carried: Sequence[Array]) -> list[Array]:
        self._count += 1
        return [Array(self, f"%c{self._count}_{n}", v.extents, v.of) for n, v in enumerate(carried)]

    def _results(self, name: str, carried: Sequence[Array]) -> list[Array]:
        names = [f"{name}#{n}" for n in range(len(carried))] if len(carried) > 1 else [name]
        return [Array(self, n, v.extents, v.of) for n, v in zip(names, carried, strict=True)]

    def index(self, operation: str, *numbers: str | int) -> str:
        """The name of what ``arith`` computes of two numbers, or names of indices."""
        return self.add(f"arith.{operation} {commas([self._index(n) for n in numbers])} : index")

    def _index(self, number: str | int) -> str:
        return self.add(f"arith.constant {number} : index") if isinstance(number, int) else number

    def number(self, index: str) -> Array:
        """An index as an array of no dimensions."""
        wide = self.add(f"arith.index_cast {index} : index to i64")
        return Array(self, self.add(f"tensor.from_elements {wide} : tensor<i64>"), (), "i64")


def literal(number: Number, of: str) -> str:
    if of == "i1":
        return "true" if number else "false"
    if of[0] in "iu":
        return str(int(number))
    real = of.removeprefix("complex<").rstrip(">")
    if math.isfinite(number):
        text = f"{float(number):.17e}"  # MLIR wants a point before an exponent
    else:
        text = f"0x{np.array(number, real.replace('f', 'float')).tobytes()[::-1].hex().upper()}"
    return text if of == real else f"({text}, 0.0)"


@dataclass(frozen=True)
class Array:
    """A tensor; what is computed with it is of equal shapes, or with a number."""

    text: Text
    name: str
    extents: tuple[int, ...]
    of: str

    @property
    def type(self) -> str:
        return tensor(self.extents, self.of)

    @property
    def is_complex(self) -> bool:
        return self.of.startswith("complex")

    @property
    def real_of(self) -> str:
        return self.of.removeprefix("complex<").rstrip(">")

    def _new(self, line: str, extents: Sequence[int] | None = None, of: str | None = None) -> Array:
        return Array(
            self.text, self.text.add(line), self.extents if extents is None else tuple(extents), of or self.of
        )

    def _same(self, other: Array | Number) -> Array:
        return other if isinstance(other, Array) else self.text.full(self.extents, self.of, other)

    def _binary(self, name: str, other: Array | Number) -> Array:
        return self._new(f"stablehlo.{name} {self.name}, {self._same(other).name} : {self.type}")

    def __add__(self, other: Array | Number) -> Array:
        return self._binary("add", other)

    def __sub__(self, other: Array | Number) -> Array:
        return self._binary("subtract", other)

    def __mul__(self, other: Array | Number) -> Array:
        return self._binary("multiply", other)

    def __truediv__(self, other: Array | Number) -> Array:
        return self._binary("divide", other)

    def __matmul__(self, other: Array) -> Array:
        """Of the last two dimensions. Those of complex numbers are four of real ones, which have kernels."""
        if self.is_complex:
            (a, b), (c, d) = ((value.real(), value.imag()) for value in (self, other))
            return (a @ c - b @ d).with_imag(a @ d + b @ c, self.of)
        rank = len(self.extents)
        extents = [*self.extents[:-1], other.extents[-1]]
        batch = f"batching_dims = {list(range(rank - 2))} x {list(range(rank - 2))}, " if rank > 2 else ""
        return self._new(
            f"stablehlo.dot_general {self.name}, {other.name}, {batch}contracting_dims = [{rank - 1}] x [{rank - 2}]"
            f" : ({self.type}, {other.type}) -> {tensor(extents, self.of)}",
            extents,
        )

    def __neg__(self) -> Array:
        return self._new(f"stablehlo.negate {self.name} : {self.type}")

    def __and__(self, other: Array) -> Array:
        return self._binary("and", other)

    def __or__(self, other: Array) -> Array:
        return self._binary("or", other)

    def __invert__(self) -> Array:
        return self._new(f"stablehlo.not {self.name} : {self.type}")

    def maximum(self, other: Array | Number) -> Array:
        return self._binary("maximum", other)

    def compare(self, direction: str, other: Array | Number) -> Array:
        """``direction`` is ``EQ``, ``LT`` and so on."""
        kind = {"i": "SIGNED", "u": "UNSIGNED"}.get(self.of[0], "FLOAT")
        mask = tensor(self.extents, "i1")
        line = f"stablehlo.compare {direction}, {self.name}, {self._same(other).name}, {kind} : ({self.type}, {self.type}) -> {mask}"
        return self._new(line, of="i1")

    def where(self, yes: Array | Number, no: Array) -> Array:
        """``yes`` where the mask is true."""
        taken = no._same(yes)
        return self._new(
            f"stablehlo.select {self.name}, {taken.name}, {no.name} : {self.type}, {no.type}", of=no.of
        )

    def sqrt(self) -> Array:
        return self._new(f"stablehlo.sqrt {self.name} : {self.type}")

    def abs(self) -> Array:
        of = self.real_of
        return self._new(f"stablehlo.abs {self.name} : ({self.type}) -> {tensor(self.extents, of)}", of=of)

    def real(self) -> Array:
        if not self.is_complex:
            return self
        of = self.real_of
        return self._new(f"stablehlo.real {self.name} : ({self.type}) -> {tensor(self.extents, of)}", of=of)

    def imag(self) -> Array:
        of = self.real_of
        if not self.is_complex:
            return self.text.full(self.extents, of, 0)
        return self._new(f"stablehlo.imag {self.name} : ({self.type}) -> {tensor(self.extents, of)}", of=of)

    def conj(self) -> Array:
        if not self.is_complex:
            return self
        return self.real().with_imag(-self.imag(), self.of)

    def with_imag(self, imag: Array | Number, of: str) -> Array:
        """A number of type ``of``: complex, or real, of which there is no imaginary part."""
        if not of.startswith("complex"):
            return self
        other = self._same(imag)
        return self._new(f"stablehlo.complex {self.name}, {other.name} : {tensor(self.extents, of)}", of=of)

    def convert(self, of: str) -> Array:
        if of == self.of:
            return self
        return self._new(f"stablehlo.convert {self.name} : ({self.type}) -> {tensor(self.extents, of)}", of=of)

    def reduce(self, name: str, axes: Sequence[int], start: Number) -> Array:
        axes = sorted(axis % len(self.extents) for axis in axes)
        rest = [extent for axis, extent in enumerate(self.extents) if axis not in axes]
        init = self.text.full((), self.of, start)
        line = (
            f"stablehlo.reduce({self.name} init: {init.name}) applies stablehlo.{name} across dimensions = {axes}"
        )
        return self._new(f"{line} : ({self.type}, {init.type}) -> {tensor(rest, self.of)}", rest)

    def sum(self, *axes: int) -> Array:
        return self.reduce("add", axes, 0)

    def any(self) -> Array:
        """Whether one of a mask is true."""
        return self.reduce("or", range(len(self.extents)), 0)

    def most(self, *axes: int) -> Array:
        """The maximum of what is not negative."""
        return self.reduce("maximum", axes, 0)

    def spread(self, axis: int, extent: int) -> Array:
        """With one more dimension, along which all elements are the same; ``axis`` is its number."""
        axis %= len(self.extents) + 1
        return self.broadcast([axis], [*self.extents[:axis], extent, *self.extents[axis:]])

    def in_batch(self) -> Array:
        """The same for each of the batch."""
        batch = self.text.batch
        return self.broadcast(range(len(batch)), [*batch, *self.extents]) if batch else self

    def broadcast(self, axes: Sequence[int], extents: Sequence[int]) -> Array:
        """Of ``extents``, the same along ``axes``."""
        type_ = tensor(extents, self.of)
        if min(extents, default=0) >= 0:
            kept = [axis for axis in range(len(extents)) if axis not in axes]
            line = f"stablehlo.broadcast_in_dim {self.name}, dims = {kept} : ({self.type}) -> {type_}"
        else:
            room = self.text.room(extents, self.of)
            line = (
                f"linalg.broadcast ins({self.name} : {self.type}) outs({room} : {type_}) dimensions = {list(axes)}"
            )
        return self._new(line, extents)

    def reshape(self, *extents: int) -> Array:
        """Of extents that are known."""
        if extents == self.extents:
            return self
        return self._new(f"stablehlo.reshape {self.name} : ({self.type}) -> {tensor(extents, self.of)}", extents)

    def permute(self, *dims: int) -> Array:
        """With dimensions in another order; where extents of 1 alone change places, no element does."""
        new = [self.extents[dim] for dim in dims]
        moved = [dim for dim in dims if self.extents[dim] != 1]
        if min(new) >= 0 and moved == sorted(moved):
            return self.reshape(*new)
        return self._new(
            f"stablehlo.transpose {self.name}, dims = {list(dims)} : ({self.type}) -> {tensor(new, self.of)}", new
        )

    def transpose(self) -> Array:
        """Of the last two dimensions."""
        rank = len(self.extents)
        return self.permute(*range(rank - 2), rank - 1, rank - 2)

    def part(self, axis: int, first: int, end: int) -> Array:
        """Places ``first`` to ``end`` of a dimension."""
        axis %= len(self.extents)
        new = [*self.extents]
        new[axis] = end - first
        if new == [*self.extents]:
            return self
        return self._slice(axis, str(first), end - first, new)

    def _slice(self, axis: int, first: str, size: int, new: Sequence[int]) -> Array:
        return self._extract({axis: (first, size)}, new)

    def _extract(self, ranges: Mapping[int, tuple[str, int]], new: Sequence[int]) -> Array:
        where = self._region(ranges)
        return self._new(f"tensor.extract_slice {self.name}{where} : {self.type} to {tensor(new, self.of)}", new)

    def _insert(self, ranges: Mapping[int, tuple[str, int]], value: Array) -> Array:
        where = self._region(ranges)
        return self._new(
            f"tensor.insert_slice {value.name} into {self.name}{where} : {value.type} into {self.type}"
        )

    def _region(self, ranges: Mapping[int, tuple[str, int]]) -> str:
        """Where from and how many of some dimensions, all of the others."""
        rank = len(self.extents)
        sizes, starts = [*self.extents], ["0"] * rank
        for axis, (first, size) in ranges.items():
            starts[axis], sizes[axis] = first, size
        return f"[{commas(starts)}] [{commas(self.text.size(size) for size in sizes)}] [{commas(['1'] * rank)}]"

    def at(self, axis: int, place: str) -> Array:
        """What is at an index of a dimension, which the result lacks."""
        axis %= len(self.extents)
        return self._slice(axis, place, 1, [e for dim, e in enumerate(self.extents) if dim != axis])

    def put(self, axis: int, place: str, value: Array) -> Array:
        """With other numbers at an index of a dimension, which ``value`` lacks."""
        return self._insert({axis: (place, 1)}, value)

    def some(self, axis: int, first: str, count: int) -> Array:
        """So many places of a dimension, from an index on."""
        axis %= len(self.extents)
        return self._slice(axis, first, count, [*self.extents[:axis], count, *self.extents[axis + 1 :]])

    def put_some(self, axis: int, first: str, value: Array) -> Array:
        """With other numbers there."""
        return self._insert({axis: (first, value.extents[axis])}, value)

    def block(self, row: str, rows: int, column: str, columns: int) -> Array:
        """Part of matrices."""
        return self._extract({-2: (row, rows), -1: (column, columns)}, [*self.extents[:-2], rows, columns])

    def put_block(self, row: str, column: str, value: Array) -> Array:
        """With other numbers there."""
        rows, columns = value.extents[-2:]
        return self._insert({-2: (row, rows), -1: (column, columns)}, value)

    def take(self, axis: int, table: Sequence[int]) -> Array:
        """Places of a dimension in another order."""
        axis %= len(self.extents)
        new = [*self.extents]
        new[axis] = len(table)
        at = [(axis, table) if dim == axis else dim for dim in range(len(new))]
        return self.text.elements(new, self, at)

    def ordered(self, order: Array) -> Array:
        """Places of a dimension in the order that ``order`` says, along its last one, for each of those before."""
        rank = len(order.extents)
        new = [*order.extents, *self.extents[rank:]]
        return self.text.elements(new, self, [*range(rank - 1), (rank - 1, order), *range(rank, len(new))])

    def diagonal(self, table: Sequence[int]) -> Array:
        """Of every row of a matrix the element in the column that a table says."""
        rank = len(self.extents) - 1
        new = [*self.extents[:-2], len(table)]
        return self.text.elements(new, self, [*range(rank), (rank - 1, table)])

    def sort(self, direction: str, other: Array | None = None) -> Array:
        """Along the last dimension, or ``other`` by what is here."""
        arrays = [self] if other is None else [self, other]
        types = commas(value.type for value in arrays)
        arguments = [f"%{side}{n}: tensor<{value.of}>" for n, value in enumerate(arrays) for side in "ab"]
        one = f"tensor<{self.of}>"
        name = self.text.add(
            f'"stablehlo.sort"({commas(value.name for value in arrays)}) '
            f"<{{dimension = {len(self.extents) - 1} : i64, is_stable = true}}> ({{\n^bb0({commas(arguments)}):\n"
            f"%less = stablehlo.compare {direction}, %a0, %b0, FLOAT : ({one}, {one}) -> tensor<i1>\n"
            f"stablehlo.return %less : tensor<i1>\n}}) : ({types}) -> ({types})",
            len(arrays),
        )
        return Array(self.text, f"{name}#{len(arrays) - 1}" if other else name, arrays[-1].extents, arrays[-1].of)

    def join(self, axis: int, other: Array) -> Array:
        axis %= len(self.extents)
        new = [*self.extents]
        new[axis] += other.extents[axis]
        line = f"stablehlo.concatenate {self.name}, {other.name}, dim = {axis} : ({self.type}, {other.type}) -> {tensor(new, self.of)}"
        return self._new(line, new)
