"""Kernels of the library in device functions: what the host does by tasks, devices of its kind do by work-items.

The functions of the library become launchers, whose parallel loops are outlined as all others are: what is a task
on the host is done by one work-item, in a workgroup of its own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from devscope.lowering import expansions, mlir_util
from devscope.lowering.expansions import Expansion
from devscope.lowering.gpu.launchers import Launchers
from devscope.lowering.gpu.local_memory import PRIVATE
from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels.library import KernelLibrary
from devscope.lowering.kernels.normalise import contractions_of
from devscope.lowering.kernels.packed_constants import PackedConstants
from devscope.lowering.kernels.table import Schedules
from devscope.lowering.kernels.transposes import call_transposes
from devscope.lowering.kernels.vector_edges import expand_edges
from devscope.lowering.kernels.vector_pieces import take_vectors_apart
from devscope.lowering.kernels.wide_sums import call_wide_sums
from devscope.lowering.mlir_util import Builder, RunPasses
from devscope.lowering.pipelines import pipeline
from devscope.lowering.windows import windowed_operations

TASKS = "devscope.tasks"
"""On a parallel loop: each of its iterations is work for a workgroup of one work-item."""


@dataclass(frozen=True)
class DeviceKernels:
    """``expansions``: of functions of vectors that kernels have."""

    schedules: Schedules
    library: KernelLibrary
    expansions: Mapping[str, Expansion]


def call_library(module: Any, kernels: DeviceKernels, packed: PackedConstants, run_passes: RunPasses) -> list[Any]:
    """Replace the operations on buffers of ``module`` that there are rows for by calls of declared functions.

    Returns modules with those, to be merged into it when nothing that takes loops of one iteration apart runs any
    more: what is in a task is in a kernel.
    """
    if contractions := contractions_of(module):
        from devscope.lowering.kernels.contractions import call_contractions

        launched = all(map(Launchers.is_launched, contractions))  # others must not allocate
        call_contractions(contractions, kernels.schedules, kernels.library, packed, in_parts=launched)
    if windowed := windowed_operations(module):
        from devscope.lowering.kernels.convolutions import call_convolutions

        call_convolutions(windowed, kernels.schedules, kernels.library, packed)
    call_wide_sums(module, kernels.schedules, kernels.library, packed)
    packed.finish()
    call_transposes(module, kernels.schedules, kernels.library)
    functions = kernels.library.definitions(module.context)
    if functions is None:
        return []
    _without_blocks(functions, {mlir_util.symbol_name(f) for f in mlir_util.functions(module)}, run_passes)
    expansions.expand(mlir_util.walk(functions.operation), kernels.expansions)
    for function in mlir_util.functions(functions):
        _do_in_tasks(function)
    _mark_tasks(functions)
    return [functions]


def _without_blocks(functions: Any, called: set[str], run_passes: RunPasses) -> None:
    """Leave vectors of one axis only where they are carried or go to memory, and no calls in tasks.

    ``called``: from outside; the others are gone once they are inlined.
    """
    for function in mlir_util.functions(functions):
        if mlir_util.symbol_name(function) in called:
            del function.attributes["sym_visibility"]
    run_passes(functions.operation, pipeline("gpu/kernels"))
    for op in mlir_util.named(functions.operation, "memref.prefetch"):
        op.erase()
    for function in mlir_util.functions(functions):
        take_vectors_apart(function)
    expand_edges(functions)
    run_passes(functions.operation, pipeline("clean_up"))
    for function in mlir_util.functions(functions):
        function.attributes["sym_visibility"] = ir.StringAttr.get("private", functions.context)


def _do_in_tasks(root: Any) -> None:
    """Let one task do the loops in ``root`` that are beside parallel ones, such as those that fill a table."""
    alone: list[Any] = []
    for op in mlir_util.children(root):
        if any(inner.name == "scf.parallel" for inner in mlir_util.walk(op)):
            _do_in_one_task(alone)
            alone = []
            if op.name in ("scf.for", "scf.if"):
                _do_in_tasks(op)
        elif op.name == "scf.for" and not len(op.results):
            alone.append(op)
    _do_in_one_task(alone)


def _do_in_one_task(loops: Sequence[Any]) -> None:
    """Move ``loops``, in order and with nothing that changes memory between them, to where the last one is."""
    if not loops:
        return
    build, location = Builder(loops[-1]), loops[-1].location
    zero, one = build.constant(0), build.constant(1)
    loop = build.grouped("scf.parallel", [[zero], [one], [one], []], regions=1)
    block = ir.Block.create_at_start(loop.regions[0], [build.index], [location])
    end = ir.Operation.create("scf.reduce", loc=location, ip=ir.InsertionPoint(block))
    for op in loops:
        op.move_before(end)


def _mark_tasks(functions: Any) -> None:
    private, unit = ir.Attribute.parse(PRIVATE, functions.context), ir.UnitAttr.get(functions.context)
    for op in mlir_util.walk(functions.operation):
        if op.name == "scf.parallel":
            op.attributes[TASKS] = unit
        elif op.name == "memref.alloca":
            op.results[0].set_type(mlir_util.with_memory_space(op.results[0].type, private))
