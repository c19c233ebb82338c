"""``gpu.launch_func`` -> a call of the native runtime, with the kernel's arguments in an array of 8-byte cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.gpu.local_memory import STATIC_LOCAL
from devscope.lowering.interop.bindings import ir
from devscope.lowering.mlir_util import Builder


def lower_launch(op: Any, where: tuple[int, ...], kernels: Mapping[str, int]) -> None:
    """Replace a ``gpu.launch_func``; ``where`` is the slot of its device, ``kernels`` are numbers within that."""
    build = Builder(op)
    segments = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
    operands = list(op.operands)
    # async dependencies, grid x y z, block x y z, cluster x y z, dynamic shared memory, kernel operands, ...
    grid = operands[segments[0] : segments[0] + 6]
    first = sum(segments[:11])
    arguments = operands[first : first + segments[11]]
    cells = [cell for value in arguments for cell in _cells(build, value)]
    cells += _local_cells(build, op, operands[first - segments[10] : first])
    array_type = ir.MemRefType.get([len(cells)], build.i64, loc=op.location)
    array = build.value(
        "memref.alloca", [], array_type, {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0], op.context)}
    )
    for position, cell in enumerate(cells):
        build.op("memref.store", [cell, array, build.constant(position)])
    symbol = ir.SymbolRefAttr(op.attributes["kernel"]).value[-1]
    build.call(
        "devscope_launch_kernel",
        [
            build.constant(where[0], build.i64),
            build.constant(kernels[symbol], build.i64),
            *grid,
            build.pointer(array),
            build.constant(len(cells), build.i64),
        ],
    )
    op.erase()


def _local_cells(build: Builder, launch: Any, dynamic: Sequence[Any]) -> list[Any]:
    """Cells of local memory: those of static size are not read."""
    count = ir.IntegerAttr(launch.attributes[STATIC_LOCAL]).value if STATIC_LOCAL in launch.attributes else 0
    zero = [build.constant(0, build.i64)] if count else []
    return zero * count + [build.value("arith.extsi", [size], build.i64) for size in dynamic]


def _cells(build: Builder, value: Any) -> list[Any]:
    """The 8-byte cells of one kernel argument, as i64 values; a memref becomes 3 + 2 * rank of them.

    The order is that of MLIR's memref descriptor: allocated and aligned pointer, offset, sizes, strides.
    """
    if mlir_util.is_memref(value.type):
        pointer = build.pointer(value)
        offset, sizes, strides = build.metadata(value)
        fields = [pointer, pointer, offset, *sizes, *strides]
        return [build.value("arith.index_cast", [field], build.i64) for field in fields]
    type_ = value.type
    if isinstance(type_, ir.IndexType):
        return [build.value("arith.index_cast", [value], build.i64)]
    if not isinstance(type_, ir.IntegerType):
        width = ir.FloatType(type_).width
        value = build.value("arith.bitcast", [value], ir.IntegerType.get_signless(width, type_.context))
    if value.type == build.i64:
        return [value]
    return [build.value("arith.extui", [value], build.i64)]
