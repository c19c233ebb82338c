"""Cholesky's factor and triangular systems: a column, or a row, at a time; exponentials by a series.

Of large matrices, what a block of columns or rows takes from all those before it is one product. All matrices of a
batch are worked on at once.
"""

from __future__ import annotations

from typing import Any

from devscope.lowering.stablehlo.arrays import Array, Text
from devscope.lowering.stablehlo.factors import identity, on_diagonal, places, spoilt
from devscope.lowering.stablehlo.templates import enum, expand, flag, fold_empty

_BLOCK = 32
_LARGE, _MANY = 128, 16
"""Rows, and columns on the right, from which on blocks are worth it."""


def expand_cholesky(op: Any) -> None:
    if fold_empty(op):
        return
    text = Text(op.operands[0].type)
    expand(op, text.result([cholesky(text.operand(0, op.operands[0].type), flag(op, "lower"))]))


def expand_triangular_solve(op: Any) -> None:
    if fold_empty(op):
        return
    text = Text(op.operands[0].type)
    a, b = (text.operand(number, value.type) for number, value in enumerate(op.operands))
    transpose = enum(op, "transpose_a", "NO_TRANSPOSE")
    solved = triangular_solve(a, b, flag(op, "left_side"), flag(op, "lower"), flag(op, "unit_diagonal"), transpose)
    expand(op, text.result([solved]))


def cholesky(a: Array, lower: bool) -> Array:
    """The factor of matrices ``[..., n, n]``, of any size, of which one triangle is read; its other triangle is 0.

    Of matrices that have none it is NaN, as XLA's and JAX's are.
    """
    if not lower:
        return cholesky(a.transpose().conj(), True).transpose().conj()
    text, n = a.text, a.extents[-1]
    if n < _LARGE:
        factor = _factor(a, "")
    else:
        blocks = -(-n // _BLOCK)
        given = _filled_up(a, blocks * _BLOCK - n)

        def step(i: str, factor: Array) -> list[Array]:
            first = text.index("muli", i, _BLOCK)
            before = factor.some(-1, "0", text.extent(first))
            known = before @ before.some(-2, first, _BLOCK).conj().transpose()
            panel = _factor(given.some(-1, first, _BLOCK) - known, first)
            return [factor.put_some(-1, first, panel)]

        factor = text.loop(blocks, [text.full(given.extents, a.of, 0)], step)[0].part(-2, 0, n).part(-1, 0, n)
    has_none = (on_diagonal(a, n).in_batch() & ~factor.real().compare("GT", 0)).reduce("or", [-2, -1], 0)
    return spoilt(factor, has_none.where(float("inf"), text.full(has_none.extents, a.real_of, 0)))


def _factor(panel: Array, first: str) -> Array:
    """The columns of a factor, of which the one on the diagonal's row ``first``, or 0, is the first."""
    text, (n, count) = panel.text, panel.extents[-2:]

    def step(i: str, factor: Array) -> list[Array]:
        row = text.index("addi", first, i) if first else i
        is_own, below = places(panel, -2, row)
        known = (factor * factor.at(-2, row).conj().spread(-2, n)).sum(-1)
        left = panel.at(-1, i) - known
        pivot = left.at(-1, row).real().sqrt().with_imag(0, panel.of).spread(-1, n)
        zeros = text.full(left.extents, panel.of, 0)
        return [factor.put(-1, i, is_own.where(pivot, below.where(left / pivot, zeros)))]

    return text.loop(count, [text.full(panel.extents, panel.of, 0)], step)[0]


def _filled_up(a: Array, more: int) -> Array:
    """With as many more rows and columns, which are those of an identity."""
    if not more:
        return a
    n = a.extents[-1]
    whole = identity(a.text.full([*a.extents[:-2], n + more, n + more], a.of, 0), n + more)
    return whole.put_some(-2, "0", whole.some(-2, "0", n).put_some(-1, "0", a))


def triangular_solve(a: Array, b: Array, left: bool, lower: bool, unit: bool, transpose: str) -> Array:
    """X, of ``a`` times X, or X times it, is ``b``, of any sizes; ``transpose``: as in ``stablehlo.triangular_solve``."""
    if transpose == "ADJOINT":
        a = a.conj()
    if transpose in ("ADJOINT", "TRANSPOSE"):
        a, lower = a.transpose(), not lower
    if not left:
        return triangular_solve(a.transpose(), b.transpose(), True, not lower, unit, "NO_TRANSPOSE").transpose()
    text, (n, m) = a.text, b.extents[-2:]
    if n < _LARGE or m < _MANY:
        return solve_rows(a, b, lower, unit)
    blocks = -(-n // _BLOCK)
    a = _filled_up(a, blocks * _BLOCK - n)
    b = text.full([*b.extents[:-2], blocks * _BLOCK, m], b.of, 0).put_some(-2, "0", b)

    def step(i: str, solved: Array) -> list[Array]:
        first = text.index("muli", i if lower else text.index("subi", blocks - 1, i), _BLOCK)
        rows = a.some(-2, first, _BLOCK)
        begin = "0" if lower else text.index("addi", first, _BLOCK)
        count = text.extent(first if lower else text.index("subi", blocks * _BLOCK, begin))
        known = rows.some(-1, begin, count) @ solved.some(-2, begin, count)
        rest = solve_rows(rows.some(-1, first, _BLOCK), b.some(-2, first, _BLOCK) - known, lower, unit)
        return [solved.put_some(-2, first, rest)]

    return text.loop(blocks, [text.full(b.extents, b.of, 0)], step)[0].part(-2, 0, n)


def solve_rows(a: Array, b: Array, lower: bool, unit: bool) -> Array:
    text, (n, m) = a.text, b.extents[-2:]

    def step(i: str, solved: Array) -> list[Array]:
        row = i if lower else text.add(f"arith.subi {last}, {i} : index")
        before = places(a, -1, row)[1]
        inside = (~(before | places(a, -1, row)[0])) if lower else before
        part = inside.where(a.at(-2, row), text.full(inside.extents, a.of, 0))
        rest = b.at(-2, row) - (part.spread(-1, m) * solved).sum(-2)
        if not unit:
            rest = rest / a.at(-2, row).at(-1, row).spread(-1, m)
        return [solved.put(-2, row, rest)]

    last = text.index("subi", text.size(n), 1)
    return text.loop(n, [text.full(b.extents, b.of, 0)], step)[0]


_LARGEST_NORM = 0.25
_TERMS = {"f32": 10, "f64": 14}
"""Of exponentials of matrices of that norm at most, to the last digit."""


def exponential(a: Array) -> Array:
    """``e`` to the power of matrices ``[..., n, n]``: Taylor's series of halves, squared as often as they were halved.

    As Bader, Blanes, Casas: Computing the matrix exponential with an optimized Taylor polynomial approximation, 2019,
    but for the polynomial. Numbers that are not finite make their matrix NaN.
    """
    text, n = a.text, a.extents[-1]
    norm = a.abs().sum(-2).most(-1)
    a = a + (norm - norm).spread(-1, n).spread(-1, n).with_imag(0, a.of)
    norm = norm.compare("LT", float("inf")).where(norm, text.full(norm.extents, norm.of, 0))

    def is_large(_: Array, norm: Array, __: Array) -> Array:
        return norm.compare("GT", _LARGEST_NORM).any()

    def halve(a: Array, norm: Array, times: Array) -> list[Array]:
        half = norm.compare("GT", _LARGEST_NORM).where(0.5, text.full(norm.extents, norm.of, 1))
        times = times + half.compare("LT", 1).convert("i64")
        return [a * half.spread(-1, n).spread(-1, n).with_imag(0, a.of), norm * half, times]

    a, _, times = text.loop_while([a, norm, text.full(norm.extents, "i64", 0)], is_large, halve)
    one = identity(a, n)
    found = one
    for term in range(_TERMS[a.real_of], 0, -1):
        found = one + a @ found / term

    def is_left(_: Array, times: Array) -> Array:
        return times.compare("GT", 0).any()

    def square(found: Array, times: Array) -> list[Array]:
        counts = times.compare("GT", 0).spread(-1, n).spread(-1, n)
        return [counts.where(found @ found, found), times - 1]

    return text.loop_while([found, times], is_left, square)[0]
