"""The operations of random programs, each with its meaning in numpy."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from random_extents import opaque, size_of, slice_of, spelt, total
from random_values import (
    COMPLEX,
    DTYPES,
    FLOATS,
    INTEGERS,
    Array,
    Environment,
    Type,
    magnitude,
    random_array,
    scalar,
    wide,
)
from scipy import special

if TYPE_CHECKING:
    from random_program import Block, Generator, Value

INDEX = scalar("index")
Arrays = Callable[..., Any]

# ------------------------------------------------------------------------------------------- elementwise


def unsigned(x: Any) -> Array:
    x = np.asarray(x)
    return x.astype(np.uint8) if x.dtype == np.bool_ else x.view(f"u{x.itemsize}")


def _extreme(pick: Arrays, negative_wins: bool) -> Arrays:
    """IEEE 754's maximum and minimum: NaN wins, and -0.0 is less than 0.0."""

    def function(x: Any, y: Any) -> Any:
        zeros = (x == 0) & (y == 0)
        sign = np.signbit(x) | np.signbit(y) if negative_wins else np.signbit(x) & np.signbit(y)
        zero = np.where(sign, -0.0, 0.0).astype(np.asarray(x).dtype)
        return np.where(zeros, zero, pick(x, y))

    return function


maximum, minimum = _extreme(np.maximum, False), _extreme(np.minimum, True)


def logistic(x: Any) -> Any:
    """0 where exp(-x) is infinite in the type of ``x``."""
    one = np.asarray(x).dtype.type(1)
    return one / (one + wide(np.exp)(-x))


def _count(function: Callable[[int, int], int]) -> Arrays:
    def count(x: Any) -> Any:
        x = np.asarray(x)
        bits = 8 * x.itemsize
        return np.vectorize(lambda v: function(int(v), bits), otypes=[x.dtype])(unsigned(x)).astype(x.dtype)

    return count


def round_away(x: Any) -> Any:
    return np.copysign(np.where(np.abs(x) < 2**52, np.floor(np.abs(np.float64(x)) + 0.5), np.abs(x)), x).astype(
        np.asarray(x).dtype
    )


@dataclass(frozen=True)
class Elementwise:
    """``ulps``: how inexact the result is. ``kind``: ``f`` for floats, ``i`` for integers, ``b`` also for i1."""

    name: str
    kind: str
    arity: int
    function: Arrays
    ulps: float = 0


def _rows(kind: str, arity: int, ulps: float, functions: dict[str, Arrays]) -> list[Elementwise]:
    return [Elementwise(name, kind, arity, function, ulps) for name, function in functions.items()]


EXACT_FLOAT = [
    *_rows("f", 2, 0, {"arith.addf": np.add, "arith.subf": np.subtract, "arith.mulf": np.multiply}),
    *_rows("f", 2, 0, {"arith.divf": np.divide, "arith.maximumf": maximum, "arith.minimumf": minimum}),
    *_rows("f", 2, 0, {"arith.remf": np.fmod, "math.copysign": np.copysign}),
    *_rows("f", 1, 0, {"arith.negf": np.negative, "math.absf": np.abs, "math.floor": np.floor}),
    *_rows("f", 1, 0, {"math.ceil": np.ceil, "math.trunc": np.trunc, "math.roundeven": np.rint}),
    *_rows("f", 1, 0, {"math.round": round_away, "math.sqrt": np.sqrt}),
]
MATH = _rows(
    "f",
    1,
    16,
    {f"math.{name}": wide(getattr(np, name)) for name in ["sin", "cos", "tan", "sinh", "cosh", "tanh"]}
    | {f"math.{name}": wide(getattr(np, name)) for name in ["exp", "exp2", "expm1"]}
    | {f"math.{name}": wide(getattr(np, name)) for name in ["log", "log2", "log10", "log1p", "cbrt"]}
    | {f"math.a{name}": wide(getattr(np, f"arc{name}")) for name in ["sin", "cos", "tan", "sinh", "cosh", "tanh"]}
    | {"math.erf": wide(special.erf), "math.erfc": wide(np.vectorize(math.erfc, otypes=[np.float64]))}
    | {"math.rsqrt": wide(lambda x: 1 / np.sqrt(x))},
) + _rows("f", 2, 16, {"math.atan2": wide(np.arctan2), "math.powf": wide(np.power)})
EXACT_INTEGER = [
    *_rows("i", 2, 0, {"arith.addi": np.add, "arith.subi": np.subtract, "arith.muli": np.multiply}),
    *_rows("b", 2, 0, {"arith.andi": np.bitwise_and, "arith.ori": np.bitwise_or, "arith.xori": np.bitwise_xor}),
    *_rows("i", 2, 0, {"arith.maxsi": np.maximum, "arith.minsi": np.minimum}),
    *_rows("i", 2, 0, {"arith.maxui": lambda x, y: np.where(unsigned(x) > unsigned(y), x, y)}),
    *_rows("i", 2, 0, {"arith.minui": lambda x, y: np.where(unsigned(x) < unsigned(y), x, y)}),
]
BITS = _rows(
    "I",  # not for index
    1,
    0,
    {
        "math.absi": np.abs,
        "math.ctpop": _count(lambda v, _: v.bit_count()),
        "math.ctlz": _count(lambda v, bits: bits - v.bit_length()),
        "math.cttz": _count(lambda v, bits: (v & -v).bit_length() - 1 if v else bits),
    },
)
COMPLEX_ROWS = [
    *_rows("c", 2, 0, {"complex.add": np.add, "complex.sub": np.subtract}),
    *_rows("c", 1, 0, {"complex.neg": np.negative, "complex.conj": np.conj}),
    *_rows("c", 2, 16, {"complex.mul": np.multiply, "complex.div": np.divide}),
    *_rows("c", 1, 16, {f"complex.{name}": getattr(np, name) for name in ("exp", "sin", "cos")}),
]
"""On scalars only."""
TABLE = [*EXACT_FLOAT, *EXACT_FLOAT, *MATH, *EXACT_INTEGER, *BITS]

_ORDERED: dict[str, Arrays] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


def _float_predicates() -> dict[str, Arrays]:
    def ordered(f: Arrays) -> Arrays:
        return lambda x, y: f(x, y) & ~(np.isnan(x) | np.isnan(y))

    def unordered(f: Arrays) -> Arrays:
        return lambda x, y: f(x, y) | np.isnan(x) | np.isnan(y)

    table = {f"o{name}": ordered(f) for name, f in _ORDERED.items()}
    table |= {f"u{name}": unordered(f) for name, f in _ORDERED.items()}
    nan: Arrays = lambda x, y: np.isnan(x) | np.isnan(y)  # noqa: E731
    return table | {"ord": lambda x, y: ~nan(x, y), "uno": nan}


PREDICATES = {
    "f": _float_predicates(),
    "i": {name: f for name, f in _ORDERED.items() if name in ("eq", "ne")}
    | {f"s{name}": f for name, f in _ORDERED.items() if name not in ("eq", "ne")}
    | {
        f"u{name}": lambda x, y, f=f: f(unsigned(x), unsigned(y))
        for name, f in _ORDERED.items()
        if name not in ("eq", "ne")
    },
}


def _suits(op: Elementwise, dtype: str) -> bool:
    if op.kind == "f":
        return dtype in FLOATS
    if op.kind == "c":
        return dtype in COMPLEX
    if op.kind == "b":
        return dtype in INTEGERS or dtype == "i1"
    return dtype in INTEGERS and (op.kind != "I" or dtype != "index")


def casts(source: str, target: str) -> list[tuple[str, Arrays]]:
    """Operations from one element type to another that are defined for all values."""
    s, t = DTYPES[source], DTYPES[target]
    found: list[tuple[str, Arrays]] = []
    if source in FLOATS and target in FLOATS and source != target:
        found.append(("arith.extf" if t.itemsize > s.itemsize else "arith.truncf", lambda x: np.asarray(x, t)))
    elif source in (*INTEGERS, "i1") and target in FLOATS and source != "index":
        found.append(("arith.uitofp", lambda x: unsigned(x).astype(t)))
        found.append(("arith.sitofp", lambda x: np.asarray(x, t) * (-1 if source == "i1" else 1) + 0))
    elif "index" in (source, target) and source != target and source in INTEGERS and target in INTEGERS:
        found.append(("arith.index_cast", lambda x: np.asarray(x, t)))
    elif source in (*INTEGERS, "i1") and target in (*INTEGERS, "i1") and "index" not in (source, target):
        bits, wanted = (1 if n == "i1" else 8 * DTYPES[n].itemsize for n in (source, target))
        if bits < wanted:
            found.append(("arith.extui", lambda x: unsigned(x).astype(t)))
            if source != "i1":
                found.append(("arith.extsi", lambda x: np.asarray(x, t)))
            else:
                found.append(("arith.extsi", lambda x: -np.asarray(x, t)))
        elif bits > wanted:
            found.append(("arith.trunci", lambda x: (np.asarray(x) & 1 if target == "i1" else x).astype(t)))
    if source in INTEGERS and target in FLOATS and source != "index" and s.itemsize == t.itemsize:
        found.append(("arith.bitcast", lambda x: np.asarray(x).view(t)))
    return found


def _apply(op: Elementwise, operands: Sequence[str]) -> Callable[[Environment], Any]:
    return lambda e: e.inexact(op.function(*(e[name] for name in operands)), op.ulps)


# ------------------------------------------------------------------------------------------- scalar code


def scalar_code(g: Generator, block: Block, dtype: str, count: int) -> str:
    """``count`` statements on scalars, then a value of the type, made of one of them. The same in a computation,
    where ``block`` is the body: there numpy computes on whole arrays."""
    for _ in range(count):
        g.pick(_SCALAR)(g, block)
    found = [v for v in block.visible if v[1] == scalar(dtype)]
    recent = found[-3:]
    if recent and (dtype != "i1" or g.chance(0.6)):
        return g.pick(recent)[0]
    if dtype == "i1":
        return _scalar_compare(g, block)
    if dtype in COMPLEX:
        return _create(g, block, dtype)
    others = [v for v in block.visible if v[1].scalar and casts(v[1].dtype, dtype)]
    if others and g.chance(0.8):
        return _cast(g, block, g.recent(others, 1)[0], dtype)
    return g.constant_scalar(block, scalar(dtype))[0]


def _create(g: Generator, block: Block, dtype: str) -> str:
    """A complex number of two reals."""
    re, im = _scalars(g, block, dtype[8:-1], 2)
    text = f"complex.create {re}, {im} : {dtype}"

    def run(e: Environment) -> Any:
        parts = np.stack(np.broadcast_arrays(e[re], e[im]), -1)
        return np.ascontiguousarray(parts).view(DTYPES[dtype])[..., 0]

    return g.emit(block, scalar(dtype), text, run)


def _scalar_complex(g: Generator, block: Block) -> None:
    """Calculates with complex numbers where there are some; or takes their parts."""
    found = [v for v in block.visible if v[1].scalar and v[1].dtype in COMPLEX]
    if not found:
        return
    x, type_ = g.recent(found, 1)[0]
    if g.chance(0.4):
        name, function = g.pick([("re", np.real), ("im", np.imag), ("abs", np.abs)])
        ulps = 16 if name == "abs" else 0
        real = scalar(type_.dtype[8:-1])
        g.emit(block, real, f"complex.{name} {x} : {type_}", lambda e: e.inexact(function(e[x]), ulps))
        return
    op = g.pick(COMPLEX_ROWS)
    operands = [x, *_scalars(g, block, type_.dtype, op.arity - 1)]
    g.emit(block, type_, f"{op.name} {', '.join(operands)} : {type_}", _apply(op, operands))


def _cast(g: Generator, block: Block, value: Value, dtype: str) -> str:
    name, function = g.pick(casts(value[1].dtype, dtype))
    text = f"{name} {value[0]} : {value[1]} to {dtype}"
    return g.emit(block, scalar(dtype), text, lambda e: function(e[value[0]]))


def _scalars(g: Generator, block: Block, dtype: str, count: int) -> list[str]:
    return [g.value(block, scalar(dtype))[0] if not _in_body(block) else _body_value(g, block, dtype)
            for _ in range(count)]  # fmt: skip


def _in_body(block: Block) -> bool:
    return block.owner is None


def _body_value(g: Generator, block: Block, dtype: str) -> str:
    found = [v for v in block.visible if v[1] == scalar(dtype)]
    return g.recent(found, 1)[0][0] if found else g.constant_scalar(block, scalar(dtype))[0]


def _a_dtype(g: Generator, block: Block, suits: Callable[[str], bool]) -> str | None:
    found = sorted({v[1].dtype for v in block.visible if v[1].scalar and suits(v[1].dtype)})
    if not found or g.chance(0.2):
        found = [dtype for dtype in (*g.dtypes, "index") if suits(dtype)]
    return g.pick(found) if found else None


def _scalar_elementwise(g: Generator, block: Block) -> None:
    op = g.pick(TABLE)
    dtype = _a_dtype(g, block, lambda d: _suits(op, d))
    if dtype is not None:
        operands = _scalars(g, block, dtype, op.arity)
        g.emit(block, scalar(dtype), f"{op.name} {', '.join(operands)} : {dtype}", _apply(op, operands))


def _scalar_compare(g: Generator, block: Block) -> str:
    dtype = _a_dtype(g, block, lambda d: d != "i1" and d not in COMPLEX) or "f32"
    x, y = _scalars(g, block, dtype, 2)
    kind = "f" if dtype in FLOATS else "i"
    predicate, function = g.pick(list(PREDICATES[kind].items()))
    return g.emit(
        block, scalar("i1"), f"arith.cmp{kind} {predicate}, {x}, {y} : {dtype}", lambda e: function(e[x], e[y])
    )


def _scalar_select(g: Generator, block: Block) -> None:
    test = _scalar_compare(g, block)
    dtype = _a_dtype(g, block, lambda _: True) or "f32"
    x, y = _scalars(g, block, dtype, 2)
    g.emit(
        block, scalar(dtype), f"arith.select {test}, {x}, {y} : {dtype}", lambda e: np.where(e[test], e[x], e[y])
    )


def _scalar_cast(g: Generator, block: Block) -> None:
    found = [v for v in block.visible if v[1].scalar]
    if found:
        value = g.recent(found, 1)[0]
        targets = [d for d in (*FLOATS, *INTEGERS) if casts(value[1].dtype, d)]
        if targets:
            _cast(g, block, value, g.pick(targets))


def _floor_divide(x: Any, y: Any) -> Any:
    return np.floor_divide(x, y)


def _truncated(x: Any, y: Any) -> Any:
    x, y = np.asarray(x), np.asarray(y)
    return np.floor_divide(x, y) + ((np.remainder(x, y) != 0) & ((x < 0) != (y < 0))).astype(x.dtype)


def _by_unsigned(function: Arrays) -> Arrays:
    return lambda x, y: function(unsigned(x), unsigned(y)).view(np.asarray(x).dtype)


_DIVISIONS: dict[str, Arrays] = {
    "arith.divsi": _truncated,
    "arith.remsi": np.fmod,
    "arith.floordivsi": _floor_divide,
    "arith.ceildivsi": lambda x, y: np.floor_divide(x, y) + (np.remainder(x, y) != 0).astype(np.asarray(x).dtype),
    "arith.divui": _by_unsigned(np.floor_divide),
    "arith.remui": _by_unsigned(np.remainder),
    "arith.ceildivui": _by_unsigned(
        lambda x, y: np.floor_divide(x, y) + (np.remainder(x, y) != 0).astype(x.dtype)
    ),
}
_SHIFTS: dict[str, Arrays] = {
    "arith.shli": np.left_shift,
    "arith.shrsi": np.right_shift,
    "arith.shrui": _by_unsigned(np.right_shift),
}


def _scalar_division(g: Generator, block: Block) -> None:
    """Divisors may be zero, as numpy divides (docs/checks.md); the amount of a shift is made legal."""
    dtype = _a_dtype(g, block, lambda d: d in INTEGERS)
    if dtype is None:
        return
    type_ = scalar(dtype)
    x, y = _scalars(g, block, dtype, 2)
    name, function = g.pick(list((_SHIFTS if g.chance(0.3) else _DIVISIONS).items()))
    shift = name in _SHIFTS
    if not shift and g.zeros:
        g.emit(block, type_, f"{name} {x}, {y} : {dtype}", lambda e: function(e[x], e[y]))
        return
    mask = g.constant_scalar(block, type_, 7)[0]
    low = g.emit(block, type_, f"arith.andi {y}, {mask} : {dtype}", lambda e: e[y] & e[mask])
    if not shift:
        one = g.constant_scalar(block, type_, 1)[0]
        masked = low
        low = g.emit(block, type_, f"arith.ori {masked}, {one} : {dtype}", lambda e: e[masked] | e[one])
    divisor = low
    g.emit(block, type_, f"{name} {x}, {divisor} : {dtype}", lambda e: function(e[x], e[divisor]))


def _scalar_to_integer(g: Generator, block: Block) -> None:
    """Only numbers in the range of the result have a defined one."""
    dtype = _a_dtype(g, block, lambda d: d in FLOATS)
    if dtype is None:
        return
    target = g.pick(INTEGERS[:-1])
    (x,) = _scalars(g, block, dtype, 1)
    limit, zero = (g.constant_scalar(block, scalar(dtype), value)[0] for value in (100, 0))
    size = g.emit(block, scalar(dtype), f"math.absf {x} : {dtype}", lambda e: np.abs(e[x]))
    test = g.emit(block, scalar("i1"), f"arith.cmpf olt, {size}, {limit} : {dtype}", lambda e: e[size] < e[limit])
    kept = g.emit(
        block, scalar(dtype), f"arith.select {test}, {x}, {zero} : {dtype}", lambda e: np.where(e[test], e[x], 0)
    )
    name, source = "arith.fptosi", kept
    if g.chance(0.3):
        name = "arith.fptoui"
        source = g.emit(block, scalar(dtype), f"math.absf {kept} : {dtype}", lambda e: np.abs(e[kept]))
    g.emit(
        block,
        scalar(target),
        f"{name} {source} : {dtype} to {target}",
        lambda e: np.trunc(np.asarray(e[source], np.float64)).astype(DTYPES[target]),
    )


_SCALAR: list[Callable[[Generator, Block], Any]] = [
    *[_scalar_elementwise] * 5,
    _scalar_compare,
    _scalar_select,
    _scalar_select,
    _scalar_cast,
    _scalar_division,
    _scalar_complex,
    _scalar_complex,
    _scalar_to_integer,
]


def host_scalar(g: Generator, block: Block) -> None:
    for _ in range(g.integer(1, 4)):
        g.pick(_SCALAR)(g, block)


# ------------------------------------------------------------------------------- elementwise on tensors


def elementwise(g: Generator, block: Block) -> None:
    op = g.pick(TABLE)
    dtypes = [d for d in (*g.dtypes, "i1") if _suits(op, d)]
    if not dtypes:
        return
    x, type_ = g.tensor(block, lambda t: _suits(op, t.dtype), lambda: g.tensor_type(dtypes=dtypes))
    operands = [x, *(g.value(block, type_)[0] for _ in range(op.arity - 1))]
    if g.chance(0.5):
        operands.reverse()
    g.emit(block, type_, f"{op.name} {', '.join(operands)}{g.scope()} : {type_}", _apply(op, operands))


def compare(g: Generator, block: Block) -> None:
    """And then a selection."""
    reals = [d for d in g.dtypes if d not in COMPLEX]
    x, type_ = g.tensor(block, lambda t: t.dtype not in ("i1", *COMPLEX), lambda: g.tensor_type(dtypes=reals))
    y = g.value(block, type_)[0]
    kind = "f" if type_.dtype in FLOATS else "i"
    predicate, function = g.pick(list(PREDICATES[kind].items()))
    mask = Type("i1", type_.shape)
    text = f"arith.cmp{kind} {predicate}, {x}, {y}{g.scope()} : {type_}"
    test = g.emit(block, mask, text, lambda e: function(e[x], e[y]))
    z = g.value(block, type_)[0]
    text = f"arith.select {test}, {x}, {z}{g.scope()} : {mask}, {type_}"
    g.emit(block, type_, text, lambda e: np.where(e[test], e[x], e[z]))


def select(g: Generator, block: Block) -> None:
    x, type_ = g.tensor(block, lambda _: True, g.tensor_type)
    y = g.value(block, type_)[0]
    mask = Type("i1", type_.shape) if type_.shape and g.chance(0.5) else scalar("i1")
    test = g.value(block, mask)[0]
    types = f"{mask}, {type_}" if mask.shape else f"{type_}"
    g.emit(
        block,
        type_,
        f"arith.select {test}, {x}, {y}{g.scope()} : {types}",
        lambda e: np.where(e[test], e[x], e[y]),
    )


def cast(g: Generator, block: Block) -> None:
    x, type_ = g.tensor(block, lambda t: t.dtype != "index", g.tensor_type)
    targets = [(d, c) for d in (*FLOATS, *INTEGERS) for c in casts(type_.dtype, d)]
    if targets:
        dtype, (name, function) = g.pick(targets)
        target = Type(dtype, type_.shape)
        g.emit(block, target, f"{name} {x}{g.scope()} : {type_} to {target}", lambda e: function(e[x]))


NAMED = {
    "add": ("arith.addf", "arith.addi"),
    "sub": ("arith.subf", "arith.subi"),
    "mul": ("arith.mulf", "arith.muli"),
    "div": ("arith.divf", ""),
    "max": ("arith.maximumf", "arith.maxsi"),
    "min": ("arith.minimumf", "arith.minsi"),
    "abs": ("math.absf", ""),
    "negf": ("arith.negf", ""),
    "exp": ("math.exp", ""),
    "log": ("math.log", ""),
    "tanh": ("math.tanh", ""),
    "sqrt": ("math.sqrt", ""),
    "rsqrt": ("math.rsqrt", ""),
    "floor": ("math.floor", ""),
    "ceil": ("math.ceil", ""),
    "erf": ("math.erf", ""),
}
BY_NAME = {op.name: op for op in (*TABLE, *COMPLEX_ROWS)}


def named(g: Generator, block: Block) -> None:
    name, (of_floats, of_integers) = g.pick(list(NAMED.items()))
    x, type_ = g.tensor(
        block,
        lambda t: (
            t.dtype in FLOATS
            or (bool(of_integers) and t.dtype in INTEGERS[:-1])
            or (name in ("add", "sub", "mul") and t.dtype in COMPLEX)
        ),
        lambda: g.tensor_type(dtypes=[d for d in g.dtypes if d in FLOATS]),
    )
    op = BY_NAME[
        of_floats if type_.dtype in FLOATS else f"complex.{name}" if type_.dtype in COMPLEX else of_integers
    ]
    operands = [x, *(g.value(block, type_)[0] for _ in range(op.arity - 1))]
    types = ", ".join([str(type_)] * op.arity)
    out = g.empty(block, type_)
    text = f"linalg.{name}{g.scope()} ins({', '.join(operands)} : {types}) outs({out} : {type_}) -> {type_}"
    g.emit(block, type_, text, _apply(op, operands))


# ------------------------------------------------------------------------------------- linalg.generic


def spread(array: Any, dims: Sequence[int], sizes: Sequence[int]) -> Array:
    """An array whose axes are these dimensions of an iteration space, over all of it."""
    array = np.asarray(array)
    order = np.argsort(dims, kind="stable")
    shape = [1] * len(sizes)
    for dim in dims:
        shape[dim] = sizes[dim]
    return np.broadcast_to(array.transpose(order).reshape(shape), tuple(sizes))


def _map(rank: int, dims: Sequence[int]) -> str:
    return f"affine_map<({', '.join(f'd{i}' for i in range(rank))}) -> ({', '.join(f'd{i}' for i in dims)})>"


def _body(block: Block, arguments: list[Value]) -> Block:
    """The body of a computation: no arguments are added to it, and tensors are not seen in it."""
    from random_program import Block

    outer = [v for v in block.visible if v[1].scalar]
    return Block([*outer, *arguments], block.depth + 1, None)


def _index_values(g: Generator, body: Block, rank: int) -> list[tuple[str, int]]:
    if not rank or not g.chance(0.2):
        return []
    dim = g.integer(0, rank)
    name = g.name()
    body.visible.append((name, INDEX))
    return [(name, dim)]


def _gather(g: Generator, block: Block, body: Block) -> None:
    """Reads a tensor at computed places, which are taken modulo its size."""
    found = [
        v for v in block.visible
        if not v[1].scalar and 1 <= len(v[1].shape) <= 2 and all(isinstance(e, int) and e for e in v[1].shape)
    ]  # fmt: skip
    if not found:
        return
    x, type_ = g.recent(found, 1)[0]
    places: list[str] = []
    for extent in type_.shape:
        index = _body_value(g, body, "index")
        size = g.constant_scalar(body, INDEX, extent)[0]
        text = f"arith.remui {index}, {size} : index"
        function = _DIVISIONS["arith.remui"]
        places.append(
            g.emit(body, INDEX, text, lambda e, i=index, s=size, f=function: f(np.asarray(e[i]), np.asarray(e[s])))
        )
    text = f"tensor.extract {x}[{', '.join(places)}] : {type_}"
    g.emit(body, scalar(type_.dtype), text, lambda e: np.asarray(e[x])[tuple(np.asarray(e[p]) for p in places)])


def generic(g: Generator, block: Block) -> None:
    """Parallel: inputs that are permuted and lack dimensions, a body of scalar code."""
    out_type = g.tensor_type()
    found = g.tensors(block)
    if found and g.chance(0.7):
        out_type = g.recent(found, 1)[0][1]
    rank = len(out_type.shape)
    inputs: list[tuple[str, Type, list[int]]] = []
    for _ in range(g.integer(0, 4)):
        dims = g.sample(range(rank), g.integer(0, rank + 1) if g.chance(0.4) else rank) if rank else []
        if g.chance(0.6):
            dims.sort()
        type_ = Type(g.pick([out_type.dtype, *g.dtypes]), tuple(out_type.shape[d] for d in dims))
        inputs.append((*g.value(block, type_), dims))
    order = g.sample(range(rank), rank) if g.chance(0.2) else list(range(rank))
    result = Type(out_type.dtype, tuple(out_type.shape[d] for d in order))
    reads = g.chance(0.2)
    out = g.value(block, result)[0] if reads else g.empty(block, result)
    arguments = [(g.name(), scalar(type_.dtype)) for _, type_, _ in inputs]
    last = (g.name(), scalar(result.dtype))
    body = _body(block, [*arguments, *([last] if reads else [])])
    indices = _index_values(g, body, rank)
    if g.chance(0.15):
        _gather(g, block, body)
    value = scalar_code(g, body, result.dtype, g.integer(1, 5))
    maps = [_map(rank, dims) for *_, dims in inputs] + [_map(rank, order)]
    kinds = ", ".join(['"parallel"'] * rank)

    def run(e: Environment) -> Any:
        sizes = e.sizes(out_type.shape)
        inner = e.inner()
        for (name, _), (x, _, dims) in zip(arguments, inputs, strict=True):
            inner[name] = spread(e[x], dims, sizes)
        if reads:
            inner[last[0]] = spread(e[out], order, sizes)
        return np.transpose(_evaluate(body, inner, indices, sizes, value), order)

    text = _generic_text(g, maps, kinds, inputs, (out, result), [*arguments, last], indices, body, value)
    g.emit(block, result, text, run)


def _evaluate(body: Block, inner: Environment, indices: list[tuple[str, int]], sizes: Any, value: str) -> Array:
    for name, dim in indices:
        inner[name] = spread(np.arange(sizes[dim]), [dim], sizes)
    body.run(inner)
    return np.broadcast_to(inner[value], sizes)


def _generic_text(
    g: Generator, maps: list[str], kinds: str, inputs: Any, out: Value, arguments: list[Value],
    indices: list[tuple[str, int]], body: Block, value: str, last: str = ""
) -> str:  # fmt: skip
    ins = ""
    if inputs:
        ins = f"ins({', '.join(x for x, *_ in inputs)} : {', '.join(str(t) for _, t, *_ in inputs)}) "
    block = ", ".join(f"{name}: {type_}" for name, type_ in arguments)
    lines = "".join(f"    {name} = linalg.index {dim} : index\n" for name, dim in indices)
    yielded = arguments[-1][1]
    return (
        f"linalg.generic {{indexing_maps = [{', '.join(maps)}], iterator_types = [{kinds}]}}\n"
        f"    {ins}outs({out[0]} : {out[1]}){g.scope(prefix=' attrs =')} {{\n  ^bb0({block}):\n"
        f"{lines}{body.text()}\n{last}    linalg.yield {value} : {yielded}\n  }} -> {out[1]}"
    )


COMBINERS = {
    "f": [
        BY_NAME[name] for name in ("arith.addf", "arith.addf", "arith.maximumf", "arith.minimumf", "arith.mulf")
    ],
    "i": [BY_NAME[name] for name in ("arith.addi", "arith.maxsi", "arith.minui", "arith.xori", "arith.muli")],
    "c": [BY_NAME[name] for name in ("complex.add", "complex.mul")],
    "b": [BY_NAME[name] for name in ("arith.andi", "arith.ori", "arith.xori")],
}


def combiner(g: Generator, dtype: str) -> Elementwise:
    return g.pick(
        COMBINERS["f" if dtype in FLOATS else "c" if dtype in COMPLEX else "b" if dtype == "i1" else "i"]
    )


def fold(e: Environment, op: Elementwise, values: Array, initial: Any) -> Array:
    """Combines the last axis of ``values`` with ``initial``: in order; in a run with errors, in any order."""
    order = np.arange(values.shape[-1])
    is_product = op.name in ("arith.mulf", "complex.mul")  # of which drivers of devices do not keep the order
    inexact = op.name in ("arith.addf", "complex.add") or is_product
    if e.noise is not None and inexact:
        e.noise.shuffle(order)
    total = np.asarray(initial)
    for index in order:
        total = op.function(total, values[..., index])
    if not inexact or e.noise is None:
        return total
    scale = magnitude(values).sum(-1) + magnitude(initial)
    if is_product:
        scale = np.where(_leaves_range(values, initial), np.inf, magnitude(total))
    return e.inexact(total, values.shape[-1] + 1, scale)


def _leaves_range(values: Array, initial: Any) -> Array:
    """Whether a product can be infinite, zero or subnormal on the way, in some order."""
    info = np.finfo(values.dtype)
    factors = [values, np.asarray(initial)[..., None]]
    logs = np.concatenate([np.log2(np.where(np.isnan(f), 1, np.abs(f)).astype(np.float64)) for f in factors], -1)
    up, down = np.maximum(logs, 0).sum(-1), np.minimum(logs, 0).sum(-1)
    return ~((up < np.log2(float(info.max))) & (down > np.log2(float(info.tiny))))


def reduce_generic(g: Generator, block: Block) -> None:
    x, type_ = g.tensor(
        block, lambda t: 1 <= len(t.shape) <= 4 and t.dtype != "index", lambda: g.tensor_type(g.integer(1, 4))
    )
    rank = len(type_.shape)
    dims = g.sample(range(rank), rank) if g.chance(0.3) else list(range(rank))
    space: list[int | str] = [0] * rank
    for axis, dim in enumerate(dims):
        space[dim] = type_.shape[axis]
    away = sorted(g.sample(range(rank), g.integer(1, rank + 1)))
    kept = [d for d in range(rank) if d not in away]
    if g.chance(0.2):
        kept = kept[::-1]
    result = Type(type_.dtype, tuple(space[d] for d in kept))
    initial = g.value(block, result)[0]
    op = combiner(g, type_.dtype)
    argument, last = (g.name(), scalar(type_.dtype)), (g.name(), scalar(type_.dtype))
    body = _body(block, [argument])
    indices = _index_values(g, body, rank)
    value = scalar_code(g, body, type_.dtype, g.integer(0, 3))
    total = g.name()
    pair = f"{last[0]}, {value}" if g.chance(0.5) else f"{value}, {last[0]}"
    kinds = ", ".join('"reduction"' if d in away else '"parallel"' for d in range(rank))

    def run(e: Environment) -> Any:
        sizes = e.sizes(space)
        inner = e.inner()
        inner[argument[0]] = spread(e[x], dims, sizes)
        values = _evaluate(body, inner, indices, sizes, value)
        values = values.transpose([*kept, *away]).reshape(
            [*(sizes[d] for d in kept), math.prod(sizes[d] for d in away)]
        )
        return fold(e, op, values, e[initial])

    combine = f"    {total} = {op.name} {pair} : {type_.dtype}\n"
    maps = [_map(rank, dims), _map(rank, kept)]
    text = _generic_text(
        g, maps, kinds, [(x, type_)], (initial, result), [argument, last], indices, body, total, combine
    )
    g.emit(block, result, text, run)


def reduce(g: Generator, block: Block) -> None:
    x, type_ = g.tensor(
        block, lambda t: len(t.shape) >= 1 and t.dtype not in ("index", *COMPLEX),
        lambda: g.tensor_type(g.integer(1, 4), [d for d in g.dtypes if d not in COMPLEX])
    )  # fmt: skip
    rank = len(type_.shape)
    away = sorted(g.sample(range(rank), g.integer(1, rank + 1)))
    kept = [d for d in range(rank) if d not in away]
    result = Type(type_.dtype, tuple(type_.shape[d] for d in kept))
    initial = g.value(block, result)[0]
    op = combiner(g, type_.dtype)

    def run(e: Environment) -> Any:
        values = np.asarray(e[x]).transpose([*kept, *away])
        return fold(
            e, op, values.reshape([*values.shape[: len(kept)], math.prod(values.shape[len(kept) :])]), e[initial]
        )

    head = f"linalg.reduce {{ {op.name} }} ins({x} : {type_}) outs({initial} : {result})"
    text = f"{head} dimensions = {away}{g.scope()}"
    g.emit(block, result, text, run)


def map_(g: Generator, block: Block) -> None:
    x, type_ = g.tensor(block, lambda t: t.dtype != "index", g.tensor_type)
    inputs = [x, *(g.value(block, type_)[0] for _ in range(g.integer(0, 2)))]
    out = g.empty(block, type_)
    arguments = [(g.name(), scalar(type_.dtype)) for _ in inputs]
    unused = g.name()
    body = _body(block, arguments)
    value = scalar_code(g, body, type_.dtype, g.integer(1, 4))

    def run(e: Environment) -> Any:
        inner = e.inner()
        for (name, _), operand in zip(arguments, inputs, strict=True):
            inner[name] = e[operand]
        return _evaluate(body, inner, [], e.sizes(type_.shape), value)

    names = ", ".join([*(f"{name}: {t}" for name, t in arguments), f"{unused}: {type_.dtype}"])
    types = ", ".join(str(type_) for _ in inputs)
    text = (
        f"linalg.map ins({', '.join(inputs)} : {types}) outs({out} : {type_}){g.scope()}\n"
        f"  ({names}) {{\n{body.text()}\n    linalg.yield {value} : {type_.dtype}\n  }}"
    )
    g.emit(block, type_, text, run)


def transpose(g: Generator, block: Block) -> None:
    x, type_ = g.tensor(block, lambda t: len(t.shape) >= 2, lambda: g.tensor_type(g.integer(2, 5)))
    order = g.sample(range(len(type_.shape)), len(type_.shape))
    result = Type(type_.dtype, tuple(type_.shape[d] for d in order))
    out = g.empty(block, result)
    text = f"linalg.transpose ins({x} : {type_}) outs({out} : {result}) permutation = {order}{g.scope()}"
    g.emit(block, result, text, lambda e: np.transpose(e[x], order))


def broadcast(g: Generator, block: Block) -> None:
    x, type_ = g.tensor(block, lambda t: len(t.shape) <= 3, lambda: g.tensor_type(g.integer(0, 3)))
    rank = len(type_.shape) + g.integer(1, 3)
    new = sorted(g.sample(range(rank), rank - len(type_.shape)))
    kept = [d for d in range(rank) if d not in new]
    shape = list(g.shape(rank))
    for axis, dim in enumerate(kept):
        shape[dim] = type_.shape[axis]
    result = Type(type_.dtype, tuple(shape))
    out = g.empty(block, result)
    text = f"linalg.broadcast ins({x} : {type_}) outs({out} : {result}) dimensions = {new}{g.scope()}"
    g.emit(block, result, text, lambda e: spread(e[x], kept, e.sizes(result.shape)))


def generate(g: Generator, block: Block) -> None:
    type_ = g.tensor_type(g.integer(1, 4))
    names = [g.name() for _ in type_.shape]
    body = _body(block, [(name, INDEX) for name in names])
    if g.chance(0.5):
        _gather(g, block, body)
    value = scalar_code(g, body, type_.dtype, g.integer(1, 4))
    places = [(name, dim) for dim, name in enumerate(names)]
    arguments = ", ".join(f"{name}: index" for name in names)
    text = (
        f"tensor.generate {', '.join(type_.dynamic)} {{\n  ^bb0({arguments}):\n{body.text()}\n"
        f"    tensor.yield {value} : {type_.dtype}\n  }}{g.scope()} : {type_}"
    )
    g.emit(block, type_, text, lambda e: _evaluate(body, e.inner(), places, e.sizes(type_.shape), value))


# ------------------------------------------------------------------------- contractions, convolutions


def product(e: Environment, subscripts: str, x: Any, y: Any, initial: Any) -> Array:
    """``initial`` + a sum of products, in the type of ``initial``."""
    initial = np.asarray(initial)
    if initial.dtype.kind not in "fc":
        return initial + np.einsum(subscripts, np.asarray(x, initial.dtype), np.asarray(y, initial.dtype))
    x, y, start = (
        np.asarray(a, np.complex128 if initial.dtype.kind == "c" else np.float64) for a in (x, y, initial)
    )
    terms = np.einsum(subscripts, magnitude(x), magnitude(y))
    value = (start + np.einsum(subscripts, x, y)).astype(initial.dtype)
    if e.noise is None:
        return value
    contracted = set(subscripts.split("->", maxsplit=1)[0].replace(",", "")) - set(subscripts.split("->")[1])
    sizes = dict(zip(subscripts.split(",")[0], x.shape, strict=True))
    count = math.prod(sizes.get(name, 1) for name in contracted) + 2
    # Where everything cancels, signs of zeros depend on the order.
    return e.inexact(value, count, terms + magnitude(start))


CONTRACTIONS = {
    "matmul": "ik,kj->ij",
    "batch_matmul": "bik,bkj->bij",
    "matvec": "ik,k->i",
    "vecmat": "k,kj->j",
    "dot": "k,k->",
    "batch_matvec": "bik,bk->bi",
}


def _contraction_types(g: Generator, block: Block, subscripts: str) -> tuple[Value, Value, Value]:
    one, two, three = (*subscripts.split("->")[0].split(","), subscripts.split("->")[1])
    x, type_ = g.tensor(
        block,
        lambda t: len(t.shape) == len(one) and t.dtype not in ("i1", "index"),
        lambda: g.tensor_type(len(one)),
    )
    extents = dict(zip(one, type_.shape, strict=True))
    for name in two:
        extents.setdefault(name, g.pick(g.extents))
    y, initial = (g.value(block, Type(type_.dtype, tuple(extents[n] for n in names))) for names in (two, three))
    return (x, type_), y, initial


def contraction(g: Generator, block: Block) -> None:
    name, subscripts = g.pick(list(CONTRACTIONS.items()))
    (x, x_type), (y, y_type), (start, type_) = _contraction_types(g, block, subscripts)
    text = f"linalg.{name}{g.scope()} ins({x}, {y} : {x_type}, {y_type}) outs({start} : {type_}) -> {type_}"
    g.emit(block, type_, text, lambda e: product(e, subscripts, e[x], e[y], e[start]))


def contract(g: Generator, block: Block) -> None:
    """A contraction with any order of dimensions, as a generic or as ``linalg.contract``."""
    subscripts = g.pick(
        ["ki,jk->ij", "ik,jk->ji", "bki,bjk->bij", "ijk,kj->i", "ij,kj->ik", "ij,j->ij", "ij,kl->ijkl"]
    )
    (x, x_type), (y, y_type), (start, type_) = _contraction_types(g, block, subscripts)
    one, two, three = (*subscripts.split("->")[0].split(","), subscripts.split("->")[1])
    dims = sorted(set(one + two))
    head = f"affine_map<({', '.join(dims)}) -> "
    maps = ", ".join(f"{head}({', '.join(names)})>" for names in (one, two, three))
    kinds = ", ".join('"parallel"' if d in three else '"reduction"' for d in dims)
    mul, add = ("arith.mulf", "arith.addf") if type_.dtype in FLOATS else ("arith.muli", "arith.addi")
    if type_.dtype in COMPLEX:
        mul, add = "complex.mul", "complex.add"
    a, b, c, d, f = (g.name() for _ in range(5))
    t = type_.dtype
    ends = f"ins({x}, {y} : {x_type}, {y_type}) outs({start} : {type_})"
    if g.chance(0.3) and type_.dtype not in COMPLEX and set(three) != set(dims):
        text = f"linalg.contract indexing_maps = [{maps}]{g.scope()} {ends} -> {type_}"
    else:
        text = (
            f"linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}} {ends}"
            f"{g.scope(prefix=' attrs =')} {{\n"
            f"  ^bb0({a}: {t}, {b}: {t}, {c}: {t}):\n    {d} = {mul} {a}, {b} : {t}\n"
            f"    {f} = {add} {c}, {d} : {t}\n    linalg.yield {f} : {t}\n  }} -> {type_}"
        )
    g.emit(block, type_, text, lambda e: product(e, subscripts, e[x], e[y], e[start]))


def windows(x: Any, axes: Sequence[int], sizes: Any, strides: Any, dilations: Any, extents: Any) -> Array:
    """Windows over ``axes``: the axes have the extents of the output, the windows' own come last."""
    made = np.asarray(x)
    for number, axis in enumerate(axes):
        places = (
            np.arange(extents[number])[:, None] * strides[number] + np.arange(sizes[number]) * dilations[number]
        )
        made = np.take(made, places, axis=axis)  # the axis becomes two
        made = np.moveaxis(made, axis + 1, -1)
    return made


@dataclass(frozen=True)
class Window:
    """Extents of a window, of what it moves over and of the result."""

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]

    def attributes(self) -> str:
        count = f"tensor<{len(self.sizes)}xi64>"
        return (
            f"dilations = dense<{list(self.dilations)}> : {count}, strides = dense<{list(self.strides)}> : {count}"
        )


def window(g: Generator, count: int) -> Window:
    sizes, strides, dilations, inputs, outputs = ([0] * count for _ in range(5))
    for axis in range(count):
        sizes[axis], strides[axis] = g.pick([1, 2, 2, 3]), g.pick([1, 1, 2, 3])
        dilations[axis], outputs[axis] = g.pick([1, 1, 2]), g.pick([1, 2, 3, 5])
        least = (outputs[axis] - 1) * strides[axis] + (sizes[axis] - 1) * dilations[axis] + 1
        inputs[axis] = least + g.integer(0, strides[axis])
    return Window(*(tuple(v) for v in (sizes, strides, dilations, inputs, outputs)))


# Operation: input, filter, output; letters as in its name, x, y and z are the window's dimensions.
CONVOLUTIONS = {
    "conv_2d_nhwc_hwcf": ("nhwc", "xycf", "nhwf"),
    "conv_2d_nchw_fchw": ("nchw", "fcxy", "nfhw"),
    "conv_2d_nhwc_fhwc": ("nhwc", "fxyc", "nhwf"),
    "depthwise_conv_2d_nhwc_hwc": ("nhwc", "xyc", "nhwc"),
    "depthwise_conv_2d_nchw_chw": ("nchw", "cxy", "nchw"),
    "conv_1d_nwc_wcf": ("nwc", "xcf", "nwf"),
    "conv_1d_ncw_fcw": ("ncw", "fcx", "nfw"),
    "conv_3d_ndhwc_dhwcf": ("ndhwc", "xyzcf", "ndhwf"),
    "conv_3d_ncdhw_fcdhw": ("ncdhw", "fcxyz", "nfdhw"),
    "depthwise_conv_1d_nwc_wc": ("nwc", "xc", "nwc"),
    "depthwise_conv_1d_ncw_cw": ("ncw", "cx", "ncw"),
    "depthwise_conv_2d_nhwc_hwcm": ("nhwc", "xycm", "nhwcm"),
    "depthwise_conv_3d_ndhwc_dhwc": ("ndhwc", "xyzc", "ndhwc"),
    "conv_2d": ("hw", "xy", "hw"),
    "conv_1d": ("w", "x", "w"),
}


def convolution(g: Generator, block: Block) -> None:
    name, (of_input, of_filter, of_output) = g.pick(list(CONVOLUTIONS.items()))
    spatial = [c for c in of_input if c in "dhw"]
    shape = window(g, len(spatial))
    if "_n" not in name:  # these have no strides
        shape = Window(*(tuple(v) for v in (
            shape.sizes, [1] * len(spatial), [1] * len(spatial),
            [o + s - 1 for o, s in zip(shape.outputs, shape.sizes, strict=True)], shape.outputs)))  # fmt: skip
    extents: dict[str, int | str] = {
        "n": g.pick(g.extents),
        "c": g.pick([1, 2, 3]),
        "f": g.pick([1, 2, 4]),
        "m": g.pick([1, 3]),
    }
    inside = extents | dict(zip(spatial, shape.inputs, strict=True))
    outside = extents | dict(zip(spatial, shape.outputs, strict=True))
    filter_ = extents | dict(zip("xyz", shape.sizes, strict=False))
    dtype = g.pick([d for d in g.dtypes if d != "i1"])
    x, x_type = g.value(block, Type(dtype, tuple(inside[c] for c in of_input)))
    k, k_type = g.value(block, Type(dtype, tuple(filter_[c] for c in of_filter)))
    start, type_ = g.value(block, Type(dtype, tuple(outside[c] for c in of_output)))
    axes = [of_input.index(c) for c in spatial]
    subscripts = f"{of_input}{'xyz'[: len(spatial)]},{of_filter}->{of_output}"
    mark = g.mark() if "_n" in name else ""
    attributes = f" {{{shape.attributes()}{mark}}}" if "_n" in name else g.scope()

    def run(e: Environment) -> Any:
        view = windows(e[x], axes, shape.sizes, shape.strides, shape.dilations, shape.outputs)
        return product(e, subscripts, view, e[k], e[start])

    g.emit(
        block,
        type_,
        f"linalg.{name}{attributes} ins({x}, {k} : {x_type}, {k_type}) outs({start} : {type_}) -> {type_}",
        run,
    )


def pooling(g: Generator, block: Block) -> None:
    layout, kind = g.pick(["nhwc", "nhwc", "nchw", "nwc", "ncw", "ndhwc"]), g.pick(["sum", "max", "max", "min"])
    if layout[1] == "c" and kind == "min":
        kind = "max"
    spatial = [c for c in layout if c in "dhw"]
    shape = window(g, len(spatial))
    extents: dict[str, int | str] = {"n": g.pick(g.extents), "c": g.pick([1, 2, 3])}
    dtype = g.pick([d for d in g.dtypes if d != "i1" and d not in COMPLEX])
    inside = extents | dict(zip(spatial, shape.inputs, strict=True))
    outside = extents | dict(zip(spatial, shape.outputs, strict=True))
    x, x_type = g.value(block, Type(dtype, tuple(inside[c] for c in layout)))
    start, type_ = g.value(block, Type(dtype, tuple(outside[c] for c in layout)))
    k_type = Type(dtype, shape.sizes)
    k = g.empty(block, k_type)
    names = {"sum": ("arith.addf", "arith.addi"), "max": ("arith.maximumf", "arith.maxsi"),
             "min": ("arith.minimumf", "arith.minsi")}  # fmt: skip
    op = BY_NAME[names[kind][dtype not in FLOATS]]
    axes, rank = [layout.index(c) for c in spatial], len(layout)

    def run(e: Environment) -> Any:
        view = windows(e[x], axes, shape.sizes, shape.strides, shape.dilations, shape.outputs)
        return fold(e, op, view.reshape([*view.shape[:rank], math.prod(view.shape[rank:])]), e[start])

    text = f"linalg.pooling_{layout}_{kind} {{{shape.attributes()}{g.mark()}}} ins({x}, {k} : {x_type}, {k_type})"
    g.emit(block, type_, f"{text} outs({start} : {type_}) -> {type_}", run)


# ------------------------------------------------------------------------------------------- tensor.*


def _place(g: Generator, block: Block, extent: int | str) -> tuple[str, Callable[[Environment], int]]:
    """An index inside of a dimension, which is not empty: a constant, or one known at run time only."""
    if isinstance(extent, str):
        name = g.emit(block, INDEX, f"arith.subi %{extent}, %c1 : index", lambda e: e[f"%{extent}"] - 1)
        return name, lambda e: int(e[name])
    number = g.integer(0, extent)
    name = g.constant_scalar(block, INDEX, number)[0]
    return name, lambda e: int(e[name])


def _solid(t: Type) -> bool:
    """No dimension may be empty."""
    return all(isinstance(e, int) and e > 0 for e in t.shape)


def _solid_type(g: Generator) -> Type:
    return Type(g.pick(g.dtypes), tuple(g.pick([1, 2, 3, 5]) for _ in range(g.integer(0, 4))))


def extract(g: Generator, block: Block) -> None:
    x, type_ = g.tensor(block, _solid, lambda: _solid_type(g))
    places = [_place(g, block, e) for e in type_.shape]
    text = f"tensor.extract {x}[{', '.join(name for name, _ in places)}]{g.scope(0.1)} : {type_}"
    g.emit(block, scalar(type_.dtype), text, lambda e: np.asarray(e[x])[tuple(at(e) for _, at in places)])


def insert(g: Generator, block: Block) -> None:
    x, type_ = g.tensor(block, _solid, lambda: _solid_type(g))
    value = g.value(block, scalar(type_.dtype))[0]
    places = [_place(g, block, e) for e in type_.shape]

    def run(e: Environment) -> Any:
        result = np.array(e[x])
        result[tuple(at(e) for _, at in places)] = e[value]
        return result

    text = f"tensor.insert {value} into {x}[{', '.join(name for name, _ in places)}]{g.scope()} : {type_}"
    g.emit(block, type_, text, run)


def _sliceable(t: Type) -> bool:
    """MLIR takes no slices of dimensions that are known to be empty."""
    return len(t.shape) >= 1 and 0 not in t.shape


def _sliceable_type(g: Generator) -> Type:
    type_ = g.tensor_type(g.integer(1, 5))
    return Type(type_.dtype, tuple(e or 2 for e in type_.shape))


def extract_slice(g: Generator, block: Block) -> None:
    x, type_ = g.tensor(block, _sliceable, lambda: _sliceable_type(g))
    part = slice_of(g, block, type_.shape)
    dropped = [d for d, size in enumerate(part.shape) if size == 1 and g.chance(0.4)]
    result = Type(type_.dtype, tuple(size for d, size in enumerate(part.shape) if d not in dropped))
    text = f"tensor.extract_slice {x}{part.text()}{g.scope()} : {type_} to {result}"
    g.emit(
        block,
        result,
        text,
        lambda e: np.asarray(e[x])[tuple(i(e) for i in part.index)].reshape(e.sizes(result.shape)),
    )


def insert_slice(g: Generator, block: Block) -> None:
    target, type_ = g.tensor(block, _sliceable, lambda: _sliceable_type(g))
    part = slice_of(g, block, type_.shape)
    source, source_type = g.value(block, Type(type_.dtype, tuple(part.shape)))
    if source_type.dynamic and g.chance(0.6):
        cut, _ = g.value(block, type_)
        text = f"tensor.extract_slice {cut}{part.text()}{g.scope()} : {type_} to {source_type}"
        source = g.emit(block, source_type, text, lambda e: np.asarray(e[cut])[tuple(i(e) for i in part.index)])

    def run(e: Environment) -> Any:
        result = np.array(e[target])
        result[tuple(i(e) for i in part.index)] = e[source]
        return result

    text = f"tensor.insert_slice {source} into {target}{part.text()}{g.scope()} : {source_type} into {type_}"
    g.emit(block, type_, text, run)


def pad(g: Generator, block: Block) -> None:
    x, type_ = g.tensor(block, lambda t: 1 <= len(t.shape) <= 4, lambda: _solid_type(g))
    if not type_.shape:
        return
    low, high = ([g.integer(0, 3) for _ in type_.shape] for _ in range(2))
    extents = [total(g, block, parts) for parts in zip(type_.shape, low, high, strict=True)]
    result = Type(type_.dtype, tuple(extents))
    names = [g.name() for _ in type_.shape]
    body = _body(block, [(name, INDEX) for name in names])
    value = scalar_code(g, body, type_.dtype, g.integer(0, 3))
    if g.chance(0.6):
        value, body.statements = g.value(block, scalar(type_.dtype))[0], []
    places = [(name, dim) for dim, name in enumerate(names)]

    def run(e: Environment) -> Any:
        values = np.array(_evaluate(body, e.inner(), places, e.sizes(result.shape), value))
        values[tuple(slice(a, a + n) for a, n in zip(low, e.sizes(type_.shape), strict=True))] = e[x]
        return values

    padding = [[opaque(g, block, n) if g.chance(0.15) else str(n) for n in side] for side in (low, high)]
    at_low, at_high = (f"[{', '.join(side)}]" for side in padding)
    text = (
        f"tensor.pad {x} low{at_low} high{at_high} {{\n  ^bb0({', '.join(f'{name}: index' for name in names)}):\n"
        f"{body.text()}\n    tensor.yield {value} : {type_.dtype}\n  }}{g.scope()} : {type_} to {result}"
    )
    g.emit(block, result, text, run)


def concat(g: Generator, block: Block) -> None:
    x, type_ = g.tensor(block, lambda t: len(t.shape) >= 1, lambda: g.tensor_type(g.integer(1, 4)))
    axis = g.integer(0, len(type_.shape))
    parts = [(x, type_)]
    for _ in range(g.integer(1, 3)):
        shape = list(type_.shape)
        shape[axis] = g.pick([0, 1, 2, 3, type_.shape[axis], g.pick(g.extents)])
        parts.append(g.value(block, Type(type_.dtype, tuple(shape))))
    g.rng.shuffle(parts)  # pyright: ignore[reportArgumentType]
    shape = list(type_.shape)
    shape[axis] = total(g, block, [t.shape[axis] for _, t in parts])
    result = Type(type_.dtype, tuple(shape))
    names, types = ", ".join(n for n, _ in parts), ", ".join(str(t) for _, t in parts)
    text = f"tensor.concat dim({axis}) {names}{g.scope()} : ({types}) -> {result}"
    g.emit(block, result, text, lambda e: np.concatenate([np.asarray(e[n]) for n, _ in parts], axis))


def _groups(g: Generator, count: int) -> list[list[int]]:
    groups = [[0]]
    for dim in range(1, count):
        if g.chance(0.5):
            groups[-1].append(dim)
        else:
            groups.append([dim])
    return groups


def collapse(g: Generator, block: Block) -> None:
    x, type_ = g.tensor(block, lambda t: len(t.shape) >= 2, lambda: g.tensor_type(g.integer(2, 5)))
    groups = _groups(g, len(type_.shape))
    result = Type(type_.dtype, tuple(size_of(g, block, [type_.shape[d] for d in group]) for group in groups))
    text = f"tensor.collapse_shape {x} {groups}{g.scope()} : {type_} into {result}"
    g.emit(block, result, text, lambda e: np.reshape(e[x], e.sizes(result.shape)))


def expand(g: Generator, block: Block) -> None:
    """Products of dynamic extents become their factors again."""
    x, type_ = g.tensor(block, lambda t: 1 <= len(t.shape) <= 3, lambda: g.tensor_type(g.integer(1, 3)))
    groups: list[list[int]] = []
    shape: list[int | str] = []
    for extent in type_.shape:
        parts: list[int | str] = [extent]
        if g.chance(0.5):
            parts.insert(g.integer(0, 2), 1)
        factors = [f for f in (2, 3, 4) if isinstance(extent, int) and extent and extent % f == 0]
        if factors and isinstance(extent, int):
            factor = g.pick(factors)
            parts = [factor, extent // factor]
        elif str(extent) in g.factors and g.chance(0.7):
            parts = g.factors[str(extent)]
        groups.append(list(range(len(shape), len(shape) + len(parts))))
        shape += parts
    result = Type(type_.dtype, tuple(shape))
    sizes = ", ".join(map(spelt, shape))
    text = f"tensor.expand_shape {x} {groups} output_shape [{sizes}]{g.scope()} : {type_} into {result}"
    g.emit(block, result, text, lambda e: np.reshape(e[x], e.sizes(result.shape)))


def _reshaped(g: Generator, block: Block, type_: Type) -> tuple[int | str, ...] | None:
    """Another shape of as many elements."""
    count = size_of(g, block, type_.shape)
    if isinstance(count, str):
        return g.pick([(count,), (1, count), (count, 1), type_.shape[::-1]])
    shapes = [s for s in itertools.product((1, 2, 3, count), repeat=g.integer(1, 4)) if math.prod(s) == count]
    return g.pick(shapes) if shapes else None


def reshape(g: Generator, block: Block) -> None:
    x, type_ = g.tensor(block, lambda _: True, lambda: _solid_type(g))
    found = _reshaped(g, block, type_)
    if found is None:
        return
    result = Type(type_.dtype, found)
    if not result.dynamic and g.chance(0.5):
        extents = Type(g.pick(["index", "i64", "i32"]), (len(result.shape),))
        shape = g.constant(block, extents, np.array(result.shape, DTYPES[extents.dtype]))[0]
    else:
        extents = Type("index" if result.dynamic else g.pick(["index", "i64", "i32"]), (len(result.shape),))
        parts = [
            f"%{n}" if isinstance(n, str) else g.constant_scalar(block, scalar(extents.dtype), n)[0]
            for n in result.shape
        ]
        text = f"tensor.from_elements {', '.join(parts)} : {extents}"
        shape = g.emit(block, extents, text, lambda e: np.array(e.sizes(result.shape)), hidden=True)
    text = f"tensor.reshape {x}({shape}){g.scope()} : ({type_}, {extents}) -> {result}"
    g.emit(block, result, text, lambda e: np.reshape(e[x], e.sizes(result.shape)))


def from_elements(g: Generator, block: Block) -> None:
    count = g.integer(1, 5)
    dtype = g.pick(g.dtypes)
    values = [g.value(block, scalar(dtype))[0] for _ in range(count)]
    type_ = Type(dtype, (count,))
    text = f"tensor.from_elements {', '.join(values)}{g.scope()} : {type_}"
    g.emit(block, type_, text, lambda e: np.stack([np.asarray(e[v]) for v in values]))


def splat(g: Generator, block: Block) -> None:
    type_ = g.tensor_type()
    g.splat(block, type_, g.value(block, scalar(type_.dtype))[0])


def constant(g: Generator, block: Block) -> None:
    """Sometimes large enough for the table of constants."""
    shape = tuple(g.pick([1, 2, 3, 5, 8]) for _ in range(g.integer(0, 4)))
    g.constant(block, Type(g.pick(g.dtypes), shape))


def dynamic_cast(g: Generator, block: Block) -> None:
    """Forgets an extent and asks for it again."""
    x, type_ = g.tensor(block, lambda t: any(isinstance(e, int) for e in t.shape), lambda: g.tensor_type(2))
    known = [d for d, e in enumerate(type_.shape) if isinstance(e, int)]
    if not known:
        return
    axis = g.pick(known)
    unknown, size = g.name(), g.name()
    shape = list(type_.shape)
    shape[axis] = size.removeprefix("%")
    loose = Type(type_.dtype, tuple(shape))
    from random_program import Statement

    number = g.constant_scalar(block, INDEX, axis)[0]

    def run(e: Environment) -> None:
        e[unknown] = e[x]
        e[size] = np.int64(np.shape(e[x])[axis])

    mark = g.scope(0.2)
    block.statements.append(
        Statement(
            [(unknown, loose), (size, INDEX)],
            lambda: (
                f"  {unknown} = tensor.cast {x}{mark} : {type_} to {loose}\n"
                f"  {size} = tensor.dim {unknown}, {number} : {loose}"
            ),
            run,
        )
    )
    block.visible += [(unknown, loose)]


OPERATIONS: list[Callable[[Generator, Block], None]] = [
    *[elementwise] * 6, compare, compare, select, cast, cast, named, named, *[generic] * 5, *[reduce_generic] * 3,
    reduce, reduce, map_, map_, transpose, broadcast, broadcast, generate, contraction, contraction, contraction,
    contract, contract, convolution, convolution, pooling, pooling, extract, extract, insert, insert,
    *[extract_slice] * 3, *[insert_slice] * 3, pad, pad, concat, concat, collapse, expand, reshape, from_elements,
    splat, constant, dynamic_cast, host_scalar, host_scalar,
]  # fmt: skip

__all__ = ["OPERATIONS", "random_array", "scalar_code"]
