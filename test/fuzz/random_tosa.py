"""TOSA's operations in random programs. Types are static and not empty, as TOSA demands."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from random_operations import (
    BITS,
    BY_NAME,
    casts,
    fold,
    logistic,
    maximum,
    minimum,
    product,
    unsigned,
    window,
    windows,
)
from random_values import DTYPES, Environment, Type, wide
from scipy import special

if TYPE_CHECKING:
    from random_program import Block, Generator, Value

Arrays = Callable[..., Any]
_FLOATS = ("f16", "f32")
_BITS = {op.name: op.function for op in BITS}


def _row(arity: int, ulps: float, **functions: Arrays) -> dict[str, tuple[Arrays, int, float]]:
    return {name: (function, arity, ulps) for name, function in functions.items()}


_FLOAT = {
    **_row(2, 0, add=np.add, sub=np.subtract, maximum=maximum, minimum=minimum, mul=np.multiply),
    **_row(1, 0, abs=np.abs, negate=np.negative, floor=np.floor, ceil=np.ceil),
    **_row(1, 0, reciprocal=lambda x: x.dtype.type(1) / x),
    **_row(1, 16, exp=wide(np.exp), log=wide(np.log), tanh=wide(np.tanh), erf=wide(special.erf), sin=wide(np.sin)),
    **_row(1, 16, cos=wide(np.cos), sigmoid=logistic, rsqrt=wide(lambda x: 1 / np.sqrt(x))),
    **_row(2, 16, pow=wide(np.power)),
}
_I32 = {
    **_row(2, 0, add=np.add, sub=np.subtract, maximum=np.maximum, minimum=np.minimum, mul=np.multiply),
    **_row(2, 0, bitwise_and=np.bitwise_and, bitwise_or=np.bitwise_or, bitwise_xor=np.bitwise_xor),
    **_row(1, 0, abs=np.abs, bitwise_not=np.invert, clz=_BITS["math.ctlz"]),
}
_I1 = {
    **_row(2, 0, logical_and=np.logical_and, logical_or=np.logical_or, logical_xor=np.logical_xor),
    **_row(1, 0, logical_not=np.logical_not),
}


def _solid(t: Type, dtypes: Sequence[str], least: int = 1) -> bool:
    known = all(isinstance(e, int) and e for e in t.shape)
    return t.dtype in dtypes and known and least <= len(t.shape) <= 4


def _value(g: Generator, block: Block, dtypes: Sequence[str], least: int = 1) -> Value:
    def new() -> Type:
        return Type(g.pick(dtypes), tuple(g.pick((1, 2, 3, 5)) for _ in range(g.integer(least, 5))))

    return g.tensor(block, lambda t: _solid(t, dtypes, least), new)


def _zero(g: Generator, block: Block, dtype: str) -> tuple[str, Type]:
    """A zero point."""
    type_ = Type(dtype, (1,))
    return g.constant(block, type_, np.zeros(1, type_.numpy))


def _partner(g: Generator, block: Block, type_: Type) -> Value:
    """An operand beside one of this type: some of its extents may be 1."""
    shape = tuple(1 if g.chance(0.15) else e for e in type_.shape)
    return g.value(block, Type(type_.dtype, shape))


def elementwise(g: Generator, block: Block) -> None:
    x, type_ = _value(g, block, (*_FLOATS, *_FLOATS, "i32", "i1"))
    table = _FLOAT if type_.dtype in _FLOATS else _I32 if type_.dtype == "i32" else _I1
    name, (function, arity, ulps) = g.pick(list(table.items()))
    operands = [(x, type_), *(_partner(g, block, type_) for _ in range(arity - 1))]
    names = [n for n, _ in operands]
    if name == "negate":  # the zero points are operands
        operands += [_zero(g, block, type_.dtype)] * 2
    elif name == "mul":  # and the shift
        operands.append(_zero(g, block, "i8"))
    given, types = ", ".join(n for n, _ in operands), ", ".join(str(t) for _, t in operands)
    text = f"tosa.{name} {given}{g.scope()} : ({types}) -> {type_}"
    g.emit(block, type_, text, lambda e: e.inexact(function(*(np.asarray(e[n]) for n in names)), ulps))


def compare(g: Generator, block: Block) -> None:
    """And then a selection; or a clamp."""
    x, type_ = _value(g, block, (*_FLOATS, "i32"))
    if g.chance(0.3):
        real = type_.dtype in _FLOATS
        low, high = sorted(float(g.integer(-4, 5)) for _ in range(2))
        spelt = [f"{v}" if real else f"{int(v)}" for v in (low, high)]
        mark = f"{{min_val = {spelt[0]} : {type_.dtype}, max_val = {spelt[1]} : {type_.dtype}{g.mark()}}}"
        at_least, at_most = (maximum, minimum) if real else (np.maximum, np.minimum)
        ends = [type_.numpy.type(v) for v in (low, high)]
        g.emit(block, type_, f"tosa.clamp {x} {mark} : ({type_}) -> {type_}",
               lambda e: at_most(at_least(e[x], ends[0]), ends[1]))  # fmt: skip
        return
    name, function = g.pick([("greater", np.greater), ("greater_equal", np.greater_equal), ("equal", np.equal)])
    y, y_type = _partner(g, block, type_)
    mask = Type("i1", type_.shape)
    text = f"tosa.{name} {x}, {y}{g.scope()} : ({type_}, {y_type}) -> {mask}"
    test = g.emit(block, mask, text, lambda e: np.broadcast_to(function(e[x], e[y]), mask.shape))
    z, z_type = _partner(g, block, type_)
    text = f"tosa.select {test}, {x}, {z}{g.scope()} : ({mask}, {type_}, {z_type}) -> {type_}"
    g.emit(block, type_, text, lambda e: np.where(e[test], e[x], e[z]))


def shift(g: Generator, block: Block) -> None:
    """By legal amounts."""
    x, type_ = _value(g, block, ("i32",))
    amount, _ = g.constant(block, type_, g.rng.integers(0, 32, type_.shape).astype(np.int32))
    functions: dict[str, Arrays] = {
        "logical_left_shift": np.left_shift,
        "logical_right_shift": lambda a, b: (unsigned(a) >> unsigned(b)).view(np.int32),
        "arithmetic_right_shift": np.right_shift,
    }
    name, function = g.pick(list(functions.items()))
    mark = f" {{round = false{g.mark()}}}" if name[0] == "a" else g.scope()
    text = f"tosa.{name} {x}, {amount}{mark} : ({type_}, {type_}) -> {type_}"
    g.emit(block, type_, text, lambda e: function(e[x], e[amount]))


def cast(g: Generator, block: Block) -> None:
    x, type_ = _value(g, block, (*_FLOATS, "i8", "i16", "i32", "i1"))
    dtype = g.pick([d for d in (*_FLOATS, "i8", "i16", "i32") if d != type_.dtype])
    found = [f for name, f in casts(type_.dtype, dtype) if not name.endswith(("uitofp", "extui", "bitcast"))]
    if type_.dtype == "i1":
        found: list[Arrays] = [lambda v: np.asarray(v, DTYPES[dtype])]
    if found:
        result = Type(dtype, type_.shape)
        g.emit(block, result, f"tosa.cast {x}{g.scope()} : ({type_}) -> {result}", lambda e: found[0](e[x]))


def reduce(g: Generator, block: Block) -> None:
    x, type_ = _value(g, block, (*_FLOATS, "i32", "i1"))
    real = type_.dtype in _FLOATS
    rows = {"sum": "addf", "max": "maximumf", "min": "minimumf", "product": "mulf"} if real else {
        "sum": "addi", "max": "maxsi", "min": "minsi"}  # fmt: skip
    if type_.dtype == "i1":
        rows = {"all": "andi", "any": "ori"}
    name, op = g.pick(list(rows.items()))
    axis = g.integer(0, len(type_.shape))
    result = Type(type_.dtype, tuple(1 if d == axis else e for d, e in enumerate(type_.shape)))

    def run(e: Environment) -> Any:
        values = np.moveaxis(np.asarray(e[x]), axis, -1)
        if values.shape[-1] == 1:
            return e[x]
        return np.expand_dims(fold(e, BY_NAME[f"arith.{op}"], values[..., 1:], values[..., 0]), axis)

    text = f"tosa.reduce_{name} {x} {{axis = {axis} : i32{g.mark()}}} : ({type_}) -> {result}"
    g.emit(block, result, text, run)


def _shape(g: Generator, block: Block, values: Sequence[int]) -> tuple[str, str]:
    """A statement that makes a shape: its name and type. Tensors in numpy's sense it is not."""
    from random_program import Statement

    name, type_ = g.name(), f"!tosa.shape<{len(values)}>"
    dense = f"dense<{list(values)}> : tensor<{len(values)}xindex>"
    text = f"  {name} = tosa.const_shape {{values = {dense}}} : () -> {type_}"

    def run(e: Environment) -> None:
        e[name] = np.asarray(values)

    # No type of numpy has it, so that no function takes it as an argument: see `Type.known`.
    block.statements.append(Statement([(name, Type("index", ("shape",)))], lambda: text, run))
    return name, type_


def move(g: Generator, block: Block) -> None:
    """Elements to other places."""
    x, type_ = _value(g, block, (*_FLOATS, "i8", "i32", "i1"))
    sizes, rank = [int(e) for e in type_.shape], len(type_.shape)
    kind = g.pick(["transpose", "reverse", "reshape", "slice", "tile", "concat", "pad"])
    axis = g.integer(0, rank)
    operands: list[tuple[str, Any]] = [(x, type_)]
    mark = g.scope()
    run: Callable[[Environment], Any]
    if kind == "transpose":
        order = g.sample(range(rank), rank)
        shape, run = [sizes[d] for d in order], lambda e: np.transpose(e[x], order)
        mark = f" {{perms = array<i32: {', '.join(map(str, order))}>{g.mark()}}}"
    elif kind == "reverse":
        shape, run, mark = sizes, lambda e: np.flip(e[x], axis), f" {{axis = {axis} : i32{g.mark()}}}"
    elif kind == "reshape":
        shape = g.pick([[math.prod(sizes)], [1, *sizes], [*sizes, 1], sizes[::-1]])
        operands.append(_shape(g, block, shape))
        run = lambda e: np.reshape(e[x], shape)  # noqa: E731
    elif kind == "slice":
        starts = [g.integer(0, n) for n in sizes]
        shape = [g.integer(1, n - s + 1) for s, n in zip(starts, sizes, strict=True)]
        operands += [_shape(g, block, starts), _shape(g, block, shape)]
        index = tuple(slice(s, s + n) for s, n in zip(starts, shape, strict=True))
        run = lambda e: np.asarray(e[x])[index]  # noqa: E731
    elif kind == "tile":
        times = [g.pick((1, 1, 2, 3)) for _ in sizes]
        shape = [n * t for n, t in zip(sizes, times, strict=True)]
        operands.append(_shape(g, block, times))
        run = lambda e: np.tile(e[x], times)  # noqa: E731
    elif kind == "concat":
        other = [*sizes]
        other[axis] = g.pick((1, 2, 3))
        y = g.value(block, Type(type_.dtype, tuple(other)))
        operands.append(y)
        shape = [*sizes]
        shape[axis] += other[axis]
        run, mark = lambda e: np.concatenate([e[x], e[y[0]]], axis), f" {{axis = {axis} : i32{g.mark()}}}"
    else:
        sides = [(g.integer(0, 3), g.integer(0, 3)) for _ in sizes]
        value = g.value(block, Type(type_.dtype, (1,)))
        operands += [_shape(g, block, [n for side in sides for n in side]), value]
        shape = [n + sum(side) for n, side in zip(sizes, sides, strict=True)]
        run = lambda e: np.pad(np.asarray(e[x]), sides, constant_values=np.asarray(e[value[0]])[0])  # noqa: E731
    result = Type(type_.dtype, tuple(shape))
    given, types = ", ".join(n for n, _ in operands), ", ".join(str(t) for _, t in operands)
    g.emit(block, result, f"tosa.{kind} {given}{mark} : ({types}) -> {result}", run)


def matmul(g: Generator, block: Block) -> None:
    batch, rows, inner, columns = (g.pick((1, 2, 3, 5)) for _ in range(4))
    dtype = g.pick(_FLOATS)
    x, y = (g.value(block, Type(dtype, shape)) for shape in ((batch, rows, inner), (batch, inner, columns)))
    zero, zero_type = _zero(g, block, dtype)
    result = Type(dtype, (batch, rows, columns))
    text = (
        f"tosa.matmul {x[0]}, {y[0]}, {zero}, {zero}{g.scope()}"
        f" : ({x[1]}, {y[1]}, {zero_type}, {zero_type}) -> {result}"
    )
    start = np.zeros((batch, rows, columns), result.numpy)
    g.emit(block, result, text, lambda e: product(e, "bik,bkj->bij", e[x[0]], e[y[0]], start))


def gather(g: Generator, block: Block) -> None:
    batch, rows, columns, count = (g.pick((1, 2, 3, 5)) for _ in range(4))
    x, type_ = g.value(block, Type(g.pick((*_FLOATS, "i32")), (batch, rows, columns)))
    places = Type("i32", (batch, count))
    index, _ = g.constant(block, places, g.rng.integers(0, rows, (batch, count)).astype(np.int32))
    result = Type(type_.dtype, (batch, count, columns))
    text = f"tosa.gather {x}, {index}{g.scope()} : ({type_}, {places}) -> {result}"
    g.emit(block, result, text, lambda e: np.take_along_axis(np.asarray(e[x]), np.asarray(e[index])[..., None], 1))


def _window(g: Generator) -> tuple[Any, list[int], list[int], list[list[int]]]:
    """A window, what it moves over without and with padding, and that padding: nothing is left over."""
    shape = window(g, 2)
    pads = [[min(g.integer(0, 2), s - 1) for _ in range(2)] for s in shape.sizes]
    full = [
        (o - 1) * t + (s - 1) * d + 1
        for o, t, s, d in zip(shape.outputs, shape.strides, shape.sizes, shape.dilations, strict=True)
    ]
    inner = [n - sum(p) for n, p in zip(full, pads, strict=True)]
    pads = [p if n > 0 else [0, 0] for n, p in zip(inner, pads, strict=True)]
    return shape, full, [n - sum(p) for n, p in zip(full, pads, strict=True)], pads


def _list(values: Sequence[int]) -> str:
    return f"array<i64: {', '.join(map(str, values))}>"


def conv2d(g: Generator, block: Block) -> None:
    shape, _, inner, pads = _window(g)
    batch, deep, outs = g.pick((1, 2)), g.pick((1, 2, 3)), g.pick((1, 2, 4))
    x, k = (g.value(block, Type("f32", s)) for s in ((batch, *inner, deep), (outs, *shape.sizes, deep)))
    bias = g.value(block, Type("f32", (outs,)))
    zero = _zero(g, block, "f32")
    result = Type("f32", (batch, *shape.outputs, outs))
    mark = (
        f"{{acc_type = f32, pad = {_list([n for p in pads for n in p])}, stride = {_list(shape.strides)}, "
        f"dilation = {_list(shape.dilations)}{g.mark()}}}"
    )
    operands = [x, k, bias, zero, zero]
    given, types = ", ".join(n for n, _ in operands), ", ".join(str(t) for _, t in operands)

    def run(e: Environment) -> Any:
        image = np.pad(np.asarray(e[x[0]]), [[0, 0], *pads, [0, 0]])
        view = windows(image, [1, 2], shape.sizes, shape.strides, shape.dilations, shape.outputs)
        start = np.broadcast_to(np.asarray(e[bias[0]]), result.shape)  # pyright: ignore
        return product(e, "nhwcxy,fxyc->nhwf", view, e[k[0]], start)

    g.emit(block, result, f"tosa.conv2d {given} {mark} : ({types}) -> {result}", run)


def max_pool(g: Generator, block: Block) -> None:
    shape, _, inner, pads = _window(g)
    sizes = [(o - 1) * t + s for o, t, s in zip(shape.outputs, shape.strides, shape.sizes, strict=True)]
    inner = [n - sum(p) for n, p in zip(sizes, pads, strict=True)]
    if min(inner) < 1:
        return
    x, type_ = g.value(block, Type(g.pick(_FLOATS), (g.pick((1, 2)), *inner, g.pick((1, 2, 3)))))
    result = Type(type_.dtype, (type_.shape[0], *shape.outputs, type_.shape[3]))
    mark = (
        f"{{kernel = {_list(shape.sizes)}, stride = {_list(shape.strides)}, "
        f"pad = {_list([n for p in pads for n in p])}{g.mark()}}}"
    )

    def run(e: Environment) -> Any:
        image = np.pad(np.asarray(e[x]), [[0, 0], *pads, [0, 0]], constant_values=-np.inf)
        view = windows(image, [1, 2], shape.sizes, shape.strides, (1, 1), shape.outputs)
        flat = view.reshape([*view.shape[:4], math.prod(view.shape[4:])])
        total = flat[..., 0]
        for number in range(1, flat.shape[-1]):
            total = maximum(total, flat[..., number])
        return total

    g.emit(block, result, f"tosa.max_pool2d {x} {mark} : ({type_}) -> {result}", run)


TOSA = [elementwise, elementwise, elementwise, compare, shift, cast, reduce, move, move, matmul, gather, conv2d,
        max_pool]  # fmt: skip
