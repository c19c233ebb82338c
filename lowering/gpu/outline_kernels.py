"""Outlines kernels from bufferised device functions and maps their loops to the GPU grid.

A device function, once bufferised, is a *launcher*: code that runs on the host and whose linalg operations
must run on the device. Every maximal piece that touches device memory (a linalg op, a parallel loop, a run
of scalar stores, a copy) moves to a function of its own, is turned into parallel loops, tiled by the
schedule of its target, and becomes one ``gpu.func``. Scalars, shapes and host control flow stay behind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.assertions import drop_assertions
from devscope.lowering.gpu.equal_kernels import merge_equal_kernels
from devscope.lowering.interop.bindings import ir
from devscope.lowering.memory.effects import mark_writes
from devscope.lowering.memory.elementwise import mark_call
from devscope.lowering.mlir_util import RunPasses

_CONTROL_FLOW = {"scf.for", "scf.if", "scf.while", "scf.index_switch", "scf.execute_region"}
#: Operations that may stand between the scalar stores that one kernel performs together.
_BETWEEN_STORES = {"arith.constant"}

_TO_PARALLEL_LOOPS = "func.func(convert-linalg-to-parallel-loops,canonicalize,cse)"
_MAP_TO_GRID = (
    "func.func(scf-parallel-loop-tiling{{parallel-loop-tile-sizes={tiles} no-min-max-bounds=true}},"
    "gpu-map-parallel-loops{{mapping-policy=innermost-first}},convert-parallel-loops-to-gpu)"
)
_OUTLINE = "builtin.module(lower-affine,canonicalize,gpu-kernel-outlining,canonicalize,cse)"


@dataclass(frozen=True)
class GridSchedule:
    """Workgroup shape of a target: how many work-items, and how many of them along the innermost loop."""

    workgroup: int = 256
    innermost: int = 64

    def tiles(self, trip_counts: Sequence[int | None]) -> list[int]:
        """Tile sizes for a parallel loop nest, outermost first; unknown trip counts are ``None``.

        The innermost loop gets the most work-items because consecutive work-items then touch
        consecutive memory; loops shorter than their share give the rest to the next loop outwards.
        """
        tiles = [1] * len(trip_counts)
        left = self.workgroup
        for index in reversed(range(len(trip_counts))):
            share = min(left, self.innermost) if index == len(trip_counts) - 1 and index > 0 else left
            count = trip_counts[index]
            while count is not None and share > 1 and share // 2 >= count:
                share //= 2
            tiles[index] = max(share, 1)
            left //= tiles[index]
        return tiles


@dataclass(frozen=True)
class DeviceBinary:
    """A binary of all kernels of one device, and for each kernel its name and argument sizes in bytes."""

    data: bytes = b""
    kernels: list[tuple[str, list[int]]] = field(default_factory=list[tuple[str, list[int]]])

    def numbers(self) -> dict[str, int]:
        return {name: number for number, (name, _) in enumerate(self.kernels)}


@dataclass(frozen=True)
class KernelTarget:
    """A target kind that compiles kernels: ``schedule`` and ``compile_kernels`` take the target's options.

    ``prepare`` is called early, once it is known that the target is needed: what it starts in the background is
    there when kernels are compiled.
    """

    kind: str
    schedule: Callable[[Mapping[str, Any]], GridSchedule]
    compile_kernels: Callable[[Any, RunPasses, Mapping[str, Any]], DeviceBinary]
    prepare: Callable[[], object]


def outline_kernels(module: Any, run_passes: RunPasses, schedule: GridSchedule, taken: set[str]) -> None:
    """Move the device work of every launcher of ``module`` into ``gpu.module`` kernels.

    ``module`` holds bufferised device functions whose device memrefs carry a memory space (host scratch
    memory has none). Afterwards launchers contain ``gpu.launch_func`` operations, one per kernel. ``taken``
    are the names of the program, to which those of the kernels are added: its parts are linked together.
    """
    kernels: list[Any] = []
    for func in [f for f in mlir_util.functions(module) if mlir_util.has_body(f)]:
        constants = mlir_util.constants(func)
        for root in _kernel_roots(func):
            kernels.append(_outline(module, func, root, constants, len(kernels), taken))
    if not kernels:
        return
    for kernel in merge_equal_kernels(module, kernels):
        run_passes(kernel, _TO_PARALLEL_LOOPS)
        _wrap_serial_body(kernel)
        tiles = schedule.tiles(_trip_counts(_parallel_loops(kernel), mlir_util.constants(kernel)))
        run_passes(kernel, _MAP_TO_GRID.format(tiles=",".join(map(str, tiles))))
    module.operation.attributes["gpu.container_module"] = ir.UnitAttr.get(module.context)
    run_passes(module.operation, _OUTLINE)


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


def is_whole_copy(copy: Any) -> bool:
    """True if both sides of a ``memref.copy`` are contiguous buffers that start at offset 0."""
    return all(ir.MemRefType(v.type).layout == ir.AffineMapAttr.get(_identity(v)) for v in copy.operands)


def _identity(value: Any) -> Any:
    return ir.AffineMap.get_identity(ir.MemRefType(value.type).rank, value.type.context)


def _outline(
    module: Any, launcher: Any, group: list[Any], known: Mapping[Any, Any], index: int, taken: set[str]
) -> Any:
    """Move ``group`` into a new private function and call it in the old place; returns the function.

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
        kernel = ir.Operation.create(
            "func.func",
            attributes={
                "sym_name": ir.StringAttr.get(name, context),
                "sym_visibility": ir.StringAttr.get("private", context),
                "function_type": ir.TypeAttr.get(type_),
            },
            regions=1,
        )
        module.body.append(kernel)
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
    return kernel


def copy_as_linalg(copy: Any) -> None:
    """``memref.copy`` -> ``linalg.generic`` that yields its input: the form that parallel loops come from."""
    source, target = copy.operands
    rank = ir.MemRefType(target.type).rank
    context = copy.context
    identity = ir.AffineMapAttr.get(ir.AffineMap.get_identity(rank, context))
    element = ir.MemRefType(target.type).element_type
    # Parsed as one array: see HEAVY_DIALECT for what looking at one of its items would cost.
    iterators = ir.Attribute.parse(f"[{', '.join(['#linalg.iterator_type<parallel>'] * rank)}]", context)
    generic = ir.Operation.create(
        "linalg.generic",
        operands=[source, target],
        attributes={
            "indexing_maps": ir.ArrayAttr.get([identity, identity], context),
            "iterator_types": iterators,
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1], context),
        },
        regions=1,
        loc=copy.location,
        ip=ir.InsertionPoint(copy),
    )
    body = ir.Block.create_at_start(generic.regions[0], [element, element], [copy.location] * 2)
    body.append(ir.Operation.create("linalg.yield", operands=[body.arguments[0]], loc=copy.location))
    copy.erase()


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
