"""Contractions and convolutions on a device's buffers become calls of functions that launch kernels.

In these, workgroups share tiles of both operands in local memory. They take zeros before and elementwise work
behind along.
"""

from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.gpu.contraction_match import Contraction, Operand, match
from devscope.lowering.gpu.contraction_text import Extra, KernelText
from devscope.lowering.gpu.launchers import TENSOR_TILES, TILES, Launchers
from devscope.lowering.gpu.tensor_text import TensorText, tensor_element
from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels.accumulators import zeros_before
from devscope.lowering.kernels.epilogue import epilogue_of
from devscope.lowering.kernels.table import Row, Schedules
from devscope.lowering.memory.effects import mark_written

_RESULT = 2


def call_contractions(module: Any, schedules: Schedules, launchers: Launchers) -> None:
    """Replace the contractions on buffers of ``module`` for which there are rows of ``schedules``."""
    ops = [op for op in mlir_util.walk(module.operation) if match(op) is not None]
    for op in [op for op in ops if launchers.is_launched(op)]:
        found = match(op)  # now: what was replaced before may have changed its operands
        assert found is not None
        row = None
        if element := tensor_element(found):
            row = schedules.choose(op, TENSOR_TILES, element, found.sizes())
        row = row or schedules.choose(op, TILES, found.element, found.sizes())
        if row is not None:
            _replace(op, found, row, schedules, launchers)


def _replace(op: Any, found: Contraction, row: Row, schedules: Schedules, launchers: Launchers) -> None:
    fill = zeros_before(op, found.c.value)
    follows = None
    if fill is not None:
        follows = epilogue_of(op, found.c.value, launchers.functions, [found.a.value, found.b.value])
    extras: list[Extra] = []
    values: list[Any] = []
    if follows is not None:
        found.c = Operand(follows.result, found.c.indices)
        schedules.include(follows.op, found.c.element, found.sizes())
        for value, axes in follows.operands:
            type_ = ir.MemRefType(value.type)
            extras.append(Extra(str(type_), str(type_.element_type), axes))
            values.append(value)
    make = TensorText if row.kind == TENSOR_TILES else KernelText
    text = make(found, row.numbers, fill is None, follows, extras)
    operands = [found.a.value, found.b.value, found.c.value, *values]
    place = op if follows is None else follows.op
    call = launchers.call(place, "contraction", text.values(), operands)
    mark_written(call, [_RESULT])
    for old in (follows, fill, op):
        if old is not None:
            old.erase()
