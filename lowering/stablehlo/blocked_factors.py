"""LU and QR of large matrices by blocks of columns: what a block does to those after it are products.

Matrices of fewer columns, and of numbers of rows or columns that are not known, go a column at a time (`factors`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from devscope.lowering.stablehlo import factors
from devscope.lowering.stablehlo.arrays import Array, Text
from devscope.lowering.stablehlo.factors import identity, on_diagonal
from devscope.lowering.stablehlo.linear_algebra import solve_rows

_BLOCK = 32
_LARGE = 96
"""Columns from which on blocks are worth it."""


def lu(a: Array) -> tuple[Array, Array, Array, Array]:
    """As `factors.lu`."""
    text = a.text
    *batch, m, n = a.extents
    count = min(m, n)
    if count < _LARGE:
        return factors.lu(a)

    def step(first: str, width: int, a: Array, pivots: Array, order: Array, info: Array) -> list[Array]:
        after, rows = text.index("addi", first, width), _rest(text, m, first)
        packed, chosen, moved, zero = factors.lu(a.block(first, rows, first, width), width)
        here = text.number(first)
        pivots = pivots.put_some(-1, first, chosen + here.spread(0, width).in_batch())
        order = order.put_some(-1, first, order.some(-1, first, rows).ordered(moved))
        is_first = info.compare("EQ", 0) & zero.compare("NE", 0)
        info = is_first.where(zero + here.in_batch().convert("i32"), info)

        below, columns = _rest(text, m, after), _rest(text, n, after)
        a = a.put_some(-2, first, a.some(-2, first, rows).ordered(moved))
        a = a.put_block(first, first, packed)
        corner, under = packed.some(-2, "0", width), packed.some(-2, str(width), below)
        solved = solve_rows(corner, a.block(first, width, after, columns), True, True)
        a = a.put_block(first, after, solved)
        a = a.put_block(after, after, a.block(after, below, after, columns) - under @ solved)
        return [a, pivots, order, info]

    start = [a, text.full([*batch, count], "i64", 0), text.iota(m).in_batch(), text.full(batch, "i32", 0)]
    a, pivots, order, info = _over_blocks(text, count, start, step)
    return a, pivots, order, info


def qr(a: Array) -> tuple[Array, Array]:
    """As `factors.qr`."""
    text = a.text
    *batch, m, n = a.extents
    count = min(m, n)
    if count < _LARGE:
        return factors.qr(a)

    def step(first: str, width: int, a: Array, taus: Array) -> list[Array]:
        rows = _rest(text, m, first)
        after = text.index("addi", first, width)
        columns = _rest(text, n, after)
        packed, own = factors.qr(a.block(first, rows, first, width), width)
        right = _reflected(a.block(first, rows, after, columns), packed, own, True)
        a = a.put_block(first, first, packed).put_block(first, after, right)
        return [a, taus.put_some(-1, first, own)]

    a, taus = _over_blocks(text, count, [a, text.full([*batch, count], a.of, 0)], step)
    return a, taus


def product_of_reflections(a: Array, taus: Array, columns: int) -> Array:
    """As `factors.product_of_reflections`."""
    text, m, count = a.text, a.extents[-2], taus.extents[-1]
    if min(m, columns, count) < _LARGE:
        return factors.product_of_reflections(a, taus, columns)

    def step(first: str, width: int, q: Array) -> list[Array]:
        rows, right = _rest(text, m, first), _rest(text, columns, first)
        packed, own = a.block(first, rows, first, width), taus.some(-1, first, width)
        return [q.put_block(first, first, _reflected(q.block(first, rows, first, right), packed, own, False))]

    return _over_blocks(text, count, [identity(a, columns)], step, is_last_first=True)[0]


def _rest(text: Text, extent: int, first: str) -> int:
    """How many places there are from an index on."""
    return text.extent(text.index("subi", extent, first))


def _over_blocks(
    text: Text,
    count: int,
    carried: Sequence[Array],
    step: Callable[..., Sequence[Array]],
    is_last_first: bool = False,
) -> Sequence[Array]:
    """``step(first, width, *arrays)`` for each block of places, of which the last may be less wide."""
    blocks, width = divmod(count, _BLOCK)

    def inside(carried: Sequence[Array]) -> Sequence[Array]:
        def at(i: str, *arrays: Array) -> Sequence[Array]:
            number = text.index("subi", blocks - 1, i) if is_last_first else i
            return step(text.index("muli", number, _BLOCK), _BLOCK, *arrays)

        return text.loop(blocks, carried, at)

    def last(carried: Sequence[Array]) -> Sequence[Array]:
        return step(text.index("addi", blocks * _BLOCK, 0), width, *carried) if width else carried

    return inside(last(carried)) if is_last_first else last(inside(carried))


def _reflected(a: Array, packed: Array, taus: Array, is_adjoint: bool) -> Array:
    """By the product of reflections in order, or its adjoint: ``1 - V T V^H`` (LAPACK's ``larft``)."""
    text, (m, width) = a.text, packed.extents[-2:]
    zeros, ones = (text.full(packed.extents, a.of, number) for number in (0, 1))
    rows, columns = text.iota(m).spread(-1, width), text.iota(width).spread(0, m)
    vectors = rows.compare("GT", columns).in_batch().where(packed, zeros)
    vectors = on_diagonal(packed, width).in_batch().where(ones, vectors)
    adjoint = vectors.conj().transpose()
    dots = adjoint @ vectors
    own = on_diagonal(dots, width).in_batch()

    def step(i: str, t: Array) -> list[Array]:
        tau = taus.at(-1, i).spread(-1, width)
        column = -(t * dots.at(-1, i).spread(-2, width)).sum(-1) * tau
        return [t.put(-1, i, own.at(-1, i).where(tau, column))]

    t = text.loop(width, [text.full(dots.extents, a.of, 0)], step)[0]
    return a - vectors @ ((t.conj().transpose() if is_adjoint else t) @ (adjoint @ a))
