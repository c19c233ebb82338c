"""``stablehlo.scatter`` becomes parallel loops over what updates cannot share, with loops over the others inside.

Updates of one element happen in row-major order. A window that is not inside of the operand is left out, as in XLA.
"""

from typing import Any

from devscope.lowering.stablehlo.templates import commas, element, expand, listed, shape, tensor


def expand_scatter(op: Any) -> None:
    count = len(op.results)
    inputs, indices, updates = op.operands[:count], op.operands[count], op.operands[count + 1 :]
    get = listed(op.attributes["scatter_dimension_numbers"])
    window, inserted = get("update_window_dims"), get("inserted_window_dims")
    batching, index_batching = get("input_batching_dims"), get("scatter_indices_batching_dims")
    mapped, vector = get("scatter_dims_to_operand_dims"), (get("index_vector_dim") or [0])[0]
    extents, update_extents, index_extents = shape(inputs[0].type), shape(updates[0].type), shape(indices.type)
    scattered = [dim for dim in range(len(update_extents)) if dim not in window]
    windowed = [dim for dim in range(len(extents)) if dim not in inserted and dim not in batching]
    in_window = dict(zip(windowed, window, strict=True))
    index_dims = [dim for dim in range(len(index_extents)) if dim != vector]
    in_batch = {
        dim: scattered[index_dims.index(place)] for dim, place in zip(batching, index_batching, strict=True)
    }
    # A dimension of the operand along which different updates write different elements, and that of the updates.
    apart = {**in_batch, **{dim: place for dim, place in in_window.items() if dim not in mapped}}
    apart = {dim: place for dim, place in sorted(apart.items())}
    serial = [dim for dim in [*scattered, *window] if dim not in apart.values()]

    lines: list[str] = []
    emit = lines.append
    for axis, extent in enumerate(extents):
        emit(f"%axis{axis} = arith.constant {axis} : index")
        emit(
            f"%n{axis} = "
            + (
                f"arith.constant {extent} : index"
                if extent >= 0
                else f"tensor.dim %0, %axis{axis} : {inputs[0].type}"
            )
        )
    for axis, extent in enumerate(update_extents):
        emit(f"%uaxis{axis} = arith.constant {axis} : index")
        first = count + 1
        emit(
            f"%m{axis} = "
            + (
                f"arith.constant {extent} : index"
                if extent >= 0
                else f"tensor.dim %{first}, %uaxis{axis} : {updates[0].type}"
            )
        )
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
    rest = [dim for dim in range(len(extents)) if dim not in apart]
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
    _update(
        emit,
        op,
        carried,
        parts,
        rest,
        extents,
        index_extents,
        mapped,
        vector,
        scattered,
        in_window,
        apart,
        len(update_extents),
    )
    final = [f"%new{n}" for n in range(count)]
    for depth in reversed(range(len(serial))):
        emit(f"scf.yield {commas(final)} : {commas(parts)}\n}}")
        final = [f"%l{depth}#{n}" for n in range(count)]
    emit("scf.forall.in_parallel {")
    for n in range(count):
        emit(f"tensor.parallel_insert_slice {final[n]} into {outs[n]}{place} : {parts[n]} into {types[n]}")
    emit("}\n}")
    results = commas(f"%result#{n}" for n in range(count))
    emit(f'"devscope.return"({results}) : ({commas(types)}) -> ()')
    expand(op, "\n".join(lines))


def _update(
    emit: Any,
    op: Any,
    carried: list[str],
    parts: list[str],
    rest: list[int],
    extents: list[int],
    index_extents: list[int],
    mapped: list[int],
    vector: int,
    scattered: list[int],
    in_window: dict[int, int],
    apart: dict[int, int],
    rank: int,
) -> None:
    """One element of each operand, by one of each update."""
    count = len(carried)
    wide = tensor(index_extents, "i64")
    emit("%true = arith.constant true")
    inside = "%true"
    starts: dict[int, str] = {}
    for k, dim in enumerate(mapped):
        at = [f"%u{d}" for d in scattered]
        if vector < len(index_extents):
            emit(f"%k{k} = arith.constant {k} : index")
            at.insert(vector, f"%k{k}")
        emit(f"%wide{k} = tensor.extract %where[{commas(at)}] : {wide}")
        emit(f"%s{dim} = arith.index_cast %wide{k} : i64 to index")
        size = f"%m{in_window[dim]}" if dim in in_window else "%one"
        emit(f"%last{k} = arith.subi %n{dim}, {size} : index")
        emit(f"%low{k} = arith.cmpi sge, %s{dim}, %zero : index")
        emit(f"%high{k} = arith.cmpi sle, %s{dim}, %last{k} : index")
        emit(f"%both{k} = arith.andi %low{k}, %high{k} : i1")
        emit(f"%inside{k} = arith.andi {inside}, %both{k} : i1")
        inside = f"%inside{k}"
        # Reads stay inside, too.
        emit(f"%a{k} = arith.maxsi %s{dim}, %zero : index")
        emit(f"%b{k} = arith.minsi %a{k}, %last{k} : index")
        starts[dim] = f"%b{k}"
    at = []
    for dim in rest:
        if dim in starts and dim in in_window:
            emit(f"%p{dim} = arith.addi {starts[dim]}, %u{in_window[dim]} : index")
            at.append(f"%p{dim}")
        elif dim in starts:
            at.append(starts[dim])
        else:
            at.append(f"%u{in_window[dim]}" if dim in in_window else "%zero")
    from_update = commas(f"%u{d}" for d in range(rank))
    olds, news, scalars = [], [], []
    for n in range(count):
        of = element(op.results[n].type)
        scalars.append(f"tensor<{of}>")
        emit(f"%old{n} = tensor.extract {carried[n]}[{commas(at)}] : {parts[n]}")
        emit(f"%add{n} = tensor.extract %{count + 1 + n}[{from_update}] : {op.operands[count + 1 + n].type}")
        emit(f"%oldt{n} = tensor.from_elements %old{n} : tensor<{of}>")
        emit(f"%addt{n} = tensor.from_elements %add{n} : tensor<{of}>")
        olds.append(f"%oldt{n}")
        news.append(f"%addt{n}")
    emit(
        f'%applied:{count} = "devscope.apply"({commas([*olds, *news])}) : ({commas([*scalars, *scalars])}) -> ({commas(scalars)})'
    )
    for n in range(count):
        of = element(op.results[n].type)
        emit(f"%val{n} = tensor.extract %applied#{n}[] : tensor<{of}>")
        emit(f"%kept{n} = arith.select {inside}, %val{n}, %old{n} : {of}")
        emit(f"%new{n} = tensor.insert %kept{n} into {carried[n]}[{commas(at)}] : {parts[n]}")
