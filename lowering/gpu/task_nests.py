"""Groups of operations that are one kernel, as loops of tasks: what the host does by tasks, work-items do.

A task does its part of each operation of a group, one after the other: of what one of them writes, another uses
the same elements (`merge_kernels`). Their innermost loops are written by vectors.
"""

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import Any

from devscope.lowering import expansions, mlir_util
from devscope.lowering.gpu.device_kernels import TASKS, DeviceKernels
from devscope.lowering.gpu.launchers import Launchers
from devscope.lowering.gpu.local_memory import PRIVATE
from devscope.lowering.interop import bindings
from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels.loaded_inputs import load_inputs
from devscope.lowering.kernels.nest import Nest, collapse_loops, match, order_loops
from devscope.lowering.kernels.nest_parts import Parts
from devscope.lowering.kernels.row_groups import RowGroup
from devscope.lowering.kernels.row_passes import lower_rows
from devscope.lowering.kernels.rows import fuse_rows
from devscope.lowering.kernels.split_reductions import split_reductions
from devscope.lowering.kernels.vector_edges import expand_edges
from devscope.lowering.kernels.whole_vectors import WholeVectors, whole_lanes
from devscope.lowering.mlir_util import Builder


def lower_in_tasks(function: Any, kernels: DeviceKernels) -> bool:
    """Make loops of tasks of what ``function`` has: a group of operations, and constants. False if it stays."""
    ops = [op for op in mlir_util.children(function) if op.name not in ("arith.constant", "func.return")]
    ops = list(map(load_inputs, ops))
    nests = _nests(ops)
    if not nests or not all(nest.is_pure for nest in nests):
        return False
    collapse_loops(*nests)
    orders = {nest: order_loops(nest) for nest in nests}
    functions = kernels.library.functions
    lanes = [whole_lanes(nest, orders[nest], functions) for nest in nests]
    if not any(lanes) or None in lanes:
        return False
    first, *others = sorted(nests, key=_work, reverse=True)
    order, numbers = orders[first], kernels.schedules.loops
    parts = Parts([first, *others], [loop for loop in order if first.parallel[loop]], order[-1:], numbers)

    def emit(inside: Builder, ranges: dict[int, tuple[Any, Any]], _: Any) -> None:
        for nest in nests:
            WholeVectors(nest, orders[nest], numbers, functions=functions).emit(inside, {}, ranges)

    parts.emit(Builder(ops[-1]), emit)
    for op in ops:
        op.erase()
    _finish_vectors(function, kernels)
    return True


def call_row_passes(module: Any, kernels: DeviceKernels) -> list[Any]:
    """Replace operations on buffers of ``module`` that go over the same rows by calls of declared functions.

    Before, reductions to few results are cut into parts. Returns modules with the functions, see `call_library`.
    """
    library, numbers = kernels.library, kernels.schedules.loops
    ops = [op for op in mlir_util.walk(module.operation) if op.name.startswith("linalg.") and list(op.regions)]
    if all(map(Launchers.is_launched, ops)):  # others must not allocate
        split_reductions(module, numbers, to_one=True)

    def pays(group: RowGroup) -> bool:
        if not Launchers.is_launched(group.nests[0].op) or not group.pays(2 * numbers["grain"]):
            return False
        lanes = (whole_lanes(nest, order_loops(nest, group.rows), library.functions) for nest in group.nests)
        return all(each is not None for each in lanes)

    fuse_rows(module, kernels.schedules, library, pays)
    functions = library.of_operations(module.context)
    linalg = bindings.load("_mlir_libs._mlirDialectsLinalg")
    for function in mlir_util.functions(functions):
        ops = [op for op in mlir_util.children(function) if op.name.startswith("linalg.")]
        nests = [nest for op in ops if (nest := match(op, linalg))]
        lower_rows(function, nests, numbers, partial(WholeVectors, functions=library.functions))
        do_in_one_task(function)
        _finish_vectors(function, kernels)
        for loop in mlir_util.named(function, "scf.parallel"):
            loop.attributes[TASKS] = ir.UnitAttr.get(module.context)
    return [functions]


def do_in_one_task(function: Any) -> None:
    """Put what ``function`` does into a parallel loop of one iteration, if there is none."""
    *body, return_ = mlir_util.children(function)
    if any(op.name == "scf.parallel" for op in body):
        return
    text = """
        %zero = arith.constant 0 : index
        %one = arith.constant 1 : index
        scf.parallel (%i) = (%zero) to (%one) step (%one) {}
    """
    (end,) = mlir_util.children(mlir_util.insert(return_, text)[-1])
    for op in body:
        op.move_before(end)


def _finish_vectors(function: Any, kernels: DeviceKernels) -> None:
    """Let ``function``, over loops of vectors, be what kernels can be made of."""
    expand_edges(function)
    expansions.expand(mlir_util.walk(function), kernels.expansions)
    private = ir.Attribute.parse(PRIVATE, function.context)
    for op in mlir_util.named(function, "memref.alloca"):
        op.results[0].set_type(mlir_util.with_memory_space(op.results[0].type, private))


def _nests(ops: Sequence[Any]) -> list[Nest]:
    """Those of a group; none if there are others."""
    if not all(op.name.startswith("linalg.") for op in ops):
        return []
    linalg = bindings.load("_mlir_libs._mlirDialectsLinalg")
    found = [match(op, linalg) for op in ops]
    nests = [nest for nest in found if nest is not None]
    return nests if len(nests) == len(ops) else []


def _work(nest: Nest) -> int:
    """About how much it is, with loops of unknown length taken for equal."""
    return prod(nest.static_extent(loop) or 1 << 10 for loop in range(len(nest.parallel))) * nest.cost()
