"""torch-mlir's ``tm_tensor``, which stands for what linalg cannot say: scatters, sorts, scans, attention.

What an operation means is what its scalar implementation does (torch-mlir, ``TMTensorOps.cpp``), on values. Results of
``outs`` are new tensors. Floats that compare as not-a-number come last where small ones come first, and the other way
round, as in torch: the comparisons that torch-mlir writes do not say.
"""

from collections.abc import Callable, Sequence
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.stablehlo.scatter import Places, scatter
from devscope.lowering.stablehlo.sort import emit_sort, transposed
from devscope.lowering.stablehlo.sort_keys import Key
from devscope.lowering.stablehlo.templates import (
    applied,
    axes_map,
    commas,
    element,
    expand,
    extents_of,
    flag,
    integers,
    number,
    shape,
    tensor,
)
from devscope.lowering.stablehlo.topk import MOST, emit_best

Emit = Callable[[str], None]


def expand_scatter(op: Any) -> None:
    """Updates are along the first dimension, their other dimensions the last ones of the result.

    Indices below zero count from the end, as in torch's ``index_put``: torch-mlir leaves them as they are.
    """
    (updates, indices), (original,) = mlir_util.operand_groups(op)
    rank, updated = len(shape(original.type)), len(shape(updates.type)) - 1
    places = Places(
        window=range(1, updated + 1),
        inserted=range(rank - updated),
        batching=[],
        index_batching=[],
        mapped=integers(op, "dimension_map"),
        vector=1,
        wraps=True,
        new_first=True,
    )
    scatter(op, [original, indices, updates], 1, places)


def expand_sort(op: Any) -> None:
    """The body says of neighbours whether they stay as they are."""
    types = [value.type for value in op.operands]

    def less(emit: Emit, tag: str, pairs: list[tuple[str, str]]) -> str:
        found = _key(op)
        if found is not None:
            at, ascending = found
            later, earlier = pairs[at // 2]
            return _before(emit, tag, later, earlier, element(types[at // 2]), ascending)
        values = [(name, element(of)) for (b, a), of in zip(pairs, types, strict=True) for name in (a, b)]
        (stays,) = applied(op, emit, tag, values)
        emit(f"%{tag}_true = arith.constant true\n%{tag}_not = arith.xori {stays}, %{tag}_true : i1")
        return f"%{tag}_not"

    lines: list[str] = []
    given, axis = [f"%{n}" for n in range(len(types))], number(op, "dimension")
    names = emit_sort(lines.append, given, types, axis, less, op, _sort_key(op))
    lines.append(f'"devscope.return"({commas(names)}) : ({commas(types)}) -> ()')
    expand(op, "\n".join(lines))


def expand_topk(op: Any) -> None:
    """The first ones of what the results began with and of the input, sorted; of equal ones the lowest index."""
    inputs, outs = mlir_util.operand_groups(op)
    axis, values, kept = number(op, "dimension"), inputs[0].type, outs[0].type
    extents, rank = shape(values), len(shape(values))
    places = tensor(extents, element(outs[1].type))
    of, index = element(values), element(outs[1].type)
    all_extents = list(extents)
    all_extents[axis] = -1 if -1 in (extents[axis], shape(kept)[axis]) else extents[axis] + shape(kept)[axis]
    lines: list[str] = []
    emit = lines.append

    def less(emit: Emit, tag: str, pairs: list[tuple[str, str]]) -> str:
        (b, a), (b_at, a_at) = pairs
        found = _key(op)
        if found is not None:
            forth = _before(emit, f"{tag}f", b, a, of, found[1])
            back = _before(emit, f"{tag}b", a, b, of, found[1])
        else:
            (forth,) = applied(op, emit, f"{tag}f", [(b, of), (a, of)])
            (back,) = applied(op, emit, f"{tag}b", [(a, of), (b, of)])
        emit(f"%{tag}_equal = arith.cmpi eq, {forth}, {back} : i1")
        emit(f"%{tag}_first = arith.cmpi slt, {b_at}, {a_at} : {index}")
        emit(f"%{tag}_tie = arith.andi %{tag}_equal, %{tag}_first : i1")
        emit(f"%{tag}_less = arith.ori {forth}, %{tag}_tie : i1")
        return f"%{tag}_less"

    kept_extents, in_order = shape(kept), [*inputs[:1], *outs, *inputs[1:]]
    if 0 < kept_extents[axis] <= MOST:
        _best(emit, extents, kept_extents, axis, [value.type for value in in_order], less)
        expand(op, "\n".join(lines), in_order)
        return
    given = "%3"
    if len(inputs) == 1:
        extents_of(emit, "x", "%0", values)
        sizes = commas(f"%x{dim}" for dim, extent in enumerate(extents) if extent < 0)
        parallel, own = commas(['"parallel"'] * rank), axes_map(rank, range(rank))
        emit(f"%fresh = tensor.empty({sizes}) : {places}")
        emit(f"%iota = linalg.generic {{indexing_maps = [{own}], iterator_types = [{parallel}]}}")
        emit(f"outs(%fresh : {places}) {{\n^bb0(%o: {index}):\n%at = linalg.index {axis} : index")
        emit(f"%number = arith.index_cast %at : index to {index}\nlinalg.yield %number : {index}\n}} -> {places}")
        given = "%iota"
    types = [tensor(all_extents, of), tensor(all_extents, index)]
    emit(f"%all = tensor.concat dim({axis}) %1, %0 : ({kept}, {values}) -> {types[0]}")
    emit(f"%alls = tensor.concat dim({axis}) %2, {given} : ({outs[1].type}, {places}) -> {types[1]}")

    read = [ir.Type.parse(type_, op.context) for type_ in types]
    names = emit_sort(emit, ["%all", "%alls"], read, axis, less)
    extents_of(emit, "k", "%1", kept)
    lengths = commas(extent if extent >= 0 else f"%k{dim}" for dim, extent in enumerate(shape(kept)))
    place = f"[{commas([0] * rank)}] [{lengths}] [{commas([1] * rank)}]"
    for n, (name, out) in enumerate(zip(names, outs, strict=True)):
        emit(f"%top{n} = tensor.extract_slice {name}{place} : {types[n]} to {out.type}")
    emit(f'"devscope.return"(%top0, %top1) : ({kept}, {outs[1].type}) -> ()')
    expand(op, "\n".join(lines), in_order)


def _best(
    emit: Emit, extents: list[int], kept: list[int], axis: int, types: list[Any], less: Callable[..., str]
) -> None:
    """The text that finds the first few without a sort, along the last dimension."""
    rank, kinds = len(extents), (element(types[1]), element(types[2]))
    order = [*(dim for dim in range(rank) if dim != axis), axis]
    extents_of(emit, "m", "%0", types[0])
    emit("%zero = arith.constant 0 : index\n%one = arith.constant 1 : index")
    moved = [f"%m{dim}" for dim in order]
    names = transposed(emit, "t", ["%0", *(["%3"] if len(types) > 3 else [])], [*kinds], extents, order, moved)
    firsts = transposed(emit, "b", ["%1", "%2"], kinds, kept, order, moved)
    extents, kept = [extents[dim] for dim in order], [kept[dim] for dim in order]
    for dim, own in enumerate(order):
        emit(f"%n{dim} = arith.addi %m{own}, %zero : index")

    def given(emit: Emit, at: Sequence[str]) -> Sequence[str]:
        emit(f"%x = tensor.extract {names[0]}[{commas(at)}] : {tensor(extents, kinds[0])}")
        if len(names) > 1:
            emit(f"%at = tensor.extract {names[1]}[{commas(at)}] : {tensor(extents, kinds[1])}")
        else:
            emit(f"%at = arith.index_cast {at[-1]} : index to {kinds[1]}")
        return "%x", "%at"

    def begun(emit: Emit, at: Sequence[str]) -> Sequence[str]:
        for name, first, of in zip(("x", "at"), firsts, kinds, strict=True):
            emit(f"%{name} = tensor.extract {first}[{commas(at)}] : {tensor(kept, of)}")
        return "%x", "%at"

    found = emit_best(emit, extents, kept[-1], kinds, given, begun, less)
    back = [order.index(dim) for dim in range(rank)]
    found = transposed(emit, "e", found, kinds, kept, back, [f"%n{dim}" for dim in back])
    results = commas(tensor([kept[dim] for dim in back], of) for of in kinds)
    emit(f'"devscope.return"({commas(found)}) : ({results}) -> ()')


_CMPF = {1: None, 2: False, 3: False, 4: True, 5: True, 8: None, 9: False, 10: False, 11: True, 12: True}
"""Whether a predicate of ``arith.cmpf`` has small ones first."""


def _key(op: Any) -> tuple[int, bool] | None:
    """The place of what the body compares if that is two floats alone, and whether small ones come first."""
    block = op.regions[0].blocks[0]
    *body, end = [inner.operation for inner in block.operations]
    if len(body) != 1 or body[0].name != "arith.cmpf" or end.operands[0] != body[0].results[0]:
        return None
    arguments = list(block.arguments)
    sides = [arguments.index(value) if value in arguments else -1 for value in body[0].operands]
    ascending = _CMPF.get(ir.IntegerAttr(body[0].attributes["predicate"]).value)
    first = min(sides)
    if first < 0 or first % 2 or max(sides) != first + 1 or ascending is None:
        return None
    return first, ascending == (sides[0] == first)


_CMPI = {3: (True, "signed"), 5: (False, "signed"), 7: (True, "unsigned"), 9: (False, "unsigned")}
"""The same of ``arith.cmpi``, of those that leave equals as they are, and their order."""


def _sort_key(op: Any) -> Key | None:
    """What is compared, if that is one number."""
    if (found := _key(op)) is not None:
        return Key(found[0] // 2, found[1], "numbers")
    block = op.regions[0].blocks[0]
    *body, end = [inner.operation for inner in block.operations]
    if len(body) != 1 or body[0].name != "arith.cmpi" or end.operands[0] != body[0].results[0]:
        return None
    arguments = list(block.arguments)
    sides = [arguments.index(value) if value in arguments else -1 for value in body[0].operands]
    known, first = _CMPI.get(ir.IntegerAttr(body[0].attributes["predicate"]).value), min(sides)
    if first < 0 or first % 2 or max(sides) != first + 1 or known is None:
        return None
    return Key(first // 2, known[0] == (sides[0] == first), known[1])


def _before(emit: Emit, tag: str, b: str, a: str, of: Any, ascending: bool) -> str:
    """Whether the float ``b`` must come before ``a``."""
    emit(f"%{tag}_cmp = arith.cmpf {'olt' if ascending else 'ogt'}, {b}, {a} : {of}")
    none, some = (a, b) if ascending else (b, a)
    emit(
        f"%{tag}_none = arith.cmpf uno, {none}, {none} : {of}\n%{tag}_some = arith.cmpf ord, {some}, {some} : {of}"
    )
    emit(f"%{tag}_apart = arith.andi %{tag}_none, %{tag}_some : i1")
    emit(f"%{tag}_before = arith.ori %{tag}_cmp, %{tag}_apart : i1")
    return f"%{tag}_before"


def expand_scan(op: Any) -> None:
    """A loop along the dimension, in parallel for all others. The second result is the last element, of several."""
    (given,), (out, accumulator) = mlir_util.operand_groups(op)
    axis, inclusive, of = number(op, "dimension"), flag(op, "inclusive", True), element(given.type)
    extents = shape(given.type)
    others = [dim for dim in range(len(extents)) if dim != axis]
    lines: list[str] = []
    emit = lines.append
    extents_of(emit, "n", "%0", given.type)
    emit("%zero = arith.constant 0 : index\n%one = arith.constant 1 : index")
    sizes = commas(f"%n{dim}" for dim, extent in enumerate(shape(out.type)) if extent < 0)
    emit(f"%fresh = tensor.empty({sizes}) : {out.type}")  # all of it is written
    emit(
        f"%r:2 = scf.forall ({commas(f'%d{dim}' for dim in others) or '%only'}) in "
        f"({commas(f'%n{dim}' for dim in others) or '%one'}) "
        f"shared_outs(%out = %fresh, %last = %2) -> ({out.type}, {accumulator.type}) {{"
    )
    row, single = tensor([extents[axis]], of), tensor([], of)
    length = extents[axis] if extents[axis] >= 0 else f"%n{axis}"

    def place(along: Any, size: Any) -> str:
        offsets = [along if dim == axis else f"%d{dim}" for dim in range(len(extents))]
        sizes = [size if dim == axis else 1 for dim in range(len(extents))]
        return f"[{commas(offsets)}] [{commas(sizes)}] [{commas([1] * len(extents))}]"

    point = f"[{commas(f'%d{dim}' for dim in others)}] [{commas([1] * len(others))}] [{commas([1] * len(others))}]"
    emit(f"%row = tensor.extract_slice %0{place(0, length)} : {given.type} to {row}")
    emit(f"%into = tensor.extract_slice %out{place(0, length)} : {out.type} to {row}")
    emit(f"%corner = tensor.extract_slice %last{point} : {accumulator.type} to {single}")
    emit(f"%start = tensor.extract %corner[] : {single}")
    emit(
        f"%l:2 = scf.for %i = %zero to %n{axis} step %one iter_args(%t = %into, %was = %start) -> ({row}, {of}) {{"
    )
    emit("%first = arith.cmpi eq, %i, %zero : index")
    emit(f"%is = scf.if %first -> {of} {{")
    if inclusive:
        emit(f"%head = tensor.extract %row[%i] : {row}\nscf.yield %head : {of}\n}} else {{")
        emit(f"%x = tensor.extract %row[%i] : {row}")
    else:
        emit(f"scf.yield %start : {of}\n}} else {{\n%before = arith.subi %i, %one : index")
        emit(f"%x = tensor.extract %row[%before] : {row}")
    (value,) = applied(op, emit, "f", [("%was", of), ("%x", of)])
    emit(f"scf.yield {value} : {of}\n}}\n%new = tensor.insert %is into %t[%i] : {row}")
    emit(f"scf.yield %new, %is : {row}, {of}\n}}")
    emit(f"%several = arith.cmpi ugt, %n{axis}, %one : index")
    emit(
        f"%end = arith.select %several, %l#1, %start : {of}\n%ends = tensor.insert %end into %corner[] : {single}"
    )
    emit("scf.forall.in_parallel {")
    emit(f"tensor.parallel_insert_slice %l#0 into %out{place(0, length)} : {row} into {out.type}")
    emit(f"tensor.parallel_insert_slice %ends into %last{point} : {single} into {accumulator.type}\n}}\n}}")
    emit(f'"devscope.return"(%r#0, %r#1) : ({out.type}, {accumulator.type}) -> ()')
    expand(op, "\n".join(lines), [given, out, accumulator])
