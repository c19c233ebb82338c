"""Einsum: what its equation says, and the products that it is where sizes are known at run time only."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from devscope.frontends.onnx.rewriter import Writer, rewrites
from devscope.frontends.onnx.types import Refused


def terms_of(equation: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """A letter for each dimension of the operands, and for those of the result: those of an ellipsis, too."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    counts = [rank - len(term) + 3 if "..." in term else 0 for term, rank in zip(terms, ranks, strict=True)]
    most = max(counts)
    dots = "".join(chr(code) for code in range(0x100, 0x100 + most))
    terms = [term.replace("...", dots[most - count :]) for term, count in zip(terms, counts, strict=True)]
    if not arrow:
        letters = sorted(set("".join(terms)) - set(dots))
        right = dots + "".join(one for one in letters if "".join(terms).count(one) == 1)
    return terms, right.replace("...", dots)


@rewrites("Einsum")
def _einsum(w: Writer) -> None:
    """torch-mlir takes some of several sizes that are put together to be 1."""
    shapes = [w.shape(number) for number in range(len(w.node.input))]
    terms, right = terms_of(w.attr("equation"), [*map(len, shapes)])
    if any(len(set(term)) < len(term) for term in terms):
        raise Refused("Einsum of diagonals, of shapes known at run time only")
    pairs = (pair for term, shape in zip(terms, shapes, strict=True) for pair in zip(term, shape, strict=True))
    known = {letter: size for letter, size in pairs if letter in w.attr("equation") and isinstance(size, int)}
    x, term = w[0], terms[0]
    for number in range(1, len(terms)):
        kept = right + "".join(terms[number + 1 :])
        x, term = _product(
            w,
            *_without(w, x, term, kept + terms[number]),
            *_without(w, w[number], terms[number], kept + term),
            kept,
            known,
        )
    x, term = _without(w, x, term, right)
    order = [term.index(letter) for letter in right]
    if order == sorted(order):
        w.op("Identity", x, result=0)
    else:
        w.op("Transpose", x, perm=order, result=0)


def _without(w: Writer, x: str, term: str, kept: str) -> tuple[str, str]:
    """The sum along letters that are not kept."""
    gone = [axis for axis, letter in enumerate(term) if letter not in kept]
    return (w.sum(x, gone) if gone else x), "".join(letter for letter in term if letter in kept)


def _product(w: Writer, x: str, one: str, y: str, other: str, kept: str, known: dict[str, int]) -> tuple[str, str]:
    """Of two operands, the sum along the letters that both have and that are not kept."""
    batch = [letter for letter in one if letter in other and letter in kept]
    summed = [letter for letter in one if letter in other and letter not in kept]
    rows, columns = ([letter for letter in a if letter not in b] for a, b in ((one, other), (other, one)))
    made = w.op(
        "MatMul",
        _matrices(w, x, one, batch, rows, summed, known),
        _matrices(w, y, other, batch, summed, columns, known),
    )
    if len(rows) != 1 or len(columns) != 1:
        sizes = [known.get(letter) or w.extent(made, axis) for axis, letter in enumerate(batch)]
        sizes += [known.get(letter) or w.extent(x, one.index(letter)) for letter in rows]
        sizes += [known.get(letter) or w.extent(y, other.index(letter)) for letter in columns]
        made = w.shaped(made, *sizes) if sizes else w.reshape(made)
    return made, "".join([*batch, *rows, *columns])


def _matrices(
    w: Writer,
    x: str,
    term: str,
    batch: Sequence[str],
    rows: Sequence[str],
    columns: Sequence[str],
    known: dict[str, int],
) -> str:
    """With the letters of rows put together as one dimension, and those of columns."""
    order = [term.index(letter) for letter in (*batch, *rows, *columns)]
    x = w.op("Transpose", x, perm=order) if order != sorted(order) else x
    if len(rows) == len(columns) == 1:
        return x
    extents = [known.get(term[axis]) or w.extent(x, number) for number, axis in enumerate(order)]
    sizes, of_matrix = extents[: len(batch)], extents[len(batch) :]
    for group in (of_matrix[: len(rows)], of_matrix[len(rows) :]):
        size: int | str = math.prod(one for one in group if isinstance(one, int))
        for one in (one for one in group if isinstance(one, str)):
            times = w.constant(size, np.int64) if isinstance(size, int) else size
            size = one if size == 1 else w.op("Mul", one, times)
        sizes.append(size)
    return w.shaped(x, *sizes)
