"""Products and determinants of matrices: see `rewrites`."""

from __future__ import annotations

import itertools

from devscope.frontends.onnx.quantised import moved
from devscope.frontends.onnx.rewriter import Writer, rewrites
from devscope.frontends.onnx.types import Refused


@rewrites("MatMul")
def _product(w: Writer) -> None:
    """By a row on the left, or a column of matrices on the right, which torch-mlir lacks."""
    moved(w.graph, w.node)  # quantised numbers are refused
    ranks = [len(w.graph.shapes.get(name) or [0, 0]) for name in w.node.input]
    if ranks == [1, 1] or 1 not in ranks:
        w.op("MatMul", *w.node.input, result=0)
        return
    side = ranks.index(1)
    sides = [w.unsqueeze(w[0], 0), w[1]] if side == 0 else [w[0], w.unsqueeze(w[1], 1)]
    w.op("Identity", w.squeeze(w.op("MatMul", *sides), side - 2), result=0)


@rewrites("Gemm")
def _scaled_product(w: Writer) -> None:
    """Where nothing is added, torch-mlir does not scale."""
    moved(w.graph, w.node)
    if w.has(2) or w.attr("alpha", 1.0) == 1:
        w.op("Gemm", *w.node.input, result=0, **w.attributes)
        return
    unscaled = {name: value for name, value in w.attributes.items() if name != "alpha"}
    product = w.op("Gemm", w[0], w[1], **unscaled)
    w.op("Mul", product, w.number(w.attr("alpha")), result=0)


@rewrites("Det")
def _determinant(w: Writer) -> None:
    """By Laplace's rule on columns, over subsets of rows: torch-mlir's exchanges no rows."""
    size = w.shape(0)[-1]
    if not isinstance(size, int) or size > 8:
        raise Refused("Det of matrices larger than 8x8, or whose size is known at run time only")
    last = w.rank(0) - 1
    columns = [w.part(w[0], last, column, column + 1) for column in range(size)]
    cells = [
        [w.squeeze(w.part(one, last - 1, row, row + 1), last - 1, last) for row in range(size)] for one in columns
    ]
    minors: dict[tuple[int, ...], str] = {(row,): cell for row, cell in enumerate(cells[0])}
    for column, parts in enumerate(cells[1:], 1):
        now: dict[tuple[int, ...], str] = {}
        for rows in itertools.combinations(range(size), column + 1):
            terms = [
                w.op("Mul", parts[row], minors[rows[:place] + rows[place + 1 :]]) for place, row in enumerate(rows)
            ]
            signed = [w.op("Neg", one) if (place + column) % 2 else one for place, one in enumerate(terms)]
            now[rows] = w.op("Sum", *signed)
        minors = now
    w.op("Identity", minors[tuple(range(size))], result=0)
