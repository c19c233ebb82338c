"""Ends of loops in loops that call functions, where one work-item does all: Intel's driver for CPUs is not told.

The driver (2026.2) vectorises such loops. Where it knows that one iteration is left over each time, as of 129 by
vectors of 8, it crashes (``vplan-vec``).
"""

from collections.abc import Callable
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.mlir_util import Builder
from devscope.lowering.opencl.hidden_guards import unknown_zero

_SIZES = ("known_grid_size", "known_block_size")


def hide_counts(kernel: Any, calls: Callable[[Any], bool]) -> None:
    """Let the driver not know how often loops in loops of ``kernel`` run; ``calls``: what becomes a function."""
    if not all(name in kernel.attributes and set(kernel.attributes[name]) == {1} for name in _SIZES):
        return
    loops = [
        loop
        for loop in mlir_util.named(kernel, "scf.for")
        if loop.parent.name == "scf.for" and any(map(calls, mlir_util.walk(loop)))
    ]
    if not loops:
        return
    offset, build = unknown_zero(kernel)
    zero = build.value("arith.index_cast", [offset], ir.IndexType.get(kernel.context))
    for loop in loops:
        loop.operands[1] = Builder(loop).value("arith.addi", [loop.operands[1], zero], zero.type)
