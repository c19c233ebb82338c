"""``stablehlo.fft``: along a dimension at a time, contractions with matrices of roots of unity (Cooley, Tukey)."""

import math
from typing import Any

import numpy as np

from devscope.lowering.stablehlo.templates import commas, element, enum, expand, integers, shape, tensor

_DIRECT = 32
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
            turns = np.outer(np.arange(n), np.arange(n)) % max(n, 1)
            roots = _roots(turns, n, sign)
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
    angle = 2 * np.pi * (turns % n) / n
    return np.cos(angle) + 1j * sign * np.sin(angle)


def expand_fft(op: Any) -> None:
    kind, lengths = enum(op, "fft_type"), integers(op, "fft_length")
    extents, result = shape(op.operands[0].type), op.results[0].type
    if -1 in extents or 0 in extents or 0 in shape(result):
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
        parts = text.last(parts, extents, sign)
        half = [*extents[:-1], lengths[-1] // 2 + 1]
        limits = commas(f"0:{extent}" for extent in half)
        parts = tuple(
            text.add(f"stablehlo.slice {p} [{limits}] : ({tensor(extents, real)}) -> {tensor(half, real)}")
            for p in parts
        )  # pyright: ignore
        extents = half
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


def _real_inverse(text: _Transform, parts: tuple[str, str | None], extents: list[int], n: int) -> str:
    """Of the first half of what is conjugate symmetric; of the numbers that are real, the imaginary part is ignored."""
    half = extents[-1]
    weights = np.full(half, 2.0)
    weights[0] = 1.0
    if n % 2 == 0:
        weights[n // 2] = 1.0
    roots = _roots(np.outer(np.arange(half), np.arange(n)), n, 1) * weights[:, None]
    sines = np.where((np.arange(half) == 0)[:, None] | (2 * np.arange(half) == n)[:, None], 0, roots.imag)
    out = [*extents[:-1], n]
    a, b = parts
    assert b is not None
    return text.binary("subtract", text.dot(a, roots.real, extents), text.dot(b, sines, extents), out)
