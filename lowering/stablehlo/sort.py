"""Sorts of StableHLO and tm_tensor become merges of sorted runs, all of a pass at once, or what `sort_keys` makes of
them; stable.

A task makes some elements of a merged run, one after another. Where in the two runs it begins it finds by binary search
(merge path), so that all of a pass are independent.
"""

from collections.abc import Callable, Sequence
from typing import Any

from devscope.lowering.stablehlo.sort_keys import RUN, Key, stablehlo_key
from devscope.lowering.stablehlo.templates import (
    applied,
    commas,
    element,
    expand,
    extents_of,
    integers,
    number,
    shape,
    tensor,
)
from devscope.lowering.stablehlo.topk import MOST, Less, emit_best

CHUNK = 32
"""Elements of a merged run that one task makes, one after another."""

_LISTED = 4
"""Of so many first ones a list is kept to find the last, too."""

_BEGIN = """
%from = arith.muli %chunk, %c : index
%rest = arith.subi %n, %from : index
%length = arith.minui %c, %rest : index
%two_w = arith.addi %w, %w : index
%shift = arith.addi %p, %one : index
%run = arith.shrui %from, %shift : index
%base = arith.muli %run, %two_w : index
%left = arith.subi %n, %base : index
%a_len = arith.minui %w, %left : index
%left_b = arith.subi %left, %a_len : index
%b_len = arith.minui %w, %left_b : index
%b_base = arith.addi %base, %a_len : index
%k = arith.subi %from, %base : index
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
} attributes {devscope.ends}
%begin_b = arith.subi %k, %taken#0 : index
%first_a = arith.addi %base, %taken#0 : index
%first_b = arith.addi %b_base, %begin_b : index
%end_b = arith.addi %b_base, %b_len : index
%most_n = arith.subi %n, %one : index
"""
"""Which element of each of the two runs a task begins with: merge path."""

_STEP = """
%has_a = arith.cmpi slt, %i, %b_base : index
%has_b = arith.cmpi slt, %j2, %end_b : index
%in_a = arith.minsi %i, %most_n : index
%in_b = arith.minsi %j2, %most_n : index
LESS(e, %in_b, %in_a)
%true = arith.constant true
%no_a = arith.xori %has_a, %true : i1
%wins_b = arith.ori LESS_e, %no_a : i1
%from_b = arith.andi %wins_b, %has_b : i1
%step_b = arith.extui %from_b : i1 to i64
%by_b = arith.index_cast %step_b : i64 to index
%by_a = arith.subi %one, %by_b : index
%next_a = arith.addi %i, %by_a : index
%next_b = arith.addi %j2, %by_b : index
"""
"""One element, without a branch; reads stay inside where a run is at its end."""


def expand_sort(op: Any) -> None:
    kinds = [element(value.type) for value in op.operands]

    def less(emit: Callable[[str], None], tag: str, pairs: list[tuple[str, str]]) -> str:
        values = [(name, of) for pair, of in zip(pairs, kinds, strict=True) for name in pair]
        return applied(op, emit, tag, values)[0]

    types = [value.type for value in op.operands]
    lines: list[str] = []
    rank = len(shape(types[0]))
    given = [f"%{n}" for n in range(len(types))]
    axis, key = number(op, "dimension", -1) % max(rank, 1), stablehlo_key(op)
    names = emit_sort(lines.append, given, types, axis, less, op, key)
    lines.append(f'"devscope.return"({commas(names)}) : ({commas(types)}) -> ()')
    expand(op, "\n".join(lines))


def emit_sort(
    emit: Callable[[str], None],
    names: Sequence[str],
    types: Sequence[Any],
    axis: int,
    less: Less,
    op: Any = None,
    key: Key | None = None,
) -> list[str]:
    """The text that sorts tensors of one shape by ``less`` along an axis; the names of the results.

    Of the results of ``op`` that are read in part only the first ones are found, or the one. ``key``: what is
    compared, if that is one number.
    """
    extents = shape(types[0])
    rank = len(extents)
    if rank == 0 or extents[axis] in (0, 1):
        return list(names)
    order = [*(dim for dim in range(rank) if dim != axis), axis]
    back = [order.index(dim) for dim in range(rank)]
    emit("%zero = arith.constant 0 : index\n%one = arith.constant 1 : index")
    extents_of(emit, "m", names[0], types[0])
    elements = [element(type_) for type_ in types]
    given = transposed(emit, "t", names, elements, extents, order, [f"%m{dim}" for dim in order])
    extents = [extents[dim] for dim in order]
    for dim, own in enumerate(order):
        emit(f"%n{dim} = arith.addi %m{own}, %zero : index")
    first, kept = _read(op, axis) if op is not None else (0, 0)
    are_few = 0 < kept <= MOST and (extents[-1] < 0 or 8 * kept <= extents[-1])
    rows = key.rows(elements, extents) if key is not None else None
    used = list(range(len(given)))
    if rows is not None and kept == first + 1 and rows.are_long and (kept > _LISTED or not are_few):
        found = rows.select(emit, given, elements, first)
    elif are_few:
        if key is not None and op is not None:
            used = [n for n in used if n == key.operand or list(op.results[n].uses)]

        def less_of_used(emit: Callable[[str], None], tag: str, pairs: list[tuple[str, str]]) -> str:
            return less(emit, tag, [pairs[used.index(n if n in used else used[0])] for n in range(len(given))])

        ones, kinds = [given[n] for n in used], [elements[n] for n in used]
        found = _first_ones(emit, ones, kinds, extents, kept, less_of_used)
    elif rows is not None:

        def merge(words: Sequence[str], kinds: Sequence[Any], extents: Sequence[int]) -> list[str]:
            return _merges(emit, words, kinds, extents, _less_word, RUN)

        used = [n for n in used if op is None or list(op.results[n].uses)] or [0]
        found = rows.sort(emit, given, elements, merge, used)
    else:
        found = _merges(emit, given, elements, extents, less)
    sorted_ = [found[used.index(n)] if n in used else name for n, name in enumerate(given)]
    return transposed(emit, "back", sorted_, elements, extents, back, [f"%n{dim}" for dim in back])


def _less_word(emit: Callable[[str], None], tag: str, pairs: list[tuple[str, str]]) -> str:
    emit(f"%{tag} = arith.cmpi slt, {pairs[0][0]}, {pairs[0][1]} : i64")
    return f"%{tag}"


def _read(op: Any, axis: int) -> tuple[int, int]:
    """Which elements along an axis are read of the results: from one on, before another; none if that is not known."""
    found: list[tuple[int, int]] = []
    for use in (use for result in op.results for use in result.uses):
        reader, rank = use.owner.operation, len(shape(op.results[0].type))
        is_slice = reader.name == "stablehlo.slice"
        if not is_slice and reader.name != "tensor.extract_slice":
            return 0, 0
        begin = integers(reader, "start_indices" if is_slice else "static_offsets")
        sizes = integers(reader, "limit_indices" if is_slice else "static_sizes")
        steps = integers(reader, "static_strides", integers(reader, "strides"))
        if len(begin) != rank or begin[axis] < 0 or sizes[axis] < 0 or steps[axis] != 1:
            return 0, 0
        found.append((begin[axis], sizes[axis] if is_slice else begin[axis] + sizes[axis]))
    firsts, ends = zip(*found, strict=True) if found else ((0,), (0,))
    return min(firsts), max(ends)


def _first_ones(
    emit: Callable[[str], None],
    names: Sequence[str],
    elements: Sequence[Any],
    extents: Sequence[int],
    kept: int,
    less: Less,
) -> list[str]:
    """The first ones are selected; nothing reads what comes behind them."""

    def given(emit: Callable[[str], None], at: Sequence[str]) -> Sequence[str]:
        for n, (name, of) in enumerate(zip(names, elements, strict=True)):
            emit(f"%x{n} = tensor.extract {name}[{commas(at)}] : {tensor(extents, of)}")
        return [f"%x{n}" for n in range(len(names))]

    found = emit_best(emit, extents, kept, elements, given, None, less)
    dynamic = commas(f"%n{dim}" for dim, extent in enumerate(extents) if extent < 0)
    few = [*extents[:-1], kept]
    lengths = commas(f"%n{dim}" if extent < 0 else extent for dim, extent in enumerate(few))
    place = f"[{commas([0] * len(few))}] [{lengths}] [{commas([1] * len(few))}]"
    for n, (name, of) in enumerate(zip(found, elements, strict=True)):
        emit(f"%rest{n} = tensor.empty({dynamic}) : {tensor(extents, of)}")
        emit(
            f"%full{n} = tensor.insert_slice {name} into %rest{n}{place} : {tensor(few, of)} into "
            f"{tensor(extents, of)}"
        )
    return [f"%full{n}" for n in range(len(names))]


def transposed(
    emit: Callable[[str], None],
    tag: str,
    names: Sequence[str],
    elements: Sequence[Any],
    extents: Sequence[int],
    order: Sequence[int],
    sizes: Sequence[str],
) -> list[str]:
    """The text of tensors with their dimensions in this order, of these sizes; names of all types of ``elements``."""
    if list(order) == sorted(order):
        return list(names)
    after = [extents[dim] for dim in order]
    dynamic = commas(size for size, extent in zip(sizes, after, strict=True) if extent < 0)
    for n, (name, of) in enumerate(zip(names, elements, strict=False)):
        before, type_ = tensor(extents, of), tensor(after, of)
        emit(f"%{tag}e{n} = tensor.empty({dynamic}) : {type_}")
        emit(
            f"%{tag}{n} = linalg.transpose ins({name} : {before}) outs(%{tag}e{n} : {type_}) permutation = {order}"
        )
    return [f"%{tag}{n}" for n in range(len(names))]


def _merges(
    emit: Callable[[str], None],
    names: Sequence[str],
    elements: Sequence[Any],
    extents: Sequence[int],
    less: Less,
    run: int = 1,
) -> list[str]:
    """The text of all passes, along the last dimension; names of the results. ``run``: elements that are in order."""
    rank, count = len(extents), len(names)
    types = [tensor(extents, of) for of in elements]
    own = f"arith.addi %n{rank - 1}, %zero" if extents[-1] < 0 else f"arith.constant {extents[-1]}"
    emit(f"%n = {own} : index\n%most_c = arith.constant {CHUNK} : index")
    emit(f"%first_pass = arith.constant {run.bit_length() - 1} : index")
    if extents[-1] < 0:
        emit("%before = arith.subi %n, %one : index\n%most = arith.maxsi %before, %zero : index")
        emit("%most64 = arith.index_cast %most : index to i64\n%zeros = math.ctlz %most64 : i64")
        emit("%c64 = arith.constant 64 : i64\n%bits = arith.subi %c64, %zeros : i64")
        emit("%passes = arith.index_cast %bits : i64 to index")
    else:
        emit(f"%passes = arith.constant {(extents[-1] - 1).bit_length()} : index")
    dynamic = commas(f"%n{dim}" for dim, extent in enumerate(extents) if extent < 0)
    carried = commas(f"%s{n} = {name}" for n, name in enumerate(names))
    results = f":{count}" if count > 1 else ""
    emit(
        f"%sorted{results} = scf.for %p = %first_pass to %passes step %one iter_args({carried}) -> ({commas(types)}) {{"
    )
    emit("%w = arith.shli %one, %p : index\n%width = arith.addi %w, %w : index")
    emit("%c = arith.minui %width, %most_c : index\n%chunks = arith.ceildivui %n, %c : index")
    for n, type_ in enumerate(types):
        emit(f"%room{n} = tensor.empty({dynamic}) : {type_}")
    others = [f"%d{dim}" for dim in range(rank - 1)]
    emit(
        f"%merged{results} = scf.forall ({commas([*others, '%chunk'])}) in "
        f"({commas([*(f'%n{dim}' for dim in range(rank - 1)), '%chunks'])}) "
        f"shared_outs({commas(f'%o{n} = %room{n}' for n in range(count))}) -> ({commas(types)}) {{"
    )
    emit(_compared(_BEGIN, "m", "%at_b", "%at_a", types, others, less))
    place = f"[{commas([*others, '%from'])}] [{commas([1] * (rank - 1) + ['%length'])}] [{commas([1] * rank)}]"
    parts = [tensor([-1], of) for of in elements]
    for n, (type_, part) in enumerate(zip(types, parts, strict=True)):
        emit(f"%part{n} = tensor.extract_slice %o{n}{place} {{devscope.inside}} : {type_} to {part}")
    state = commas([*(f"%x{n} = %part{n}" for n in range(count)), "%i = %first_a", "%j2 = %first_b"])
    kinds = commas([*parts, "index", "index"])
    emit(f"%l:{count + 2} = scf.for %u = %zero to %length step %one iter_args({state}) -> ({kinds}) {{")
    emit(_compared(_STEP, "e", "%in_b", "%in_a", types, others, less))
    for n, (of, part) in enumerate(zip(elements, parts, strict=True)):
        emit(f"%v{n} = arith.select %from_b, %ebv{n}, %eav{n} : {of}")
        emit(f"%y{n} = tensor.insert %v{n} into %x{n}[%u] : {part}")
    emit(f"scf.yield {commas([*(f'%y{n}' for n in range(count)), '%next_a', '%next_b'])} : {kinds}")
    emit("} {devscope.ends}")
    emit("scf.forall.in_parallel {")
    for n, (type_, part) in enumerate(zip(types, parts, strict=True)):
        emit(f"tensor.parallel_insert_slice %l#{n} into %o{n}{place} {{devscope.inside}} : {part} into {type_}")
    merged = [f"%merged#{n}" for n in range(count)] if count > 1 else ["%merged"]
    emit(f"}}\n}}\nscf.yield {commas(merged)} : {commas(types)}\n}}")
    return [f"%sorted#{n}" for n in range(count)] if count > 1 else ["%sorted"]


def _compared(text: str, tag: str, b: str, a: str, types: Sequence[str], others: Sequence[str], less: Less) -> str:
    """``text`` with whether the elements at a place of the run ``b`` come before those of ``a``."""
    lines: list[str] = []
    for n, type_ in enumerate(types):
        for side, place in (("b", b), ("a", a)):
            at = commas([*others, place])
            lines.append(f"%{tag}{side}v{n} = tensor.extract %s{n}[{at}] : {type_}")
    pairs = [(f"%{tag}bv{n}", f"%{tag}av{n}") for n in range(len(types))]
    found = less(lines.append, f"{tag}less", pairs)
    return text.replace(f"LESS({tag}, {b}, {a})", "\n".join(lines)).replace(f"LESS_{tag}", found)
