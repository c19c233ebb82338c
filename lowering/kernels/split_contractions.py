"""Contractions with long sums and a small result: parts of the sums are done side by side, as a batch.

Such as the product of a vector and a matrix, whose tasks then read whole rows of the matrix.
"""

from collections.abc import Iterable
from math import ceil
from typing import Any

from devscope.lowering.interop import bindings
from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels import nest
from devscope.lowering.kernels.contraction_match import Contraction, match
from devscope.lowering.kernels.nest_bodies import combiners, has_neutral
from devscope.lowering.kernels.split_reductions import split_loop

_LEAST_WORK = 1 << 21
"""Multiplications: they take some ten microseconds."""

_PARTS = 16

_FEW = 4
"""Blocks of the result that are computed one beside the other, of which more need no parts."""

_NARROW = 8
"""Rows of which a kernel computes long lines at once."""


def split_contractions(ops: Iterable[Any]) -> bool:
    """Replace those of ``ops``, contractions of bufferised host code, for which it pays; whether there are any."""
    linalg = bindings.load("_mlir_libs._mlirDialectsLinalg")
    replaced = False
    for op in ops:
        found = match(op, linalg)
        parts = _parts(found) if found is not None else 1
        if found is None or parts < 2:
            continue
        (combiner,), whole = combiners(op), nest.match(op, linalg)
        if combiner is not None and whole is not None and has_neutral(combiner.name, found.c.type.element_type):
            split_loop(whole, found.loops["k"][0], parts, [combiner])
            replaced = True
    return replaced


def _parts(found: Contraction) -> int:
    b, m, n, k = (found.extent(name) for name in "bmnk")
    if b is None or m is None or n is None or k is None or found.outer or not found.loops["k"]:
        return 1
    if b * m * n * k < _LEAST_WORK or found.c.element != found.element:  # sums of f16 are rounded once
        return 1
    is_narrow = m <= _NARROW
    if not is_narrow and any(_is_constant(operand.value) for operand in (found.a, found.b)):
        return 1  # it is packed once, as a whole
    columns = 64 if found.contiguous_of_b() == "k" else 4096 if is_narrow else 128
    if b * ceil(m / 64) * ceil(n / columns) >= _FEW:
        return 1
    loop = found.loops["k"][0]
    extent = found.operand_of(loop).extent(loop) or 1
    # What a part costs are its sums, which are written and read again.
    steps = 256 * m if is_narrow else 1024
    return extent // max(ceil(extent / _PARTS), ceil(steps * extent / k))


def _is_constant(value: Any) -> bool:
    return not isinstance(value.owner, ir.Block) and value.owner.operation.name == "memref.get_global"
