"""The best few elements of rows: a sorted list of them is kept while the elements are looked at, one after another.

Long rows are cut into parts, each of which a task looks at; the best of these are looked at in the end. What an
element is better than is moved by one place, which is rare after the first elements of a row in no order.
"""

from collections.abc import Callable, Sequence
from typing import Any

from devscope.lowering.stablehlo.templates import commas, tensor

Emit = Callable[[str], None]
Less = Callable[[Callable[[str], None], str, list[tuple[str, str]]], str]
"""Emits whether elements come before others, with a tag for names, of pairs of names; returns the name of that."""
At = Callable[[Emit, Sequence[str]], Sequence[str]]
"""Emits what is at a place, of each tensor an element; their names."""

MOST = 128
"""Of the best, that are found so: each may be moved for every element."""
PART = 2048
"""Elements of a row that one task looks at, or more: of the first ones many enter."""


def emit_best(
    emit: Emit, extents: Sequence[int], kept: int, kinds: Sequence[Any], given: At, begun: At | None, before: Less
) -> list[str]:
    """The text that finds the ``kept`` best along the last dimension; the names of tensors of ``kinds``.

    ``given`` are the elements, of these extents, ``%n0``, ...; ``%zero`` and ``%one`` are known. ``begun`` come before them: as many as are kept.
    """
    rank = len(extents)
    sizes = [f"%n{dim}" for dim in range(rank - 1)]
    emit(f"%kept = arith.constant {kept} : index\n%last = arith.constant {kept - 1} : index")
    emit(f"%n = arith.addi %n{rank - 1}, %zero : index")
    first = [] if begun is None else [("%kept", begun)]
    size = max(PART, 128 * kept)
    parts = -(-extents[-1] // size)
    if parts < 2:
        return _lists(emit, "r", [*extents[:-1], kept], kinds, sizes, [*first, ("%n", given)], before)
    emit(f"%size = arith.constant {size} : index\n%parts = arith.constant {parts} : index")
    rest = min(extents[-1] - (parts - 1) * size, kept)
    emit(f"%all = arith.constant {(parts - 1) * kept + rest} : index")

    def in_part(emit: Emit, at: Sequence[str]) -> Sequence[str]:
        *row, part, place = at
        emit(f"%from = arith.muli {part}, %size : index\n%there = arith.addi %from, {place} : index")
        return given(emit, [*row, "%there"])

    shape = [*extents[:-1], parts, kept]
    found = _lists(emit, "p", shape, kinds, [*sizes, "%parts"], [("", in_part)], before)

    def of_part(emit: Emit, at: Sequence[str]) -> Sequence[str]:
        *row, place = at
        emit(f"%part = arith.divui {place}, %kept : index\n%rank = arith.remui {place}, %kept : index")
        for n, (best, of) in enumerate(zip(found, kinds, strict=True)):
            emit(f"%x{n} = tensor.extract {best}[{commas([*row, '%part', '%rank'])}] : {tensor(shape, of)}")
        return [f"%x{n}" for n in range(len(kinds))]

    return _lists(emit, "r", [*extents[:-1], kept], kinds, sizes, [*first, ("%all", of_part)], before)


def _lists(
    emit: Emit,
    tag: str,
    extents: Sequence[int],
    kinds: Sequence[Any],
    sizes: Sequence[str],
    looks: Sequence[tuple[str, At]],
    before: Less,
) -> list[str]:
    """The text of lists, which are along the last of the dimensions ``extents``, of how many elements of each of
    ``looks``; "" is the length of a part."""
    types = [tensor(extents, of) for of in kinds]
    lists = [tensor(extents[-1:], of) for of in kinds]
    dynamic = commas(size for size, extent in zip(sizes, extents, strict=False) if extent < 0)
    for n, (of, type_) in enumerate(zip(kinds, types, strict=True)):
        emit(f"%{tag}c{n} = stablehlo.constant dense<{_zero(of)}> : tensor<{of}>")
        emit(f"%{tag}z{n} = tensor.extract %{tag}c{n}[] : tensor<{of}>")
        emit(f"%{tag}e{n} = tensor.empty({dynamic}) : {type_}")
        outs = f"ins(%{tag}z{n} : {of}) outs(%{tag}e{n} : {type_})"
        emit(f"%{tag}f{n} = linalg.fill {outs} -> {type_}")
    rows = [f"%{tag}d{dim}" for dim in range(len(sizes))]
    emit(
        f"%{tag}:{len(kinds)} = scf.forall ({commas(rows or ['%only'])}) in ({commas(sizes or ['%one'])}) "
        f"shared_outs({commas(f'%{tag}o{n} = %{tag}f{n}' for n in range(len(kinds)))}) -> ({commas(types)}) {{"
    )
    place = f"[{commas([*rows, 0])}] [{commas([1] * len(rows) + [extents[-1]])}] [{commas([1] * (len(rows) + 1))}]"
    for n, (type_, list_) in enumerate(zip(types, lists, strict=True)):
        emit(f"%{tag}b{n} = tensor.extract_slice %{tag}o{n}{place} : {type_} to {list_}")
    state = [*(f"%{tag}b{n}" for n in range(len(kinds))), "%zero"]
    for number, (count, at) in enumerate(looks):
        own = f"{tag}{number}"
        if not count:
            count = f"%{own}length"
            emit(f"%{own}begin = arith.muli {rows[-1]}, %size : index")
            emit(f"%{own}left = arith.subi %n, %{own}begin : index")
            emit(f"{count} = arith.minui %{own}left, %size : index")
        _look(emit, own, count, rows, state, lists, at, before)
        state = [f"%{own}l#{n}" for n in range(len(kinds) + 1)]
    emit("scf.forall.in_parallel {")
    for n, (type_, list_) in enumerate(zip(types, lists, strict=True)):
        emit(f"tensor.parallel_insert_slice {state[n]} into %{tag}o{n}{place} : {list_} into {type_}")
    emit("}\n}")
    return [f"%{tag}#{n}" if len(kinds) > 1 else f"%{tag}" for n in range(len(kinds))]


def _zero(of: Any) -> str:
    name = str(of)
    if name.startswith("complex"):
        return "(0.0, 0.0)"
    if name == "i1":
        return "false"
    return "0.0" if name[0] in "bf" else "0"


def _look(
    emit: Emit,
    tag: str,
    count: str,
    rows: Sequence[str],
    state: Sequence[str],
    lists: Sequence[str],
    at: At,
    before: Less,
) -> None:
    """The text of ``%TAGl``: lists, and how many elements are in them, after ``count`` ones were looked at."""
    own = range(len(lists))
    carried = commas(f"%{n} = {v}" for n, v in zip([*(f"l{n}" for n in own), "filled"], state, strict=True))
    kept = commas([*lists, "index"])
    emit(f"%{tag}l:{len(lists) + 1} = scf.for %t = %zero to {count} step %one iter_args({carried}) -> ({kept}) {{")
    element = at(emit, [*rows, "%t"])

    def comes_before(name: str, place: str) -> str:
        for n, list_ in enumerate(lists):
            emit(f"%{name}{n} = tensor.extract %l{n}[{place}] : {list_}")
        pairs = [(given, f"%{name}{n}") for n, given in enumerate(element)]
        return before(emit, f"{tag}{name}", pairs)

    better = comes_before("worst", "%last")
    emit("%room = arith.cmpi ult, %filled, %kept : index")
    emit(f"%enters = arith.ori {better}, %room : i1")
    emit(f"%k:{len(lists) + 1} = scf.if %enters -> ({kept}) {{\n%end = arith.minui %filled, %last : index")
    emit("%to = scf.while (%q = %end) : (index) -> index {\n%below = arith.subi %q, %one : index")
    emit("%next = arith.maxsi %below, %zero : index\n%some = arith.cmpi ugt, %q, %zero : index")
    passes = comes_before("other", "%next")
    emit(f"%on = arith.andi %some, {passes} : i1\nscf.condition(%on) %q : index\n}} do {{")
    emit(
        "^bb0(%q: index):\n%less = arith.subi %q, %one : index\nscf.yield %less : index\n} attributes {devscope.ends}"
    )
    emit("%moved = arith.subi %end, %to : index")
    types = commas(lists)
    carried = commas(f"%h{n} = %l{n}" for n in own)
    emit(f"%m:{len(lists)} = scf.for %u = %zero to %moved step %one iter_args({carried}) -> ({types}) {{")
    emit("%into = arith.subi %end, %u : index\n%out = arith.subi %into, %one : index")
    for n, list_ in enumerate(lists):
        emit(
            f"%v{n} = tensor.extract %h{n}[%out] : {list_}\n%w{n} = tensor.insert %v{n} into %h{n}[%into] : {list_}"
        )
    emit(f"scf.yield {commas(f'%w{n}' for n in own)} : {types}\n}} {{devscope.ends}}")
    moved = [f"%m#{n}" if len(lists) > 1 else "%m" for n in own]
    for n, (name, list_) in enumerate(zip(element, lists, strict=True)):
        emit(f"%i{n} = tensor.insert {name} into {moved[n]}[%to] : {list_}")
    emit("%more = arith.addi %filled, %one : index\n%now = arith.minui %more, %kept : index")
    emit(f"scf.yield {commas([*(f'%i{n}' for n in own), '%now'])} : {kept}\n}} else {{")
    emit(f"scf.yield {commas([*(f'%l{n}' for n in own), '%filled'])} : {kept}\n}}")
    emit(f"scf.yield {commas(f'%k#{n}' for n in (*own, len(lists)))} : {kept}\n}} {{devscope.ends}}")
