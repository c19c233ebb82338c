"""Device functions -> launchers (host code) and kernels (device code).

A device function, once bufferised, is a *launcher*: code that runs on the host and whose linalg operations
must run on the device. Every maximal piece that touches device memory (a linalg op, a parallel loop, a run
of scalar stores, a copy) moves to a function of its own, is turned into parallel loops, tiled by the
schedule of its target, and becomes one ``gpu.func``; small neighbours become one together (`merge_kernels`).
Scalars, shapes and host control flow stay behind.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.boundary import DevicePart
from devscope.lowering.bufferize import to_buffers
from devscope.lowering.checks.indices import note_in_kernel
from devscope.lowering.checks.labels import Checks
from devscope.lowering.constants import ConstantTable
from devscope.lowering.copies import copy_as_linalg, is_whole_copy
from devscope.lowering.gpu.chunks import choose_chunks, lower_in_chunks
from devscope.lowering.gpu.device_kernels import TASKS, DeviceKernels, call_library
from devscope.lowering.gpu.kernel_loops import (
    count_in_ones,
    do_inner_loops_in_order,
    do_repeats_in_order,
    join_loops,
    put_parallel_loops_first,
)
from devscope.lowering.gpu.launchers import Launchers
from devscope.lowering.gpu.local_memory import allocate_at_begin, mark_local_memory
from devscope.lowering.gpu.merge_kernels import Group, merge_groups, sink_fills
from devscope.lowering.gpu.own_memory import allocate_before_kernels
from devscope.lowering.gpu.task_nests import call_row_passes, do_in_one_task, lower_in_tasks
from devscope.lowering.gpu.user_kernels import (
    call_kernels,
    carry_launches,
    define_launchers,
    drop_assertions,
    take_user_kernels,
)
from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels.packed_constants import PackedConstants
from devscope.lowering.kernels.parallel_loops import lower_along_rows
from devscope.lowering.kernels.schedule_report import ScheduleReport
from devscope.lowering.kernels.table import Schedules
from devscope.lowering.memory.effects import buffer_of, mark_pairs, mark_writes
from devscope.lowering.memory.link_functions import merge_modules
from devscope.lowering.mlir_util import Builder, RunPasses
from devscope.lowering.pipelines import pipeline
from devscope.lowering.single_tasks import keep_single_tasks, release_single_tasks
from devscope.lowering.target import GridSchedule, KernelTarget, Lanes, Options, choose

_ITERATIONS = GridSchedule(16)
"""Of loops of the program's own where there are tasks: few, which one core does, but of f32 a cache line."""

_CONTROL_FLOW = {"scf.for", "scf.if", "scf.while", "scf.index_switch", "scf.execute_region"}


def lower_device_functions(
    module: Any,
    part: DevicePart,
    chosen: DeviceKernels | Schedules | None,
    run_passes: RunPasses,
    constants: ConstantTable,
    taken: set[str],
    checks: Checks,
    observe: Callable[[str, Any], None],
) -> None:
    """Turn the tensor functions of ``module``, those of ``part``, into launchers over memrefs in its scope.

    Their kernels, outlined and hand-written ones, stand beside them as ``gpu.module`` operations; their names are
    added to ``taken``. ``chosen``: what there are schedules for becomes kernels, which ``observe`` is shown.
    ``checks``: see `to_buffers`. Raises LoweringError for what the target of ``part`` cannot compile.
    """
    target, options = part.target, part.options
    space = ir.Attribute.parse(str(part.scope), module.context)
    kernels = take_user_kernels(module, taken, checks)
    others = len(constants.arrays)
    schedules = chosen if isinstance(chosen, Schedules) else None
    library = None if isinstance(chosen, Schedules) else chosen
    keep_single_tasks(module)
    to_buffers(module, target, options, run_passes, constants, checks, carry_launches, chosen is not None)
    launchers = None
    if schedules is not None:
        launchers = _call_tiles(module, schedules, taken, target.lanes(options))
        observe("schedule", ScheduleReport(module, schedules))
    call_kernels(module, kernels)
    called: list[Any] = []
    if library is not None:
        # Functions of the host and of other parts are linked with these.
        library.library.prefix = f"devscope_{len(taken)}"
        taken.add(library.library.prefix)
        called = call_library(module, library, PackedConstants(module, constants, others), run_passes)
        called += call_row_passes(module, library)
        observe("schedule", ScheduleReport(module, library.schedules))
    allocate_before_kernels(module)
    mlir_util.retype_memrefs(module.operation, space, lambda old: old is None)
    run_passes(module.operation, pipeline("deallocate"))
    if launchers is not None:
        launchers.define(space)
    for functions in called:
        mlir_util.retype_memrefs(functions.operation, space, lambda old: old is None)
        merge_modules(module, functions)
    _outline_kernels(module, library, run_passes, target, options, taken, checks, space)
    define_launchers(module, kernels, space)


def _call_tiles(module: Any, schedules: Schedules, taken: set[str], lanes: Lanes) -> Launchers:
    """Replace what there are schedules with tiles for by calls of functions, which are yet to be defined."""
    from devscope.lowering.gpu.contractions import call_contractions
    from devscope.lowering.gpu.reductions import call_reductions
    from devscope.lowering.gpu.rows import call_rows
    from devscope.lowering.gpu.transposes import call_tile_transposes
    from devscope.lowering.kernels.wide_sums import widen_sums

    launchers = Launchers(module, taken, lanes)
    call_contractions(module, schedules, launchers)
    widen_sums(module)  # before parts of sums are kept
    call_rows(module, schedules, launchers)
    call_reductions(module, schedules, launchers)
    call_tile_transposes(module, schedules, launchers)
    choose_chunks(module, schedules)
    return launchers


def _outline_kernels(
    module: Any,
    library: DeviceKernels | None,
    run_passes: RunPasses,
    target: KernelTarget,
    options: Options,
    taken: set[str],
    checks: Checks,
    space: Any,
) -> None:
    """Move the device work of every launcher of ``module`` into ``gpu.module`` kernels, by loops of tasks where
    there is a ``library`` of those.

    ``module`` holds bufferised device functions whose device memrefs carry a memory space (host scratch
    memory has none). Afterwards launchers contain ``gpu.launch_func`` operations, one per kernel. ``taken``
    are the names of the program, to which those of the kernels are added: its parts are linked together.
    """
    kernels: dict[str, tuple[Any, GridSchedule]] = {}
    count = 0
    for func in [f for f in mlir_util.functions(module) if mlir_util.has_body(f)]:
        constants = mlir_util.constants(func)
        put_parallel_loops_first(func)
        sink_fills(func)
        for group in merge_groups(_kernel_roots(func)):
            root = group.ops
            grid = _grid(target, options, group.main)
            if checks.indices:
                note_in_kernel(module, root, space, checks)
            function, call = _outline(module, func, group, constants, count, taken)
            count += 1
            _call_equal(kernels, function, grid, call)
    if not kernels and not any(op.name == "gpu.launch" for op in mlir_util.walk(module.operation)):
        return
    for function, grid in kernels.values():
        if library is not None and lower_in_tasks(function, library):
            grid = GridSchedule(1)
        elif not lower_in_chunks(function, target.alignment):
            do_repeats_in_order(function)
            if any(op.name == "scf.forall" for op in mlir_util.children(function)):
                grid = _lower_iterations(function, library, grid, run_passes)
            run_passes(function, pipeline("gpu/to_parallel_loops"))
            join_loops(function)
            run_passes(function, pipeline("gpu/fold_loops"))
        do_in_one_task(function)  # work without a parallel loop, such as a full reduction, scalar stores
        loops = next(op for op in mlir_util.walk(function) if op.name == "scf.parallel")
        count_in_ones(loops)
        tiles = grid.tiles(_trip_counts(loops, mlir_util.constants(function)))
        run_passes(function, pipeline("gpu/map_to_grid", tiles=",".join(map(str, tiles))))
    module.operation.attributes["gpu.container_module"] = ir.UnitAttr.get(module.context)
    run_passes(module.operation, pipeline("gpu/simplify"))
    for function, _ in kernels.values():
        _take_complex_apart(function)
    run_passes(module.operation, pipeline("gpu/outline"))
    mark_local_memory(module)
    for gpu_module in mlir_util.children(module.operation):
        if gpu_module.name == "gpu.module":
            allocate_at_begin(gpu_module)
    _check_launchers(module)


def _lower_iterations(
    function: Any, library: DeviceKernels | None, grid: GridSchedule, run_passes: RunPasses
) -> GridSchedule:
    """Make parallel loops of those of the program in ``function``: of tasks where these go along rows."""
    run_passes(function, pipeline("gpu/iterations_to_loops"))
    do_inner_loops_in_order(function)
    if library is None:
        return grid
    if not lower_along_rows(function, library.schedules.loops):
        return _ITERATIONS
    run_passes(function, pipeline("gpu/iterations_to_loops"))
    return GridSchedule(1)


_WRITES = {"memref.store", "vector.store", "vector.maskedstore"}


def _check_launchers(module: Any) -> None:
    """That no launcher writes to a device's memory: the host cannot reach that of all devices, and nobody would
    see it where it can. Numbers that it loads are copied."""
    for function in mlir_util.functions(module):
        for op in mlir_util.walk(function):
            assert op.name not in _WRITES or not any(map(mlir_util.is_on_device, op.operands)), str(op)


def _grid(target: KernelTarget, options: Options, op: Any) -> GridSchedule:
    if TASKS in op.attributes:
        return GridSchedule(1)
    grid = choose(target.grids, op, options)
    assert grid is not None, f"target '{target.name}' has no grid for {op.name}"
    return grid.with_options(options)


def _call_equal(
    kernels: dict[str, tuple[Any, GridSchedule]], function: Any, grid: GridSchedule, call: Any
) -> None:
    """Enter a kernel in ``kernels``, or drop it and let ``call`` call an equal one: a device holds each once.

    Upstream's duplicate-function-elimination would do, but takes all declarations of one type for equal, too, and
    functions that other modules refer to.
    """
    first, _ = kernels.setdefault(f"{grid} {mlir_util.text_but_name(function)}", (function, grid))
    if first is not function:
        call.attributes["callee"] = ir.FlatSymbolRefAttr.get(mlir_util.symbol_name(first), call.context)
        function.erase()


def _kernel_roots(func: Any) -> list[list[Any]]:
    """Groups of operations that become one kernel each, in program order."""
    groups: list[list[Any]] = []
    blocks = mlir_util.by_block(mlir_util.children(func))[::-1]
    while blocks:
        stores: list[Any] = []
        for op in blocks.pop():
            if op.name == "memref.store" and mlir_util.is_on_device(op.operands[1]):
                if any(_are_views(op.operands[1], store.operands[1]) for store in stores):
                    stores = []
                if not stores:
                    groups.append(stores)
                stores.append(op)
                continue
            if op.name not in mlir_util.CONSTANTS:  # others end a run of scalar stores
                stores = []
            if _is_device_work(op):
                groups.append([op])
            elif op.name in _CONTROL_FLOW:
                blocks.extend(mlir_util.by_block(mlir_util.children(op))[::-1])
    return groups


def _are_views(one: Any, other: Any) -> bool:
    """Whether two values are of one buffer, which kernels do not know of their parameters."""
    return one != other and buffer_of(one) == buffer_of(other)


def _is_device_work(op: Any) -> bool:
    if op.name.startswith("linalg.") or op.name in ("scf.parallel", "scf.forall"):
        return True
    # Copies between whole buffers are the driver's; anything strided is a kernel.
    return op.name == "memref.copy" and all(map(mlir_util.is_on_device, op.operands)) and not is_whole_copy(op)


def _outline(
    module: Any, launcher: Any, group: Group, known: Mapping[Any, Any], index: int, taken: set[str]
) -> tuple[Any, Any]:
    """Move ``group`` into a new private function and call it in the old place; returns the function and the call.

    ``known`` are the constants of ``launcher``, which the new function gets copies of.
    """
    first = group.ops[0]
    captured = dict.fromkeys(value for op in group.ops for value in mlir_util.captured_values(op))
    constants = [v for v in captured if v in known]
    arguments = [v for v in captured if v not in known]
    kind = group.main.name.rsplit(".", 1)[-1]
    name = f"{mlir_util.symbol_name(launcher)}_{kind}_{index}"
    while name in taken:
        name += "_"
    taken.add(name)
    type_ = ir.FunctionType.get([v.type for v in arguments], [], context=module.context)
    kernel = mlir_util.declare(module, name, type_, first.location)
    return_ = mlir_util.add_body(kernel)
    call = Builder(first).call(name, arguments)
    mark_writes(call, group.ops)
    mark_pairs(call, group.pairs)
    mapping = dict(zip(arguments, mlir_util.entry_block(kernel).arguments, strict=True))
    for constant in constants:
        mapping[constant] = known[constant].clone(ip=ir.InsertionPoint(return_)).results[0]
    for op in group.ops:
        op.move_before(return_)
        mlir_util.remap_operands(op, mapping)
        if op.name == "memref.copy":
            copy_as_linalg(op)
    drop_assertions(kernel)
    release_single_tasks(kernel)
    return kernel, call


def _take_complex_apart(function: Any) -> None:
    """Pass complex numbers to the kernel in ``function`` as two numbers; make constants in the kernel."""
    outside = mlir_util.children(function)
    values = [*mlir_util.entry_block(function).arguments, *(result for op in outside for result in op.results)]
    values = [value for value in values if isinstance(value.type, ir.ComplexType)]
    if not values:
        return
    launch = next(op for op in outside if op.name == "gpu.launch")
    inside = mlir_util.children(launch)
    known = mlir_util.constants(function)
    mapping: dict[Any, Any] = {}
    for value in values:
        if value in known:
            mapping[value] = known[value].clone(ip=ir.InsertionPoint(inside[0])).results[0]
            continue
        build, type_ = Builder(launch), value.type
        parts = [build.value(f"complex.{part}", [value], type_.element_type) for part in ("re", "im")]
        mapping[value] = Builder(inside[0]).value("complex.create", parts, type_)
    for op in inside:
        mlir_util.remap_operands(op, mapping)


def _trip_counts(loop: Any, constants: Mapping[Any, Any]) -> list[int | None]:
    """Static trip counts of an ``scf.parallel``; None where a bound is not one of ``constants``."""
    lower, upper, step, _ = mlir_util.operand_groups(loop)
    bounds = zip(lower, upper, step, strict=True)
    return [_trip_count(bound, constants) for bound in bounds]


def _trip_count(bound: Sequence[Any], constants: Mapping[Any, Any]) -> int | None:
    numbers = [ir.IntegerAttr(constants[v].attributes["value"]).value for v in bound if v in constants]
    return len(range(*numbers)) if len(numbers) == len(bound) else None
