"""``stablehlo.fft``: products with matrices of roots of unity, of transforms that are cut into short ones.

The number of elements n = rows * columns, the one at ``r * columns + c`` of what is given, and at ``k1 + rows * k2``
of the transform (Cooley and Tukey's algorithm, in the order of Bailey's "four steps", of 1990): transforms along the
rows, products with roots of unity, an exchange of k1 and c, transforms along the columns. Real and imaginary parts
stand in front of what is transformed, so that a short transform of all that is behind is one matrix product. Of real
numbers, what has a conjugate twin is left out.
"""

import math
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

import numpy as np

from devscope.lowering import mlir_util
from devscope.lowering.stablehlo.arrays import Array, Text
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


def _parts(value: Array) -> list[Array]:
    """Real and imaginary parts, of which the first dimension is two."""
    return [value.part(0, n, n + 1).reshape(*value.extents[1:]) for n in range(value.extents[0])]


def _whole(real: Array, imag: Array) -> Array:
    return real.reshape(1, *real.extents).join(0, imag.reshape(1, *imag.extents))


def _pad(value: Array, axis: int, extent: int) -> Array:
    """By zeros behind it."""
    zeros = list(value.extents)
    zeros[axis] = extent - value.extents[axis]
    return value.join(axis, value.text.constant(np.zeros(zeros), value.of)) if zeros[axis] else value


def _times(value: Array, roots: Any, is_turned: bool = False) -> Array:
    """Parts times complex constants, of dimensions 1 and 3 of five, which change places if ``is_turned``."""
    text, of = value.text, value.of
    a, b = _parts(value)
    # Each part is a sum of products of both, so that one operation makes both.
    c, d = (text.constant(np.stack(both), of) for both in ((roots.real, roots.imag), (-roots.imag, roots.real)))
    first, last = (3, 1) if is_turned else (1, 3)
    extents = tuple(value.extents[dim] for dim in (0, first, 2, last, 4))
    given, type_, parallel = (a, b, c, d), tensor(extents, of), commas(['"parallel"'] * 5)
    axes = [first, 2, last, 4], [first, 2, last, 4], [0, first, last], [0, first, last], range(5)
    name = text.add(
        f"linalg.generic {{indexing_maps = [{commas(axes_map(5, one) for one in axes)}], "
        f"iterator_types = [{parallel}]}} "
        f"ins({commas(one.name for one in given)} : {commas(one.type for one in given)}) "
        f"outs({text.room(extents, of)} : {type_}) {{\n"
        f"^bb0(%a: {of}, %b: {of}, %c: {of}, %d: {of}, %old: {of}):\n"
        f"%first = arith.mulf %a, %c : {of}\n%second = arith.mulf %b, %d : {of}\n"
        f"%sum = arith.addf %first, %second : {of}\nlinalg.yield %sum : {of}\n"
        f"}} -> {type_}"
    )
    return Array(text, name, extents, of)


def _transform(
    value: Array, n: int, sign: int, scale: float = 1.0, is_half: bool = False, is_real: bool = False
) -> Array:
    """Along the third dimension of four: parts, what is in front, elements, and what is behind.

    ``value`` has one part if it is real, and the first elements of ``n`` if all others are zero. ``is_half``: only
    the first half is made, and what is in the middle, or a few more; ``is_real``: only real parts.
    """
    parts, outer, given, inner = value.extents
    rows = _cut(n)
    columns = n // rows
    if rows == n and _chirp_work(n) < _direct_work(n):
        return _by_convolution(value, n, sign, scale, is_half, is_real)
    if rows == n:
        made = n // 2 + 1 if is_half else n
        roots = scale * _matrix(made, given, n, sign)
        matrix = np.block([[roots.real, -roots.imag], [roots.imag, roots.real]])
        matrix = matrix[: made if is_real else None, : parts * given]
        behind = value.permute(0, 2, 1, 3).reshape(parts * given, outer * inner)
        product = value.text.constant(matrix, value.of) @ behind
        return product.reshape(len(matrix) // made, made, outer, inner).permute(0, 2, 1, 3)
    given //= columns
    behind = value.reshape(parts, outer, given, columns * inner).permute(0, 2, 1, 3)
    behind = behind.reshape(parts, 1, given, outer * columns * inner)
    first = _transform(behind, rows, sign).reshape(2, rows, outer, columns, inner)
    roots = _matrix(rows, columns, n, sign)
    # Lines of several elements change places on the way; of single ones that is faster by itself.
    turned = _times(first, roots, inner > 1)
    turned = turned if inner > 1 else turned.permute(0, 3, 2, 1, 4)
    second = _transform(
        turned.reshape(2, 1, columns, outer * rows * inner), columns, sign, scale, is_half, is_real
    )
    parts, _, made, _ = second.extents
    done = second.reshape(parts, made, outer, rows * inner).permute(0, 2, 1, 3)
    return done.reshape(parts, outer, made * rows, inner)


def _by_convolution(value: Array, n: int, sign: int, scale: float, is_half: bool, is_real: bool) -> Array:
    """As `_transform`, of a number of elements that cannot be cut, by transforms of more that can (Bluestein, 1970).

    As 2 j k = j^2 + k^2 - (k - j)^2, it is a convolution with roots of unity, between products with them.
    """
    parts, outer, given, inner = value.extents
    longer, at = _convolution_length(n), np.arange(n)
    roots = _roots(at * at, 2 * n, sign)
    filter_ = np.zeros(longer, complex)
    filter_[:n] = roots.conj()
    filter_[longer - n + 1 :] = roots[:0:-1].conj()
    spectrum = np.fft.fft(filter_) * (scale / longer)
    value = value if parts == 2 else _pad(value, 0, 2)
    product = _times(value.reshape(2, 1, outer, given, inner), roots[None, :given])
    product = _pad(product.reshape(2, outer, given, inner), 2, _elements(longer, given))
    product = _transform(product, longer, -1).reshape(2, 1, outer, longer, inner)
    product = _times(product, spectrum[None]).reshape(2, outer, longer, inner)
    made = n // 2 + 1 if is_half else n
    result = _transform(product, longer, 1).part(2, 0, made)
    result = _times(result.reshape(2, 1, outer, made, inner), roots[None, :made])
    parts = 1 if is_real else 2
    return result.part(0, 0, parts).reshape(parts, outer, made, inner)


def _of_real_numbers(value: Array) -> Array:
    """Parts of the first half of the transform, and what is in the middle, along the last of two dimensions."""
    outer, n = value.extents
    made = _transform(value.reshape(1, outer, n, 1), n, -1, is_half=True)
    return made.reshape(2, outer, made.extents[2]).part(2, 0, n // 2 + 1)


def _to_real_numbers(value: Array, n: int, scale: float = 1.0) -> Array:
    """Of the first half, in the last of three dimensions, of what is conjugate symmetric.

    What is real in it has no twin; its imaginary part is ignored, as only real parts are made.
    """
    _, outer, count = value.extents
    at = np.arange(count)
    weights = value.text.constant(np.where((at == 0) | (2 * at == n), scale, 2 * scale), value.of)
    value = _pad(value * weights.broadcast([0, 1], value.extents), 2, _elements(n, count))
    return _transform(value.reshape(2, outer, value.extents[2], 1), n, 1, is_real=True).reshape(outer, n)


def expand_fft(op: Any) -> None:
    kind, lengths = enum(op, "fft_type"), integers(op, "fft_length")
    extents, result = shape(op.operands[0].type), op.results[0].type
    if -1 in extents:
        _one_by_one(op, extents)
        return
    if 0 in shape(result):
        mlir_util.replace_op(op, [mlir_util.Builder(op).value("tensor.empty", [], result)])
        return
    text, (given,) = _operands(op)
    sign = -1 if kind in ("FFT", "RFFT") else 1
    scale = 1.0 / math.prod(lengths) if sign > 0 else 1.0
    outer = math.prod(extents[:-1])
    axes = [*range(len(extents) - len(lengths), len(extents))]
    if kind == "RFFT":
        value = _of_real_numbers(given.reshape(outer, extents[-1]))
    else:
        value = _whole(given.real(), given.imag())
    extents = [*extents[:-1], shape(result)[-1] if kind == "RFFT" else extents[-1]]
    for axis in reversed(axes if kind in ("FFT", "IFFT") else axes[:-1]):
        lanes = math.prod(extents[:axis]), extents[axis], math.prod(extents[axis + 1 :])
        is_last = axis == axes[0] and kind == "IFFT"
        value = _transform(value.reshape(2, *lanes), lanes[1], sign, scale if is_last else 1.0)
    if kind == "IRFFT":
        made = _to_real_numbers(value.reshape(2, outer, extents[-1]), lengths[-1], scale).reshape(*shape(result))
    else:
        real, imag = _parts(value.reshape(2, *extents))
        made = real.with_imag(imag, str(element(result)))
    expand(op, text.result([made]))


def _operands(op: Any) -> tuple[Text, list[Array]]:
    text = Text(op.operands[0].type)
    return text, [text.operand(n, operand.type) for n, operand in enumerate(op.operands)]


def _flat(value: Array) -> tuple[int, int]:
    *outer, n = value.extents
    return math.prod(outer), n


def _of_parts(sign: int, op: Any) -> str:
    text, (real, imag) = _operands(op)
    outer, n = _flat(real)
    value = _transform(_whole(real, imag).reshape(2, outer, n, 1), n, sign)
    return text.result(_parts(value.reshape(2, *shape(op.results[0].type))))


def _of_real(op: Any) -> str:
    text, (value,) = _operands(op)
    half = _of_real_numbers(value.reshape(*_flat(value)))
    return text.result(_parts(half.reshape(2, *shape(op.results[0].type))))


def _to_real(op: Any) -> str:
    text, (real, imag, *_) = _operands(op)
    extents = shape(op.results[0].type)
    made = _to_real_numbers(_whole(real, imag).reshape(2, *_flat(real)), extents[-1])
    return text.result([made.reshape(*extents)])


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
