"""Sorts of StableHLO and tm_tensor become merges of sorted runs of places, all of a pass at once; stable.

Every place of a merged run finds which element it gets by binary search over the two runs (merge path), so a pass is
one elementwise operation on a tensor of places.
"""

from collections.abc import Callable, Sequence
from typing import Any

from devscope.lowering.stablehlo.arrays import Array, Text
from devscope.lowering.stablehlo.templates import (
    applied,
    axes_map,
    commas,
    element,
    enum,
    expand,
    extents_of,
    number,
    shape,
    tensor,
)

_PASS = """
%two_w = arith.addi %w, %w : index
%run = arith.divui %d, %two_w : index
%base = arith.muli %run, %two_w : index
%left = arith.subi %n, %base : index
%a_len = arith.minui %w, %left : index
%left_b = arith.subi %left, %a_len : index
%b_len = arith.minui %w, %left_b : index
%b_base = arith.addi %base, %a_len : index
%k = arith.subi %d, %base : index
%k_b = arith.subi %k, %b_len : index
%first = arith.maxsi %k_b, %zero : index
%last = arith.minsi %k, %a_len : index
%taken:2 = scf.while (%lo = %first, %hi = %last) : (index, index) -> (index, index) {
  %open = arith.cmpi slt, %lo, %hi : index
  scf.condition(%open) %lo, %hi : index, index
} do {
^bb0(%lo: index, %hi: index):
  %sum = arith.addi %lo, %hi : index
  %mid = arith.shrui %sum, %one : index
  %k_mid = arith.subi %k, %mid : index
  %j = arith.subi %k_mid, %one : index
  %at_a = arith.addi %base, %mid : index
  %at_b = arith.addi %b_base, %j : index
  LESS(m, %at_b, %at_a)
  %next = arith.addi %mid, %one : index
  %lo2 = arith.select LESS_m, %lo, %next : index
  %hi2 = arith.select LESS_m, %mid, %hi : index
  scf.yield %lo2, %hi2 : index, index
}
%i = arith.addi %taken#0, %zero : index
%j_end = arith.subi %k, %i : index
%has_a = arith.cmpi slt, %i, %a_len : index
%has_b = arith.cmpi slt, %j_end, %b_len : index
%end_a = arith.addi %base, %i : index
%end_b = arith.addi %b_base, %j_end : index
%both = arith.andi %has_a, %has_b : i1
%from_b = scf.if %both -> i1 {
  LESS(e, %end_b, %end_a)
  scf.yield LESS_e : i1
} else {
  scf.yield %has_b : i1
}
%source = arith.select %from_b, %end_b, %end_a : index
"""


Less = Callable[[Callable[[str], None], str, list[tuple[str, str]]], str]
"""Emits whether elements come before others, with a tag for names, of pairs of names; returns the name of that."""


def expand_sort(op: Any) -> None:
    kinds = [element(value.type) for value in op.operands]

    def less(emit: Callable[[str], None], tag: str, pairs: list[tuple[str, str]]) -> str:
        values = [(name, of) for pair, of in zip(pairs, kinds, strict=True) for name in pair]
        return applied(op, emit, tag, values)[0]

    types = [value.type for value in op.operands]
    lines: list[str] = []
    rank = len(shape(types[0]))
    given = [f"%{n}" for n in range(len(types))]
    names = emit_sort(lines.append, given, types, number(op, "dimension", -1) % max(rank, 1), less)
    lines.append(f'"devscope.return"({commas(names)}) : ({commas(types)}) -> ()')
    expand(op, "\n".join(lines))


def emit_sort(
    emit: Callable[[str], None], names: Sequence[str], types: Sequence[Any], axis: int, less: Less
) -> list[str]:
    """The text that sorts tensors of one shape by ``less`` along an axis; the names of the results."""
    extents, count = shape(types[0]), len(types)
    rank = len(extents)
    if rank == 0 or extents[axis] in (0, 1):
        return list(names)
    places = tensor(extents, "i32")
    emit("%zero = arith.constant 0 : index\n%one = arith.constant 1 : index")
    extents_of(emit, "n", names[0], types[0])
    dynamic = [f"%n{dim}" for dim, extent in enumerate(extents) if extent < 0]
    emit(f"%n = arith.addi %n{axis}, %zero : index")
    if extents[axis] < 0:
        emit("%before = arith.subi %n, %one : index\n%most = arith.maxsi %before, %zero : index")
        emit("%most64 = arith.index_cast %most : index to i64\n%zeros = math.ctlz %most64 : i64")
        emit("%c64 = arith.constant 64 : i64\n%bits = arith.subi %c64, %zeros : i64")
        emit("%passes = arith.index_cast %bits : i64 to index")
    else:
        emit(f"%passes = arith.constant {(extents[axis] - 1).bit_length()} : index")
    own = axes_map(rank, range(rank))
    parallel = commas(['"parallel"'] * rank)
    sizes = commas(dynamic)
    emit(f"%empty = tensor.empty({sizes}) : {places}")
    emit(
        f"%start = linalg.generic {{indexing_maps = [{own}], iterator_types = [{parallel}]}} outs(%empty : {places}) {{"
    )
    emit(f"^bb0(%o: i32):\n%d = linalg.index {axis} : index\n%d32 = arith.index_cast %d : index to i32")
    emit(f"linalg.yield %d32 : i32\n}} -> {places}")
    emit(f"%sorted = scf.for %p = %zero to %passes step %one iter_args(%places = %start) -> ({places}) {{")
    emit("%w = arith.shli %one, %p : index")
    emit(f"%room = tensor.empty({sizes}) : {places}")
    emit(
        f"%merged = linalg.generic {{indexing_maps = [{own}], iterator_types = [{parallel}]}} outs(%room : {places}) {{"
    )
    emit("^bb0(%o: i32):")
    for dim in range(rank):
        emit(f"%d{dim} = linalg.index {dim} : index")
    emit(f"%d = linalg.index {axis} : index")
    body = _PASS
    for tag, b, a in (("m", "%at_b", "%at_a"), ("e", "%end_b", "%end_a")):
        text, found = _compare(names, types, tag, b, a, places, axis, less)
        body = body.replace(f"LESS({tag}, {b}, {a})", text).replace(f"LESS_{tag}", found)
    emit(body)
    source = commas("%source" if dim == axis else f"%d{dim}" for dim in range(rank))
    emit(f"%place = tensor.extract %places[{source}] : {places}\nlinalg.yield %place : i32\n}} -> {places}")
    emit(f"scf.yield %merged : {places}\n}}")
    for n, type_ in enumerate(types):
        emit(f"%e{n} = tensor.empty({sizes}) : {type_}")
    emit(
        f"%r:{count} = linalg.generic {{indexing_maps = [{commas([own] * (count + 1))}], iterator_types = [{parallel}]}} "
        f"ins(%sorted : {places}) outs({commas(f'%e{n}' for n in range(count))} : {commas(types)}) {{"
    )
    elements = [element(type_) for type_ in types]
    emit(f"^bb0(%at: i32, {commas(f'%o{n}: {e}' for n, e in enumerate(elements))}):")
    emit("%index = arith.index_cast %at : i32 to index")
    for dim in range(rank):
        emit(f"%d{dim} = linalg.index {dim} : index")
    at = commas("%index" if dim == axis else f"%d{dim}" for dim in range(rank))
    for n, (name, type_) in enumerate(zip(names, types, strict=True)):
        emit(f"%v{n} = tensor.extract {name}[{at}] : {type_}")
    emit(f"linalg.yield {commas(f'%v{n}' for n in range(count))} : {commas(elements)}\n}} -> ({commas(types)})")
    return [f"%r#{n}" for n in range(count)] if count > 1 else ["%r"]


def _compare(
    names: Sequence[str], types: Sequence[Any], tag: str, b: str, a: str, places: str, axis: int, less: Less
) -> tuple[str, str]:
    """Whether the elements at a place of the run ``b`` come before those of ``a``: text, and the name of that."""
    lines: list[str] = []
    rank = len(shape(types[0]))
    for side, place in (("b", b), ("a", a)):
        at = commas(place if dim == axis else f"%d{dim}" for dim in range(rank))
        lines.append(f"%{tag}{side}32 = tensor.extract %places[{at}] : {places}")
        lines.append(f"%{tag}{side} = arith.index_cast %{tag}{side}32 : i32 to index")
    for n, (name, type_) in enumerate(zip(names, types, strict=True)):
        for side in ("b", "a"):
            at = commas(f"%{tag}{side}" if dim == axis else f"%d{dim}" for dim in range(rank))
            lines.append(f"%{tag}{side}v{n} = tensor.extract {name}[{at}] : {type_}")
    pairs = [(f"%{tag}bv{n}", f"%{tag}av{n}") for n in range(len(types))]
    found = less(lines.append, f"{tag}less", pairs)
    return "\n".join(lines), found


def expand_total_order(op: Any) -> None:
    """Of the bits as integers: those of negative numbers but their sign are turned round."""
    if enum(op, "compare_type") != "TOTALORDER":
        return
    type_ = op.operands[0].type
    width = {"f64": 64, "f32": 32, "f16": 16, "bf16": 16}.get(str(element(type_)), 8)
    text, extents, of = Text(type_), shape(type_), f"i{width}"
    bits = tensor(extents, of)
    places, one = (text.full(extents, of, count).name for count in (width - 1, 1))
    keys: list[str] = []
    for n in range(2):
        own = text.add(f"stablehlo.bitcast_convert %{n} : ({type_}) -> {bits}")
        signs = text.add(f"stablehlo.shift_right_arithmetic {own}, {places} : {bits}")
        turned = text.add(f"stablehlo.shift_right_logical {signs}, {one} : {bits}")
        keys.append(text.add(f"stablehlo.xor {own}, {turned} : {bits}"))
    result = op.results[0].type
    direction = enum(op, "comparison_direction")
    less = text.add(f"stablehlo.compare {direction}, {commas(keys)}, SIGNED : ({bits}, {bits}) -> {result}")
    expand(op, text.result([Array(text, less, tuple(extents), "i1")]))
