"""Where a device function ends, its device is told to start what was enqueued: host code goes on beside it.

The place is marked while device functions are functions of their own; later they may be inlined.
"""

from __future__ import annotations

from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.mlir_util import Builder

FLUSH = "device.flush"

_SLOT = "slot"


def mark_flushes(launchers: Any, slot: int) -> None:
    """Mark the ends of the functions in ``launchers`` that launch kernels."""
    i64 = ir.IntegerType.get_signless(64, launchers.context)
    for func in mlir_util.functions(launchers):
        ops = list(mlir_util.walk(func))
        if not any(op.name == "gpu.launch_func" for op in ops):
            continue
        for op in ops:
            if op.name == "func.return":
                attributes = {_SLOT: ir.IntegerAttr.get(i64, slot)}
                ir.Operation.create(FLUSH, attributes=attributes, loc=op.location, ip=ir.InsertionPoint(op))


def lower_flush(op: Any) -> None:
    """Turn a mark into a call of the runtime."""
    build = Builder(op)
    build.call("devscope_start", [build.constant(ir.IntegerAttr(op.attributes[_SLOT]).value, build.i64)])
    op.erase()
