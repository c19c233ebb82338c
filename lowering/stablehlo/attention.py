"""``tm_tensor.attention`` becomes two contractions with a softmax along rows between them.

``softmax(query * key^T * scale + mask) * value``; the mask is added, or says as booleans what is seen. A row that sees
nothing is zero, as in torch. Floats of 16 bits are computed in f32.
"""

from collections.abc import Sequence
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.stablehlo.templates import axes_map, commas, element, expand, extents_of, shape, tensor


def expand_attention(op: Any) -> None:
    inputs, (out,) = mlir_util.operand_groups(op)
    query, key, value = inputs[:3]
    rank, of = len(shape(query.type)), element(out.type)
    wide = ir.F32Type.get(op.context) if str(of) in ("f16", "bf16") else of
    lead = list(range(rank - 2))
    *batches, rows, depth = shape(query.type)
    columns, width = shape(key.type)[-2], shape(value.type)[-1]
    lines: list[str] = []
    emit = lines.append
    for prefix, value_, name in (("q", query, "%0"), ("k", key, "%1"), ("v", value, "%2")):
        extents_of(emit, prefix, name, value_.type)
    whole = [*lead, rank - 2, rank - 1]
    row = [*lead, rank - 2]
    sizes = {
        "s": (*(f"%q{dim}" for dim in row), f"%k{rank - 2}"),
        "r": tuple(f"%q{dim}" for dim in row),
        "o": (*(f"%q{dim}" for dim in row), f"%v{rank - 1}"),
    }
    extents = {"s": [*batches, rows, columns], "r": [*batches, rows], "o": [*batches, rows, width]}
    scores, line, result = (tensor(extents[name], wide) for name in "sro")

    def room(name: str, kind: str, of: Any, fill: str = "") -> None:
        dynamic = commas(size for size, extent in zip(sizes[kind], extents[kind], strict=True) if extent < 0)
        type_ = tensor(extents[kind], of)
        if not fill:
            emit(f"%{name} = tensor.empty({dynamic}) : {type_}")
            return
        emit(f"%{name}_empty = tensor.empty({dynamic}) : {type_}")
        emit(f"%{name} = linalg.fill ins({fill} : {of}) outs(%{name}_empty : {type_}) -> {type_}")

    def widened(name: str, source: Any) -> str:
        if element(source) == wide:
            return name
        emit(f"{name}_wide = arith.extf {name} : {element(source)} to {wide}")
        return f"{name}_wide"

    zero, none = _constant(emit, "zero", wide, 0.0), _constant(emit, "none", wide, float("-inf"))
    scale = _scale(op, emit, wide, depth, rank)
    room("scores_begin", "s", wide, zero)
    dims = rank + 1
    maps = [axes_map(dims, axes) for axes in ([*row, rank], [*lead, rank - 1, rank], whole)]
    _generic(emit, "scores", maps, rank, True, [("%0", query.type), ("%1", key.type)], ("%scores_begin", scores))
    emit(f"^bb0(%x: {element(query.type)}, %y: {element(key.type)}, %o: {wide}):")
    x, y = widened("%x", query.type), widened("%y", key.type)
    emit(
        f"%p = arith.mulf {x}, {y} : {wide}\n%a = arith.addf %o, %p : {wide}\nlinalg.yield %a : {wide}\n}} -> {scores}"
    )

    room("scaled_room", "s", wide)
    own, along = axes_map(rank, whole), axes_map(rank, row)
    given = [("%scores", scores)] + ([("%3", inputs[3].type)] if len(inputs) > 3 else [])
    _generic(emit, "scaled", [own] * (len(given) + 1), rank, False, given, ("%scaled_room", scores))
    mask = f"%m: {element(inputs[3].type)}, " if len(inputs) > 3 else ""
    emit(f"^bb0(%x: {wide}, {mask}%o: {wide}):\n%p = arith.mulf %x, {scale} : {wide}")
    seen = "%p"
    if len(inputs) > 3 and str(element(inputs[3].type)) == "i1":
        emit(f"%seen = arith.select %m, %p, {none} : {wide}")
        seen = "%seen"
    elif len(inputs) > 3:
        emit(f"%seen = arith.addf %p, {widened('%m', inputs[3].type)} : {wide}")
        seen = "%seen"
    emit(f"linalg.yield {seen} : {wide}\n}} -> {scores}")

    room("most_begin", "r", wide, none)
    _generic(emit, "most", [own, along], rank - 1, True, [("%scaled", scores)], ("%most_begin", line))
    emit(
        f"^bb0(%x: {wide}, %o: {wide}):\n%a = arith.maximumf %x, %o : {wide}\nlinalg.yield %a : {wide}\n}} -> {line}"
    )

    room("powers_room", "s", wide)
    _generic(
        emit,
        "powers",
        [own, along, own],
        rank,
        False,
        [("%scaled", scores), ("%most", line)],
        ("%powers_room", scores),
    )
    emit(f"^bb0(%x: {wide}, %m: {wide}, %o: {wide}):\n%blind = arith.cmpf oeq, %m, {none} : {wide}")
    emit(f"%base = arith.select %blind, {zero}, %m : {wide}\n%d = arith.subf %x, %base : {wide}")
    emit(f"%a = math.exp %d : {wide}\nlinalg.yield %a : {wide}\n}} -> {scores}")

    room("sums_begin", "r", wide, zero)
    _generic(emit, "sums", [own, along], rank - 1, True, [("%powers", scores)], ("%sums_begin", line))
    emit(f"^bb0(%x: {wide}, %o: {wide}):\n%a = arith.addf %x, %o : {wide}\nlinalg.yield %a : {wide}\n}} -> {line}")

    room("weights_room", "s", wide)
    _generic(
        emit,
        "weights",
        [own, along, own],
        rank,
        False,
        [("%powers", scores), ("%sums", line)],
        ("%weights_room", scores),
    )
    emit(f"^bb0(%x: {wide}, %s: {wide}, %o: {wide}):\n%blind = arith.cmpf oeq, %s, {zero} : {wide}")
    emit(f"%q = arith.divf %x, %s : {wide}\n%a = arith.select %blind, {zero}, %q : {wide}")
    emit(f"linalg.yield %a : {wide}\n}} -> {scores}")

    room("product_begin", "o", wide, zero)
    maps = [axes_map(dims, axes) for axes in ([*row, rank], [*lead, rank, rank - 1], whole)]
    _generic(
        emit, "product", maps, rank, True, [("%weights", scores), ("%2", value.type)], ("%product_begin", result)
    )
    emit(f"^bb0(%x: {wide}, %y: {element(value.type)}, %o: {wide}):")
    y = widened("%y", value.type)
    emit(
        f"%p = arith.mulf %x, {y} : {wide}\n%a = arith.addf %o, %p : {wide}\nlinalg.yield %a : {wide}\n}} -> {result}"
    )
    final, made = "%product", result
    if wide != of:
        made = tensor(extents["o"], of)
        room("narrow_room", "o", of)
        _generic(emit, "narrow", [own, own], rank, False, [("%product", result)], ("%narrow_room", made))
        emit(
            f"^bb0(%x: {wide}, %o: {of}):\n%a = arith.truncf %x : {wide} to {of}\nlinalg.yield %a : {of}\n}} -> {made}"
        )
        final = "%narrow"
    if made != str(out.type):
        emit(f"%cast = tensor.cast {final} : {made} to {out.type}")
        final = "%cast"
    emit(f'"devscope.return"({final}) : ({out.type}) -> ()')
    expand(op, "\n".join(lines), inputs)


def _generic(
    emit: Any,
    name: str,
    maps: Sequence[str],
    parallel: int,
    reduces: bool,
    ins: Sequence[tuple[str, Any]],
    out: tuple[str, Any],
) -> None:
    iterators = ['"parallel"'] * parallel + (['"reduction"'] if reduces else [])
    emit(
        f"%{name} = linalg.generic {{indexing_maps = [{commas(maps)}], iterator_types = [{commas(iterators)}]}} "
        f"ins({commas(n for n, _ in ins)} : {commas(t for _, t in ins)}) outs({out[0]} : {out[1]}) {{"
    )


def _constant(emit: Any, name: str, of: Any, number: float) -> str:
    emit(f"%{name} = arith.constant {ir.FloatAttr.get(of, number, ir.Location.unknown(of.context))}")
    return f"%{name}"


def _scale(op: Any, emit: Any, of: Any, depth: int, rank: int) -> str:
    """The attribute, or one by the root of the depth of a head."""
    if "scale" in op.attributes:
        return _constant(emit, "scale", of, ir.FloatAttr(op.attributes["scale"]).value)
    if depth >= 0:
        return _constant(emit, "scale", of, depth**-0.5 if depth else 1.0)
    emit(f"%depth = arith.index_cast %q{rank - 1} : index to i64\n%deep = arith.sitofp %depth : i64 to {of}")
    emit(f"%scale = math.rsqrt %deep : {of}")
    return "%scale"
