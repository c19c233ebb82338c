"""``stablehlo.fft``: products with matrices of roots of unity, of transforms that are cut into short ones.

The number of elements n = rows * columns, the one at ``r * columns + c`` of what is given, and at ``k1 + rows * k2``
of the transform (Cooley and Tukey's algorithm, in the order of Bailey's "four steps", of 1990): transforms along the
rows, products with roots of unity, an exchange of k1 and c, transforms along the columns. Real and imaginary parts
stand in front of what is transformed, so that a short transform of all that is behind is one matrix product. Of real
numbers, what has a conjugate twin is left out.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from devscope.lowering import mlir_util
from devscope.lowering.stablehlo.templates import (
    axes_map,
    commas,
    element,
    enum,
    expand,
    extents_of,
    integers,
    shape,
    tensor,
)

_PASS = 100
"""What it takes to read and write an element, in multiplications of a product."""


@cache
def _cut(n: int) -> int:
    """Into how many rows a transform of ``n`` elements is cut; ``n`` where it is one product."""
    return min(_divisors(n), key=lambda rows: (_work(n, rows), rows))


@cache
def _divisors(n: int) -> list[int]:
    small = [d for d in range(2, math.isqrt(n) + 1) if n % d == 0]
    return [n, *small, *(n // d for d in small)]


def _work(n: int, rows: int) -> float:
    """Per element."""
    if rows == n:
        return min(_direct_work(n), _chirp_work(n))
    return sum(_work(part, _cut(part)) for part in (rows, n // rows)) + _PASS


def _direct_work(n: int) -> float:
    return 8 * n + _PASS


def _chirp_work(n: int) -> float:
    """That of `_by_convolution`, which is for prime numbers of elements."""
    longer = _convolution_length(n)
    is_prime = _divisors(n) == [n]
    return (2 * _work(longer, _cut(longer)) + 3 * _PASS) * longer / n if is_prime and n > 2 else math.inf


def _convolution_length(n: int) -> int:
    return 1 << (2 * n - 2).bit_length()


def _elements(n: int, count: int) -> int:
    """How many of ``n`` elements `_transform` is given if the first ``count`` are not zero: whole rows."""
    columns = n // _cut(n)
    return count if columns == 1 else columns * _elements(n // columns, -(-count // columns))


def _roots(turns: Any, n: int, sign: int) -> Any:
    """Of quarters of a turn exactly, so that what is real becomes so."""
    n = max(n, 1)
    turns = turns % n
    angle = 2 * np.pi * turns / n
    cosines = np.where((4 * turns == n) | (4 * turns == 3 * n), 0.0, np.cos(angle))
    return cosines + 1j * np.where(2 * turns % n == 0, 0.0, sign * np.sin(angle))


def _matrix(rows: int, columns: int, n: int, sign: int) -> Any:
    """Roots of unity of all products of ``rows`` and ``columns`` numbers."""
    return _roots(np.outer(np.arange(rows), np.arange(columns)), n, sign)


class _Value(NamedTuple):
    """The name of a tensor of the text, and its shape."""

    name: str
    shape: tuple[int, ...]


class _Text:
    """Lines of StableHLO, of tensors of one type of elements."""

    def __init__(self, of: str) -> None:
        self.of = of
        self.lines: list[str] = []

    def type(self, extents: Sequence[int]) -> str:
        return tensor(extents, self.of)

    def add(self, line: str, extents: Sequence[int]) -> _Value:
        name = f"%v{len(self.lines)}"
        self.lines.append(f"{name} = {line}")
        return _Value(name, tuple(extents))

    def moved(self, operation: str, value: _Value, extents: Sequence[int], how: str = "") -> _Value:
        types = f"({self.type(value.shape)}) -> {self.type(extents)}"
        return self.add(f"stablehlo.{operation} {value.name}{how} : {types}", extents)

    def constant(self, values: Any) -> _Value:
        data = np.ascontiguousarray(values, np.float64 if self.of == "f64" else np.float32).tobytes().hex().upper()
        return self.add(f'stablehlo.constant dense<"0x{data}"> : {self.type(values.shape)}', values.shape)

    def binary(self, name: str, a: _Value, b: _Value) -> _Value:
        return self.add(f"stablehlo.{name} {a.name}, {b.name} : {self.type(a.shape)}", a.shape)

    def reshape(self, value: _Value, *extents: int) -> _Value:
        return value if value.shape == extents else self.moved("reshape", value, extents)

    def transpose(self, value: _Value, *dims: int) -> _Value:
        extents = [value.shape[dim] for dim in dims]
        if [dim for dim in dims if value.shape[dim] != 1] == [n for n, e in enumerate(value.shape) if e != 1]:
            return self.reshape(value, *extents)
        return self.moved("transpose", value, extents, f", dims = {list(dims)}")

    def slice(self, value: _Value, axis: int, first: int, end: int) -> _Value:
        extents = list(value.shape)
        limits = [f"0:{extent}" for extent in extents]
        limits[axis], extents[axis] = f"{first}:{end}", end - first
        return self.moved("slice", value, extents, f" [{commas(limits)}]")

    def concatenate(self, values: Sequence[_Value], axis: int) -> _Value:
        extents = list(values[0].shape)
        extents[axis] = sum(value.shape[axis] for value in values)
        types = commas(self.type(value.shape) for value in values)
        names = commas(value.name for value in values)
        return self.add(
            f"stablehlo.concatenate {names}, dim = {axis} : ({types}) -> {self.type(extents)}", extents
        )

    def pad(self, value: _Value, axis: int, extent: int) -> _Value:
        """By zeros behind it."""
        zeros = list(value.shape)
        zeros[axis] = extent - value.shape[axis]
        return self.concatenate([value, self.constant(np.zeros(zeros))], axis) if zeros[axis] else value

    def parts(self, value: _Value) -> list[_Value]:
        """Real and imaginary parts, of which the first dimension is two."""
        return [self.reshape(self.slice(value, 0, n, n + 1), *value.shape[1:]) for n in range(value.shape[0])]

    def whole(self, *parts: _Value) -> _Value:
        return self.concatenate([self.reshape(part, 1, *part.shape) for part in parts], 0)

    def times(self, value: _Value, roots: Any, is_turned: bool = False) -> _Value:
        """Parts times complex constants, of dimensions 1 and 3 of five, which change places if ``is_turned``."""
        a, b = self.parts(value)
        # Each part is a sum of products of both, so that one operation makes both.
        c, d = (self.constant(np.stack(both)) for both in ((roots.real, roots.imag), (-roots.imag, roots.real)))
        first, last = (3, 1) if is_turned else (1, 3)
        extents = [value.shape[dim] for dim in (0, first, 2, last, 4)]
        empty = self.add(f"tensor.empty() : {self.type(extents)}", extents)
        given, parallel = (a, b, c, d), commas(['"parallel"'] * 5)
        axes = [first, 2, last, 4], [first, 2, last, 4], [0, first, last], [0, first, last], range(5)
        return self.add(
            f"linalg.generic {{indexing_maps = [{commas(axes_map(5, one) for one in axes)}], "
            f"iterator_types = [{parallel}]}} "
            f"ins({commas(one.name for one in given)} : {commas(self.type(one.shape) for one in given)}) "
            f"outs({empty.name} : {self.type(extents)}) {{\n"
            f"^bb0(%a: {self.of}, %b: {self.of}, %c: {self.of}, %d: {self.of}, %old: {self.of}):\n"
            f"%first = arith.mulf %a, %c : {self.of}\n%second = arith.mulf %b, %d : {self.of}\n"
            f"%sum = arith.addf %first, %second : {self.of}\nlinalg.yield %sum : {self.of}\n"
            f"}} -> {self.type(extents)}",
            extents,
        )

    def dot(self, matrix: Any, value: _Value) -> _Value:
        extents = matrix.shape[0], value.shape[1]
        constant = self.constant(matrix)
        types = f"({self.type(matrix.shape)}, {self.type(value.shape)}) -> {self.type(extents)}"
        return self.add(
            f"stablehlo.dot_general {constant.name}, {value.name}, contracting_dims = [1] x [0] : {types}", extents
        )


def _transform(
    text: _Text, value: _Value, n: int, sign: int, scale: float = 1.0, is_half: bool = False, is_real: bool = False
) -> _Value:
    """Along the third dimension of four: parts, what is in front, elements, and what is behind.

    ``value`` has one part if it is real, and the first elements of ``n`` if all others are zero. ``is_half``: only
    the first half is made, and what is in the middle, or a few more; ``is_real``: only real parts.
    """
    parts, outer, given, inner = value.shape
    rows = _cut(n)
    columns = n // rows
    if rows == n and _chirp_work(n) < _direct_work(n):
        return _by_convolution(text, value, n, sign, scale, is_half, is_real)
    if rows == n:
        made = n // 2 + 1 if is_half else n
        roots = scale * _matrix(made, given, n, sign)
        matrix = np.block([[roots.real, -roots.imag], [roots.imag, roots.real]])
        matrix = matrix[: made if is_real else None, : parts * given]
        behind = text.reshape(text.transpose(value, 0, 2, 1, 3), parts * given, outer * inner)
        product = text.reshape(text.dot(matrix, behind), len(matrix) // made, made, outer, inner)
        return text.transpose(product, 0, 2, 1, 3)
    given //= columns
    behind = text.transpose(text.reshape(value, parts, outer, given, columns * inner), 0, 2, 1, 3)
    behind = text.reshape(behind, parts, 1, given, outer * columns * inner)
    first = text.reshape(_transform(text, behind, rows, sign), 2, rows, outer, columns, inner)
    roots = _matrix(rows, columns, n, sign)
    # Lines of several elements change places on the way; of single ones that is faster by itself.
    turned = text.times(first, roots, inner > 1)
    turned = turned if inner > 1 else text.transpose(turned, 0, 3, 2, 1, 4)
    turned = text.reshape(turned, 2, 1, columns, outer * rows * inner)
    second = _transform(text, turned, columns, sign, scale, is_half, is_real)
    parts, _, made, _ = second.shape
    done = text.transpose(text.reshape(second, parts, made, outer, rows * inner), 0, 2, 1, 3)
    return text.reshape(done, parts, outer, made * rows, inner)


def _by_convolution(
    text: _Text, value: _Value, n: int, sign: int, scale: float, is_half: bool, is_real: bool
) -> _Value:
    """As `_transform`, of a number of elements that cannot be cut, by transforms of more that can (Bluestein, 1970).

    As 2 j k = j^2 + k^2 - (k - j)^2, it is a convolution with roots of unity, between products with them.
    """
    parts, outer, given, inner = value.shape
    longer, at = _convolution_length(n), np.arange(n)
    roots = _roots(at * at, 2 * n, sign)
    filter_ = np.zeros(longer, complex)
    filter_[:n] = roots.conj()
    filter_[longer - n + 1 :] = roots[:0:-1].conj()
    spectrum = np.fft.fft(filter_) * (scale / longer)
    value = value if parts == 2 else text.pad(value, 0, 2)
    product = text.times(text.reshape(value, 2, 1, outer, given, inner), roots[None, :given])
    product = text.pad(text.reshape(product, 2, outer, given, inner), 2, _elements(longer, given))
    product = text.reshape(_transform(text, product, longer, -1), 2, 1, outer, longer, inner)
    product = text.reshape(text.times(product, spectrum[None]), 2, outer, longer, inner)
    made = n // 2 + 1 if is_half else n
    result = text.slice(_transform(text, product, longer, 1), 2, 0, made)
    result = text.times(text.reshape(result, 2, 1, outer, made, inner), roots[None, :made])
    return text.reshape(
        text.slice(result, 0, 0, 1) if is_real else result, 1 if is_real else 2, outer, made, inner
    )


def _of_real_numbers(text: _Text, value: _Value) -> _Value:
    """Parts of the first half of the transform, and what is in the middle, along the last of two dimensions."""
    outer, n = value.shape
    made = _transform(text, text.reshape(value, 1, outer, n, 1), n, -1, is_half=True)
    return text.slice(text.reshape(made, 2, outer, made.shape[2]), 2, 0, n // 2 + 1)


def _to_real_numbers(text: _Text, value: _Value, n: int, scale: float = 1.0) -> _Value:
    """Of the first half, in the last of three dimensions, of what is conjugate symmetric.

    What is real in it has no twin; its imaginary part is ignored, as only real parts are made.
    """
    _, outer, count = value.shape
    at = np.arange(count)
    weights = text.constant(np.where((at == 0) | (2 * at == n), scale, 2 * scale))
    value = text.binary("multiply", value, text.moved("broadcast_in_dim", weights, value.shape, ", dims = [2]"))
    value = text.pad(value, 2, _elements(n, count))
    value = text.reshape(value, 2, outer, value.shape[2], 1)
    return text.reshape(_transform(text, value, n, 1, is_real=True), outer, n)


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
    text = _Text(of.removeprefix("complex<").rstrip(">"))
    sign = -1 if kind in ("FFT", "RFFT") else 1
    scale = 1.0 / math.prod(lengths) if sign > 0 else 1.0
    outer = math.prod(extents[:-1])
    axes = [*range(len(extents) - len(lengths), len(extents))]
    if kind == "RFFT":
        value = _of_real_numbers(text, text.reshape(_Value("%0", tuple(extents)), outer, extents[-1]))
    else:
        whole = f"({tensor(extents, of)}) -> {text.type(extents)}"
        value = text.whole(*(text.add(f"stablehlo.{part} %0 : {whole}", extents) for part in ("real", "imag")))
    extents = [*extents[:-1], shape(result)[-1] if kind == "RFFT" else extents[-1]]
    for axis in reversed(axes if kind in ("FFT", "IFFT") else axes[:-1]):
        lanes = math.prod(extents[:axis]), extents[axis], math.prod(extents[axis + 1 :])
        is_last = axis == axes[0] and kind == "IFFT"
        value = _transform(text, text.reshape(value, 2, *lanes), lanes[1], sign, scale if is_last else 1.0)
    if kind == "IRFFT":
        made = _to_real_numbers(text, text.reshape(value, 2, outer, extents[-1]), lengths[-1], scale)
        made = text.reshape(made, *shape(result))
    else:
        a, b = text.parts(text.reshape(value, 2, *extents))
        made = _Value("%made", a.shape)
        text.lines.append(f"%made = stablehlo.complex {a.name}, {b.name} : {result}")
    expand(op, "\n".join([*text.lines, f'"devscope.return"({made.name}) : ({result}) -> ()']))


def _of_parts(sign: int, op: Any) -> str:
    outer, n = _flat(op.operands[0])
    text = _text_of(op)
    value = text.reshape(text.whole(*_given(op)), 2, outer, n, 1)
    return _returned(
        text, text.parts(text.reshape(_transform(text, value, n, sign), 2, *shape(op.results[0].type))), op
    )


def _of_real(op: Any) -> str:
    text = _text_of(op)
    half = _of_real_numbers(text, text.reshape(_given(op)[0], *_flat(op.operands[0])))
    return _returned(text, text.parts(text.reshape(half, 2, *shape(op.results[0].type))), op)


def _to_real(op: Any) -> str:
    text, extents = _text_of(op), shape(op.results[0].type)
    value = text.reshape(text.whole(*_given(op)[:2]), 2, *_flat(op.operands[0]))
    return _returned(text, [text.reshape(_to_real_numbers(text, value, extents[-1]), *extents)], op)


def _text_of(op: Any) -> _Text:
    return _Text(str(element(op.operands[0].type)))


def _given(op: Any) -> list[_Value]:
    return [_Value(f"%{n}", tuple(shape(operand.type))) for n, operand in enumerate(op.operands)]


def _flat(value: Any) -> tuple[int, int]:
    *outer, n = shape(value.type)
    return math.prod(outer), n


def _returned(text: _Text, values: Sequence[_Value], op: Any) -> str:
    types = commas(result.type for result in op.results)
    names = commas(value.name for value in values)
    return "\n".join([*text.lines, f'"devscope.return"({names}) : ({types}) -> ()'])


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
