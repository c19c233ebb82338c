"""Contractions with long sums and a small result: parts of the sums are done side by side, as a batch.

Such as the product of a vector and a matrix, whose tasks then read whole rows of the matrix.
"""

from math import ceil
from typing import Any

from devscope.lowering.interop import bindings
from devscope.lowering.kernels import nest
from devscope.lowering.kernels.contraction_match import Contraction
from devscope.lowering.kernels.contraction_values import NARROW
from devscope.lowering.kernels.nest_bodies import combiners, has_neutral
from devscope.lowering.kernels.packed_constants import PackedConstants
from devscope.lowering.kernels.split_reductions import split_loop
from devscope.lowering.kernels.table import Row

_LEAST_WORK = 1 << 21
"""Multiplications: they take some ten microseconds."""

_PARTS = 16

_FEW = 4
"""Blocks of the result that are computed one beside the other, of which more need no parts."""

_NARROW = 8
"""Rows of which a kernel computes long lines at once."""


def split_contraction(op: Any, found: Contraction, row: Row | None, constants: PackedConstants) -> list[Any]:
    """Replace ``op``, a contraction on buffers, if it pays. Returns the contractions that it becomes, if any.

    ``row``: what the whole of it would be computed by.
    """
    parts = _parts(found, row, constants)
    linalg = bindings.load("_mlir_libs._mlirDialectsLinalg")
    whole = nest.match(op, linalg) if parts > 1 else None
    if whole is None:
        return []
    (combiner,) = combiners(op)
    if combiner is None or not has_neutral(combiner.name, found.c.type.element_type):
        return []
    return split_loop(whole, found.loops["k"][0], parts, [combiner])


def _parts(found: Contraction, row: Row | None, constants: PackedConstants) -> int:
    b, m, n, k = (found.extent(name) for name in "bmnk")
    if b is None or m is None or n is None or k is None or found.outer or not found.loops["k"]:
        return 1
    if b * m * n * k < _LEAST_WORK or found.c.element != found.element:  # sums of f16 are rounded once
        return 1
    is_narrow = m <= _NARROW
    if not is_narrow and any(constants.has(operand.value) for operand in (found.a, found.b)):
        return 1  # it is packed once, as a whole
    columns = 64 if found.contiguous_of_b() == "k" else 128
    if row is not None and row.template == NARROW:
        columns = row.numbers["part_columns"]
    if b * ceil(m / 64) * ceil(n / columns) >= _FEW:
        return 1
    loop = found.loops["k"][0]
    extent = found.operand_of(loop).extent(loop) or 1
    # What a part costs are its sums, which are written and read again.
    steps = 256 * m if is_narrow else 1024
    return extent // max(ceil(extent / _PARTS), ceil(steps * extent / k))
