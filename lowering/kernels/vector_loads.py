"""Loads in bodies of operations of linalg, in several neighbouring iterations: rows in another order or backwards,
elements at equal distances, or anywhere.

LLVM leaves most loops with such loads as they are.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels.nest import Nest
from devscope.lowering.kernels.tiles import ELEMENTS
from devscope.lowering.mlir_util import Builder

LOAD = "memref.load"
_SUMS = {"arith.addi": 1, "arith.subi": -1}


Loads = Callable[[Any, Nest, int], bool]
"""Whether a load of a body can be done for several iterations of a loop at once."""


def can_load(load: Any, nest: Nest, loop: int) -> bool:
    """Whether vectors can have what ``load`` reads: elements of memory that ``nest`` writes to, too."""
    del loop
    type_ = ir.MemRefType(load.operands[0].type)
    space = mlir_util.memory_space(nest.results[0].value.type)
    return type_.memory_space == space and str(type_.element_type) in ELEMENTS


def goes_along(load: Any, nest: Nest, loop: int) -> bool:
    """Whether what ``load`` reads in iterations of ``loop`` stands side by side, or is the same for all."""
    block = mlir_util.entry_block(nest.op)

    def varies(value: Any) -> bool:
        if not isinstance(value.owner, ir.Block):
            return ir.IntegerAttr(value.owner.operation.attributes["dim"]).value == loop
        return value.owner == block and loop in nest.operands[ir.BlockArgument(value).arg_number].dims

    buffer, *indices = load.operands
    known: dict[Any, int | None] = {}
    steps = [_step(index, block, varies, known) for index in indices]
    return can_load(load, nest, loop) and (
        not any(step is None or step for step in steps) or _is_row(buffer, steps, 1)
    )


def _is_row(buffer: Any, steps: Sequence[int | None], step: int) -> bool:
    """Whether places that are ``steps`` apart along each axis of ``buffer`` are ``step`` apart along the last one,
    whose elements stand side by side."""
    strides, _ = ir.MemRefType(buffer.type).get_strides_and_offset()
    return strides[-1] == 1 and list(steps) == [*[0] * (len(steps) - 1), step]


def _step(value: Any, block: Any, varies: Callable[[Any], bool], known: dict[Any, int | None]) -> int | None:
    """How much larger a number of the body is in the next iteration; None if that is not known.

    ``varies``: whether an argument of the body, or an index, is another one then. ``known``: steps found so
    far, each of which is asked for as often as the number is used.
    """
    if value not in known:
        known[value] = _find_step(value, block, varies, known)
    return known[value]


def _find_step(value: Any, block: Any, varies: Callable[[Any], bool], known: dict[Any, int | None]) -> int | None:
    if isinstance(value.owner, ir.Block):
        return None if varies(value) else 0
    op = value.owner.operation
    if op.block != block:
        return 0
    if op.name == "linalg.index":
        return int(varies(value))
    steps = [_step(operand, block, varies, known) for operand in op.operands]
    if not any(step is None or step for step in steps):
        return 0
    if op.name == "arith.index_cast":
        return steps[0]
    if op.name in _SUMS and steps[0] is not None and steps[1] is not None:
        return steps[0] + _SUMS[op.name] * steps[1]
    if op.name == "arith.muli":
        factors = list(map(mlir_util.constant_integer, op.operands))
        found = [s * f for s, f in zip(steps, reversed(factors), strict=True) if s is not None and f is not None]
        return found[0] if found else None
    return None


def load_along(
    build: Builder, load: Any, mapping: Mapping[Any, Any], indices: Mapping[int, Any], type_: Any, mask: Any
) -> Any:
    """What ``load`` reads in the iterations from ``indices`` on, those of ``mask`` if there is one."""
    buffer, *at = load.operands
    known: dict[Any, int | None] = {}
    steps = [_step(value, load.block, lambda other: _is_vector(mapping.get(other, other)), known) for value in at]
    if _is_row(buffer, steps, 1) or _is_row(buffer, steps, -1):
        made: dict[Any, Any] = {}
        firsts = [_first(build, value, mapping, indices, made) for value in at]
        return (_row if steps[-1] == 1 else _backwards)(build, buffer, firsts, type_, mask)
    return _elements(build, load, steps, mapping, indices, type_, mask)


def _row(build: Builder, buffer: Any, at: Sequence[Any], type_: Any, mask: Any) -> Any:
    if mask is None:
        return build.value("vector.load", [buffer, *at], type_)
    zero = "0.0" if isinstance(type_.element_type, ir.FloatType) else "0"
    nothing = ir.Attribute.parse(f"dense<{zero}> : {type_}", type_.context)
    padding = build.value("arith.constant", [], type_, {"value": nothing})
    return build.value("vector.maskedload", [buffer, *at, mask, padding], type_)


def _backwards(build: Builder, buffer: Any, at: Sequence[Any], type_: Any, mask: Any) -> Any:
    """Elements up to that at ``at``, the last one first. A ``mask`` is of the first lanes."""
    (lanes,) = type_.shape
    *outer, last = at
    first = build.value("arith.subi", [last, build.constant(lanes - 1)], build.index)
    if mask is not None:
        before = build.value("arith.subi", [build.constant(lanes), _count(mask)], build.index)
        text = f"""
            %every = vector.create_mask %0 : {mask.type}
            %before = vector.create_mask %1 : {mask.type}
            %ones = arith.constant dense<true> : {mask.type}
            %behind = arith.xori %before, %ones : {mask.type}
            %last = arith.andi %every, %behind : {mask.type}
        """
        mask = build.insert(text, [build.constant(lanes), before])[-1].results[0]
    row = _row(build, buffer, [*outer, first], type_, mask)
    order = ir.DenseI64ArrayAttr.get(list(reversed(range(lanes))), type_.context)
    return build.value("vector.shuffle", [row, row], type_, {"mask": order})


def _elements(
    build: Builder,
    load: Any,
    steps: Sequence[int | None],
    mapping: Mapping[Any, Any],
    indices: Mapping[int, Any],
    type_: Any,
    mask: Any,
) -> Any:
    """One by one; behind a ``mask``, which is of the first lanes, that of the last one of these."""
    buffer, *at = load.operands
    (lanes,) = type_.shape
    last = None
    if mask is not None:
        last = build.value("arith.subi", [_count(mask), build.constant(1)], build.index)
    made: dict[Any, Any] = {}
    ways = [
        (mapping.get(value, value) if step is None else _first(build, value, mapping, indices, made), step)
        for value, step in zip(at, steps, strict=True)
    ]
    found: list[Any] = []
    for number in range(lanes):
        lane = build.constant(number)
        if last is not None:
            lane = build.value("arith.minui", [lane, last], build.index)
        places = [_place(build, value, step, lane) for value, step in ways]
        found.append(build.value(LOAD, [buffer, *places], type_.element_type))
    return build.value("vector.from_elements", found, type_)


def _place(build: Builder, value: Any, step: int | None, lane: Any) -> Any:
    """Of ``lane``: in a vector if ``step`` is not known, else so many steps behind ``value``."""
    if step == 0:
        return value
    if step is not None:
        return build.value("arith.addi", [value, build.multiply(lane, build.constant(step))], build.index)
    number = mlir_util.constant_integer(lane)
    dynamic = ir.ShapedType.get_dynamic_size()
    position = ir.DenseI64ArrayAttr.get([dynamic if number is None else number], value.type.context)
    operands = [value, lane] if number is None else [value]
    return build.value("vector.extract", operands, value.type.element_type, {"static_position": position})


def _count(mask: Any) -> Any:
    """Of the first lanes, which a mask is of."""
    made = mlir_util.maker(mask, "vector.create_mask")
    assert made is not None
    return made.operands[0]


def _is_vector(value: Any) -> bool:
    return isinstance(value.type, ir.VectorType)


def _first(
    build: Builder, value: Any, mapping: Mapping[Any, Any], indices: Mapping[int, Any], made: dict[Any, Any]
) -> Any:
    """A number of the body in the first of some iterations, where others have vectors of all; ``made``: so far."""
    found = made.get(value, mapping.get(value, value))
    if not _is_vector(found):
        return found
    op = value.owner.operation
    if op.name == "linalg.index":
        return indices[ir.IntegerAttr(op.attributes["dim"]).value]
    operands = [_first(build, operand, mapping, indices, made) for operand in op.operands]
    made[value] = build.value(op.name, operands, value.type, dict(op.attributes.items()))
    return made[value]
