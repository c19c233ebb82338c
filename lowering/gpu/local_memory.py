"""Memory that the work-items of a workgroup share, in hand-written kernels.

OpenCL's kernels get it as arguments without a value. MLIR makes such an argument of each *workgroup attribution*
of a ``gpu.func``; of allocations in the body, and of ``gpu.dynamic_shared_memory``, it does not. So these become
attributions first, the dynamic one last.
"""

from __future__ import annotations

import math
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.mlir_util import Builder
from devscope.runtime.program import DYNAMIC_LOCAL_SIZE

DYNAMIC_LOCAL = "gpu.dynamic_shared_memory"

STATIC_LOCAL = "devscope.static_local"
"""On a ``gpu.launch_func``: how many pieces of local memory of static size the kernel has."""

_LOCAL_SPACE = 3
"""OpenCL's address space for local memory (SPIR-V Workgroup)."""
_MARK = "devscope.dynamic_local"
_ATTRIBUTIONS = "workgroup_attributions"
_WORKGROUP, _PRIVATE = "#gpu.address_space<workgroup>", "#gpu.address_space<private>"


def move_local_memory(function: Any) -> int:
    """Make workgroup attributions of the local memory that ``function``, a ``gpu.func``, uses.

    Returns how many are of static size.
    """
    context = function.context
    i64 = ir.IntegerType.get_signless(64, context)
    local = ir.IntegerAttr.get(i64, _LOCAL_SPACE)
    mlir_util.retype_memrefs(function, local, lambda old: str(old) == _WORKGROUP)
    mlir_util.retype_memrefs(function, None, lambda old: str(old) == _PRIVATE)
    static = [op for op in mlir_util.walk(function) if _is_allocation(op, local)]
    dynamic = [op for op in mlir_util.walk(function) if op.name == DYNAMIC_LOCAL]
    block = mlir_util.entry_block(function)
    for op in static:
        argument = block.add_argument(op.results[0].type, op.location)
        mlir_util.replace_op(op, [argument])
    for op in dynamic:
        i8 = ir.IntegerType.get_signless(8, context)
        argument = block.add_argument(ir.MemRefType.get([1], i8, None, local, loc=op.location), op.location)
        mlir_util.replace_op(op, [Builder(op).value("memref.cast", [argument], op.results[0].type)])
        function.attributes[_MARK] = ir.UnitAttr.get(context)
    count = len(static) + len(dynamic)
    if count:
        function.attributes[_ATTRIBUTIONS] = ir.IntegerAttr.get(i64, count)
    return len(static)


def _is_allocation(op: Any, space: Any) -> bool:
    found = mlir_util.memory_space(op.results[0].type) if op.name == "memref.alloca" else None
    return found is not None and found == space


def local_sizes(gpu_modules: Any) -> dict[str, list[int]]:
    """By the name of a kernel: the sizes of its local memory, as a `KernelSpec` has them."""
    found: dict[str, list[int]] = {}
    for op in mlir_util.walk(gpu_modules.operation):
        count = attribution_count(op) if op.name == "gpu.func" else 0
        if not count:
            continue
        arguments = list(mlir_util.entry_block(op).arguments)[-count:]
        sizes = [-_bytes(argument.type) for argument in arguments]
        if _MARK in op.attributes:
            sizes[-1] = DYNAMIC_LOCAL_SIZE
        found[mlir_util.symbol_name(op)] = sizes
    return found


def attribution_count(function: Any) -> int:
    """How many of the last arguments of a ``gpu.func``'s body are local memory."""
    return ir.IntegerAttr(function.attributes[_ATTRIBUTIONS]).value if _ATTRIBUTIONS in function.attributes else 0


def _bytes(type_: Any) -> int:
    memref = ir.MemRefType(type_)
    return math.prod(memref.shape) * mlir_util.element_bytes(memref.element_type)
