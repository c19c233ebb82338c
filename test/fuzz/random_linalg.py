"""More of linalg in random programs: softmax, several results, sums in a wider type, tests of special values."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from random_operations import BY_NAME, combiner, fold, maximum, product, scalar_code
from random_values import COMPLEX, DTYPES, FLOATS, Environment, Type, scalar

if TYPE_CHECKING:
    from random_program import Block, Generator, Value


def _floats(g: Generator) -> list[str]:
    return [d for d in g.dtypes if d in FLOATS]


def softmax(g: Generator, block: Block) -> None:
    x, type_ = g.tensor(
        block,
        lambda t: len(t.shape) >= 1 and t.dtype in FLOATS,
        lambda: g.tensor_type(g.integer(1, 4), _floats(g)),
    )
    axis, out = g.integer(0, len(type_.shape)), g.empty(block, type_)

    def run(e: Environment) -> Any:
        values = np.moveaxis(np.asarray(e[x]), axis, -1)
        if not values.size:
            return e[x]
        greatest = values[..., 0]
        for number in range(1, values.shape[-1]):
            greatest = maximum(greatest, values[..., number])
        powers = e.inexact(np.exp(np.float64(values - greatest[..., None])).astype(values.dtype), 16)
        total = fold(e, BY_NAME["arith.addf"], powers, np.zeros(greatest.shape, values.dtype))
        return np.moveaxis(e.inexact(powers / total[..., None], 4), -1, axis)

    text = f"linalg.softmax{g.scope()} dimension({axis}) ins({x} : {type_}) outs({out} : {type_}) -> {type_}"
    g.emit(block, type_, text, run)


def _pair(block: Block, results: list[Value], text: Callable[[], str], run: Callable[[Environment], Any]) -> None:
    from random_program import Statement

    def step(e: Environment) -> None:
        for (name, type_), value in zip(results, run(e), strict=True):
            e[name] = np.asarray(value).astype(type_.numpy)

    block.statements.append(Statement(results, text, step))
    block.visible += results


def two_results(g: Generator, block: Block) -> None:
    """Of one loop over a tensor, with different types, one of them perhaps transposed."""
    from random_operations import _body  # pyright: ignore[reportPrivateUsage]

    x, type_ = g.tensor(block, lambda t: len(t.shape) >= 1, lambda: g.tensor_type(g.integer(1, 4)))
    rank = len(type_.shape)
    y, y_type = g.value(block, Type(g.pick(g.dtypes), type_.shape))
    order = g.sample(range(rank), rank) if g.chance(0.5) else list(range(rank))
    types = [Type(g.pick(g.dtypes), type_.shape), Type(g.pick(g.dtypes), tuple(type_.shape[d] for d in order))]
    outs = [g.empty(block, t) for t in types]
    names = [(g.name(), scalar(t.dtype)) for t in (type_, y_type, *types)]
    body = _body(block, names[:2])
    values = [scalar_code(g, body, t.dtype, g.integer(1, 3)) for t in types]
    results = [(g.name(), t) for t in types]
    dims = ", ".join(f"d{i}" for i in range(rank))
    plain = f"affine_map<({dims}) -> ({dims})>"
    moved = f"affine_map<({dims}) -> ({', '.join(f'd{i}' for i in order)})>"
    kinds, mark = ", ".join(['"parallel"'] * rank), g.scope(prefix=" attrs =")
    given = ", ".join(f"{n}: {t}" for n, t in names)

    def run(e: Environment) -> Any:
        inner = e.inner()
        inner[names[0][0]], inner[names[1][0]] = e[x], e[y]
        body.run(inner)
        one, two = (np.broadcast_to(inner[v], e.sizes(type_.shape)) for v in values)
        return one, np.transpose(two, order)

    _pair(
        block,
        results,
        lambda: (
            f"  {results[0][0]}, {results[1][0]} = linalg.generic {{indexing_maps = [{plain}, {plain}, {plain},"
            f" {moved}], iterator_types = [{kinds}]}}\n    ins({x}, {y} : {type_}, {y_type}) "
            f"outs({outs[0]}, {outs[1]} : {types[0]}, {types[1]}){mark} {{\n  ^bb0({given}):\n{body.text()}\n"
            f"    linalg.yield {values[0]}, {values[1]} : {types[0].dtype}, {types[1].dtype}\n"
            f"  }} -> ({types[0]}, {types[1]})"
        ),
        run,
    )


def two_reductions(g: Generator, block: Block) -> None:
    """Of the rows of a matrix, in one loop; or where its greatest elements are."""
    dtypes = [d for d in g.dtypes if d not in COMPLEX]
    x, type_ = g.tensor(
        block,
        lambda t: len(t.shape) == 2 and t.dtype not in ("i1", "index", *COMPLEX),
        lambda: g.tensor_type(2, dtypes),
    )
    dtype, away = type_.dtype, g.integer(0, 2)
    places = g.chance(0.5)
    kept = type_.shape[1 - away]
    first = Type(dtype, (kept,))
    second = Type("i32" if places else dtype, (kept,))
    starts = [g.value(block, t)[0] for t in (first, second)]
    ops = [combiner(g, dtype) for _ in range(2)]
    a, b, c, r, s, i, j, t = (g.name() for _ in range(8))
    results = [(g.name(), first), (g.name(), second)]
    compare = "cmpf ogt" if dtype in FLOATS else "cmpi sgt"
    if places:
        body = (
            f"    {i} = linalg.index {away} : index\n    {j} = arith.index_cast {i} : index to i32\n"
            f"    {t} = arith.{compare}, {a}, {b} : {dtype}\n    {r} = arith.select {t}, {a}, {b} : {dtype}\n"
            f"    {s} = arith.select {t}, {j}, {c} : i32\n"
        )
    else:
        body = f"    {r} = {ops[0].name} {b}, {a} : {dtype}\n    {s} = {ops[1].name} {c}, {a} : {dtype}\n"
    mark = g.scope(prefix=" attrs =")
    kinds = ", ".join('"reduction"' if d == away else '"parallel"' for d in range(2))
    out = f"affine_map<(d0, d1) -> (d{1 - away})>"

    def run(e: Environment) -> Any:
        values = np.moveaxis(np.asarray(e[x]), away, -1)
        if not places:
            return [fold(e, op, values, e[start]) for op, start in zip(ops, starts, strict=True)]
        best, place = np.array(e[starts[0]]), np.array(e[starts[1]])
        for number in range(values.shape[-1]):
            more = values[..., number] > best
            best, place = np.where(more, values[..., number], best), np.where(more, number, place)
        return best, place

    maps = f"affine_map<(d0, d1) -> (d0, d1)>, {out}, {out}"
    text = (
        f"  {results[0][0]}, {results[1][0]} = linalg.generic {{indexing_maps = [{maps}],"
        f" iterator_types = [{kinds}]}}\n    ins({x} : {type_})"
        f" outs({starts[0]}, {starts[1]} : {first}, {second}){mark} {{\n"
        f"  ^bb0({a}: {dtype}, {b}: {dtype}, {c}: {second.dtype}):\n{body}"
        f"    linalg.yield {r}, {s} : {dtype}, {second.dtype}\n  }} -> ({first}, {second})"
    )
    _pair(block, results, lambda: text, run)


_WIDER = {
    "f16": ["f32", "f64"],
    "f32": ["f64"],
    "i8": ["i16", "i32", "i64"],
    "i16": ["i32", "i64"],
    "i32": ["i64"],
}
_FORMS = {
    "matmul": "ik,kj->ij",
    "batch_matmul": "bik,bkj->bij",
    "matvec": "ik,k->i",
    "mmt4d": "mkat,nkbt->mnab",
    "batch_reduce_matmul": "bik,bkj->ij",
}


def wider(g: Generator, block: Block) -> None:
    """A contraction whose sum has a wider type than its operands."""
    name, subscripts = g.pick(list(_FORMS.items()))
    one, two, three = (*subscripts.split("->")[0].split(","), subscripts.split("->")[1])
    dtype = g.pick(list(_WIDER))
    total = g.pick(_WIDER[dtype])
    extents = {letter: g.pick(g.extents) for letter in set(one + two)} if name != "mmt4d" else {
        letter: g.pick((1, 2, 3)) for letter in set(one + two)}  # fmt: skip
    x, y = (g.value(block, Type(dtype, tuple(extents[c] for c in names))) for names in (one, two))
    start, type_ = g.value(block, Type(total, tuple(extents[c] for c in three)))
    text = f"linalg.{name}{g.scope()} ins({x[0]}, {y[0]} : {x[1]}, {y[1]}) outs({start} : {type_}) -> {type_}"
    g.emit(block, type_, text, lambda e: product(e, subscripts, e[x[0]], e[y[0]], e[start]))


def classify(g: Generator, block: Block) -> None:
    x, type_ = g.tensor(block, lambda t: t.dtype in FLOATS, lambda: g.tensor_type(dtypes=_floats(g)))
    name, function = g.pick([("isnan", np.isnan), ("isinf", np.isinf), ("isfinite", np.isfinite)])
    mask = Type("i1", type_.shape)
    g.emit(block, mask, f"math.{name} {x}{g.scope()} : {type_}", lambda e: function(e[x]))


def long_multiplication(g: Generator, block: Block) -> None:
    """Both halves of a product, or a sum and its carry."""
    x, type_ = g.tensor(block, lambda t: t.dtype in _BITS, lambda: g.tensor_type(dtypes=[*_BITS]))
    y, bits = g.value(block, type_)[0], _BITS[type_.dtype]
    name = g.pick(("mulsi_extended", "mului_extended", "addui_extended"))
    second = Type("i1", type_.shape) if name[0] == "a" else type_
    results, mark = [(g.name(), type_), (g.name(), second)], g.scope()

    def run(e: Environment) -> Any:
        one, two = (np.asarray(e[v]).astype(object) for v in (x, y))
        if name != "mulsi_extended":
            one, two = one % 2**bits, two % 2**bits
        whole = one + two if name[0] == "a" else one * two
        parts = (whole % 2**bits, (whole // 2**bits) % 2**bits)
        unsigned = np.dtype(f"u{bits // 8}")
        low, high = (np.asarray(part, object).astype(unsigned) for part in parts)
        return low.view(DTYPES[type_.dtype]), high if name[0] == "a" else high.view(DTYPES[type_.dtype])

    kinds = f"{type_}, {second}" if name[0] == "a" else f"{type_}"
    text = f"  {results[0][0]}, {results[1][0]} = arith.{name} {x}, {y}{mark} : {kinds}"
    _pair(block, results, lambda: text, run)


_BITS = {"i8": 8, "i16": 16, "i32": 32, "i64": 64}

LINALG = [softmax, two_results, two_results, two_reductions, wider, wider, classify, long_multiplication]
