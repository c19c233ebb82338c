"""Transposes on a device become calls of functions whose workgroups turn tiles around in local memory."""

from itertools import count
from typing import Any

from devscope.lowering.gpu.index_text import Extent, Text
from devscope.lowering.gpu.launchers import TILE_TRANSPOSE, Launchers
from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels.nest import Nest, Operand
from devscope.lowering.kernels.table import Row, Schedules
from devscope.lowering.kernels.transposes import find_transposes, sizes_of
from devscope.lowering.memory.effects import mark_written


def call_tile_transposes(module: Any, schedules: Schedules, launchers: Launchers) -> None:
    """Replace the transposes on buffers of ``module`` for which there are rows of ``schedules``."""
    for nest in find_transposes(module):
        if launchers.is_launched(nest.op):
            element = str(ir.MemRefType(nest.results[0].value.type).element_type)
            row = schedules.choose(nest.op, TILE_TRANSPOSE, element, sizes_of(nest))
            if row is not None:
                source, target = nest.operands
                call = launchers.call(nest.op, row.template, _values(nest, row), [source.value, target.value])
                mark_written(call, [1])
                nest.op.erase()


def _values(nest: Nest, row: Row) -> dict[str, object]:
    """What the template is filled with."""
    source, target = nest.operands
    m, n = target.contiguous(), source.contiguous()
    assert m is not None
    assert n is not None
    others = [loop for loop in target.dims if loop not in (m, n)]
    outside, inside, batch = (Text([], numbers) for numbers in (count(), count(1000), count(2000)))

    def extent(loop: int) -> Extent:
        name, operand = ("source", source) if loop == n else ("target", target)
        return Extent(nest.static_extent(loop), name, operand.dims.index(loop), str(operand.value.type))

    for text, prefix in ((outside, ""), (inside, "inside_")):
        text.sizes(prefix, "B", others, extent)
        text.sizes(prefix, "tiles_of", [m, n], extent)
    loops = batch.split("%batch", others)

    def place(operand: Operand, of_m: str, of_n: str) -> str:
        indices = {**loops, m: of_m, n: of_n}
        return ", ".join(indices[loop] for loop in operand.dims)

    tile, rows = row.numbers["tile"], row.numbers["rows"]
    return {
        "SOURCE": source.value.type,
        "TARGET": target.value.type,
        "ELEMENT": ir.MemRefType(target.value.type).element_type,
        "SIZES": outside.joined(),
        "SIZES_INSIDE": inside.joined(),
        "BATCH": batch.joined(),
        "M": m,
        "N": n,
        "TILE": tile,
        "ROWS": rows,
        "APART": tile + 1,
        "ROOM": tile * (tile + 1),
        "WORK_ITEMS": tile * rows,
        "FROM": place(source, "%from_m", "%from_n"),
        "TO": place(target, "%to_m", "%to_n"),
    }
