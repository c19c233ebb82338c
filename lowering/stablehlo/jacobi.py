"""Eigenvalues and singular values by rotations (Jacobi): of half as many pairs as there are columns at once.

Pairs take turns as in a round-robin tournament (Brent, Luk: The solution of singular-value and symmetric eigenvalue
problems on multiprocessor arrays, 1985): column ``i`` of the first half meets column ``i`` of the second, then all but
one move on; after as many turns as there are other columns each is where it was.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from devscope.lowering.stablehlo.arrays import Array, Text
from devscope.lowering.stablehlo.factors import (
    EPSILON,
    TINY,
    identity,
    norm,
    product_of_reflections,
    qr,
    scaled,
    spoilt,
)

_SWEEPS = 30


def eigh(a: Array, lower: bool) -> tuple[Array, Array]:
    """Eigenvalues of Hermitian matrices ``[..., n, n]``, ascending (``[..., n]``, real), and eigenvectors as columns.

    One triangle is read. All is NaN where a number is not finite.
    """
    text, n, real = a.text, a.extents[-1], a.real_of
    a, scale = scaled(hermitian(a, lower))
    a = _even(_even(a, -1), -2)
    size = a.extents[-1]
    half, partner = size // 2, _partners(size)
    limit = norm(norm(a, -1), -1) * EPSILON[real]
    met = (
        text.iota(size).take(0, partner).spread(-1, size).compare("EQ", text.iota(size).spread(0, size)).in_batch()
    )

    def turn(_: str, a: Array, vectors: Array, is_off: Array) -> list[Array]:
        values, other = a.diagonal(range(size)).real(), a.diagonal(range(half, size))
        cosine, sine = _rotation(values.part(-1, 0, half), values.part(-1, half, size), other)
        is_off = is_off | other.abs().compare("GT", limit.spread(-1, half)).any()
        a = _rotated(a, cosine, sine, partner)
        a = _rotated(a.transpose(), cosine, sine.conj(), partner).transpose()
        a = met.where(0, a)
        vectors = _rotated(vectors, cosine, sine, partner)
        order = _moves(size)
        return [a.take(-1, order).take(-2, order), vectors.take(-1, order), is_off]

    a, vectors = _sweeps(text, size, [a, identity(a, size)], turn)
    values = a.diagonal(range(n)).real() * scale.spread(-1, n)
    values, vectors = _sorted(values, vectors.part(-1, 0, n).part(-2, 0, n), "LT")
    return values, spoilt(vectors, scale)


def svd(a: Array, full: bool) -> tuple[Array, Array, Array]:
    """``a == U S V^H``: U, singular values, descending (``[..., min(m, n)]``, real), and V^H.

    U is ``[..., m, m]`` and V^H ``[..., n, n]`` if ``full``, else they have ``min(m, n)`` columns and rows. All is NaN
    where a number is not finite.
    """
    if a.extents[-2] < a.extents[-1]:
        left, values, right = svd(a.conj().transpose(), full)
        return right.conj().transpose(), values, left.conj().transpose()
    text, (m, n), real = a.text, a.extents[-2:], a.real_of
    a, scale = scaled(a)
    a = _even(a, -1)
    size = a.extents[-1]
    half, partner = size // 2, _partners(size)
    tolerance = 4 * math.sqrt(m) * EPSILON[real]

    def turn(_: str, a: Array, vectors: Array, is_off: Array) -> list[Array]:
        squares = (a.abs() * a.abs()).sum(-2)
        first, second = squares.part(-1, 0, half), squares.part(-1, half, size)
        other = (a.part(-1, 0, half).conj() * a.part(-1, half, size)).sum(-2)
        cosine, sine = _rotation(first, second, other)
        counts = first.compare("GT", TINY[real]) & second.compare("GT", TINY[real])
        is_off = is_off | (counts & other.abs().compare("GT", first.sqrt() * second.sqrt() * tolerance)).any()
        order = _moves(size)
        a = _rotated(a, cosine, sine, partner).take(-1, order)
        return [a, _rotated(vectors, cosine, sine, partner).take(-1, order), is_off]

    shape = text.full([*a.extents[:-2], size, size], a.of, 0)
    a, vectors = _sweeps(text, size, [a, identity(shape, size)], turn)
    values, both = _sorted(norm(a, -2), a.join(-2, vectors), "GT")
    values, both = values.part(-1, 0, n), both.part(-1, 0, n)
    # Columns that are orthogonal have a diagonal R: its signs apart, Q is U, also where singular values are 0.
    packed, taus = qr(both.part(-2, 0, m))
    left = product_of_reflections(packed, taus, m if full else n)
    sign = packed.diagonal(range(n)).real().compare("LT", 0)
    if full and m > n:
        sign = sign.join(-1, text.full([*a.extents[:-2], m - n], "i1", 0))
    left = sign.spread(-2, m).where(-left, left)
    right = both.part(-2, m, m + n).conj().transpose()
    return spoilt(left, scale), values * scale.spread(-1, n), spoilt(right, scale)


def hermitian(a: Array, lower: bool) -> Array:
    """One triangle, and its mirror image in place of the other."""
    text, n = a.text, a.extents[-1]
    rows, columns = text.iota(n).spread(-1, n), text.iota(n).spread(0, n)
    mirrored = rows.compare("LT" if lower else "GT", columns).in_batch()
    a = mirrored.where(a.conj().transpose(), a)
    if not a.is_complex:
        return a
    return rows.compare("EQ", columns).in_batch().where(a.real().with_imag(0, a.of), a)


def _even(a: Array, axis: int) -> Array:
    """With a column of zeros if their number is odd."""
    extents = [*a.extents]
    if extents[axis] % 2 == 0:
        return a
    extents[axis] = 1
    return a.join(axis, a.text.full(extents, a.of, 0))


def _partners(size: int) -> list[int]:
    return [*range(size // 2, size), *range(size // 2)]


def _moves(size: int) -> list[int]:
    """Which column stands where after a turn."""
    half = size // 2
    if half < 2:
        return list(range(size))
    return [0, half, *range(1, half - 1), *range(half + 1, size), half - 1]


def _rotation(first: Array, second: Array, other: Array) -> tuple[Array, Array]:
    """What makes ``[[first, other], [conj(other), second]]`` diagonal: a factor for each column and for its partner."""
    text, of = other.text, other.of
    size = other.abs()
    is_zero = ~size.compare("GT", TINY[other.real_of])
    divisor = is_zero.where(1, size)
    tau = (second - first) / (divisor * 2)
    ones = text.full(tau.extents, tau.of, 1)
    root = tau.abs() + (tau * tau + ones).sqrt()
    tangent = is_zero.where(0, tau.compare("LT", 0).where(-ones, ones) / root)
    cosine = ones / (tangent * tangent + ones).sqrt()
    sine = (cosine * tangent).with_imag(0, of) * is_zero.where(1, other / divisor.with_imag(0, of))
    cosine = cosine.with_imag(0, of)
    return cosine.join(-1, cosine), (-sine.conj()).join(-1, sine)


def _rotated(a: Array, cosine: Array, sine: Array, partner: Sequence[int]) -> Array:
    rows = a.extents[-2]
    return a * cosine.spread(-2, rows) + a.take(-1, partner) * sine.spread(-2, rows)


def _sweeps(
    text: Text, size: int, carried: Sequence[Array], turn: Callable[..., Sequence[Array]]
) -> tuple[Array, Array]:
    """Turns until a sweep finds nothing to do, all columns having met."""

    def test(count: Array, is_off: Array, *_: Array) -> Array:
        return count.compare("LT", _SWEEPS) & is_off

    def sweep(count: Array, _: Array, *carried: Array) -> list[Array]:
        nothing = text.full((), "i1", 0)
        *rest, is_off = text.loop(size - 1, [*carried, nothing], turn)
        return [count + 1, is_off, *rest]

    start = [text.full((), "i64", 0), text.full((), "i1", 1)]
    _, _, first, second = text.loop_while([*start, *carried], test, sweep)
    return first, second


def _sorted(keys: Array, columns: Array, direction: str) -> tuple[Array, Array]:
    """Keys in order, and the columns that belong to them."""
    wide = keys.spread(-2, columns.extents[-2])
    return keys.sort(direction), wide.sort(direction, columns)
