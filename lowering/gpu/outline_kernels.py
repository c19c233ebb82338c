"""Outlines kernels from bufferised device functions and maps their loops to the GPU grid.

A device function, once bufferised, is a *launcher*: code that runs on the host and whose linalg operations
must run on the device. Every maximal piece that touches device memory (a linalg op, a parallel loop, a run
of scalar stores, a copy) moves to a function of its own, is turned into parallel loops, tiled by the
schedule of its target, and becomes one ``gpu.func``. Scalars, shapes and host control flow stay behind.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.assertions import drop_assertions
from devscope.lowering.copies import copy_as_linalg, is_whole_copy
from devscope.lowering.interop.bindings import ir
from devscope.lowering.memory.effects import mark_writes
from devscope.lowering.memory.elementwise import mark_call
from devscope.lowering.mlir_util import RunPasses
from devscope.lowering.pipelines import pipeline
from devscope.lowering.target import GridSchedule, KernelTarget, Options, choose

_CONTROL_FLOW = {"scf.for", "scf.if", "scf.while", "scf.index_switch", "scf.execute_region"}
#: Operations that may stand between the scalar stores that one kernel performs together.
_BETWEEN_STORES = {"arith.constant"}


def outline_kernels(
    module: Any, run_passes: RunPasses, target: KernelTarget, options: Options, taken: set[str]
) -> None:
    """Move the device work of every launcher of ``module`` into ``gpu.module`` kernels.

    ``module`` holds bufferised device functions whose device memrefs carry a memory space (host scratch
    memory has none). Afterwards launchers contain ``gpu.launch_func`` operations, one per kernel. ``taken``
    are the names of the program, to which those of the kernels are added: its parts are linked together.
    """
    kernels: dict[str, _Kernel] = {}
    count = 0
    for func in [f for f in mlir_util.functions(module) if mlir_util.has_body(f)]:
        constants = mlir_util.constants(func)
        for root in _kernel_roots(func):
            grid = choose(target.grids, root[0], options)
            assert grid is not None, f"target '{target.name}' has no grid for {root[0].name}"
            function, call = _outline(module, func, root, constants, count, taken)
            count += 1
            _call_equal(kernels, _Kernel(function, grid.with_options(options)), call)
    if not kernels:
        return
    for kernel in kernels.values():
        run_passes(kernel.function, pipeline("gpu/to_parallel_loops"))
        _wrap_serial_body(kernel.function)
        loops = _parallel_loops(kernel.function)
        tiles = kernel.grid.tiles(_trip_counts(loops, mlir_util.constants(kernel.function)))
        run_passes(kernel.function, pipeline("gpu/map_to_grid", tiles=",".join(map(str, tiles))))
    module.operation.attributes["gpu.container_module"] = ir.UnitAttr.get(module.context)
    run_passes(module.operation, pipeline("gpu/outline"))


@dataclass
class _Kernel:
    function: Any
    grid: GridSchedule


def _call_equal(kernels: dict[str, _Kernel], kernel: _Kernel, call: Any) -> None:
    """Enter ``kernel`` in ``kernels``, or drop it and let ``call`` call an equal one: a device holds each once.

    Upstream's duplicate-function-elimination would do, but takes all declarations of one type for equal, too, and
    functions that other modules refer to.
    """
    first = kernels.setdefault(f"{kernel.grid} {mlir_util.text_but_name(kernel.function)}", kernel)
    if first is not kernel:
        call.attributes["callee"] = ir.FlatSymbolRefAttr.get(mlir_util.symbol_name(first.function), call.context)
        kernel.function.erase()


def _kernel_roots(func: Any) -> list[list[Any]]:
    """Groups of operations that become one kernel each, in program order."""
    groups: list[list[Any]] = []
    blocks = list(reversed(_operations_by_block(func)))
    while blocks:
        stores: list[Any] = []
        for op in blocks.pop():
            if _stores_scalar(op):
                if not stores:
                    groups.append(stores)
                stores.append(op)
                continue
            if op.name not in _BETWEEN_STORES:
                stores = []
            if _is_device_work(op):
                groups.append([op])
            elif op.name in _CONTROL_FLOW:
                blocks.extend(reversed(_operations_by_block(op)))
    return groups


def _operations_by_block(op: Any) -> list[list[Any]]:
    """The operations directly in each block of ``op``."""
    found: dict[Any, list[Any]] = {}
    for inner in mlir_util.children(op):
        found.setdefault(inner.block, []).append(inner)
    return list(found.values())


def _on_device(value: Any) -> bool:
    return mlir_util.memory_space(value.type) is not None


def _stores_scalar(op: Any) -> bool:
    return op.name == "memref.store" and _on_device(op.operands[1])


def _is_device_work(op: Any) -> bool:
    if op.name.startswith("linalg.") or op.name in ("scf.parallel", "scf.forall"):
        return True
    # Copies between whole buffers are the driver's; anything strided is a kernel.
    return op.name == "memref.copy" and all(map(_on_device, op.operands)) and not is_whole_copy(op)


def _outline(
    module: Any, launcher: Any, group: list[Any], known: Mapping[Any, Any], index: int, taken: set[str]
) -> tuple[Any, Any]:
    """Move ``group`` into a new private function and call it in the old place; returns the function and the call.

    ``known`` are the constants of ``launcher``, which the new function gets copies of.
    """
    first = group[0]
    context = module.context
    captured: dict[Any, None] = {}
    for op in group:
        for value in mlir_util.captured_values(op):
            captured.setdefault(value)
    constants = [v for v in captured if v in known]
    arguments = [v for v in captured if v not in known]
    kind = first.name.rsplit(".", 1)[-1]
    name = f"{mlir_util.symbol_name(launcher)}_{kind}_{index}"
    while name in taken:
        name += "_"
    taken.add(name)
    with ir.Location.unknown(context) if first.location is None else first.location:
        type_ = ir.FunctionType.get([v.type for v in arguments], [], context=context)
        kernel = mlir_util.declare(module.body, name, type_, first.location)
        block = ir.Block.create_at_start(
            kernel.regions[0], [v.type for v in arguments], [first.location] * len(arguments)
        )
        call = ir.Operation.create(
            "func.call",
            operands=arguments,
            attributes={"callee": ir.FlatSymbolRefAttr.get(name, context)},
            ip=ir.InsertionPoint(first),
        )
        mark_writes(call, group)
        if len(group) == 1:
            mark_call(call, first)
        mapping = dict(zip(arguments, block.arguments, strict=True))
        for constant in constants:
            clone = known[constant].clone(ip=ir.InsertionPoint(block))
            mapping[constant] = clone.results[0]
        for op in group:
            block.append(op)
            mlir_util.remap_operands(op, mapping)
            if op.name == "memref.copy":
                copy_as_linalg(op)
        block.append(ir.Operation.create("func.return"))
    drop_assertions(kernel)
    return kernel, call


def _parallel_loops(kernel: Any) -> Any:
    return next(op for op in mlir_util.walk(kernel) if op.name == "scf.parallel")


def _wrap_serial_body(kernel: Any) -> None:
    """Work without a parallel loop (a full reduction, scalar stores) runs in a grid of one work-item."""
    top_level = mlir_util.children(kernel)
    if any(op.name == "scf.parallel" for op in top_level):
        return
    context = kernel.context
    index = ir.IndexType.get(context)
    with kernel.location:
        zero, one = (
            ir.Operation.create(
                "arith.constant",
                results=[index],
                attributes={"value": ir.IntegerAttr.get(index, value)},
                ip=ir.InsertionPoint(top_level[0]),
            ).results[0]
            for value in (0, 1)
        )
        loop = ir.Operation.create(
            "scf.parallel",
            operands=[zero, one, one],
            attributes={"operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1, 1, 0], context)},
            regions=1,
            ip=ir.InsertionPoint(top_level[0]),
        )
        body = ir.Block.create_at_start(loop.regions[0], [index], [kernel.location])
        for op in top_level[:-1]:
            body.append(op)
        body.append(ir.Operation.create("scf.reduce"))


def _trip_counts(loop: Any, constants: Mapping[Any, Any]) -> list[int | None]:
    """Static trip counts of an ``scf.parallel``; None where a bound is not one of ``constants``."""
    lower, upper, step, _ = ir.DenseI32ArrayAttr(loop.attributes["operandSegmentSizes"])
    operands = list(loop.operands)
    bounds = zip(
        operands[:lower],
        operands[lower : lower + upper],
        operands[lower + upper : lower + upper + step],
        strict=True,
    )
    return [_trip_count(*(_number(v, constants) for v in bound)) for bound in bounds]


def _trip_count(lower: int | None, upper: int | None, step: int | None) -> int | None:
    if lower is None or upper is None or step is None:
        return None
    return max(0, -(-(upper - lower) // step))


def _number(value: Any, constants: Mapping[Any, Any]) -> int | None:
    constant = constants.get(value)
    return None if constant is None else ir.IntegerAttr(constant.attributes["value"]).value
