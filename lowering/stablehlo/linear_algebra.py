"""Cholesky's factor and triangular systems: a column, or a row, at a time, of all matrices of a batch at once."""

from __future__ import annotations

from typing import Any

from devscope.lowering.stablehlo.arrays import Array, Text
from devscope.lowering.stablehlo.factors import places
from devscope.lowering.stablehlo.templates import enum, expand, flag


def expand_cholesky(op: Any) -> None:
    text = Text(op.operands[0].type)
    expand(op, text.result([cholesky(text.operand(0, op.operands[0].type), flag(op, "lower"))]))


def expand_triangular_solve(op: Any) -> None:
    text = Text(op.operands[0].type)
    a, b = (text.operand(number, value.type) for number, value in enumerate(op.operands))
    transpose = enum(op, "transpose_a", "NO_TRANSPOSE")
    solved = triangular_solve(a, b, flag(op, "left_side"), flag(op, "lower"), flag(op, "unit_diagonal"), transpose)
    expand(op, text.result([solved]))


def cholesky(a: Array, lower: bool) -> Array:
    """The factor of matrices ``[..., n, n]`` of which one triangle is read; its other triangle is 0."""
    if not lower:
        return cholesky(a.transpose().conj(), True).transpose().conj()
    text, n = a.text, a.extents[-1]

    def step(i: str, factor: Array) -> list[Array]:
        is_own, below = places(a, -2, i)
        known = (factor * factor.at(-2, i).conj().spread(-2, n)).sum(-1)
        left = a.at(-1, i) - known
        pivot = left.at(-1, i).real().sqrt().with_imag(0, a.of).spread(-1, n)
        zeros = text.full(left.extents, a.of, 0)
        return [factor.put(-1, i, is_own.where(pivot, below.where(left / pivot, zeros)))]

    return text.loop(n, [text.full(a.extents, a.of, 0)], step)[0]


def triangular_solve(a: Array, b: Array, left: bool, lower: bool, unit: bool, transpose: str) -> Array:
    """X, of ``a`` times X, or X times it, is ``b``; ``transpose`` is as in ``stablehlo.triangular_solve``."""
    if transpose == "ADJOINT":
        a = a.conj()
    if transpose in ("ADJOINT", "TRANSPOSE"):
        a, lower = a.transpose(), not lower
    if not left:
        return triangular_solve(a.transpose(), b.transpose(), True, not lower, unit, "NO_TRANSPOSE").transpose()
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

    last = text.add(f"arith.constant {n - 1} : index")
    return text.loop(n, [text.full(b.extents, b.of, 0)], step)[0]
