"""Contractions on buffers become calls of kernels, which take zeros before and elementwise work behind along."""

from collections.abc import Iterable, Sequence
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop import bindings
from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels.accumulators import zeros_before
from devscope.lowering.kernels.contraction_calls import CallText
from devscope.lowering.kernels.contraction_kernels import KIND, Kernel, kernel_of, kernels_of_few_lines
from devscope.lowering.kernels.contraction_match import Contraction, Operand, match
from devscope.lowering.kernels.contraction_operands import Extra, extras
from devscope.lowering.kernels.contraction_values import values
from devscope.lowering.kernels.contraction_words import words_of
from devscope.lowering.kernels.epilogue import Epilogue, epilogue_of
from devscope.lowering.kernels.library import KernelLibrary
from devscope.lowering.kernels.packed_constants import PackedConstants
from devscope.lowering.kernels.split_contractions import split_contraction
from devscope.lowering.kernels.table import TURNED, Schedules
from devscope.lowering.kernels.turned_contractions import turned_plan
from devscope.lowering.memory.effects import mark_written


def call_contractions(
    ops: Iterable[Any],
    schedules: Schedules,
    library: KernelLibrary,
    constants: PackedConstants,
    in_parts: bool = False,
) -> None:
    """Replace those of ``ops``, contractions of bufferised code, for which there are rows.

    ``in_parts``: long sums with few results become several contractions.
    """
    linalg = bindings.load("_mlir_libs._mlirDialectsLinalg")
    for op in ops:
        found = match(op, linalg)
        if found is None or (found.sums_outside and found.c.element != found.element):  # which would round often
            continue
        words = words_of(found.a.element, found.b.element, found.element)
        narrow = words.element if words else None
        sizes, contiguous = found.sizes(), found.contiguous()
        constant = constants.has(found.b.value) and not any(loop in found.b.axes for loop in found.outer)
        row = schedules.find(KIND, found.element, sizes, contiguous, narrow, constant=constant)
        if row is not None and row.template == TURNED:
            if (turned := turned_plan(op, found, constants)) is not None:
                schedules.note(op, row, found.element, sizes, contiguous)
                turned.replace(row, schedules, library, constants)
                continue
            row = schedules.find(KIND, found.element, sizes, contiguous, narrow, TURNED, constant)
        if in_parts and (parts := split_contraction(op, found, row, constants)):
            call_contractions(parts, schedules, library, constants)
            continue
        if row is not None:
            found.words = words if row.element == narrow else None
            kernel = kernel_of(op, found, row, constants)
            others = [] if found.sums_outside else kernels_of_few_lines(op, kernel, schedules, constants)
            schedules.note(op, row, found.element, sizes, contiguous)
            _replace(op, kernel, others, schedules, library)


def _replace(
    op: Any, kernel: Kernel, others: Sequence[Kernel], schedules: Schedules, library: KernelLibrary
) -> None:
    """``others``: kernels that are called instead of ``kernel`` where each one's loop is short enough."""
    found, kernels = kernel.found, [*others, kernel]
    if found.sums_outside and found.c.element != found.element:
        found.c = _wide_sums(op, found)
    fill = None if found.sums_outside else zeros_before(op, found.c.value)
    follows = None
    if fill is not None and not found.outer:
        follows = epilogue_of(op, found.c.value, library.functions, [found.a.value, found.b.value])
    reads = [[] if follows is None else extras(each.found, follows) for each in kernels]
    if any(read is None for read in reads):
        follows, reads = None, [[] for _ in kernels]
    place = op if follows is None else follows.op
    if follows is not None:
        schedules.include(follows.op, found.c.element, {name: found.extent(name) for name in "bmn"})
    at = place
    for each, read in zip(kernels, reads, strict=True):
        if follows is not None:
            each.found.c.value = follows.result
        if each.loop is not None:
            inside, at = _if_few(at, each.found.c, each.loop, each.most)
        else:
            inside = at
        _call(inside, each, fill is None, follows, read or [], library)
    for old in (follows, fill, op):
        if old is not None:
            old.erase()


def _call(
    before: Any,
    kernel: Kernel,
    adds: bool,
    follows: Epilogue | None,
    read: Sequence[Extra],
    library: KernelLibrary,
) -> None:
    found, row, *_ = kernel
    call = CallText(found, row, adds, read)
    parameters = ", ".join(f"%{parameter.name}: {parameter.type}" for parameter in call.parameters)
    symbol = library.symbol(row.template, values(found, row, parameters, follows, read, library))
    declaration, *made = mlir_util.insert(before, call.with_call(symbol), call.buffers)
    declaration.erase()
    library.declare(before, symbol, [parameter.type for parameter in call.parameters])
    (called,) = (inner for each in made for inner in mlir_util.walk(each) if inner.name == "func.call")
    mark_written(called, call.written)


def _if_few(before: Any, operand: Operand, loop: int, most: int) -> tuple[Any, Any]:
    """The ends of what is done where ``loop`` has at most so many iterations, and of what is done else."""
    text = f"""%axis = arith.constant {operand.axes[loop]} : index
        %size = memref.dim %0, %axis : {operand.value.type}
        %most = arith.constant {most} : index
        %are_few = arith.cmpi ule, %size, %most : index
        scf.if %are_few {{ }} else {{ }}"""
    branches = mlir_util.insert(before, text, [operand.value])[-1]
    then, otherwise = (block.operations[0].operation for block in mlir_util.blocks_of(branches))
    return then, otherwise


def _wide_sums(op: Any, found: Contraction) -> Operand:
    """A buffer beside the result of ``op`` for sums of which parts are stored, with conversions around it."""
    type_, rank = found.c.type, found.c.type.rank
    wide = mlir_util.buffer_type(type_.shape, ir.Type.parse(found.element))
    build = mlir_util.Builder(op)
    sums = build.alloc(wide, build.dynamic_sizes(found.c.value))
    _convert(op, "arith.extf", found.c.value, sums, rank)
    _convert(next(mlir_util.ops_behind(op)), "arith.truncf", sums, found.c.value, rank)
    return Operand(sums, found.c.axes)


def _convert(before: Any, name: str, source: Any, target: Any, rank: int) -> None:
    """Write the elements of one buffer as those of another."""
    loops = ", ".join(f"d{axis}" for axis in range(rank))
    map_ = f"affine_map<({loops}) -> ({loops})>"
    parallel = ", ".join(['"parallel"'] * rank)
    one, other = (ir.MemRefType(value.type).element_type for value in (source, target))
    text = f"""linalg.generic {{indexing_maps = [{map_}, {map_}], iterator_types = [{parallel}]}}
        ins(%0 : {source.type}) outs(%1 : {target.type}) {{
        ^bb0(%element: {one}, %old: {other}):
          %made = {name} %element : {one} to {other}
          linalg.yield %made : {other}
        }}"""
    mlir_util.insert(before, text, [source, target])
