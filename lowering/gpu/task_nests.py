"""Groups of operations that are one kernel, as loops of tasks: what the host does by tasks, work-items do.

A task does its part of each operation of a group, one after the other: of what one of them writes, another uses
the same elements (`merge_kernels`). Their innermost loops are written by vectors.
"""

from collections.abc import Sequence
from math import prod
from typing import Any

from devscope.lowering import expansions, mlir_util
from devscope.lowering.gpu.device_kernels import DeviceKernels
from devscope.lowering.gpu.local_memory import PRIVATE
from devscope.lowering.interop import bindings
from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels.nest import Nest, collapse_loops, match, order_loops
from devscope.lowering.kernels.nest_parts import Parts
from devscope.lowering.kernels.vector_edges import expand_edges
from devscope.lowering.kernels.whole_vectors import WholeVectors, whole_lanes
from devscope.lowering.mlir_util import Builder


def lower_in_tasks(function: Any, kernels: DeviceKernels) -> bool:
    """Make loops of tasks of what ``function`` has: a group of operations, and constants. False if it stays."""
    ops = [op for op in mlir_util.children(function) if op.name not in ("arith.constant", "func.return")]
    nests = _nests(ops)
    if not nests or not all(nest.is_pure for nest in nests):
        return False
    collapse_loops(*nests)
    orders = {nest: order_loops(nest) for nest in nests}
    functions = kernels.library.functions
    if not all(whole_lanes(nest, orders[nest], functions) for nest in nests):
        return False
    first, *others = sorted(nests, key=_work, reverse=True)
    order, numbers = orders[first], kernels.schedules.loops
    parts = Parts([first, *others], [loop for loop in order if first.parallel[loop]], order[-1:], numbers)

    def emit(inside: Builder, ranges: dict[int, tuple[Any, Any]], _: Any) -> None:
        for nest in nests:
            WholeVectors(nest, orders[nest], numbers, functions).emit(inside, {}, ranges)

    parts.emit(Builder(ops[-1]), emit)
    for op in ops:
        op.erase()
    finish_vectors(function, kernels)
    return True


def finish_vectors(function: Any, kernels: DeviceKernels) -> None:
    """Let ``function``, over loops of vectors, be what kernels can be made of."""
    expand_edges(function)
    expansions.expand(mlir_util.walk(function), kernels.expansions)
    private = ir.Attribute.parse(PRIVATE, function.context)
    for op in mlir_util.named(function, "memref.alloca"):
        op.results[0].set_type(mlir_util.with_memory_space(op.results[0].type, private))


def _nests(ops: Sequence[Any]) -> list[Nest]:
    """Those of a group with a grid; none if there are others."""
    if not all(op.name.startswith("linalg.") for op in ops):
        return []
    linalg = bindings.load("_mlir_libs._mlirDialectsLinalg")
    found = [match(op, linalg) for op in ops]
    nests = [nest for nest in found if nest is not None and any(nest.parallel)]
    return nests if len(nests) == len(ops) else []


def _work(nest: Nest) -> int:
    """About how much it is, with loops of unknown length taken for equal."""
    return prod(nest.static_extent(loop) or 1 << 10 for loop in range(len(nest.parallel))) * nest.cost()
