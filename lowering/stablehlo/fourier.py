"""``stablehlo.fft``: steps of short transforms that are written out, and products with matrices of roots of unity.

Real and imaginary parts are arrays of their own, and all of a step is arithmetic of slices of them. A transform of
elements with others behind them is one of Stockham's (Cochran et al., "What is the fast Fourier transform?", 1967): a
step leaves them in order. If there is nothing behind them, the number of elements n = rows * columns, the one at
``r * columns + c`` of what is given, and at ``k1 + rows * k2`` of the transform (in the order of Bailey's "four
steps", of 1990): transforms along the rows, products with roots of unity, an exchange of k1 and c, transforms along
the columns. Short transforms are made for many places in front of them at once, which are put behind them.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np

from devscope.lowering import mlir_util
from devscope.lowering.stablehlo.arrays import Array, Text
from devscope.lowering.stablehlo.butterflies import MOST_PRIME, Body, Complex, factors
from devscope.lowering.stablehlo.elementwise import Elementwise
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

Parts = list[Array]
"""Real and imaginary parts, or real ones alone."""

_LANES = 8
"""Elements behind those that are transformed, at least: they are computed with at once."""

_LONG = 128
"""Elements of which rows and columns are long enough."""

_LONG_PRIME = 150
"""Elements from which on a convolution is faster than a product, if their number cannot be cut."""


def _steps(n: int) -> list[int]:
    """The lengths of short transforms that one of ``n`` elements is cut into: fours, then what is prime. A long one
    comes first, as whole steps of zeros are left out there, and last, as half of it may be."""
    twos, others = factors(n).count(2), [factor for factor in factors(n) if factor != 2]
    steps = sorted([4] * (twos // 2) + [2] * (twos % 2) + others)
    return steps[-1:] + steps[:-1]


def _together(outer: int) -> int:
    """How many of ``outer`` short transforms are made at once, element by element: a few lines of a cache, as what is
    a power of two apart, and far, falls into few sets of it."""
    if outer < _LANES:
        return 1
    few = max(d for d in range(1, 8 * _LANES + 1) if outer % d == 0)
    return few if few >= _LANES else outer


def _is_smooth(n: int) -> bool:
    return max(factors(n), default=1) <= MOST_PRIME


def _columns(n: int, inner: int) -> int:
    """Of elements with ``inner`` behind them; 1 if they are no matrix."""
    if not _is_smooth(n):
        return n // factors(n)[-1]
    if inner >= _LANES or n < _LONG:
        return 1
    return max(d for d in range(1, math.isqrt(n) + 1) if n % d == 0)


def _convolution_length(n: int) -> int:
    return 1 << (2 * n - 2).bit_length()


def _elements(n: int, count: int, inner: int) -> int:
    """How many of ``n`` elements `_transform` is given if the first ``count`` are not zero: whole rows."""
    columns = _columns(n, inner)
    if columns > 1:
        return columns * _elements(n // columns, -(-count // columns), columns * inner)
    row = n // _steps(n)[0] if n > 1 and _is_smooth(n) else 1
    return -(-count // row) * row


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


def _pad(value: Array, extent: int) -> Array:
    """By zeros behind the elements in the middle of three dimensions."""
    outer, given, inner = value.extents
    if extent == given:
        return value
    return value.join(1, value.text.constant(np.zeros((outer, extent - given, inner)), value.of))


def _transform(
    value: Parts, n: int, sign: int, scale: float = 1.0, is_half: bool = False, is_real: bool = False
) -> Parts:
    """Along the second dimension of three: what is in front, elements, and what is behind.

    ``value`` has one part if it is real, and the first elements of ``n`` if all others are zero. ``is_half``: only
    the first half is made, and what is in the middle, or a few more; ``is_real``: only real parts.
    """
    outer, given, inner = value[0].extents
    columns = _columns(n, inner)
    if columns == 1:
        how = _by_steps if n > 1 and _is_smooth(n) else _by_convolution if n > _LONG_PRIME else _by_product
        together = _together(outer) if inner < _LANES and how is _by_steps else 1
        if together == 1:
            return how(value, n, sign, scale, is_half, is_real)
        apart = outer // together
        behind = [part.reshape(apart, together, given, inner).permute(0, 2, 1, 3) for part in value]
        behind = [part.reshape(apart, given, together * inner) for part in behind]
        done = how(behind, n, sign, scale, is_half, is_real)
        made = done[0].extents[1]
        done = [part.reshape(apart, made, together, inner).permute(0, 2, 1, 3) for part in done]
        return [part.reshape(outer, made, inner) for part in done]
    rows = n // columns
    behind = [part.reshape(outer, given // columns, columns * inner) for part in value]
    roots = np.repeat(_matrix(rows, columns, n, sign), inner, axis=1)
    if _is_smooth(n):
        first = _by_steps(behind, rows, sign, roots=roots)
    else:
        first = _times(_transform(behind, rows, sign), roots)
    turned = [part.reshape(outer, rows, columns, inner).permute(0, 2, 1, 3) for part in first]
    turned = [part.reshape(outer, columns, rows * inner) for part in turned]
    second = _transform(turned, columns, sign, scale, is_half, is_real)
    return [part.reshape(outer, part.extents[1] * rows, inner) for part in second]


def _by_product(value: Parts, n: int, sign: int, scale: float, is_half: bool, is_real: bool) -> Parts:
    """As `_transform`, with a matrix of roots of unity."""
    outer, given, inner = value[0].extents
    made = n // 2 + 1 if is_half else n
    roots = scale * _matrix(made, given, n, sign)
    matrix = np.block([[roots.real, -roots.imag], [roots.imag, roots.real]])
    matrix = matrix[: made if is_real else None, : len(value) * given]
    columns = [part.permute(1, 0, 2).reshape(given, outer * inner) for part in value]
    product = value[0].text.constant(matrix, value[0].of) @ reduce(lambda a, b: a.join(0, b), columns)
    parts = [product.part(0, first, first + made) for first in range(0, len(matrix), made)]
    return [part.reshape(made, outer, inner).permute(1, 0, 2) for part in parts]


def _by_convolution(value: Parts, n: int, sign: int, scale: float, is_half: bool, is_real: bool) -> Parts:
    """As `_transform`, of a number of elements that cannot be cut, by transforms of more that can (Bluestein, 1970).

    As 2 j k = j^2 + k^2 - (k - j)^2, it is a convolution with roots of unity, between products with them.
    """
    _, given, inner = value[0].extents
    longer, at = _convolution_length(n), np.arange(n)
    roots = _roots(at * at, 2 * n, sign)[:, None]
    filter_ = np.zeros(longer, complex)
    filter_[:n] = roots[:, 0].conj()
    filter_[longer - n + 1 :] = roots[:0:-1, 0].conj()
    spectrum = np.fft.fft(filter_)[:, None] * (scale / longer)
    product = [_pad(part, _elements(longer, given, inner)) for part in _times(value, roots[:given])]
    product = _times(_transform(product, longer, -1), spectrum)
    made = n // 2 + 1 if is_half else n
    result = [part.part(1, 0, made) for part in _transform(product, longer, 1)]
    return _times(result, roots[:made], is_real)


def _by_steps(
    value: Parts,
    n: int,
    sign: int,
    scale: float = 1.0,
    is_half: bool = False,
    is_real: bool = False,
    roots: Any = None,
) -> Parts:
    """As `_transform`. The result is multiplied by ``roots``, of elements and what is behind them."""
    outer, left, inner = value[0].extents
    whole, behind = n, inner
    for step in _steps(n):
        whole //= step
        is_last = whole == 1
        turns = _matrix(step, whole, step * whole, sign)[:, :, None]
        if is_last and roots is not None:
            turns = roots.reshape(step, 1, behind)
        value = _step(
            [part.reshape(outer, left // whole, whole, behind) for part in value],
            sign,
            turns * scale if is_last else turns,
            step // 2 + 1 if is_last and is_half else step,
            is_last and is_real,
        )
        left, behind = whole, value[0].extents[2] * behind
        value = [part.reshape(outer, left, behind) for part in value]
    return [part.reshape(outer, behind // inner, inner) for part in value]


def _step(value: Parts, sign: int, roots: Any, made: int, is_real: bool) -> Parts:
    """The first ``made`` elements of short transforms along the second dimension of four, times ``roots``, whose
    dimensions are these elements and the last two of ``value``; they stand in the third dimension, then."""
    outer, given, left, inner = value[0].extents
    operation, body = Elementwise(value[0].text, (outer, left, inner), value[0].of), Body(value[0].of)
    values: list[Complex] = [(None, None)] * len(roots)
    for at in range(given):
        re, im, *_ = [*(operation.operand(part.at(1, str(at)), [0, 1, 2]) for part in value), None]
        values[at] = re, im
    axes = [axis + 1 for axis, extent in enumerate(roots.shape[1:]) if extent > 1]
    results: list[Complex] = []
    for result, root in zip(body.transform(values, sign)[:made], roots, strict=False):
        if (root == root.flat[0].real).all():
            results.append(body.scaled(result, float(root.flat[0].real)))
        else:
            results.append(body.product(result, *operation.constant(root, axes)))
    done = operation.done(body, [result[part] for part in range(2 - is_real) for result in results])
    return [_side_by_side(done[first : first + made]) for first in range(0, len(done), made)]


def _side_by_side(arrays: Sequence[Array]) -> Array:
    """Arrays with one more dimension, the last one but one, along which they stand."""
    text, of, (outer, left, inner) = arrays[0].text, arrays[0].of, arrays[0].extents
    extents = outer, left, len(arrays), inner
    whole = Array(text, text.room(extents, of), extents, of)
    for place, each in enumerate(arrays):
        whole = whole.put(2, str(place), each)
    return whole


def _times(value: Parts, roots: Any, is_real: bool = False) -> Parts:
    """Parts times complex constants, of the last two dimensions, or the same for all of the last one."""
    operation, body = Elementwise(value[0].text, value[0].extents, value[0].of), Body(value[0].of)
    re, im, *_ = [*(operation.operand(part, [0, 1, 2]) for part in value), None]
    axes = [axis + 1 for axis, extent in enumerate(roots.shape) if extent > 1]
    product = body.product((re, im), *operation.constant(roots, axes))
    return operation.done(body, product[: 2 - is_real])


def _of_real_numbers(value: Array) -> Parts:
    """The first half of the transform, and what is in the middle, along the last of two dimensions."""
    outer, n = value.extents
    made = _transform([value.reshape(outer, n, 1)], n, -1, is_half=True)
    return [part.part(1, 0, n // 2 + 1).reshape(outer, n // 2 + 1) for part in made]


def _to_real_numbers(value: Parts, n: int, scale: float = 1.0) -> Array:
    """Of the first half, in the last of two dimensions, of what is conjugate symmetric.

    What is real in it has no twin; its imaginary part is ignored, as only real parts are made.
    """
    outer, count = value[0].extents
    at = np.arange(count)
    weights = value[0].text.constant(np.where((at == 0) | (2 * at == n), scale, 2 * scale), value[0].of)
    weights = weights.broadcast([0], value[0].extents)
    padded = [_pad((part * weights).reshape(outer, count, 1), _elements(n, count, 1)) for part in value]
    (made,) = _transform(padded, n, 1, is_real=True)
    return made.reshape(outer, n)


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
    value = [given.real(), given.imag()] if kind != "RFFT" else _of_real_numbers(given.reshape(outer, extents[-1]))
    extents = [*extents[:-1], shape(result)[-1] if kind == "RFFT" else extents[-1]]
    for axis in reversed(axes if kind in ("FFT", "IFFT") else axes[:-1]):
        lanes = math.prod(extents[:axis]), extents[axis], math.prod(extents[axis + 1 :])
        is_last = axis == axes[0] and kind == "IFFT"
        value = [part.reshape(*lanes) for part in value]
        value = _transform(value, lanes[1], sign, scale if is_last else 1.0)
    if kind == "IRFFT":
        value = [part.reshape(outer, extents[-1]) for part in value]
        made = _to_real_numbers(value, lengths[-1], scale).reshape(*shape(result))
    else:
        real, imag = (part.reshape(*extents) for part in value)
        made = real.with_imag(imag, str(element(result)))
    expand(op, text.result([made]))


def _operands(op: Any) -> tuple[Text, list[Array]]:
    text = Text(op.operands[0].type)
    return text, [text.operand(n, operand.type) for n, operand in enumerate(op.operands)]


def _flat(value: Array) -> Array:
    return value.reshape(math.prod(value.extents[:-1]), value.extents[-1])


def _of_parts(sign: int, op: Any) -> str:
    text, value = _operands(op)
    outer, n = _flat(value[0]).extents
    made = _transform([part.reshape(outer, n, 1) for part in value], n, sign)
    return text.result([part.reshape(*shape(op.results[0].type)) for part in made])


def _of_real(op: Any) -> str:
    text, (value,) = _operands(op)
    return text.result([part.reshape(*shape(op.results[0].type)) for part in _of_real_numbers(_flat(value))])


def _to_real(op: Any) -> str:
    text, (real, imag, *_) = _operands(op)
    extents = shape(op.results[0].type)
    return text.result([_to_real_numbers([_flat(real), _flat(imag)], extents[-1]).reshape(*extents)])


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
