"""``stablehlo.fft``: along a dimension at a time, contractions with matrices of roots of unity (Cooley, Tukey).

Real numbers, an even number of them, are transformed as half as many complex ones.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from devscope.lowering import mlir_util
from devscope.lowering.stablehlo.templates import (
    commas,
    element,
    enum,
    expand,
    extents_of,
    integers,
    shape,
    tensor,
)

_DIRECT = 64
"""A transform of this size is one contraction; larger ones are cut where they have a divisor."""


class _Transform:
    """Parts of complex numbers are tensors of their own."""

    def __init__(self, real: str) -> None:
        self.of = real
        self.lines: list[str] = []
        self._count = 0

    def add(self, line: str) -> str:
        self._count += 1
        self.lines.append(f"%v{self._count} = {line}")
        return f"%v{self._count}"

    def constant(self, values: Any) -> str:
        kind = np.float64 if self.of == "f64" else np.float32
        data = np.ascontiguousarray(values, kind).tobytes().hex().upper()
        return self.add(f'stablehlo.constant dense<"0x{data}"> : {tensor(values.shape, self.of)}')

    def binary(self, name: str, a: str, b: str, extents: list[int]) -> str:
        return self.add(f"stablehlo.{name} {a}, {b} : {tensor(extents, self.of)}")

    def reshape(self, value: str, old: list[int], new: list[int]) -> str:
        return self.add(f"stablehlo.reshape {value} : ({tensor(old, self.of)}) -> {tensor(new, self.of)}")

    def transpose(self, value: str, extents: list[int], dims: list[int]) -> str:
        new = [extents[dim] for dim in dims]
        return self.add(
            f"stablehlo.transpose {value}, dims = {dims} : ({tensor(extents, self.of)}) -> {tensor(new, self.of)}"
        )

    def slice(self, value: str, extents: list[int], first: int, end: int) -> str:
        """Of the last dimension."""
        limits = commas([*(f"0:{extent}" for extent in extents[:-1]), f"{first}:{end}"])
        new = [*extents[:-1], end - first]
        return self.add(
            f"stablehlo.slice {value} [{limits}] : ({tensor(extents, self.of)}) -> {tensor(new, self.of)}"
        )

    def concatenate(self, parts: list[tuple[str, int]], outer: list[int]) -> str:
        """Values and their extents, in the last dimension."""
        last = sum(extent for _, extent in parts)
        types = commas(tensor([*outer, extent], self.of) for _, extent in parts)
        values = commas(value for value, _ in parts)
        return self.add(
            f"stablehlo.concatenate {values}, dim = {len(outer)} : ({types}) -> {tensor([*outer, last], self.of)}"
        )

    def reverse(self, value: str, extents: list[int]) -> str:
        return self.add(f"stablehlo.reverse {value}, dims = [{len(extents) - 1}] : {tensor(extents, self.of)}")

    def zeros(self, extents: list[int]) -> str:
        return self.add(f"stablehlo.constant dense<0.0> : {tensor(extents, self.of)}")

    def dot(self, value: str, matrix: Any, extents: list[int]) -> str:
        """Of the last dimension with the rows of a matrix."""
        new = [*extents[:-1], matrix.shape[1]]
        return self.add(
            f"stablehlo.dot_general {value}, {self.constant(matrix)}, contracting_dims = [{len(extents) - 1}] x [0] : "
            f"({tensor(extents, self.of)}, {tensor(matrix.shape, self.of)}) -> {tensor(new, self.of)}"
        )

    def times(self, parts: tuple[str, str | None], factor: Any, extents: list[int]) -> tuple[str, str]:
        """By complex constants, of the shape of the last dimensions."""
        dims = list(range(len(extents) - factor.ndim, len(extents)))
        re, im = (
            self.add(
                f"stablehlo.broadcast_in_dim {self.constant(part)}, dims = {dims} : "
                f"({tensor(factor.shape, self.of)}) -> {tensor(extents, self.of)}"
            )
            for part in (factor.real, factor.imag)
        )
        a, b = parts
        if b is None:
            return self.binary("multiply", a, re, extents), self.binary("multiply", a, im, extents)
        first = self.binary(
            "subtract", self.binary("multiply", a, re, extents), self.binary("multiply", b, im, extents), extents
        )
        second = self.binary(
            "add", self.binary("multiply", a, im, extents), self.binary("multiply", b, re, extents), extents
        )
        return first, second

    def last(self, parts: tuple[str, str | None], extents: list[int], sign: int) -> tuple[str, str]:
        """The transform along the last dimension, not scaled."""
        *outer, n = extents
        cut = max((d for d in range(2, math.isqrt(n) + 1) if n % d == 0), default=1)
        if n <= _DIRECT or cut == 1:
            roots = _roots(np.outer(np.arange(n), np.arange(n)), n, sign)
            a, b = parts
            re, im = self.dot(a, roots.real, extents), self.dot(a, roots.imag, extents)
            if b is None:
                return re, im
            return (
                self.binary("subtract", re, self.dot(b, roots.imag, extents), extents),
                self.binary("add", im, self.dot(b, roots.real, extents), extents),
            )
        # n = rows * columns: x[r * columns + c]; along the rows first.
        rows, columns = n // cut, cut
        grid, turned = [*outer, rows, columns], [*outer, columns, rows]
        order = [*range(len(outer)), len(outer) + 1, len(outer)]

        a, b = (None if v is None else self.transpose(self.reshape(v, extents, grid), grid, order) for v in parts)
        assert a is not None
        pair = self.last((a, b), turned, sign)
        pair = self.times(pair, _roots(np.outer(np.arange(columns), np.arange(rows)), n, sign), turned)
        a, b = (self.transpose(v, turned, order) for v in pair)
        pair = self.last((a, b), grid, sign)  # [k1, k2] is number k1 + rows * k2
        re, im = (self.reshape(self.transpose(v, grid, order), turned, extents) for v in pair)
        return re, im

    def along(self, parts: tuple[str, str | None], extents: list[int], axis: int, sign: int) -> tuple[str, str]:
        last = len(extents) - 1
        if axis == last:
            return self.last(parts, extents, sign)
        order = list(range(last + 1))
        order[axis], order[last] = last, axis
        turned = [extents[dim] for dim in order]
        a, b = parts
        given = self.transpose(a, extents, order), None if b is None else self.transpose(b, extents, order)
        re, im = self.last(given, turned, sign)
        return self.transpose(re, turned, order), self.transpose(im, turned, order)

    def scale(self, value: str, factor: float, extents: list[int]) -> str:
        number = self.add(
            f"stablehlo.constant dense<{factor!r}> : {tensor(extents, self.of)}".replace("dense<1>", "dense<1.0>")
        )
        return self.binary("multiply", value, number, extents)


def _roots(turns: Any, n: int, sign: int) -> Any:
    """Of quarters of a turn exactly, so that what is real becomes so."""
    n = max(n, 1)
    turns = turns % n
    angle = 2 * np.pi * turns / n
    cosines = np.where((4 * turns == n) | (4 * turns == 3 * n), 0.0, np.cos(angle))
    return cosines + 1j * np.where(2 * turns % n == 0, 0.0, sign * np.sin(angle))


def expand_fft(op: Any) -> None:
    kind, lengths = enum(op, "fft_type"), integers(op, "fft_length")
    extents, result = shape(op.operands[0].type), op.results[0].type
    if -1 in extents:
        _one_by_one(op, extents)
        return
    if 0 in shape(result):
        mlir_util.replace_op(op, [mlir_util.Builder(op).value("tensor.empty", [], result)])
        return
    of = str(element(op.operands[0].type))
    real = of.removeprefix("complex<").rstrip(">")
    text = _Transform(real)
    rank, count = len(extents), len(lengths)
    whole = tensor(extents, of)
    if kind == "RFFT":
        parts: tuple[str, str | None] = ("%0", None)
    else:
        a = text.add(f"stablehlo.real %0 : ({whole}) -> {tensor(extents, real)}")
        b = text.add(f"stablehlo.imag %0 : ({whole}) -> {tensor(extents, real)}")
        parts = (a, b)
    sign = -1 if kind in ("FFT", "RFFT") else 1
    axes = [*range(rank - count, rank)]
    if kind == "RFFT":
        parts = _real_forward(text, "%0", extents)
        extents = [*extents[:-1], lengths[-1] // 2 + 1]
        axes = axes[:-1]
    if kind == "IRFFT":
        axes = axes[:-1]
    for axis in reversed(axes):
        parts = text.along(parts, extents, axis, sign)
    scale = 1.0 / math.prod(lengths) if kind in ("IFFT", "IRFFT") else 1.0
    if kind == "IRFFT":
        final, n = _real_inverse(text, parts, extents, lengths[-1]), lengths[-1]
        extents = [*extents[:-1], n]
        value = text.scale(final, scale, extents)
    else:
        a, b = parts
        assert b is not None
        if scale != 1.0:
            a, b = text.scale(a, scale, extents), text.scale(b, scale, extents)
        value = text.add(f"stablehlo.complex {a}, {b} : {result}")
    text.lines.append(f'"devscope.return"({value}) : ({result}) -> ()')
    expand(op, "\n".join(text.lines))


def _of_parts(sign: int, op: Any) -> str:
    extents = shape(op.operands[0].type)
    text = _Transform(str(element(op.operands[0].type)))
    return _returned(text, text.last(("%0", "%1"), extents, sign), op)


def _of_real(op: Any) -> str:
    text = _Transform(str(element(op.operands[0].type)))
    return _returned(text, _real_forward(text, "%0", shape(op.operands[0].type)), op)


def _to_real(op: Any) -> str:
    text = _Transform(str(element(op.operands[0].type)))
    extents, n = shape(op.operands[0].type), shape(op.results[0].type)[-1]
    return _returned(text, [_real_inverse(text, ("%0", "%1"), extents, n)], op)


def _returned(text: _Transform, values: Sequence[str], op: Any) -> str:
    types = commas(result.type for result in op.results)
    return "\n".join([*text.lines, f'"devscope.return"({commas(values)}) : ({types}) -> ()'])


PARTS: Mapping[str, Callable[[Any], str]] = {
    "fft": partial(_of_parts, -1),
    "ifft": partial(_of_parts, 1),
    "rfft": _of_real,
    "irfft": _to_real,
}
"""Calls of transforms along the last dimension of real and imaginary parts, of known extents, not scaled."""


def _one_by_one(op: Any, extents: list[int]) -> None:
    """Transforms of dimensions that are known when the program runs, in loops over them."""
    result, loops = shape(op.results[0].type), [axis for axis, extent in enumerate(extents) if extent < 0]
    types = op.operands[0].type, op.results[0].type
    parts = [[1 if extent < 0 else extent for extent in whole] for whole in (extents, result)]
    small = [tensor(part, element(type_)) for part, type_ in zip(parts, types, strict=True)]
    lines = ["%zero = arith.constant 0 : index\n%one = arith.constant 1 : index"]
    extents_of(lines.append, "n", "%0", types[0])
    lines.append(f"%room = tensor.empty({commas(f'%n{axis}' for axis in loops)}) : {types[1]}")
    carried = "%room"
    for axis in loops:
        lines.append(
            f"%l{axis} = scf.for %i{axis} = %zero to %n{axis} step %one iter_args(%c{axis} = {carried}) "
            f"-> ({types[1]}) {{"
        )
        carried = f"%c{axis}"
    starts = commas(f"%i{axis}" if axis in loops else 0 for axis in range(len(extents)))
    given, made = (f"[{starts}] [{commas(part)}] [{commas([1] * len(part))}]" for part in parts)
    kind, lengths = enum(op, "fft_type"), integers(op, "fft_length")
    lines.append(f"%part = tensor.extract_slice %0{given} : {types[0]} to {small[0]}")
    lines.append(f"%t = stablehlo.fft %part, type = {kind}, length = {lengths} : ({small[0]}) -> {small[1]}")
    lines.append(f"%new = tensor.insert_slice %t into {carried}{made} : {small[1]} into {types[1]}")
    value = "%new"
    for axis in reversed(loops):
        lines.append(f"scf.yield {value} : {types[1]}\n}}")
        value = f"%l{axis}"
    lines.append(f'"devscope.return"({value}) : ({types[1]}) -> ()')
    expand(op, "\n".join(lines))


def _mirrored(text: _Transform, parts: tuple[str, str], extents: list[int]) -> tuple[tuple[str, str], ...]:
    """Sum and difference of numbers and the conjugates of those that are as far from the end as they from 0."""
    a, b = parts
    c, d = text.reverse(a, extents), text.reverse(b, extents)
    total = text.binary("add", a, c, extents), text.binary("subtract", b, d, extents)
    return total, (text.binary("subtract", a, c, extents), text.binary("add", b, d, extents))


def _real_forward(text: _Transform, value: str, extents: list[int]) -> tuple[str, str]:
    """The first half of the transform, and what is in the middle; the rest is conjugate symmetric."""
    *outer, n = extents
    half = n // 2
    if n <= _DIRECT:
        roots = _roots(np.outer(np.arange(n), np.arange(half + 1)), n, -1)
        return text.dot(value, roots.real, extents), text.dot(value, roots.imag, extents)
    if n % 2:
        re, im = text.last((value, None), extents, -1)
        return text.slice(re, extents, 0, half + 1), text.slice(im, extents, 0, half + 1)
    # Even numbers are real parts, odd ones imaginary parts: Z = E + i O, of which X = E + W^k O.
    pairs, short, long = [*outer, half, 2], [*outer, half], [*outer, half + 1]
    both = text.reshape(value, extents, pairs)
    a, b = (text.reshape(text.slice(both, pairs, n, n + 1), [*short, 1], short) for n in (0, 1))
    a, b = text.last((a, b), short, -1)
    a, b = (text.concatenate([(v, half), (text.slice(v, short, 0, 1), 1)], outer) for v in (a, b))
    even, odd = _mirrored(text, (a, b), long)
    odd = text.times(odd, -0.5j * _roots(np.arange(half + 1), n, -1), long)
    even = text.scale(even[0], 0.5, long), text.scale(even[1], 0.5, long)
    return text.binary("add", even[0], odd[0], long), text.binary("add", even[1], odd[1], long)


def _real_inverse(text: _Transform, parts: tuple[str, str | None], extents: list[int], n: int) -> str:
    """Of the first half of what is conjugate symmetric; of the numbers that are real, the imaginary part is ignored."""
    *outer, count = extents
    half, whole = n // 2, [*outer, n]
    a, b = parts
    assert b is not None
    if n <= _DIRECT:
        weights = np.where((np.arange(count) == 0) | (2 * np.arange(count) == n), 1.0, 2.0)
        roots = _roots(np.outer(np.arange(count), np.arange(n)), n, 1) * weights[:, None]
        sines = np.where(weights[:, None] == 1, 0, roots.imag)
        return text.binary("subtract", text.dot(a, roots.real, extents), text.dot(b, sines, extents), whole)
    if n % 2:
        re, im = (text.reverse(text.slice(v, extents, 1, count), [*outer, half]) for v in (a, b))
        a = text.concatenate([(a, count), (re, half)], outer)
        b = text.concatenate([(b, count), (text.scale(im, -1.0, [*outer, half]), half)], outer)
        return text.last((a, b), whole, 1)[0]
    zero = text.zeros([*outer, 1])
    b = text.concatenate([(zero, 1), (text.slice(b, extents, 1, half), half - 1), (zero, 1)], outer)
    even, odd = _mirrored(text, (a, b), extents)
    odd = text.times(odd, 1j * _roots(np.arange(half + 1), n, 1), extents)
    short = [*outer, half]
    a, b = (
        text.slice(text.binary("add", *pair, extents), extents, 0, half) for pair in zip(even, odd, strict=True)
    )
    a, b = text.last((a, b), short, 1)
    both = text.concatenate([(text.reshape(v, short, [*short, 1]), 1) for v in (a, b)], short)
    return text.reshape(both, [*short, 2], whole)
