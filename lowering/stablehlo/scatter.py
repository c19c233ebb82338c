"""Scatters of StableHLO and tm_tensor become parallel loops over what updates cannot share, with loops over the others inside.

Updates of one element happen in row-major order. A window that is not inside of the operand is left out, as in XLA.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from devscope.lowering.stablehlo.templates import (
    applied,
    commas,
    element,
    expand,
    extents_of,
    listed,
    shape,
    tensor,
)


@dataclass(frozen=True)
class Places:
    """Where updates go, as in the attribute ``scatter_dimension_numbers``.

    If ``wraps``, an index below zero counts from the end; if ``new_first``, the body gets new elements before old ones.
    """

    window: Sequence[int]
    inserted: Sequence[int]
    batching: Sequence[int]
    index_batching: Sequence[int]
    mapped: Sequence[int]
    vector: int
    wraps: bool = False
    new_first: bool = False


def expand_scatter(op: Any) -> None:
    count = len(op.results)
    get = listed(op.attributes["scatter_dimension_numbers"])
    places = Places(
        get("update_window_dims"),
        get("inserted_window_dims"),
        get("input_batching_dims"),
        get("scatter_indices_batching_dims"),
        get("scatter_dims_to_operand_dims"),
        (get("index_vector_dim") or [0])[0],
    )
    scatter(op, list(op.operands), count, places)


COMBINERS = {"set": "", "sum": "add", "prod": "multiply", "amax": "maximum", "amin": "minimum"}
"""What `along_rows` makes of an old element and a new one: operations of StableHLO; none for the new one."""


def along_rows(name: str, op: Any) -> str:
    """The text of a scatter of ``op``'s first operand, b x m x n, by indices and updates of b x k x n.

    ``name`` is one of `COMBINERS`.
    """
    given, of, combine = op.operands[0].type, element(op.operands[0].type), COMBINERS[name]
    single = tensor([], of)
    made = f"%made = stablehlo.{combine} %old, %new : {single}" if combine else ""
    places = (
        "update_window_dims = [], inserted_window_dims = [1], input_batching_dims = [0, 2], "
        "scatter_indices_batching_dims = [0, 2], scatter_dims_to_operand_dims = [1], index_vector_dim = 3"
    )
    return (
        f'%scattered = "stablehlo.scatter"(%0, %1, %2) <{{scatter_dimension_numbers = #stablehlo.scatter<{places}>}}> ({{\n'
        f"^bb0(%old: {single}, %new: {single}):\n{made}\n"
        f"stablehlo.return {'%made' if combine else '%new'} : {single}\n}}) : "
        f"({commas(value.type for value in op.operands)}) -> {given}\n"
        f'"devscope.return"(%scattered) : ({given}) -> ()'
    )


def scatter(op: Any, operands: list[Any], count: int, places: Places) -> None:
    """Replace ``op`` by scattering; ``operands`` are the inputs, indices and updates."""
    inputs, indices, updates = operands[:count], operands[count], operands[count + 1 :]
    window, inserted, batching = places.window, places.inserted, places.batching
    mapped, vector = places.mapped, places.vector
    extents, update_extents, index_extents = shape(inputs[0].type), shape(updates[0].type), shape(indices.type)
    scattered = [dim for dim in range(len(update_extents)) if dim not in window]
    windowed = [dim for dim in range(len(extents)) if dim not in inserted and dim not in batching]
    in_window = dict(zip(windowed, window, strict=True))
    index_dims = [dim for dim in range(len(index_extents)) if dim != vector]
    in_batch = {
        dim: scattered[index_dims.index(place)] for dim, place in zip(batching, places.index_batching, strict=True)
    }
    # A dimension of the operand along which different updates write different elements, and that of the updates.
    apart = {**in_batch, **{dim: place for dim, place in in_window.items() if dim not in mapped}}
    apart = {dim: place for dim, place in sorted(apart.items())}
    serial = [dim for dim in [*scattered, *window] if dim not in apart.values()]
    rest = [dim for dim in range(len(extents)) if dim not in apart]

    lines: list[str] = []
    emit = lines.append
    extents_of(emit, "n", "%0", inputs[0].type)
    extents_of(emit, "m", f"%{count + 1}", updates[0].type)
    emit("%zero = arith.constant 0 : index\n%one = arith.constant 1 : index")
    wide = tensor(index_extents, "i64")
    emit(f"%where = stablehlo.convert %{count} : ({indices.type}) -> {wide}")
    outs = [f"%out{n}" for n in range(count)]
    types = [str(value.type) for value in inputs]
    results = f"%result:{count}"
    bounds = [f"%m{place}" for place in apart.values()] or ["%one"]
    names = [f"%u{place}" for place in apart.values()] or ["%only"]
    emit(
        f"{results} = scf.forall ({commas(names)}) in ({commas(bounds)}) "
        f"shared_outs({commas(f'{o} = %{n}' for n, o in enumerate(outs))}) -> ({commas(types)}) {{"
    )
    offsets = commas(f"%u{apart[dim]}" if dim in apart else 0 for dim in range(len(extents)))
    lengths = commas(
        1 if dim in apart else (extents[dim] if extents[dim] >= 0 else f"%n{dim}") for dim in range(len(extents))
    )
    strides = commas([1] * len(extents))
    parts = [tensor([extents[dim] for dim in rest], element(value.type)) for value in inputs]
    place = f"[{offsets}] [{lengths}] [{strides}]"
    for n in range(count):
        emit(f"%part{n} = tensor.extract_slice {outs[n]}{place} : {types[n]} to {parts[n]}")
    carried = [f"%part{n}" for n in range(count)]
    for depth, dim in enumerate(serial):
        inner = [f"%c{depth}_{n}" for n in range(count)]
        emit(
            f"%l{depth}:{count} = scf.for %u{dim} = %zero to %m{dim} step %one iter_args("
            f"{commas(f'{i} = {c}' for i, c in zip(inner, carried, strict=True))}) -> ({commas(parts)}) {{"
        )
        carried = inner
    _update(emit, op, operands, places, carried, parts, rest, scattered, in_window)
    final = [f"%new#{n}" for n in range(count)]
    for depth in reversed(range(len(serial))):
        emit(f"scf.yield {commas(final)} : {commas(parts)}\n}}")
        final = [f"%l{depth}#{n}" for n in range(count)]
    emit("scf.forall.in_parallel {")
    for n in range(count):
        emit(f"tensor.parallel_insert_slice {final[n]} into {outs[n]}{place} : {parts[n]} into {types[n]}")
    emit("}\n}")
    results = commas(f"%result#{n}" for n in range(count))
    emit(f'"devscope.return"({results}) : ({commas(types)}) -> ()')
    expand(op, "\n".join(lines), operands)


def _update(
    emit: Any,
    op: Any,
    operands: list[Any],
    places: Places,
    carried: list[str],
    parts: list[str],
    rest: list[int],
    scattered: list[int],
    in_window: dict[int, int],
) -> None:
    """One element of each operand, by one of each update, if its window is inside."""
    count = len(carried)
    indices, updates, mapped, vector = operands[count], operands[count + 1 :], places.mapped, places.vector
    extents, index_extents, rank = shape(operands[0].type), shape(indices.type), len(shape(updates[0].type))
    wide = tensor(index_extents, "i64")
    emit("%true = arith.constant true")
    inside = "%true"
    conditions: list[str] = []
    starts: dict[int, str] = {}
    for k, dim in enumerate(mapped):
        at = [f"%u{d}" for d in scattered]
        if vector < len(index_extents):
            emit(f"%k{k} = arith.constant {k} : index")
            at.insert(vector, f"%k{k}")
        emit(f"%wide{k} = tensor.extract %where[{commas(at)}] : {wide}")
        emit(f"%s{dim} = arith.index_cast %wide{k} : i64 to index")
        starts[dim] = f"%s{dim}"
        if places.wraps:
            emit(f"%below{k} = arith.cmpi slt, %s{dim}, %zero : index")
            emit(f"%around{k} = arith.addi %s{dim}, %n{dim} : index")
            emit(f"%w{k} = arith.select %below{k}, %around{k}, %s{dim} : index")
            starts[dim] = f"%w{k}"
        size = f"%m{in_window[dim]}" if dim in in_window else "%one"
        emit(f"%last{k} = arith.subi %n{dim}, {size} : index")
        emit(f"%low{k} = arith.cmpi sge, {starts[dim]}, %zero : index")
        emit(f"%high{k} = arith.cmpi sle, {starts[dim]}, %last{k} : index")
        conditions += [f"%low{k}", f"%high{k}"]
    for dim in rest:
        if dim not in starts and dim not in in_window and extents[dim] <= 0:
            emit(f"%any{dim} = arith.cmpi sgt, %n{dim}, %zero : index")
            conditions.append(f"%any{dim}")
    for k, condition in enumerate(conditions):
        emit(f"%inside{k} = arith.andi {inside}, {condition} : i1")
        inside = f"%inside{k}"
    at = []
    results = commas(parts)
    emit(f"%new:{count} = scf.if {inside} -> ({results}) {{")
    for dim in rest:
        if dim in starts and dim in in_window:
            emit(f"%p{dim} = arith.addi {starts[dim]}, %u{in_window[dim]} : index")
            at.append(f"%p{dim}")
        elif dim in starts:
            at.append(starts[dim])
        else:
            at.append(f"%u{in_window[dim]}" if dim in in_window else "%zero")
    from_update = commas(f"%u{d}" for d in range(rank))
    kinds = [element(result.type) for result in op.results]
    for n in range(count):
        emit(f"%old{n} = tensor.extract {carried[n]}[{commas(at)}] : {parts[n]}")
        emit(f"%add{n} = tensor.extract %{count + 1 + n}[{from_update}] : {updates[n].type}")
    olds = [(f"%old{n}", of) for n, of in enumerate(kinds)]
    news = [(f"%add{n}", of) for n, of in enumerate(kinds)]
    values = applied(op, emit, "applied", [*news, *olds] if places.new_first else [*olds, *news])
    for n, value in enumerate(values):
        emit(f"%put{n} = tensor.insert {value} into {carried[n]}[{commas(at)}] : {parts[n]}")
    emit(f"scf.yield {commas(f'%put{n}' for n in range(count))} : {results}\n}} else {{")
    emit(f"scf.yield {commas(carried)} : {results}\n}}")
