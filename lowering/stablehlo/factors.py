"""Factors of matrices as LAPACK computes them: a column at a time, of all matrices of a batch at once.

Functions of arrays (`arrays.Array`) of shape ``[..., m, n]``, real or complex; the text is that of their arguments.
"""

from __future__ import annotations

from devscope.lowering.stablehlo.arrays import Array

EPSILON = {"f32": 2.0**-24, "f64": 2.0**-53}
TINY = {"f32": 1e-30, "f64": 1e-290}
"""Products of numbers of matrices scaled to 1 that count as 0."""
_NOBODY = 2**62
"""The number of a row that there is not."""


def places(a: Array, axis: int, i: str) -> tuple[Array, Array]:
    """Which places of a dimension are ``i``, and which come after it; of the shape ``[..., extent]``."""
    text, extent = a.text, a.extents[axis]
    at, here = text.iota(extent), text.number(i).spread(0, extent)
    return at.compare("EQ", here).in_batch(), at.compare("GT", here).in_batch()


def lu(a: Array, count: int | None = None) -> tuple[Array, Array, Array, Array]:
    """``getrf``, with partial pivoting; ``count`` is min(m, n), where that is known though ``m`` is not.

    Returns both factors in one matrix; the row that each was swapped with, from 0 (i64, ``[..., min(m, n)]``); the
    order of rows that this makes (i64, ``[..., m]``); the number of the first pivot that is 0, from 1, or 0 (i32).
    """
    text = a.text
    *batch, m, n = a.extents
    rows = text.iota(m).in_batch()
    nobody = text.full([*batch, m], "i64", _NOBODY)

    def step(i: str, a: Array, pivots: Array, order: Array, info: Array) -> list[Array]:
        own = text.number(i).in_batch()
        is_own, below = places(a, -2, i)
        column = a.at(-1, i)
        size = column.real().abs() + column.imag().abs() if a.is_complex else column.abs()
        size = (is_own | below).where(size, text.full(size.extents, size.of, -1))
        largest = size.reduce("maximum", [-1], -1).spread(-1, m)
        first = size.compare("EQ", largest).where(rows, nobody).reduce("minimum", [-1], _NOBODY)
        chosen = first.compare("EQ", _NOBODY).where(own, first)  # there is none if a number is not one
        is_chosen = rows.compare("EQ", chosen.spread(-1, m))

        def exchanged(value: Array, mine: Array, theirs: Array) -> Array:
            masks = [is_own, is_chosen]
            if len(value.extents) > len(rows.extents):  # a matrix
                masks = [mask.spread(-1, n) for mask in masks]
            mine, theirs = (part.spread(len(batch), m) for part in (mine, theirs))
            return masks[0].where(theirs, masks[1].where(mine, value))

        place = chosen.spread(-1, 1)
        order = exchanged(order, order.at(-1, i), order.ordered(place).at(-1, "0"))
        mine, theirs = a.at(-2, i), a.ordered(place).at(-2, "0")
        pivot = theirs.at(-1, i)
        column = exchanged(column, mine.at(-1, i), pivot)  # not of the matrix, which is written once
        a = exchanged(a, mine, theirs)
        is_zero = pivot.compare("EQ", 0)
        scaled = (below & ~is_zero.spread(-1, m)).where(column / pivot.spread(-1, m), column)
        inside = below.spread(-1, n) & places(a, -1, i)[1].spread(-2, m)
        a = inside.where(a - scaled.spread(-1, n) * theirs.spread(-2, m), a).put(-1, i, scaled)
        info = (info.compare("EQ", 0) & is_zero).where((own + 1).convert("i32"), info)
        return [a, pivots.put(-1, i, chosen), order, info]

    count = text.least(m, n) if count is None else count
    start = [a, text.full([*batch, count], "i64", 0), rows, text.full(batch, "i32", 0)]
    a, pivots, order, info = text.loop(count, start, step)
    return a, pivots, order, info


def norm(a: Array, axis: int) -> Array:
    """The Euclidean norms along a dimension, of numbers whose squares may be too large or too small."""
    size = a.abs()
    most = size.most(axis)
    scale = (most.compare("GT", 0) & most.compare("LT", float("inf"))).where(
        most, a.text.full(most.extents, most.of, 1)
    )
    part = size / scale.spread(axis, a.extents[axis])
    return (part * part).sum(axis).sqrt() * scale


def qr(a: Array, count: int | None = None) -> tuple[Array, Array]:
    """``geqrf``: R, below it the vectors of reflections, and their factors (``[..., min(m, n)]``).

    Reflection ``i`` is ``1 - tau v v^H``, ``v[i] == 1``; their product in order is Q. ``count``: as of `lu`.
    """
    text = a.text
    *batch, m, n = a.extents

    def step(i: str, a: Array, taus: Array) -> list[Array]:
        is_own, below = places(a, -2, i)
        column = a.at(-1, i)
        vector, beta, tau = reflection(column, column.at(-1, i), is_own, below)
        right = places(a, -1, i)[1].spread(-2, m)
        a = right.where(reflected(a, vector, tau.conj()), a)
        column = is_own.where(beta.spread(-1, m), below.where(vector, column))
        return [a.put(-1, i, column), taus.put(-1, i, tau)]

    count = text.least(m, n) if count is None else count
    a, taus = text.loop(count, [a, text.full([*batch, count], a.of, 0)], step)
    return a, taus


def reflection(column: Array, alpha: Array, is_own: Array, below: Array) -> tuple[Array, Array, Array]:
    """``larfg``: the vector of a reflection that takes what is below of a column to 0, what it makes of ``alpha``,
    and its factor, which is 0 where there is nothing below."""
    text, m, zeros = column.text, column.extents[-1], column.text.full(column.extents, column.of, 0)
    tail = below.where(column, zeros)
    is_done = tail.abs().most(-1).compare("EQ", 0)
    if column.is_complex:
        is_done = is_done & alpha.imag().compare("EQ", 0)
    length = norm((is_own | below).where(column, zeros), -1)
    beta = alpha.real().compare("LT", 0).where(length, -length).with_imag(0, column.of)
    ones = text.full(beta.extents, beta.of, 1)
    beta = is_done.where(alpha, beta)
    tau = is_done.where(text.full(beta.extents, beta.of, 0), (beta - alpha) / is_done.where(ones, beta))
    vector = tail / is_done.where(ones, alpha - beta).spread(-1, m)
    return is_own.where(text.full(column.extents, column.of, 1), vector), beta, tau


def reflected(a: Array, vector: Array, tau: Array) -> Array:
    *_, m, n = a.extents
    wide = vector.spread(-1, n)
    dots = (wide.conj() * a).sum(-2)
    return a - wide * (dots * tau.spread(-1, n)).spread(-2, m)


def product_of_reflections(a: Array, taus: Array, columns: int) -> Array:
    """``orgqr``: the first columns of Q, of reflections as `qr` returns them."""
    text = a.text
    *batch, m, _ = a.extents
    count = taus.extents[-1]
    start = identity(a, columns)
    last = text.index("subi", text.size(count), 1)

    def step(i: str, q: Array) -> list[Array]:
        place = text.index("subi", last, i)
        is_own, below = places(a, -2, place)
        extents = [*batch, m]
        ones, zeros = text.full(extents, a.of, 1), text.full(extents, a.of, 0)
        vector = is_own.where(ones, below.where(a.at(-1, place), zeros))
        return [reflected(q, vector, taus.at(-1, place))]

    return text.loop(count, [start], step)[0]


def identity(a: Array, columns: int) -> Array:
    """The first columns of ones on the diagonal, as many rows as ``a`` has, for each of the batch."""
    same = on_diagonal(a, columns)
    return same.where(a.text.full(same.extents, a.of, 1), a.text.full(same.extents, a.of, 0)).in_batch()


def on_diagonal(a: Array, columns: int) -> Array:
    """Which places of a matrix are, of as many rows as ``a`` has."""
    text, m = a.text, a.extents[-2]
    return text.iota(m).spread(-1, columns).compare("EQ", text.iota(columns).spread(0, m))


def scaled(a: Array) -> tuple[Array, Array]:
    """With 1 as the largest number, and what it was; NaN where one is not finite."""
    text = a.text
    most = a.abs().most(-1, -2) if not a.is_complex else a.real().abs().maximum(a.imag().abs()).most(-1, -2)
    scale = most.compare("EQ", 0).where(1, most)
    scale = scale.compare("LT", float("inf")).where(scale, text.full(scale.extents, scale.of, float("nan")))
    *_, m, n = a.extents
    divisor = scale.spread(-1, m).spread(-1, n)
    return a / divisor.with_imag(0, a.of), scale


def spoilt(a: Array, scale: Array) -> Array:
    """NaN where the scale is."""
    *_, m, n = a.extents
    return a + (scale - scale).spread(-1, m).spread(-1, n).with_imag(0, a.of)
