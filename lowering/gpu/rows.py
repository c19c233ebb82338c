"""Groups of operations on a device that go over the same rows, such as a softmax, become one kernel each.

Groups are those of hosts (`kernels.rows`): a row is what the first axes of buffers are indexed to. A few
work-items share a row; what is only used in between is in their registers, or in local memory.
"""

from collections.abc import Iterator
from math import prod
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.gpu.bodies import is_simple, own_combiners
from devscope.lowering.gpu.launchers import ROWS, Launchers
from devscope.lowering.gpu.merge_kernels import sink_fills
from devscope.lowering.gpu.row_steps import can_be_shared
from devscope.lowering.gpu.row_text import RowText
from devscope.lowering.interop import bindings
from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels.nest import Nest
from devscope.lowering.kernels.row_groups import RowGroup, row_groups
from devscope.lowering.kernels.table import Row, Schedules
from devscope.lowering.memory.effects import mark_pairs, mark_written


def call_rows(module: Any, schedules: Schedules, launchers: Launchers) -> None:
    """Replace groups of operations on buffers of ``module`` for which there are rows of ``schedules``."""
    for function in mlir_util.functions(module):
        sink_fills(function, lambda buffer: mlir_util.is_memref(buffer.type))
    _, *ops = mlir_util.walk(module.operation)
    linalg = bindings.load("_mlir_libs._mlirDialectsLinalg")
    found: list[tuple[RowGroup, Row]] = []
    for whole in row_groups(ops, linalg):
        if not launchers.is_launched(whole.nests[0].op):
            continue
        for group in _runs(whole):
            sizes = {"rows": group.row_count(), "columns": _columns(group)}
            last = group.nests[-1]
            element = str(ir.MemRefType(last.results[0].value.type).element_type)
            row = schedules.choose(last.op, ROWS, element, sizes)
            if row is not None:
                for nest in group.nests[:-1]:
                    schedules.include(nest.op, element, sizes)
                found.append((group, row))
    # Before operations are replaced, which others may use the results of.
    texts = [(group, row.template, RowText(group, row.numbers, launchers.lanes)) for group, row in found]
    for group, template, text in texts:
        _replace(group, template, text, launchers)


def _runs(whole: RowGroup) -> Iterator[RowGroup]:
    """Parts of ``whole`` that kernels can be made of, and that pay."""
    nests: list[Nest] = []
    for nest in [*whole.nests, None]:
        if nest is not None and _is_known(nest) and can_be_shared(nest, whole.rows):
            nests.append(nest)
            continue
        group = RowGroup(whole.code, nests, whole.rows)
        if _pays(group):
            yield group
        nests = []


def _is_known(nest: Nest) -> bool:
    complex_ = any(
        isinstance(ir.MemRefType(o.value.type).element_type, ir.ComplexType) for o in nest.operands if o.is_buffer
    )
    return not complex_ and nest.op.name != "memref.copy" and is_simple(nest.op)


def _pays(group: RowGroup) -> bool:
    """Whether rows are gone over more than once, one reduction among that, or by an argmax."""
    inner = [nest for nest in group.nests if len(nest.parallel) > group.rows]
    reduced = [nest for nest in inner if len(nest.results[0].dims) == group.rows]
    return (len(inner) > 1 and bool(reduced)) or any(own_combiners(nest.op) is None for nest in reduced)


def _columns(group: RowGroup) -> int | None:
    """Of the longest rows; None where one is not known."""
    lengths: list[int] = []
    for nest in group.nests:
        around = nest.results[0].dims[: group.rows]
        extents = [nest.static_extent(loop) for loop in range(len(nest.parallel)) if loop not in around]
        known = [extent for extent in extents if extent is not None]
        if len(known) < len(extents):
            return None
        lengths.append(prod(known))
    return max(lengths)


def _replace(group: RowGroup, template: str, text: RowText, launchers: Launchers) -> None:
    places = text.places
    call = launchers.call(group.nests[-1].op, template, text.values(), places.operands)
    mark_written(call, [number for number, value in enumerate(places.operands) if value in places.written])
    mark_pairs(call, places.pairs)
    unused = [group.code.makers[value] for value in places.private]
    for op in [*(nest.op for nest in group.nests), *unused]:
        op.erase()
