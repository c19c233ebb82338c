"""Operations of linalg on buffers as nests of loops: in which order, in how large parts, and by how many tasks.

The innermost loop is the one along which most operands have their elements side by side: LLVM vectorises it. What
loops sum up that way stays in registers; where loops sum up rows, a part of a row at a time stays in the cache.
Loops that read one operand and write another in different orders go by blocks of both.

What can be done in any order becomes tasks, so many as the work is worth: `numbers` of the target's table of
schedules say how much that is. Sums are reassociated, as vectors and tasks need it; choices keep their order, and
so do products of floats, but for finite ones that vectors make.
"""

from collections.abc import Sequence
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop import bindings
from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels.control_flow import for_loop
from devscope.lowering.kernels.nest import TASK, Nest, Numbers, Operand, collapse_loops, match, order_loops
from devscope.lowering.kernels.nest_bodies import combiners, has_neutral, neutral
from devscope.lowering.kernels.nest_loops import Emitter
from devscope.lowering.kernels.nest_parts import Parts
from devscope.lowering.kernels.row_passes import ROWS, lower_rows
from devscope.lowering.mlir_util import Builder


def lower_nests(module: Any, numbers: Numbers) -> None:
    """All operations of ``module`` that index their operands by single loops; the others stay."""
    linalg: Any = None
    for function in mlir_util.functions(module):
        ops = [
            op
            for op in mlir_util.walk(function)
            if op.name.startswith("linalg.")
            and op.name not in ("linalg.index", "linalg.yield")
            and not mlir_util.is_in_body(op)  # is copied into the loops of another
        ]
        if not ops:
            continue
        linalg = linalg or bindings.load("_mlir_libs._mlirDialectsLinalg")
        if ROWS in function.attributes:
            lower_rows(function, [nest for op in ops if (nest := match(op, linalg))], numbers)
            continue
        for op in ops:
            nest = match(op, linalg)
            if nest is not None:
                _lower(nest, numbers)


def _lower(nest: Nest, numbers: Numbers) -> None:
    collapse_loops(nest)
    build = Builder(nest.op)
    order = order_loops(nest)
    parts = Parts([nest], [loop for loop in order if nest.parallel[loop]], order[-1:], numbers)
    if not nest.is_pure:
        Emitter(nest, order, numbers).emit(build, {}, {})
    elif any(nest.parallel) or not nest.parallel:
        parts.emit(build, lambda inside, ranges, _: Emitter(nest, order, numbers).emit(inside, {}, ranges))
    elif not _in_two_stages(nest, order, build, numbers):
        Emitter(nest, order, numbers).emit(build, {}, {})
    nest.op.erase()


def _in_two_stages(nest: Nest, order: Sequence[int], build: Builder, numbers: Numbers) -> bool:
    """A nest that sums up everything: tasks sum up parts, which are combined in their order."""
    found = combiners(nest.op)
    if any(combiner is None for combiner in found) or not all(o.is_buffer and not o.dims for o in nest.results):
        return False
    most = numbers["most_parts"]
    longest = max(order, key=lambda loop: nest.static_extent(loop) or 0)
    parts = Parts([nest], [longest], order[-1:], {**numbers, "most_tasks": most})
    if parts.is_single:
        return False
    types = [ir.MemRefType(result.value.type).element_type for result in nest.results]
    names = [combiner.name for combiner in found if combiner is not None]
    if not all(has_neutral(name, type_) for name, type_ in zip(names, types, strict=True)):
        return False
    return _stages(nest, order, build, numbers, parts, most, names, types)


def _stages(
    nest: Nest,
    order: Sequence[int],
    build: Builder,
    numbers: Numbers,
    parts: Parts,
    most: int,
    names: Sequence[str],
    types: Sequence[Any],
) -> bool:
    function = nest.op
    while function.name != "func.func":
        function = function.parent
    begin = Builder(mlir_util.first_child(function))
    rooms = [begin.alloc_on_stack(mlir_util.buffer_type([most], type_)) for type_ in types]
    results = nest.results
    zero, one = build.constant(0), build.constant(1)

    def part(inside: Builder, ranges: dict[int, tuple[Any, Any]], task: Any) -> None:
        for room, name, type_ in zip(rooms, names, types, strict=True):
            inside.op("memref.store", [neutral(inside, name, type_), room, task])
        nest.operands[nest.inputs :] = [Operand(room, (TASK,)) for room in rooms]
        Emitter(nest, order, numbers).emit(inside, {TASK: task}, ranges)

    tasks = parts.emit(build, part)
    nest.operands[nest.inputs :] = results

    def combine(inside: Builder, index: Any, values: list[Any]) -> list[Any]:
        more = [
            inside.value("memref.load", [room, index], type_) for room, type_ in zip(rooms, types, strict=True)
        ]
        return [
            inside.value(name, [value, other], value.type)
            for name, value, other in zip(names, values, more, strict=True)
        ]

    first = [build.value("memref.load", [o.value], type_) for o, type_ in zip(results, types, strict=True)]
    totals = for_loop(build, (zero, tasks, one), first, combine)
    for total, result in zip(totals, results, strict=True):
        build.op("memref.store", [total, result.value])
    return True
