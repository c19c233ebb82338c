"""Reductions on a device become calls of functions whose kernels have several work-items for a result."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.gpu.bodies import (
    Workgroup,
    beginning,
    body_text,
    is_simple,
    like,
    own_combiners,
    used_arguments,
)
from devscope.lowering.gpu.bodies import captured as captured_values
from devscope.lowering.gpu.contraction_match import Operand, sums_of_loops
from devscope.lowering.gpu.index_text import Extent, Text
from devscope.lowering.gpu.kernel_loops import maps_of
from devscope.lowering.gpu.launchers import REDUCTION, Launchers
from devscope.lowering.kernels.accumulators import filled_before
from devscope.lowering.kernels.nest import product_of
from devscope.lowering.kernels.split_reductions import split_reductions
from devscope.lowering.kernels.table import Row, Schedules
from devscope.lowering.memory.effects import mark_written
from devscope.lowering.target import Lanes


@dataclass
class _Reduction:
    """``operands``: buffers, and None for numbers; the last one is the result. ``combiner``: of the body."""

    op: Any
    operands: list[Operand | None]
    parallel: list[int]
    sums: list[int]
    combiner: Any

    @property
    def result(self) -> Operand:
        last = self.operands[-1]
        assert last is not None
        return last

    def extent(self, loop: int) -> Extent | None:
        found = [(n, o) for n, o in enumerate(self.operands) if o is not None and o.axis(loop) is not None]
        if not found:
            return None
        number, operand = found[0]
        return Extent(operand.extent(loop), f"operand{number}", operand.axis(loop) or 0, str(operand.type))

    def size(self, loops: Sequence[int]) -> int | None:
        return product_of(extent.known for loop in loops if (extent := self.extent(loop)) is not None)


def call_reductions(module: Any, schedules: Schedules, launchers: Launchers) -> None:
    """Replace the reductions on buffers of ``module`` for which there are rows of ``schedules``."""
    if all(map(launchers.is_launched, _operations(module))):  # others must not allocate
        split_reductions(module, schedules.loops, to_one=True)
    for op in filter(launchers.is_launched, _operations(module)):
        found = _match(op)
        if found is None:
            continue
        contiguous = "sums" if _reads_along_sums(found) else "results"
        sizes = {"results": found.size(found.parallel), "sums": found.size(found.sums)}
        row = schedules.choose(op, REDUCTION, found.result.element, sizes, contiguous)
        if row is not None:
            _replace(found, row, contiguous == "sums", launchers)


def _operations(module: Any) -> list[Any]:
    return [op for op in mlir_util.walk(module.operation) if op.name.startswith("linalg.") and list(op.regions)]


def _match(op: Any) -> _Reduction | None:
    if list(op.results) or not list(op.regions) or not mlir_util.is_memref(op.operands[len(op.operands) - 1].type):
        return None
    if len(mlir_util.children(op)[-1].operands) != 1 or not is_simple(op):
        return None
    maps = maps_of(op)
    found_combiners = own_combiners(op)
    if len(maps) != len(op.operands) or found_combiners is None:
        return None
    (combiner,) = found_combiners
    operands: list[Operand | None] = []
    for value, map_ in zip(op.operands, maps, strict=True):
        indices = sums_of_loops(map_)
        if indices is None:
            return None
        operands.append(Operand(value, indices) if mlir_util.is_memref(value.type) else None)
    result = operands[-1]
    if result is None:
        return None
    parallel = [index[0][0] for index in result.indices if index]
    sums = [loop for loop in range(maps[0].n_dims) if loop not in parallel]
    found = _Reduction(op, operands, parallel, sums, combiner)
    if not sums or any(list(index) != [(loop, 1)] for index, loop in zip(result.indices, parallel, strict=False)):
        return None
    if len(parallel) != len(result.indices) or any(found.extent(loop) is None for loop in range(maps[0].n_dims)):
        return None
    return found


def _reads_along_sums(found: _Reduction) -> bool:
    inner = [operand.innermost() for operand in found.operands[:-1] if operand is not None]
    return any(loop in found.sums for loop in inner)


def _replace(found: _Reduction, row: Row, along_sums: bool, launchers: Launchers) -> None:
    filled = filled_before(found.op, found.result.value)
    begins = None if filled is None or not filled[1] else filled[1]
    captured = captured_values(found.op)
    text = _values(found, row, along_sums, launchers.lanes, begins, captured)
    values = [*found.op.operands, *captured]
    call = launchers.call(found.op, row.template, text, values)
    mark_written(call, [len(found.operands) - 1])
    if filled is not None and begins is not None:
        filled[0].erase()
    found.op.erase()


def _values(
    found: _Reduction, row: Row, along_sums: bool, lanes: Lanes, begins: str | None, captured: Sequence[Any]
) -> dict[str, object]:
    """What the template is filled with. ``begins``: the number that the result is, if it was filled with one."""
    numbers, element = count(), str(found.result.element)
    share = row.numbers["work_items"] // row.numbers["results"]
    types = [*(value.type for value in found.op.operands), *(value.type for value in captured)]
    names = [
        *(f"operand{n}" for n, _ in enumerate(found.operands)),
        *(f"captured{n}" for n, _ in enumerate(captured)),
    ]
    distance = 1 if along_sums else row.numbers["results"]
    workgroup = Workgroup(row.numbers["work_items"], share, distance, lanes)

    def extent(loop: int) -> Extent:
        known = found.extent(loop)
        assert known is not None
        return known

    outside, inside, before, steps, together, end = (Text([], numbers) for _ in range(6))
    outside.sizes("", "N", found.parallel, extent)
    inside.sizes("inside_", "N", found.parallel, extent)
    inside.sizes("inside_", "K", found.sums, extent)
    loops = before.split("%at", found.parallel)
    of_captured = {value: f"%captured{n}" for n, value in enumerate(captured)}
    combined = _body(steps, found, {**loops, **steps.split("%k", found.sums)}, of_captured)
    place = end.place(found.result.indices, loops)
    name, type_ = f"%operand{len(found.operands) - 1}", found.result.type
    held = f"arith.constant {begins} : {element}" if begins else f"memref.load {name}[{place}] : {type_}"
    (all_,) = workgroup.combine(
        together, ["%part"], [element], lambda text, a, b: [text.value(like(found.combiner, [*a, *b]))]
    )
    done = end.value(like(found.combiner, [end.value(held), all_]))
    end.lines.append(f"memref.store {done}, {name}[{place}] : {type_}")
    return {
        **{key.upper(): number for key, number in row.numbers.items()},
        "PARAMETERS": ", ".join(f"%{name}: {type_}" for name, type_ in zip(names, types, strict=True)),
        "SIZES": outside.joined(),
        "SIZES_INSIDE": inside.joined(),
        "ROOMS": workgroup.parameters(),
        "ELEMENT": element,
        "SHARE": share,
        "NEUTRAL": beginning(found.combiner),
        # Neighbours read neighbours.
        "FASTEST": "step" if along_sums else "in_block",
        "SHARE_OF": "remui" if along_sums else "divui",
        "RESULT_OF": "divui" if along_sums else "remui",
        "AT_RESULT": before.joined(),
        "COMBINE": steps.joined(),
        "COMBINED": combined,
        "FIRST_OF_SHARE": "muli %result_of, %step" if along_sums else "addi %result_of, %c0",
        "TREE": together.joined(),
        "END": end.joined(),
    }


def _body(text: Text, found: _Reduction, loops: dict[int, str], names: dict[Any, str]) -> str:
    """One step: the name of what it makes of ``%so_far``."""
    names, used = dict(names), used_arguments(found.op)
    for number, (argument, operand) in enumerate(
        zip(mlir_util.entry_block(found.op).arguments, found.operands, strict=True)
    ):
        names[argument] = f"%operand{number}"
        if number == len(found.operands) - 1:
            names[argument] = "%so_far"
        elif operand is not None and number in used:
            place = text.place(operand.indices, loops)
            names[argument] = text.value(f"memref.load %operand{number}[{place}] : {operand.type}")
    (combined,) = body_text(text, found.op, names, loops)
    return combined
