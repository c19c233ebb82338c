"""Into which chunks rows fall: numbers where it is known how many rows there are, else what computes them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, IntegerAttr
from xdsl.ir import Operation, SSAValue


@dataclass(frozen=True)
class ChunkSizes:
    """The operations ``ops`` make the numbers.

    ``total`` and ``rows``: of all and of each chunk; ``last``: where the last chunk starts. ``static``: ``rows``,
    or `DYNAMIC_INDEX`. All chunks are of one size; without rows there are none.
    """

    ops: tuple[Operation, ...]
    zero: SSAValue
    total: SSAValue
    rows: SSAValue
    last: SSAValue
    static: int

    @classmethod
    def of_static(cls, total: int, chunks: int, least: int) -> ChunkSizes | None:
        """At most ``chunks``, of ``least`` rows or more; None if that leaves one chunk."""
        from xdsl.dialects import arith  # programs without chunks do without it

        rows = max(math.ceil(total / chunks), least)
        if rows >= total:
            return None
        ops = [arith.ConstantOp(IntegerAttr(n, IndexType())) for n in (0, total, rows, total - rows)]
        return cls(tuple(ops), *(op.result for op in ops), static=rows)

    @classmethod
    def of_dynamic(cls, tensor_: SSAValue, chunks: int, least: int) -> ChunkSizes:
        """The same for the rows of a tensor; there may be one chunk."""
        from xdsl.dialects import arith, tensor

        zero, one, parts, fewest = (
            arith.ConstantOp(IntegerAttr(n, IndexType())) for n in (0, 1, chunks, max(least, 1))
        )
        total = tensor.DimOp(tensor_, zero)
        share = arith.CeilDivUIOp(total, parts)
        enough = arith.MaxUIOp(share, fewest)
        present = arith.MinUIOp(enough, total)
        rows = arith.MaxUIOp(present, one)  # a step must not be 0
        last = arith.SubiOp(total, rows)
        ops = (zero, one, parts, fewest, total, share, enough, present, rows, last)
        return cls(ops, zero.result, total.results[0], rows.result, last.result, DYNAMIC_INDEX)
