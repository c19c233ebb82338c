"""One pass over the rows that several operations of a function share."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from math import prod
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels.control_flow import for_loop
from devscope.lowering.kernels.nest import TASK, Nest, Numbers, Operand, order_loops
from devscope.lowering.kernels.nest_loops import Emitter
from devscope.lowering.kernels.nest_parts import Parts
from devscope.lowering.memory.effects import buffer_of
from devscope.lowering.mlir_util import Builder

ROWS = "devscope.rows"
"""On a function: its operations of linalg share so many outermost loops, the first axes of their results."""

SCRATCH = "devscope.scratch"
"""On such a function: the position of the first buffer that has room for one row of each task."""

_STACK_BYTES = 1 << 15
"""A row of at most so many bytes is on the stack of a task."""


def is_on_stack(type_: Any, rows: int) -> bool:
    """Where one row is of a buffer that is only used row by row; ``rows``: how many axes say which."""
    memref = ir.MemRefType(type_)
    inside = memref.shape[rows:]
    known = ir.ShapedType.get_dynamic_size() not in inside
    return known and prod(inside) * mlir_util.element_bytes(memref.element_type) <= _STACK_BYTES


def lower_rows(
    function: Any, nests: Sequence[Nest], numbers: Numbers, emitter: Callable[..., Emitter] = Emitter
) -> None:
    """One pass over the rows that all ``nests`` of a function share; ``emitter``: of the loops inside."""
    rows = ir.IntegerAttr(function.attributes[ROWS]).value
    room = iter(
        list(mlir_util.entry_block(function).arguments)[ir.IntegerAttr(function.attributes[SCRATCH]).value :]
    )
    made = {op.results[0]: op for op in mlir_util.children(function) if op.name == "memref.alloc"}
    scratch: dict[Any, Any] = {value: None if is_on_stack(value.type, rows) else next(room) for value in made}
    for nest in nests:
        nest.temporaries = made
    if any(value is not None for value in scratch.values()):
        numbers = {**numbers, "most_tasks": numbers["row_tasks"]}
    first = nests[0].results[0].dims[:rows]
    build = Builder(nests[0].op)
    extents = [nests[0].extent(build, loop) for loop in first]
    again = [nest for nest in nests if _is_used(nest.results, made, (other for other in nests if other != nest))]

    def row(inside: Builder, indices: list[Any], task: Any, ranges: dict[int, tuple[Any, Any]]) -> None:
        if len(indices) < rows:
            loop = first[len(indices)]
            begin, end = ranges.get(loop, (inside.constant(0), extents[len(indices)]))

            def deeper(build: Builder, index: Any, _: list[Any]) -> list[Any]:
                row(build, [*indices, index], task, ranges)
                return []

            for_loop(inside, (begin, end, inside.constant(1)), [], deeper)
            return
        for nest in nests:
            outer = dict(zip(nest.results[0].dims, indices, strict=False))
            order = order_loops(nest, rows)
            _use_scratch(nest, scratch, rows)
            emitter(nest, order, numbers, again=nest in again).emit(inside, {**outer, TASK: task}, {})

    def part(inside: Builder, ranges: dict[int, tuple[Any, Any]], task: Any) -> None:
        for value, given in list(scratch.items()):
            if given is None:
                type_ = ir.MemRefType(value.type)
                inner = mlir_util.buffer_type(type_.shape[rows:], type_.element_type)
                scratch[value] = inside.alloc_on_stack(inner)
        row(inside, [], task, ranges)

    Parts(nests, first, (), numbers).emit(build, part)
    for nest in nests:
        nest.op.erase()
    for op in made.values():
        op.erase()


def _use_scratch(nest: Nest, scratch: Mapping[Any, Any], rows: int) -> None:
    """One row of a task in the place of each buffer that ``scratch`` has a buffer for."""
    for operand in nest.operands:
        if operand.value in scratch:
            operand.value, own = scratch[operand.value], operand.dims[rows:]
            on_stack = ir.MemRefType(operand.value.type).rank == len(own)
            operand.dims = own if on_stack else (TASK, *own)


def _is_used(results: Sequence[Operand], made: Collection[Any], others: Iterable[Nest]) -> bool:
    """Whether results are buffers that are ``made`` inside, or that ``others`` use."""
    used = {*made, *(buffer_of(value) for other in others for value in mlir_util.captured_values(other.op))}
    return any(buffer_of(result.value) in used for result in results)
