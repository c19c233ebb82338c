"""Contractions on buffers become calls of kernels, which take zeros before and elementwise work behind along."""

from collections.abc import Iterable
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop import bindings
from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels.accumulators import zeros_before
from devscope.lowering.kernels.contraction_calls import CallText
from devscope.lowering.kernels.contraction_dots import fitted
from devscope.lowering.kernels.contraction_match import Contraction, Operand, Place, match
from devscope.lowering.kernels.contraction_operands import Extra, element_bytes, extras
from devscope.lowering.kernels.contraction_panels import fits_tasks
from devscope.lowering.kernels.contraction_values import DOTS, PACKED, values
from devscope.lowering.kernels.contraction_words import words_of
from devscope.lowering.kernels.epilogue import epilogue_of
from devscope.lowering.kernels.library import KernelLibrary
from devscope.lowering.kernels.packed_constants import PackedConstants
from devscope.lowering.kernels.split_contractions import split_contraction
from devscope.lowering.kernels.table import TURNED, Row, Schedules
from devscope.lowering.kernels.turned_contractions import turned_plan
from devscope.lowering.kernels.windowed import strides_of
from devscope.lowering.memory.effects import mark_written

KIND = "contraction"

_PAGE = 4096
"""Bytes."""

_WAYS = 8
"""Lines that a set of the first cache has."""


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
        row = schedules.find(KIND, found.element, sizes, contiguous, narrow)
        if row is not None and row.template == TURNED:
            if (turned := turned_plan(op, found, constants)) is not None:
                schedules.note(op, row, found.element, sizes, contiguous)
                turned.replace(row, schedules, library, constants)
                continue
            row = schedules.find(KIND, found.element, sizes, contiguous, narrow, without=TURNED)
        if in_parts and (parts := split_contraction(op, found, row, constants)):
            call_contractions(parts, schedules, library, constants)
            continue
        if row is not None:
            schedules.note(op, row, found.element, sizes, contiguous)
            found.words = words if row.element == narrow else None
            if row.template == PACKED:
                _place_operands(op, found, row, constants)
            elif row.template == DOTS:
                row = fitted(row, found)
                found.a = _vectors(op, found, found.a, "m", row, constants)
                found.b = _vectors(op, found, found.b, "n", row, constants)
            _replace(op, found, row, schedules, library)


def _place_operands(op: Any, found: Contraction, row: Row, constants: PackedConstants) -> None:
    """Where the kernel reads A and B."""
    numbers = row.numbers
    found.b = _packed(op, found, found.b, "n", numbers["columns"], constants)
    if found.b.place is not Place.PANELS:  # one at most: A has the extents of the loops
        found.a = _packed(op, found, found.a, "m", numbers["rows"], constants)
    can_be = [x.place is Place.TO_PACK and x.element == found.element for x in (found.a, found.b)]
    loops = found.loops["k"][-1:] if numbers["rows"] <= _WAYS else [*found.loops["k"][-1:], *found.loops["m"][-1:]]
    if can_be[0] and numbers["a_in_place"] and not _are_pages_apart(found.a, loops):
        found.a.place = Place.IN_PLACE
    n, k = found.extent("n"), found.extent("k")
    is_little = can_be[1] and n is not None and k is not None and n * k <= numbers["b_in_place"]
    # No mask, also where rows are shorter than a vector: what is behind one is the next one.
    is_even = n is not None and (n < numbers["columns"] or n % numbers["columns"] == 0)
    if is_little and is_even and not found.is_lines(found.b):
        found.b.place = Place.IN_PLACE
    if found.b.place is Place.TO_PACK and fits_tasks(found, row):
        found.b.place = Place.TO_PACK_IN_TASKS


def _are_pages_apart(operand: Operand, loops: Iterable[int]) -> bool:
    """Whether steps of one of ``loops`` are whole pages apart: those of a block fall into few sets of a cache."""
    strides = [strides_of(operand.value)[operand.axes[loop]] for loop in loops]
    return any(stride and stride * element_bytes(operand.element) % _PAGE == 0 for stride in strides)


def _vectors(
    op: Any, found: Contraction, operand: Operand, lines: str, row: Row, constants: PackedConstants
) -> Operand:
    """Where a kernel reads vectors along k of ``operand``."""
    if found.is_lines(operand):
        operand.place = Place.IN_PLACE
        return operand
    return _packed(op, found, operand, "k", row.numbers["lanes"], constants, steps=lines)


def _packed(
    op: Any,
    found: Contraction,
    operand: Operand,
    lines: str,
    width: int,
    constants: PackedConstants,
    steps: str = "k",
) -> Operand:
    """``operand`` in panels of its ``lines``, if it is a constant that no loops around the kernel go through."""
    if any(loop in operand.axes for loop in found.outer):
        return operand
    groups = [[operand.axes[x] for x in found.loops[name] if x in operand.axes] for name in ("b", lines, steps)]
    packed = constants.pack(op, operand.value, groups, width, found.words, lines == "m")
    return operand if packed is None else Operand(packed, {}, Place.PANELS)


def _replace(op: Any, found: Contraction, row: Row, schedules: Schedules, library: KernelLibrary) -> None:
    if found.sums_outside and found.c.element != found.element:
        found.c = _wide_sums(op, found)
    fill = None if found.sums_outside else zeros_before(op, found.c.value)
    follows = None
    if fill is not None and not found.outer:
        follows = epilogue_of(op, found.c.value, library.functions, [found.a.value, found.b.value])
    read = [] if follows is None else extras(found, follows)
    if read is None:
        follows, read = None, list[Extra]()
    if follows is not None:
        found.c.value = follows.result
        schedules.include(follows.op, found.c.element, {name: found.extent(name) for name in "bmn"})
    place = op if follows is None else follows.op
    call = CallText(found, row, fill is None, read)
    parameters = ", ".join(f"%{parameter.name}: {parameter.type}" for parameter in call.parameters)
    symbol = library.symbol(row.template, values(found, row, parameters, follows, read, library))
    declaration, *made = mlir_util.insert(place, call.with_call(symbol), call.buffers)
    declaration.erase()
    library.declare(place, symbol, [parameter.type for parameter in call.parameters])
    (called,) = (inner for each in made for inner in mlir_util.walk(each) if inner.name == "func.call")
    mark_written(called, call.written)
    for old in (follows, fill, op):
        if old is not None:
            old.erase()


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
