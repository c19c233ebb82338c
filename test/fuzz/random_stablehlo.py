"""StableHLO's operations in random programs. Types are static, possibly empty, where more than elements counts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from random_operations import (
    BITS,
    BY_NAME,
    PREDICATES,
    casts,
    fold,
    logistic,
    maximum,
    minimum,
    product,
    round_away,
    spread,
    unsigned,
    window,
    windows,
)
from random_values import COMPLEX, DTYPES, FLOATS, INTEGERS, Environment, Type, wide

if TYPE_CHECKING:
    from random_program import Block, Generator, Value

Arrays = Callable[..., Any]
_NUMBERS = (*FLOATS, *INTEGERS[:-1])
_BITS = {op.name: op.function for op in BITS}


def _shift(function: Arrays, beyond: Arrays) -> Arrays:
    """Amounts are unsigned; from the width on nothing of the number is left, or its sign."""

    def shift(x: Any, y: Any) -> Any:
        bits = 8 * np.asarray(x).itemsize
        inside = unsigned(y) < bits
        return np.where(inside, function(x, np.where(inside, y, 0)), beyond(x))

    return shift


def _logical_right(x: Any, y: Any) -> Any:
    return (unsigned(x) >> unsigned(y)).view(np.asarray(x).dtype)


_FLOAT: dict[str, tuple[Arrays, int, float]] = {
    **{n: (f, 2, 0) for n, f in [("divide", np.divide), ("remainder", np.fmod)]},
    **{n: (f, 2, 0) for n, f in [("maximum", maximum), ("minimum", minimum)]},
    **{n: (f, 1, 0) for n, f in [("floor", np.floor), ("ceil", np.ceil), ("sqrt", np.sqrt)]},
    **{n: (f, 1, 0) for n, f in [("round_nearest_even", np.rint), ("round_nearest_afz", round_away)]},
    "sign": (lambda x: np.where(x == 0, x, np.sign(x)), 1, 0),
    **{n: (wide(f), 1, 16) for n, f in [("exponential", np.exp), ("log", np.log), ("cbrt", np.cbrt)]},
    **{n: (wide(f), 1, 16) for n, f in [("exponential_minus_one", np.expm1), ("log_plus_one", np.log1p)]},
    **{n: (wide(f), 1, 16) for n, f in [("tanh", np.tanh), ("sine", np.sin), ("cosine", np.cos)]},
    **{n: (wide(f), 1, 16) for n, f in [("tan", np.tan)]},
    "logistic": (logistic, 1, 16),
    "rsqrt": (wide(lambda x: 1 / np.sqrt(x)), 1, 16),
    **{n: (wide(f), 2, 16) for n, f in [("power", np.power), ("atan2", np.arctan2)]},
}
_BOTH: dict[str, tuple[Arrays, int, float]] = {
    **{n: (f, 2, 0) for n, f in [("add", np.add), ("subtract", np.subtract), ("multiply", np.multiply)]},
    **{n: (f, 1, 0) for n, f in [("abs", np.abs), ("negate", np.negative)]},
}
_INTEGER: dict[str, tuple[Arrays, int, float]] = {
    **{n: (f, 2, 0) for n, f in [("maximum", np.maximum), ("minimum", np.minimum)]},
    **{n: (f, 2, 0) for n, f in [("and", np.bitwise_and), ("or", np.bitwise_or), ("xor", np.bitwise_xor)]},
    "not": (np.invert, 1, 0),
    "sign": (np.sign, 1, 0),
    "popcnt": (_BITS["math.ctpop"], 1, 0),
    "count_leading_zeros": (_BITS["math.ctlz"], 1, 0),
    "shift_left": (_shift(np.left_shift, np.zeros_like), 2, 0),
    "shift_right_logical": (_shift(_logical_right, np.zeros_like), 2, 0),
    "shift_right_arithmetic": (_shift(np.right_shift, lambda x: np.where(x < 0, -1, 0)), 2, 0),
}
_LOGICAL = {name: _INTEGER[name] for name in ("and", "or", "xor", "not")}


def _of(g: Generator, dtypes: Sequence[str]) -> list[str]:
    return [d for d in g.dtypes if d in dtypes] or [dtypes[0]]


def elementwise(g: Generator, block: Block) -> None:
    legal = (*_NUMBERS, *COMPLEX, "i1")
    x, type_ = g.tensor(block, lambda t: t.dtype in legal, lambda: g.tensor_type(dtypes=_of(g, legal)))
    table = _BOTH | (_FLOAT if type_.dtype in FLOATS else _INTEGER)
    if type_.dtype == "i1":
        table = _LOGICAL
    if type_.dtype in COMPLEX:
        table = {"add": (np.add, 2, 0), "subtract": (np.subtract, 2, 0), "multiply": (np.multiply, 2, 16)}
    name, (function, arity, ulps) = g.pick(list(table.items()))
    operands = [x, *(g.value(block, type_)[0] for _ in range(arity - 1))]
    text = f"stablehlo.{name} {', '.join(operands)}{g.scope()} : {type_}"
    g.emit(block, type_, text, lambda e: e.inexact(function(*(e[name] for name in operands)), ulps))


def compare(g: Generator, block: Block) -> None:
    """And then a selection or a clamp."""
    x, type_ = g.tensor(block, lambda t: t.dtype in _NUMBERS, lambda: g.tensor_type(dtypes=_of(g, _NUMBERS)))
    y, z = (g.value(block, type_)[0] for _ in range(2))
    if g.chance(0.3):
        low, high = (maximum, minimum) if type_.dtype in FLOATS else (np.maximum, np.minimum)
        text = f"stablehlo.clamp {x}, {y}, {z}{g.scope()} : {type_}"
        g.emit(block, type_, text, lambda e: high(low(e[y], e[x]), e[z]))
        return
    kind, prefix = ("FLOAT", "o") if type_.dtype in FLOATS else ("SIGNED", "s")
    name = g.pick(("EQ", "NE", "GE", "GT", "LE", "LT"))
    predicates = PREDICATES["f" if prefix == "o" else "i"]
    key = name.lower() if prefix == "s" and name in ("EQ", "NE") else prefix + name.lower()
    if key == "one":  # of NaN and anything it holds
        key = "une"
    mask = Type("i1", type_.shape)
    text = f"stablehlo.compare {name}, {x}, {y}, {kind}{g.scope()} : ({type_}, {type_}) -> {mask}"
    test = g.emit(block, mask, text, lambda e: predicates[key](e[x], e[y]))
    text = f"stablehlo.select {test}, {x}, {z}{g.scope()} : {mask}, {type_}"
    g.emit(block, type_, text, lambda e: np.where(e[test], e[x], e[z]))


def convert(g: Generator, block: Block) -> None:
    legal = (*_NUMBERS, "i1")
    x, type_ = g.tensor(block, lambda t: t.dtype in legal, lambda: g.tensor_type(dtypes=_of(g, legal)))
    dtype = g.pick(legal)
    found = [f for name, f in casts(type_.dtype, dtype) if not name.endswith(("uitofp", "extui", "bitcast"))]
    if dtype == "i1":
        function: Arrays = lambda v: v != 0  # noqa: E731
    elif type_.dtype == "i1":
        function = lambda v: np.asarray(v, DTYPES[dtype])  # noqa: E731
    elif found:
        function = found[0]
    else:
        return
    result = Type(dtype, type_.shape)
    text = f"stablehlo.convert {x}{g.scope()} : ({type_}) -> {result}"
    g.emit(block, result, text, lambda e: function(e[x]))


def _static(g: Generator, block: Block, least: int = 1, dtypes: Sequence[str] = (*_NUMBERS, "i1")) -> Value:
    def new() -> Type:
        shape = tuple(g.pick((1, 2, 3, 5, 0 if g.chance(0.1) else 4)) for _ in range(g.integer(least, 4)))
        return Type(g.pick(_of(g, dtypes)), shape)

    return g.tensor(block, lambda t: not t.dynamic and len(t.shape) >= least and t.dtype in dtypes, new)


def _sizes(type_: Type) -> list[int]:
    return [int(e) for e in type_.shape]


def move(g: Generator, block: Block) -> None:
    """Elements to other places."""
    x, type_ = _static(g, block)
    sizes, rank, mark = _sizes(type_), len(type_.shape), g.scope()
    kind = g.pick(["transpose", "reverse", "broadcast", "reshape", "slice", "concatenate", "iota"])
    run: Callable[[Environment], Any]
    if kind == "transpose":
        order = g.sample(range(rank), rank)
        shape = [sizes[d] for d in order]
        text, run = f"transpose {x}, dims = {order}", lambda e: np.transpose(e[x], order)
    elif kind == "reverse":
        dims = g.sample(range(rank), g.integer(1, rank + 1))
        shape, text, run = sizes, f"reverse {x}, dims = {dims}", lambda e: np.flip(e[x], dims)
    elif kind == "broadcast":
        wanted = rank + g.integer(0, 2)
        dims = sorted(g.sample(range(wanted), rank))
        shape = [g.pick((1, 2, 3)) for _ in range(wanted)]
        for axis, dim in enumerate(dims):
            shape[dim] = sizes[axis] if sizes[axis] != 1 or g.chance(0.5) else 3
        text = f"broadcast_in_dim {x}, dims = {dims}"
        run = lambda e: np.broadcast_to(spread(e[x], dims, [  # noqa: E731
            sizes[dims.index(d)] if d in dims else 1 for d in range(wanted)]), shape)  # fmt: skip
    elif kind == "reshape":
        shape = g.pick([[math.prod(sizes)], [1, *sizes], [*sizes, 1], sizes[::-1]])
        text, run = f"reshape {x}", lambda e: np.reshape(e[x], shape)
    elif kind == "slice":
        starts = [g.integer(0, n + 1) for n in sizes]
        ends = [g.integer(s, n + 1) for s, n in zip(starts, sizes, strict=True)]
        strides = [g.pick((1, 1, 2, 3)) for _ in sizes]
        index = tuple(slice(*parts) for parts in zip(starts, ends, strides, strict=True))
        shape = [len(range(i.start, i.stop, i.step)) for i in index]
        text = f"slice {x} [{', '.join(f'{i.start}:{i.stop}:{i.step}' for i in index)}]"
        run = lambda e: np.asarray(e[x])[index]  # noqa: E731
    elif kind == "concatenate":
        axis = g.integer(0, rank)
        parts = [x]
        other = [*sizes]
        other[axis] = g.pick((0, 1, 2, sizes[axis]))
        second = Type(type_.dtype, tuple(other))
        parts.append(g.value(block, second)[0])
        shape = [*sizes]
        shape[axis] += other[axis]
        result = Type(type_.dtype, tuple(shape))
        text = f"stablehlo.concatenate {', '.join(parts)}, dim = {axis}{mark} : ({type_}, {second}) -> {result}"
        g.emit(block, result, text, lambda e: np.concatenate([e[p] for p in parts], axis))
        return
    else:
        if type_.dtype == "i1":
            return
        axis = g.integer(0, rank)
        run = lambda _: spread(np.arange(sizes[axis]), [axis], sizes)  # noqa: E731
        g.emit(block, type_, f"stablehlo.iota dim = {axis}{mark} : {type_}", run)
        return
    result = Type(type_.dtype, tuple(shape))
    if kind == "reverse":
        g.emit(block, result, f"stablehlo.{text}{mark} : {type_}", run)
    else:
        g.emit(block, result, f"stablehlo.{text}{mark} : ({type_}) -> {result}", run)


def pad(g: Generator, block: Block) -> None:
    """Also by less than nothing, and between elements."""
    x, type_ = _static(g, block)
    sizes = _sizes(type_)
    value, scalar = g.value(block, Type(type_.dtype))
    low, high = ([g.integer(-1 if n > 2 else 0, 3) for n in sizes] for _ in range(2))
    inside = [g.pick((0, 0, 1, 2)) for _ in sizes]
    wide_sizes = [max(n + (n - 1) * i, 0) for n, i in zip(sizes, inside, strict=True)]
    shape = [n + a + b for n, a, b in zip(wide_sizes, low, high, strict=True)]
    result = Type(type_.dtype, tuple(shape))

    def run(e: Environment) -> Any:
        extents = [n + max(a, 0) + max(b, 0) for n, a, b in zip(wide_sizes, low, high, strict=True)]
        room = np.full(extents, e[value])
        places = zip(wide_sizes, low, inside, strict=True)
        room[tuple(slice(max(a, 0), max(a, 0) + n, i + 1) for n, a, i in places)] = e[x]
        return room[tuple(slice(max(-a, 0), max(-a, 0) + n) for a, n in zip(low, shape, strict=True))]

    text = f"stablehlo.pad {x}, {value}, low = {low}, high = {high}, interior = {inside}{g.scope()}"
    g.emit(block, result, f"{text} : ({type_}, {scalar}) -> {result}", run)


def _places(g: Generator, block: Block, count: int) -> tuple[list[str], str]:
    """Indices, any numbers: where what they mean is outside, they are moved inside."""
    type_ = Type(g.pick(("i32", "i64")))
    return [g.value(block, type_)[0] for _ in range(count)], str(type_)


def dynamic_slice(g: Generator, block: Block) -> None:
    x, type_ = _static(g, block)
    sizes = _sizes(type_)
    part = [g.integer(0 if n == 0 or g.chance(0.1) else 1, n + 1) for n in sizes]
    names, index_type = _places(g, block, len(sizes))
    small, types = Type(type_.dtype, tuple(part)), ", ".join([index_type] * len(sizes))

    def at(e: Environment) -> tuple[slice, ...]:
        starts = [min(max(int(e[p]), 0), n - m) for p, n, m in zip(names, sizes, part, strict=True)]
        return tuple(slice(s, s + m) for s, m in zip(starts, part, strict=True))

    if g.chance(0.5):
        text = f"stablehlo.dynamic_slice {x}, {', '.join(names)}, sizes = {part}{g.scope()}"
        g.emit(block, small, f"{text} : ({type_}, {types}) -> {small}", lambda e: np.asarray(e[x])[at(e)])
        return
    update = g.value(block, small)[0]

    def run(e: Environment) -> Any:
        result = np.array(e[x])
        result[at(e)] = e[update]
        return result

    text = f"stablehlo.dynamic_update_slice {x}, {update}, {', '.join(names)}{g.scope()}"
    g.emit(block, type_, f"{text} : ({type_}, {small}, {types}) -> {type_}", run)


def gather(g: Generator, block: Block) -> None:
    """Rows, by indices of which the outside ones are moved inside."""
    x, type_ = _static(g, block)
    sizes = _sizes(type_)
    if not sizes[0]:
        return
    indices, index_type = g.value(block, Type(g.pick(("i32", "i64")), tuple(g.shape(1))))
    if index_type.dynamic:
        return
    count, rest = index_type.shape[0], sizes[1:]
    result = Type(type_.dtype, (count, *rest))
    numbers = (
        f"#stablehlo.gather<offset_dims = {list(range(1, len(sizes)))}, collapsed_slice_dims = [0], "
        "start_index_map = [0], index_vector_dim = 1>"
    )
    text = (
        f'"stablehlo.gather"({x}, {indices}) <{{dimension_numbers = {numbers}, '
        f"slice_sizes = array<i64: {', '.join(map(str, [1, *rest]))}>}}>{g.scope()}"
        f" : ({type_}, {index_type}) -> {result}"
    )
    g.emit(block, result, text, lambda e: np.asarray(e[x])[np.clip(e[indices], 0, sizes[0] - 1)])


def dot_general(g: Generator, block: Block) -> None:
    x, type_ = _static(g, block, 1, (*FLOATS, *INTEGERS[:-1], *COMPLEX))
    sizes = _sizes(type_)
    dims = g.sample(range(len(sizes)), len(sizes))
    batch, free = dims[: g.integer(0, len(dims))], g.integer(0, 3)
    contracted = dims[len(batch) : g.integer(len(batch), len(dims) + 1)]
    extra = [g.pick((1, 2, 3)) for _ in range(free)]
    letters, new = "abcdefgh"[: len(sizes)], "xyz"[:free]
    other = [*(letters[d] for d in (*batch, *contracted)), *new]
    g.rng.shuffle(other)  # pyright: ignore[reportArgumentType]
    extents = dict(zip(letters, sizes, strict=True)) | dict(zip(new, extra, strict=True))
    kept = [letters[d] for d in range(len(sizes)) if d not in (*batch, *contracted)]
    out = [*(letters[d] for d in batch), *kept, *(c for c in other if c in new)]
    y, other_type = g.value(block, Type(type_.dtype, tuple(extents[c] for c in other)))
    result = Type(type_.dtype, tuple(extents[c] for c in out))
    where = [[other.index(letters[d]) for d in group] for group in (batch, contracted)]
    batching = f", batching_dims = {batch} x {where[0]}" if batch else ""
    text = (
        f"stablehlo.dot_general {x}, {y}{batching}, contracting_dims = {contracted} x {where[1]}{g.scope()}"
        f" : ({type_}, {other_type}) -> {result}"
    )
    subscripts = f"{letters},{''.join(other)}->{''.join(out)}"
    zero = np.zeros(tuple(extents[c] for c in out), result.numpy)
    g.emit(block, result, text, lambda e: product(e, subscripts, e[x], e[y], zero))


_REDUCERS = {"add": "addf", "maximum": "maximumf", "minimum": "minimumf", "multiply": "mulf"}
_INTEGER_REDUCERS = {"add": "addi", "maximum": "maxsi", "or": "ori", "multiply": "muli"}


def reduce(g: Generator, block: Block) -> None:
    """Of dimensions, or of windows."""
    windowed = g.chance(0.4)
    if windowed:
        rank = g.integer(1, 3)
        shape = window(g, rank)
        x, type_ = g.value(block, Type(g.pick(_of(g, _NUMBERS)), shape.inputs))
    else:
        shape = None
        x, type_ = _static(g, block, 1, _NUMBERS)
        rank = len(type_.shape)
    initial, scalar = g.value(block, Type(type_.dtype))
    name, op_name = g.pick(list((_REDUCERS if type_.dtype in FLOATS else _INTEGER_REDUCERS).items()))
    op = BY_NAME[f"arith.{op_name}"]
    if shape is None:
        away = sorted(g.sample(range(rank), g.integer(1, rank + 1)))
        kept = [d for d in range(rank) if d not in away]
        result = Type(type_.dtype, tuple(type_.shape[d] for d in kept))
        text = f"stablehlo.reduce({x} init: {initial}) applies stablehlo.{name}"
        text += f" across dimensions = {away}{g.scope()}"

        def run(e: Environment) -> Any:
            values = np.asarray(e[x]).transpose([*kept, *away])
            flat = values.reshape([*values.shape[: len(kept)], math.prod(values.shape[len(kept) :])])
            return fold(e, op, flat, np.full(flat.shape[:-1], e[initial]))

        g.emit(block, result, f"{text} : ({type_}, {scalar}) -> {result}", run)
        return
    low, high = [g.integer(0, 2) for _ in range(rank)], [g.integer(0, 2) for _ in range(rank)]
    outs = [
        (n + a + b - (s - 1) * d - 1) // t + 1
        for n, a, b, s, d, t in zip(
            shape.inputs, low, high, shape.sizes, shape.dilations, shape.strides, strict=True
        )
    ]
    result = Type(type_.dtype, tuple(outs))
    padding = [[a, b] for a, b in zip(low, high, strict=True)]
    a, b, c = (g.name() for _ in range(3))
    text = (
        f'"stablehlo.reduce_window"({x}, {initial}) <{{window_dimensions = {_array(shape.sizes)}, '
        f"window_strides = {_array(shape.strides)}, window_dilations = {_array(shape.dilations)}, "
        f"padding = dense<{padding}> : tensor<{rank}x2xi64>}}> ({{\n  ^bb0({a}: {scalar}, {b}: {scalar}):\n"
        f"    {c} = stablehlo.{name} {a}, {b} : {scalar}\n    stablehlo.return {c} : {scalar}\n  }}){g.scope()}"
        f" : ({type_}, {scalar}) -> {result}"
    )

    def run_windows(e: Environment) -> Any:
        # XLA leaves padding out, where the specification folds what the fold begins with once more.
        outside = _NEUTRAL.get(name, np.asarray(e[initial])[()])
        padded = np.pad(np.asarray(e[x]), padding, constant_values=outside)
        view = windows(padded, range(rank), shape.sizes, shape.strides, shape.dilations, outs)
        flat = view.reshape([*view.shape[:rank], math.prod(view.shape[rank:])])
        return fold(e, op, flat, np.full(flat.shape[:-1], e[initial]))

    g.emit(block, result, text, run_windows)


_NEUTRAL = {"add": -0.0, "multiply": 1, "xor": 0}
"""Of reducers that another element changes, even one that there was before."""


def _array(values: Sequence[int]) -> str:
    return f"array<i64: {', '.join(map(str, values))}>"


def convolution(g: Generator, block: Block) -> None:
    """With padding, strides, dilation of both sides, and features in groups."""
    shape = window(g, 2)
    # Upstream puts zeros between the elements of a dilated kernel if there are groups: no number times infinity.
    groups, dtype = g.pick((1, 1, 2) if set(shape.dilations) == {1} else (1,)), g.pick(_of(g, FLOATS))
    batch, each, outs = g.pick((1, 2)), g.pick((1, 2)), groups * g.pick((1, 2))
    grow = [g.pick((1, 1, 2)) for _ in range(2)]
    pads = [[g.integer(0, 2), g.integer(0, 2)] for _ in range(2)]
    x, x_type = g.value(block, Type(dtype, (batch, *shape.inputs, each * groups)))
    k, k_type = g.value(block, Type(dtype, (*shape.sizes, each, outs)))
    sizes = [(n - 1) * d + 1 for n, d in zip(shape.inputs, grow, strict=True)]
    extents = [
        (n + sum(p) - (s - 1) * d - 1) // t + 1
        for n, p, s, d, t in zip(sizes, pads, shape.sizes, shape.dilations, shape.strides, strict=True)
    ]
    result = Type(dtype, (batch, *extents, outs))
    text = (
        f"stablehlo.convolution({x}, {k}) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {{"
        f"stride = {list(shape.strides)}, pad = {pads}, lhs_dilate = {grow}, "
        f"rhs_dilate = {list(shape.dilations)}}} "
        f"{{batch_group_count = 1 : i64, feature_group_count = {groups} : i64{g.mark()}}}"
        f" : ({x_type}, {k_type}) -> {result}"
    )

    def run(e: Environment) -> Any:
        image = np.zeros((batch, *sizes, each * groups), result.numpy)
        image[:, :: grow[0], :: grow[1]] = e[x]
        image = np.pad(image, [[0, 0], *pads, [0, 0]])
        view = windows(image, [1, 2], shape.sizes, shape.strides, shape.dilations, extents)
        view = view.reshape(batch, *extents, groups, each, *shape.sizes)
        kernel = np.reshape(e[k], (*shape.sizes, each, groups, outs // groups))
        start = np.zeros((batch, *extents, groups, outs // groups), result.numpy)
        return product(e, "nhwgcxy,xycgf->nhwgf", view, kernel, start).reshape(result.shape)  # pyright: ignore

    g.emit(block, result, text, run)


STABLEHLO = [elementwise, elementwise, compare, convert, move, move, pad, dynamic_slice, gather, dot_general,
             reduce, reduce, convolution]  # fmt: skip
