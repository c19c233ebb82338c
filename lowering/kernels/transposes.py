"""Transposes on buffers: copies whose elements stand side by side along other axes than before.

They become calls of ``transpose.mlir``, which goes by tiles: as many elements each way as a line of memory has.
"""

from collections.abc import Iterator
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop import bindings
from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels.library import KernelLibrary
from devscope.lowering.kernels.nest import Nest, collapse_loops, copy_nest, match, product_of
from devscope.lowering.kernels.streams import NEVER
from devscope.lowering.kernels.table import Row, Schedules
from devscope.lowering.kernels.tiles import ELEMENTS, LINE, fetch_tile, move_tile
from devscope.lowering.kernels.turned_copies import turned_copy
from devscope.lowering.memory.effects import mark_written

KIND = "transpose"


def call_transposes(module: Any, schedules: Schedules, library: KernelLibrary) -> None:
    """Replace the transposes of ``module``, bufferised host code, for which there are rows."""

    def replace(nest: Nest) -> bool:
        element = str(ir.MemRefType(nest.results[0].value.type).element_type)
        row = schedules.choose(nest.op, KIND, element, sizes_of(nest))
        if row is not None:
            _replace(nest, element, row, library)
        return row is not None

    for nest in find_transposes(module):
        replace(nest)
    for op in mlir_util.named(module.operation, "linalg.generic", "linalg.map"):
        nest = turned_copy(op)
        if nest is not None and not replace(nest):
            for view in nest.operands:
                view.value.owner.operation.erase()


def find_transposes(module: Any) -> Iterator[Nest]:
    """Neighbouring loops that are one in memory are one."""
    linalg: Any = None
    for op in mlir_util.named(module.operation, "memref.copy", "linalg.generic", "linalg.transpose"):
        if op.name == "memref.copy":
            nest = copy_nest(op)
        elif len(op.operands) == 2:  # most generic operations have more, or compute something
            linalg = linalg or bindings.load("_mlir_libs._mlirDialectsLinalg")
            nest = match(op, linalg)
        else:
            continue
        if nest is not None and _is_transpose(nest):
            collapse_loops(nest)
            yield nest


def _is_transpose(nest: Nest) -> bool:
    if nest.inputs != 1 or len(nest.operands) != 2 or not all(o.is_buffer for o in nest.operands):
        return False
    source, target = nest.operands
    if any(mlir_util.is_on_device(o.value) or len(o.dims) != len(nest.parallel) for o in nest.operands):
        return False
    types = [ir.MemRefType(o.value.type) for o in nest.operands]
    if types[0].element_type != types[1].element_type or str(types[0].element_type) not in ELEMENTS:
        return False
    if nest.op.regions:
        *body, end = mlir_util.children(nest.op)
        if body or end.operands[0] != mlir_util.entry_block(nest.op).arguments[0]:
            return False
    inner, other = source.contiguous(), target.contiguous()
    if inner is None or other is None or inner == other:
        return False
    tile = LINE // mlir_util.element_bytes(types[0].element_type)
    extents = [nest.static_extent(loop) for loop in (inner, other)]
    return all(extent is None or extent >= tile for extent in extents)


def sizes_of(nest: Nest) -> dict[str, int | None]:
    """``b``: matrices; ``m``, ``n``: their rows and columns."""
    m, n = nest.results[0].contiguous(), nest.operands[0].contiguous()
    extents = {loop: nest.static_extent(loop) for loop in range(len(nest.parallel))}
    others = (extent for loop, extent in extents.items() if loop not in (m, n))
    assert m is not None
    assert n is not None
    return {"b": product_of(others), "m": extents[m], "n": extents[n]}


def _replace(nest: Nest, element: str, row: Row, library: KernelLibrary) -> None:
    op, numbers = nest.op, row.numbers
    bytes_ = mlir_util.element_bytes(ir.MemRefType(nest.results[0].value.type).element_type)
    tile, streams = LINE // bytes_, numbers["stream"] < NEVER
    rows = {name.upper(): -(-numbers[name] // tile) * tile for name in ("rows", "streamed_rows", "columns")}
    whole = tile <= numbers["whole_lines"]
    fetches = any(numbers.get(name, 0) for name in ("ahead", "paged_ahead"))
    values = {
        "TYPE": element,
        "BYTES": bytes_,
        "TILE": tile,
        **rows,
        "PAGED_ROWS": numbers.get("paged_lines", 0) * tile or rows["STREAMED_ROWS"],
        "AHEAD": numbers.get("ahead", 0) * tile,
        "PAGED_AHEAD": numbers.get("paged_ahead", 0) * tile,
        "GRAIN": numbers["grain"],
        "TARGET_FRONT": _front("target", element),
        "SOURCE_FRONT": _front("source", element),
        "MAY_STREAM": f"%may_stream = arith.{'andi %is_even, %large : i1' if streams else 'constant false'}",
        "MOVE_LINES": _move_lines(element, bytes_, whole, fetches) if streams else "",
        "MOVE": move_tile(element, bytes_, whole_lines=whole),
    }
    symbol = library.symbol("transpose", values)
    flat = f"memref<?x{element}>"
    types = [flat, *["index"] * 3, flat, *["index"] * 6, "i1"]
    lines = [f"func.func private @{symbol}({', '.join(types)})", *_call(nest, flat, numbers["stream"] // bytes_)]
    lines[-1] = f"func.call @{symbol}({lines[-1]}) : ({', '.join(types)}) -> ()"
    lines += ["}"] * (len(nest.parallel) - 3)
    declaration, *made = mlir_util.insert(op, "\n".join(lines), [o.value for o in nest.operands])
    declaration.erase()
    library.declare(op, symbol, types)
    (called,) = (inner for each in made for inner in mlir_util.walk(each) if inner.name == "func.call")
    mark_written(called, [_TARGET])
    op.erase()


def _move_lines(element: str, bytes_: int, whole_lines: bool, fetches: bool) -> str:
    """The loop over tiles whose lines go past the caches; if ``fetches``, some of what is read is fetched before.

    It is apart from that over other tiles: where both kinds are branches of one loop, Intel's OpenCL driver makes
    one store of two.
    """
    fetch = f"""scf.if %fetches {{
              %next_j = arith.addi %jj, %ahead : index
              %fetched_j = arith.minui %next_j, %last_j : index
              %from_fetched = arith.addi %from, %fetched_j : index
              %fetched = arith.addi %from_fetched, %from_row : index
              {fetch_tile(element, LINE // bytes_)}
            }}"""
    return f"""
        scf.if %streams {{
          scf.for %ii = %line_begin to %line_end step %tile {{
            %from_row = arith.muli %ii, %source_i : index
            %in = arith.addi %from_j, %from_row : index
            %out = arith.addi %to_j, %ii : index
            {move_tile(element, bytes_, streams=True, whole_lines=whole_lines)}
            {fetch if fetches else ""}
          }}
        }}"""


def _front(name: str, element: str) -> str:
    """How many elements of a buffer are in front of its first line, and whether one begins with that."""
    return f"""%{name}_base = memref.extract_aligned_pointer_as_index %{name} : memref<?x{element}> -> index
    %{name}_offset_bytes = arith.muli %{name}_offset, %bytes : index
    %{name}_address = arith.addi %{name}_base, %{name}_offset_bytes : index
    %{name}_past = arith.remui %{name}_address, %line : index
    %{name}_left = arith.subi %line, %{name}_past : index
    %{name}_missing = arith.remui %{name}_left, %line : index
    %{name}_odd = arith.remui %{name}_missing, %bytes : index
    %is_{name}_element = arith.cmpi eq, %{name}_odd, %zero : index
    %{name}_front = arith.divui %{name}_missing, %bytes : index"""


_TARGET = 4
"""The position of the buffer that is written among the operands of a call."""


def _call(nest: Nest, flat: str, large: int) -> list[str]:
    """Lines up to a call of the kernel, loops around it, and the operands of the call.

    ``flat``: the type of buffers there; ``large``: elements from which a target is larger than the caches.
    """
    source, target = nest.operands
    m, n = target.contiguous(), source.contiguous()
    batch, *outer = [loop for loop in target.dims if loop not in (m, n)] or [None]
    lines = ["%c0 = arith.constant 0 : index", "%c1 = arith.constant 1 : index"]
    for number, operand in enumerate(nest.operands):
        type_ = operand.value.type
        rank = len(operand.dims)
        lines += [
            f"%base{number}, %offset{number}, %sizes{number}:{rank}, %strides{number}:{rank} = "
            f"memref.extract_strided_metadata %{number} : {type_} -> "
            f"memref<{ir.MemRefType(type_).element_type}>, {', '.join(['index'] * (1 + 2 * rank))}",
            f"%flat{number} = memref.reinterpret_cast %{number} to offset: [0], sizes: [%c1], strides: [1] "
            f": {type_} to {flat}",
        ]
    lines.append("%total0 = arith.addi %c0, %c1 : index")
    for axis in range(len(target.dims)):
        lines.append(f"%total{axis + 1} = arith.muli %total{axis}, %sizes1#{axis} : index")
    lines.append(f"%enough = arith.constant {large} : index")
    lines.append(f"%large = arith.cmpi uge, %total{len(target.dims)}, %enough : index")
    for loop in outer:
        lines.append(f"scf.for %at{loop} = %c0 to %sizes1#{target.dims.index(loop)} step %c1 {{")
    operands: list[str] = []
    for number, (operand, loops) in enumerate(((source, (batch, m)), (target, (batch, n)))):
        begin = f"%offset{number}"
        for loop in outer:
            behind = f"%behind{number}_{loop}"
            lines += [
                f"{behind} = arith.muli %at{loop}, %strides{number}#{operand.dims.index(loop)} : index",
                f"%begin{number}_{loop} = arith.addi {begin}, {behind} : index",
            ]
            begin = f"%begin{number}_{loop}"
        strides = ["%c0" if loop is None else f"%strides{number}#{operand.dims.index(loop)}" for loop in loops]
        operands += [f"%flat{number}", begin, *strides]
    extents = ["%c1" if loop is None else f"%sizes1#{target.dims.index(loop)}" for loop in (batch, m, n)]
    return [*lines, ", ".join([*operands, *extents, "%large"])]
