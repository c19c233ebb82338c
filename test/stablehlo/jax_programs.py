"""Random JAX functions, a family per group of StableHLO's operations. Needs jax."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_enable_x64", True)

F = ("float32", "float32", "float64", "float16", "bfloat16")
S = ("int8", "int16", "int32", "int32", "int64")
U = ("uint8", "uint16", "uint32", "uint64")
C = ("complex64", "complex128")
SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0)

Program = tuple[Callable[..., Any], list[Any]]


class Random:
    def __init__(self, seed: Sequence[int]) -> None:
        self.rng = np.random.default_rng(list(seed))

    def pick(self, options: Sequence[Any]) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def integer(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high))

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def shape(self, least: int = 0, most: int = 3, sizes: Sequence[int] = (1, 2, 3, 4, 5, 7)) -> tuple[int, ...]:
        return tuple(self.pick(sizes) for _ in range(self.integer(least, most + 1)))

    def array(self, shape: Sequence[int], dtype: str, special: float = 0.0, scale: float = 2.0) -> Any:
        if dtype == "bool":
            return self.rng.random(shape) < 0.5
        if dtype in C:
            x = (self.rng.standard_normal(shape) + 1j * self.rng.standard_normal(shape)) * scale
            return np.asarray(x, dtype)
        if dtype in S:
            info = np.iinfo(dtype)
            small = self.rng.integers(-9, 10, shape)
            wide = self.rng.integers(info.min, info.max, shape, dtype=np.int64, endpoint=True)
            return np.asarray(np.where(self.rng.random(shape) < special, wide, small)).astype(dtype)
        if dtype in U:
            info = np.iinfo(dtype)
            small = self.rng.integers(0, 20, shape).astype(np.uint64)
            wide = self.rng.integers(0, info.max, shape, dtype=np.uint64, endpoint=True)
            return np.asarray(np.where(self.rng.random(shape) < special, wide, small)).astype(dtype)
        x = self.rng.standard_normal(shape) * scale
        mask = self.rng.random(shape) < special
        x = np.where(mask, self.rng.choice(SPECIAL, shape), x)
        return np.asarray(x).astype(jnp.dtype(dtype))

    def axes(self, rank: int, least: int = 0) -> tuple[int, ...]:
        return tuple(int(a) for a in self.rng.permutation(rank)[: self.integer(least, rank + 1)])


def floats(r: Random) -> Program:
    ops = [
        lax.abs,
        lax.neg,
        lax.sign,
        lax.floor,
        lax.ceil,
        lax.round,
        lax.is_finite,
        lax.exp,
        lax.log,
        lax.expm1,
        lax.log1p,
        lax.sqrt,
        lax.rsqrt,
        lax.cbrt,
        lax.tanh,
        lax.logistic,
        lax.sin,
        lax.cos,
        lax.tan,
        jnp.rint,
    ]
    two = [lax.add, lax.sub, lax.mul, lax.div, lax.rem, lax.max, lax.min, lax.pow, lax.atan2, lax.nextafter]
    dtype, shape = r.pick(F), r.shape()
    x, y = (r.array(shape, dtype, r.pick((0, 0.2))) for _ in range(2))
    f, g = r.pick(ops), r.pick(two if dtype in ("float32", "float64") else two[:-1])
    if f is lax.is_finite:
        return (lambda a, b: (f(a), g(a, b))), [x, y]
    return (lambda a, b: (f(a), g(a, b), f(g(b, a)) if f is lax.abs else a)), [x, y]


def integers(r: Random) -> Program:
    dtype, shape = r.pick(S + U), r.shape()
    x, y = (r.array(shape, dtype, r.pick((0, 0.3))) for _ in range(2))
    two = [
        lax.add,
        lax.sub,
        lax.mul,
        lax.div,
        lax.rem,
        lax.max,
        lax.min,
        lax.bitwise_and,
        lax.bitwise_or,
        lax.bitwise_xor,
        lax.shift_left,
        lax.shift_right_logical,
        lax.shift_right_arithmetic,
    ]
    one = [lax.bitwise_not, lax.population_count, lax.clz, lax.sign, lax.abs, lax.neg]
    f, g, h = r.pick(one if dtype in S else one[:4]), r.pick(two), r.pick(two)
    n = r.integer(0, 5)
    return (lambda a, b: (f(a), g(a, b), h(b, a), lax.integer_pow(a, n))), [x, y]


def booleans(r: Random) -> Program:
    shape = r.shape()
    x, y = r.array(shape, "bool"), r.array(shape, "bool")
    f = r.pick([lax.bitwise_and, lax.bitwise_or, lax.bitwise_xor, lax.max, lax.min, lax.eq, lax.lt])
    return (
        lambda a, b: (f(a, b), lax.bitwise_not(a), jnp.sum(a), jnp.all(b), jnp.any(a, axis=-1) if shape else b)
    ), [x, y]


def compares(r: Random) -> Program:
    dtype, shape = r.pick(F + S + U), r.shape()
    x, y, z = (r.array(shape, dtype, 0.2) for _ in range(3))
    f = r.pick([lax.eq, lax.ne, lax.lt, lax.le, lax.gt, lax.ge])
    return (
        lambda a, b, c: (f(a, b), lax.select(f(a, b), b, c), lax.clamp(jnp.minimum(a, c), b, jnp.maximum(a, c)))
    ), [x, y, z]


def converts(r: Random) -> Program:
    a, b = r.pick(F + S + U + ("bool",)), r.pick(F + S + U + ("bool",) + C)
    x = r.array(r.shape(), a, 0.2 if a not in F or b in F + C else 0)
    if a in F and b in U:
        x = np.abs(x)
    return (lambda v: lax.convert_element_type(v, b)), [x]


def bitcasts(r: Random) -> Program:
    pairs = [
        ("float32", "int32"),
        ("float32", "uint32"),
        ("float64", "uint64"),
        ("bfloat16", "uint16"),
        ("float16", "int16"),
        ("uint32", "uint8"),
        ("uint8", "uint32"),
        ("float32", "uint16"),
        ("int16", "float32"),
        ("uint64", "uint32"),
        ("int32", "uint32"),
    ]
    a, b = r.pick(pairs)
    wide, narrow = jnp.dtype(a).itemsize, jnp.dtype(b).itemsize
    shape = (*r.shape(), narrow // wide) if narrow > wide else r.shape()
    return (lambda v: lax.bitcast_convert_type(v, b)), [r.array(shape, a, 0.2)]


def complexes(r: Random) -> Program:
    dtype, shape = r.pick(C), r.shape()
    x, y = r.array(shape, dtype), r.array(shape, dtype)
    one = [
        lax.neg,
        lax.exp,
        lax.log,
        lax.sqrt,
        lax.tanh,
        lax.sin,
        lax.cos,
        lax.rsqrt,
        lax.conj,
        lax.sign,
        lax.expm1,
        lax.log1p,
        lax.tan,
        lax.logistic,
    ]
    two = [lax.add, lax.sub, lax.mul, lax.div, lax.pow]
    f, g = r.pick(one), r.pick(two)
    return (
        lambda a, b: (
            f(a),
            g(a, b),
            lax.real(a),
            lax.imag(b),
            lax.abs(a),
            lax.complex(lax.real(a), lax.imag(b)),
            lax.eq(a, b),
        )
    ), [x, y]


def special(r: Random) -> Program:
    dtype, shape = r.pick(("float32", "float32", "float64", "float16", "bfloat16")), r.shape()
    x = r.array(shape, dtype, r.pick((0, 0.1)))
    ops = [
        lax.erf,
        lax.erfc,
        lax.erf_inv,
        lax.lgamma,
        lax.digamma,
        lax.sinh,
        lax.cosh,
        lax.asinh,
        lax.acosh,
        lax.atanh,
        lax.asin,
        lax.acos,
        lax.atan,
        jax.nn.gelu,
        jax.nn.softplus,
        jax.nn.silu,
        jax.nn.softmax if shape else jax.nn.relu,
        jnp.square,
        lax.bessel_i1e,
        lax.bessel_i0e,
    ]
    f, g = r.pick(ops), r.pick(ops)
    return (lambda a: (f(a), g(a))), [x]


def shapes(r: Random) -> Program:
    dtype = r.pick(F + S + U + C + ("bool",))
    shape = r.shape(1, 4, (1, 2, 3, 4, 0 if r.chance(0.1) else 5))
    x, rank = r.array(shape, dtype), len(shape)
    perm = [int(a) for a in r.rng.permutation(rank)]
    starts = [r.integer(0, n + 1) for n in shape]
    ends = [r.integer(s, n + 1) for s, n in zip(starts, shape, strict=False)]
    strides = [r.integer(1, 4) for _ in shape]
    padding = [
        (r.integer(-1 if n > 2 else 0, 3), r.integer(-1 if n > 2 else 0, 3), r.pick((0, 0, 1, 2))) for n in shape
    ]
    axis, axes = r.integer(0, rank), r.axes(rank, 1)
    kind = r.integer(0, 9)
    value = r.array((), dtype)
    fs = [
        lambda a: lax.transpose(a, perm),
        lambda a: lax.slice(a, starts, ends, strides),
        lambda a: lax.pad(a, value, padding),
        lambda a: lax.rev(a, axes),
        lambda a: lax.concatenate([a, a, a], axis),
        lambda a: jnp.reshape(a, (-1,) if a.size else (0,)),
        lambda a: lax.broadcast_in_dim(a, (2, *shape, 3), range(1, rank + 1)),
        lambda a: a * lax.broadcasted_iota(dtype if dtype != "bool" and dtype not in C else "int32", shape, axis),
        lambda a: jnp.tile(a, (2,) * rank),
    ]
    return fs[kind], [x]


def dots(r: Random) -> Program:
    dtype = r.pick(F + S + U[:3] + C)
    b, m, k, n = (r.pick((1, 2, 3, 5, 8)) for _ in range(4))
    kind = r.integer(0, 6)
    out = (
        r.pick((None, None, "float32"))
        if dtype in ("float16", "bfloat16")
        else r.pick((None, "int32"))
        if dtype in ("int8",)
        else None
    )
    forms = [
        ("mk,kn->mn", (m, k), (k, n)),
        ("bmk,bkn->bmn", (b, m, k), (b, k, n)),
        ("mk,k->m", (m, k), (k,)),
        ("k,k->", (k,), (k,)),
        ("kmb,nbk->bmn", (k, m, b), (n, b, k)),
        ("mkb,bkn->mn", (m, k, b), (b, k, n)),
    ]
    form, s, t = forms[kind]
    return (lambda x, y: jnp.einsum(form, x, y, preferred_element_type=out)), [
        r.array(s, dtype, scale=1),
        r.array(t, dtype, scale=1),
    ]


def convolutions(r: Random) -> Program:
    return _convolution(r)[:2]


def dynamic_convolutions(r: Random) -> tuple[Callable[..., Any], list[Any], list[str]]:
    """Of images, and of some windows, whose extents are known when the program runs."""
    f, args, layouts = _convolution(r)
    named = ["NDHW", r.pick(("", "", "DHW"))]
    shapes = [
        ", ".join(
            letter.lower() + str(number) if letter in names else str(extent)
            for letter, extent in zip(layout, x.shape, strict=True)
        )
        for number, (names, layout, x) in enumerate(zip(named, layouts, args, strict=True))
    ]
    if args[0].dtype != "int32" and r.chance(0.4):
        place = r.integer(0, 2)
        return jax.grad(lambda a, b: jnp.sum(f(a, b) ** 2), place), args, shapes
    return f, args, shapes


def _convolution(r: Random) -> tuple[Callable[..., Any], list[Any], tuple[str, str]]:
    """With the layouts of both."""
    dtype = r.pick(("float32", "float32", "float64", "bfloat16", "int32"))
    nd = r.pick((1, 2, 2, 2, 3))
    groups, g_in, g_out = r.pick((1, 1, 1, 2, 3)), r.pick((1, 2, 3)), r.pick((1, 2))
    n = r.pick((1, 2))
    size = [r.pick((5, 6, 8)) for _ in range(nd)]
    window = [r.pick((1, 2, 3)) for _ in range(nd)]
    spatial = "DHW"[-nd:]
    ls, rs, os = r.pick(
        [
            ("NC" + spatial, "OI" + spatial, "NC" + spatial),
            ("N" + spatial + "C", spatial + "IO", "N" + spatial + "C"),
            ("N" + spatial + "C", "O" + spatial + "I", "NC" + spatial),
        ]
    )
    dims = {"N": n, "C": groups * g_in, **dict(zip(spatial, size, strict=False))}
    wdims = {"O": groups * g_out, "I": g_in, **dict(zip(spatial, window, strict=False))}
    x, w = r.array([dims[c] for c in ls], dtype, scale=1), r.array([wdims[c] for c in rs], dtype, scale=1)
    strides = [r.pick((1, 1, 2)) for _ in range(nd)]
    padding = r.pick(("SAME", "VALID", [(r.integer(0, 3), r.integer(0, 3)) for _ in range(nd)]))
    ld, rd = ([r.pick((1, 1, 2)) for _ in range(nd)] for _ in range(2))
    if isinstance(padding, str) and any(d > 1 for d in ld):
        ld = [1] * nd
    size_ok = [
        (s - 1) * step + 1 + (4 if padding == "SAME" else 0) >= (k - 1) * d + 1
        for s, step, k, d in zip(size, ld, window, rd, strict=False)
    ]
    if not all(size_ok):
        rd = [1] * nd
    return (
        (lambda a, b: lax.conv_general_dilated(a, b, strides, padding, ld, rd, (ls, rs, os), groups)),
        [x, w],
        (ls, rs),
    )


def reduces(r: Random) -> Program:
    dtype = r.pick(F + S + U)
    shape = r.shape(1, 4, (1, 2, 3, 4, 5, 0 if r.chance(0.1) else 6))
    axes = r.axes(len(shape), 1)
    x = r.array(shape, dtype, r.pick((0, 0.1)) if dtype in F else 0.1, 1)
    fs = [jnp.sum, jnp.max, jnp.min, jnp.prod] if 0 not in shape else [jnp.sum, jnp.prod]
    f = r.pick(fs)
    axis = r.integer(0, len(shape))
    if 0 in shape:
        return (lambda a: f(a, axis=axes)), [x]
    arg = r.pick([jnp.argmax, jnp.argmin])
    return (lambda a: (f(a, axis=axes), arg(a, axis=axis))), [x]


def general_reduces(r: Random) -> Program:
    """With several operands, and bodies of their own."""
    dtype = r.pick(("float32", "int32", "float64", "uint32", "int8"))
    shape = r.shape(1, 3, (1, 2, 3, 5))
    axes = r.axes(len(shape), 1)
    x, y = r.array(shape, dtype), r.array(shape, "int32")
    kind = r.integer(0, 4)
    if kind == 0:

        def f(a, b):
            def body(p, q):
                take = (p[0] > q[0]) | ((p[0] == q[0]) & (p[1] < q[1]))
                return jnp.where(take, p[0], q[0]), jnp.where(take, p[1], q[1])

            low = np.array(-np.inf if dtype.startswith("f") else np.iinfo(dtype).min, dtype)
            return lax.reduce((a, b), (low, np.int32(2**31 - 1)), body, axes)

        return f, [x, y]
    if kind == 1:
        return (
            lambda a, b: lax.reduce(
                (a, b), (np.array(0, dtype), np.int32(0)), lambda p, q: (p[0] + q[0], p[1] + q[1]), axes
            )
        ), [x, y]
    if kind == 2:
        m = r.pick([lax.bitwise_and, lax.bitwise_or, lax.bitwise_xor])
        return (lambda a, b: lax.reduce(b, np.int32(-1 if m is lax.bitwise_and else 0), m, axes)), [x, y]
    return (lambda a, b: lax.reduce(a, np.array(0, dtype), lambda p, q: p + q + p * q, axes)), [x, y]


def windows(r: Random) -> Program:
    dtype = r.pick(("float32", "float32", "float64", "int32", "bfloat16", "uint8"))
    nd = r.integer(1, 4)
    shape = [r.pick((4, 5, 6, 8)) for _ in range(nd)]
    window = [r.pick((1, 2, 3)) for _ in range(nd)]
    strides = [r.pick((1, 1, 2, 3)) for _ in range(nd)]
    padding = r.pick(("SAME", "VALID", [(r.integer(0, 3), r.integer(0, 3)) for _ in range(nd)]))
    bd = [r.pick((1, 1, 1, 2)) for _ in range(nd)] if not isinstance(padding, str) else None
    wd = [r.pick((1, 1, 1, 2)) for _ in range(nd)]
    x = r.array(shape, dtype, r.pick((0, 0.1)), 1)
    is_float = dtype not in S + U
    low = np.array(-np.inf, jnp.dtype(dtype)) if is_float else np.array(np.iinfo(dtype).min, dtype)
    high = np.array(np.inf, jnp.dtype(dtype)) if is_float else np.array(np.iinfo(dtype).max, dtype)
    init, f = r.pick(
        [(np.array(0, low.dtype), lax.add), (low, lax.max), (high, lax.min), (np.array(1, low.dtype), lax.mul)]
    )
    if r.chance(0.2):
        f, init = (lambda p, q: p + q + p * q), np.array(0, low.dtype)
    return (lambda a: lax.reduce_window(a, init, f, window, strides, padding, bd, wd)), [x]


def cumulative(r: Random) -> Program:
    dtype = r.pick(F + S[2:] + U[2:])
    shape = r.shape(1, 3, (1, 2, 3, 5, 9, 17))
    axis, rev = r.integer(0, len(shape)), r.chance(0.4)
    f = r.pick([lax.cumsum, lax.cumprod, lax.cummax, lax.cummin] + ([lax.cumlogsumexp] if dtype in F[:3] else []))
    return (lambda a: f(a, axis=axis, reverse=rev)), [r.array(shape, dtype, scale=1)]


def select_and_scatters(r: Random) -> Program:
    dtype = r.pick(("float32", "float32", "float64", "bfloat16"))
    nd = r.integer(1, 4)
    shape = [r.pick((4, 5, 6, 8)) for _ in range(nd)]
    window = [r.pick((1, 2, 3)) for _ in range(nd)]
    strides = [r.pick((1, 2, 3)) for _ in range(nd)]
    padding = r.pick(("SAME", "VALID", [(r.integer(0, 2), r.integer(0, 2)) for _ in range(nd)]))
    init, f = r.pick([(-np.inf, lax.max), (np.inf, lax.min), (0.0, lax.add)])
    init = np.array(init, jnp.dtype(dtype))
    return jax.grad(lambda a: jnp.sum(jnp.sin(lax.reduce_window(a, init, f, window, strides, padding)))), [
        r.array(shape, dtype)
    ]


def gathers(r: Random) -> Program:
    dtype = r.pick(F + S + U + C + ("bool",))
    shape = r.shape(1, 3, (1, 2, 3, 4, 6))
    x, itype = r.array(shape, dtype), r.pick(("int32", "int64", "uint32", "int8"))
    mode = r.pick(("fill", "clip", "wrap", "promise_in_bounds"))
    axis = r.integer(0, len(shape))
    n = shape[axis]
    low, high = (0, n) if mode == "promise_in_bounds" else ((-n - 2 if itype[0] != "u" else 0), n + 3)
    idx = r.rng.integers(low, high, r.shape(0, 2)).astype(itype)
    kind = r.integer(0, 4)
    if kind == 0:
        return (lambda a, i: jnp.take(a, i, axis=axis, mode="clip" if mode == "promise_in_bounds" else mode)), [
            x,
            idx,
        ]
    if kind == 1 and len(shape) > 1:
        idx2 = r.rng.integers(0, shape[1], idx.shape).astype("int32")
        idx0 = r.rng.integers(0, shape[0], idx.shape).astype("int32")
        return (lambda a, i, j: a[i, j]), [x, idx0, idx2]
    if kind == 2:
        idx = r.rng.integers(0, n, shape).astype("int32")
        return (lambda a, i: jnp.take_along_axis(a, i, axis=axis)), [x, idx]
    rank = len(shape)
    m = r.integer(1, rank + 1)
    dims = tuple(int(d) for d in sorted(r.rng.permutation(rank)[:m]))
    collapsed = tuple(d for d in dims if r.chance(0.6))
    batch = r.shape(0, 2, (1, 2, 3))
    ind = r.rng.integers(-2, 7, (*batch, m)).astype("int32")
    sizes = [1 if d in collapsed else r.integer(1, shape[d] + 1) for d in range(rank)]
    kept = rank - len(collapsed)
    offs = tuple(sorted(int(d) for d in r.rng.permutation(len(batch) + kept)[:kept]))
    numbers = lax.GatherDimensionNumbers(offs, collapsed, dims)
    return (lambda a, i: lax.gather(a, i, numbers, sizes, mode=r0)), [x, ind] if (
        r0 := r.pick(("clip", "fill"))
    ) else []


def scatters(r: Random) -> Program:
    dtype = r.pick(F + S + U + C)
    shape = r.shape(1, 3, (1, 2, 3, 4, 6))
    x = r.array(shape, dtype)
    n = shape[0]
    kind, op = r.integer(0, 4), r.pick(("set", "add", "multiply", "min", "max"))
    if dtype in C and op in ("min", "max"):
        op = "add"
    mode = r.pick((None, "clip", "drop"))
    if kind == 0:
        idx = r.rng.integers(-n - 2 if mode else -n, n + 3 if mode else n, r.shape(0, 2)).astype(
            r.pick(("int32", "int64"))
        )
        upd = r.array((*idx.shape, *shape[1:]), dtype)
        return (lambda a, i, u: getattr(a.at[i], op)(u, mode=mode)), [x, idx, upd]
    if kind == 1:
        return (lambda a, u: getattr(a.at[1:n:2], op)(u)), [x, r.array((len(range(1, n, 2)), *shape[1:]), dtype)]
    if kind == 2 and len(shape) > 1:
        count = r.shape(1, 1)
        idx = [r.rng.integers(0, s, count).astype("int32") for s in shape[:2]]
        return (lambda a, i, j, u: getattr(a.at[i, j], op)(u)), [x, *idx, r.array((*count, *shape[2:]), dtype)]
    rank = len(shape)
    m = r.integer(1, rank + 1)
    dims = tuple(int(d) for d in sorted(r.rng.permutation(rank)[:m]))
    inserted = tuple(d for d in dims if r.chance(0.6))
    batch = r.shape(0, 2, (1, 2, 3))
    ind = r.rng.integers(-2, 7, (*batch, m)).astype("int32")
    sizes = [r.integer(1, shape[d] + 1) for d in range(rank) if d not in inserted]
    window = tuple(sorted(int(d) for d in r.rng.permutation(len(batch) + len(sizes))[: len(sizes)]))
    rest, size = iter(batch), iter(sizes)
    ushape = [next(size) if d in window else next(rest) for d in range(len(batch) + len(sizes))]
    numbers = lax.ScatterDimensionNumbers(window, inserted, dims)
    f = {
        "set": lax.scatter,
        "add": lax.scatter_add,
        "multiply": lax.scatter_mul,
        "min": lax.scatter_min,
        "max": lax.scatter_max,
    }[op]
    return (lambda a, i, u: f(a, i, u, numbers, mode=r0)), [x, ind, r.array(ushape, dtype)] if (
        r0 := r.pick(("clip", "drop"))
    ) else []


def scatter_grads(r: Random) -> Program:
    shape = r.shape(1, 3, (2, 3, 5))
    axis = r.integer(0, len(shape))
    idx = r.rng.integers(0, shape[axis], r.shape(0, 2)).astype("int32")
    dtype = r.pick(F[:3])
    return jax.grad(lambda a, i: jnp.sum(jnp.sin(jnp.take(a, i, axis=axis)))), [r.array(shape, dtype), idx]


def dynamic_slices(r: Random) -> Program:
    dtype = r.pick(F + S + U + C + ("bool",))
    shape = r.shape(1, 3, (1, 2, 3, 5, 7))
    x, sizes = r.array(shape, dtype), [r.integer(1, n + 1) for n in shape]
    itype = r.pick(("int32", "int64", "uint32", "int8"))
    starts = [np.asarray(r.integer(0 if itype[0] == "u" else -4, n + 4)).astype(itype) for n in shape]
    if r.chance(0.5):
        return (lambda a, *i: lax.dynamic_slice(a, i, sizes)), [x, *starts]
    return (lambda a, u, *i: lax.dynamic_update_slice(a, u, i)), [x, r.array(sizes, dtype), *starts]


def sorts(r: Random) -> Program:
    dtype = r.pick(F + S + U + ("bool",))
    shape = r.shape(1, 3, (1, 2, 3, 5, 9, 16, 33))
    axis = r.integer(0, len(shape))
    x = r.array(shape, dtype, r.pick((0, 0.3)))
    y = r.array(shape, r.pick(("int32", "float32", "uint8")))
    kind = r.integer(0, 5)
    if kind == 0:
        return (lambda a: jnp.sort(a, axis=axis)), [x]
    if kind == 1:
        return (lambda a: jnp.argsort(a, axis=axis, descending=bool(shape[0] % 2))), [x]
    if kind == 2:
        return (lambda a, b: lax.sort((a, b), dimension=axis, num_keys=1)), [x, y]
    if kind == 3:
        return (lambda a, b: lax.sort((b, a), dimension=axis, num_keys=2)), [x, y]
    return (lambda a: jnp.sort(a, axis=axis, descending=True)), [x]


def top_ks(r: Random) -> Program:
    dtype = r.pick(F + S + U)
    shape = (*r.shape(0, 2), r.pick((1, 3, 8, 20)))
    k = r.integer(1, shape[-1] + 1)
    x = r.array(shape, dtype, r.pick((0, 0.2)))
    kind = r.integer(0, 4)
    if kind == 0:
        return (lambda a: jnp.median(a.astype("float32"), axis=-1)), [
            np.nan_to_num(x, posinf=3, neginf=-3) if dtype in F[:3] else r.array(shape, "int32")
        ]
    if kind == 1:
        return (lambda a: jnp.unique(a, size=4, fill_value=0)), [r.array(shape, "int32")]
    return (lambda a: lax.top_k(a, k)), [x]


def whiles(r: Random) -> Program:
    dtype, shape = r.pick(("float32", "int32", "float64", "uint32", "bfloat16")), r.shape(0, 2)
    x, n = r.array(shape, dtype, scale=1), r.integer(0, 6)
    kind = r.integer(0, 5)
    if kind == 0:
        return (lambda a: lax.fori_loop(0, n, lambda i, c: c + i.astype(dtype), a)), [x]
    if kind == 1:
        return (
            lambda a, m: lax.while_loop(
                lambda c: c[0] < m, lambda c: (c[0] + 1, c[1] * np.array(2, c[1].dtype)), (np.int32(0), a)
            )
        ), [x, np.int32(n)]
    if kind == 2:
        return (lambda a: lax.while_loop(lambda c: jnp.sum(c) < 20, lambda c: c * 0 + 30, a.astype("float32"))), [
            x
        ]
    if kind == 3:

        def f(a, m):
            return lax.fori_loop(0, m, lambda i, c: lax.fori_loop(0, i, lambda j, d: d + j.astype(dtype), c), a)

        return f, [x, np.int32(n)]
    return (lambda a: lax.map(lambda v: jnp.sin(v.astype("float32")) + jnp.sum(v.astype("float32")), a)), [
        r.array((3, *shape), dtype, scale=1)
    ]


def cases(r: Random) -> Program:
    dtype, shape = r.pick(("float32", "int32", "float64", "uint8", "complex64")), r.shape(0, 2)
    x = r.array(shape, dtype)
    kind = r.integer(0, 4)
    if kind == 0:
        return (lambda a, p: lax.cond(p, lambda v: v + v, lambda v: v * v, a)), [x, np.bool_(r.chance(0.5))]
    if kind == 1:
        branches = [lambda v: v + v, lambda v: v * v, lambda v: v - 1]
        return (lambda a, i: lax.switch(i, branches, a)), [x, np.int32(r.integer(-3, 6))]
    if kind == 2:
        return (
            lambda a: lax.cond(jnp.sum(a.real) > 0, lambda v: (v, jnp.sum(v)), lambda v: (v + v, jnp.prod(v)), a)
        ), [x]
    return (
        lambda a, i: lax.fori_loop(0, 4, lambda k, c: lax.cond(k == i, lambda v: v + v, lambda v: v - 1, c), a)
    ), [x, np.int64(r.integer(0, 5))]


def scans(r: Random) -> Program:
    dtype = r.pick(("float32", "float64", "int32"))
    n, m = r.pick((1, 3, 5)), r.pick((1, 2, 4))
    x, c = r.array((n, m), dtype, scale=1), r.array((m,), dtype, scale=1)
    rev = r.chance(0.3)
    kind = r.integer(0, 3)
    if kind == 0:
        return (lambda a, b: lax.scan(lambda s, v: (s + v, s * v), b, a, reverse=rev)), [x, c]
    if kind == 1:
        return (lambda a: lax.associative_scan(lambda p, q: p * q + q, a, axis=0, reverse=rev)), [x]
    return jax.grad(lambda b, a: jnp.sum(lax.scan(lambda s, v: (jnp.tanh(s + v), s * v), b, a)[1])), [
        c.astype("float32"),
        x.astype("float32"),
    ]


def choleskys(r: Random) -> Program:
    dtype = r.pick(("float32", "float64", "complex64", "complex128"))
    n, batch = r.pick((1, 2, 3, 5, 8)), r.shape(0, 2, (1, 2, 3))
    a = r.array((*batch, n, n), dtype, scale=1)
    a = a @ np.conj(np.swapaxes(a, -1, -2)) + n * np.eye(n, dtype=dtype)
    kind = r.integer(0, 3)
    if kind == 0:
        return (lambda m: lax.linalg.cholesky(m, symmetrize_input=r0)), [a] if (r0 := r.chance(0.5)) in (
            True,
            False,
        ) else []
    if kind == 1:
        return (lambda m: jnp.linalg.cholesky(m, upper=True)), [a]
    return (lambda m, b: jax.scipy.linalg.cho_solve((jnp.linalg.cholesky(m), True), b)), [
        a,
        r.array((*batch, n, 2), dtype),
    ]


def triangular_solves(r: Random) -> Program:
    dtype = r.pick(("float32", "float64", "complex64", "complex128"))
    n, m, batch = r.pick((1, 2, 3, 5, 8)), r.pick((1, 2, 4)), r.shape(0, 2, (1, 2, 3))
    a = r.array((*batch, n, n), dtype, scale=1) + 3 * np.eye(n, dtype=dtype)
    left, lower, ta, unit = (r.chance(0.5) for _ in range(4))
    conj = r.chance(0.5) if ta else False
    b = r.array((*batch, n, m) if left else (*batch, m, n), dtype)
    return (
        lambda p, q: lax.linalg.triangular_solve(
            p, q, left_side=left, lower=lower, transpose_a=ta, conjugate_a=conj, unit_diagonal=unit
        )
    ), [a, b]


def ffts(r: Random) -> Program:
    wide = r.chance(0.3)
    n, nd = r.pick((1, 2, 3, 4, 5, 8, 12, 16, 31, 36, 128, 257, 301)), r.pick((1, 1, 1, 2, 3))
    shape = (*r.shape(0, 2, (1, 2, 3)), *(r.pick((1, 2, 3, 4, 5)) for _ in range(nd - 1)), n)
    kind = r.pick(("fft", "ifft", "rfft", "irfft"))
    lengths = shape[-nd:]
    if kind == "rfft":
        return (lambda a: lax.fft(a, "RFFT", lengths)), [r.array(shape, "float64" if wide else "float32")]
    x = r.array(shape, "complex128" if wide else "complex64")
    if kind == "irfft":
        out = (*lengths[:-1], r.pick((2 * (n - 1), 2 * n - 1)) or 1)
        return (lambda a: lax.fft(a, "IRFFT", out)), [x]
    return (lambda a: lax.fft(a, kind.upper(), lengths)), [x]


def rngs(r: Random) -> Program:
    shape, seed = r.shape(0, 2, (1, 2, 3, 5, 8)), r.integer(0, 1000)
    kind = r.integer(0, 9)
    impl = r.pick(("threefry2x32", "rbg", "unsafe_rbg"))

    def key(s):
        return jax.random.key(s, impl=impl)

    s = np.int32(seed)
    alg = r.pick(
        (lax.RandomAlgorithm.RNG_THREE_FRY, lax.RandomAlgorithm.RNG_PHILOX, lax.RandomAlgorithm.RNG_DEFAULT)
    )
    out = r.pick(("uint32", "uint64", "uint8", "uint16"))
    fs = [
        lambda a: jax.random.normal(key(a), shape),
        lambda a: jax.random.uniform(key(a), shape, "float64"),
        lambda a: jax.random.bits(key(a), shape),
        lambda a: jax.random.randint(key(a), shape, -5, 9),
        lambda a: jax.random.bernoulli(key(a), 0.3, shape),
        lambda a: jax.random.key_data(jax.random.split(key(a), 3)),
        lambda a: jax.random.permutation(key(a), 7),
        lambda a: jax.random.categorical(key(a), jnp.zeros((*shape, 4))),
    ]
    if kind < 8:
        return fs[kind], [s]
    state = (
        r.rng.integers(0, 2**63, 2).astype("uint64")
        if alg == lax.RandomAlgorithm.RNG_THREE_FRY
        else r.rng.integers(0, 2**63, 2 if r.chance(0.5) else 3).astype("uint64")
    )
    if alg == lax.RandomAlgorithm.RNG_DEFAULT:
        state = state[:2]
    return (lambda k: lax.rng_bit_generator(k, shape, out, alg)), [state]


def precisions(r: Random) -> Program:
    dtype = r.pick(("float32", "float64", "float16", "bfloat16"))
    e, m = r.integer(2, 9 if dtype != "float16" else 6), r.integer(1, 11 if dtype != "bfloat16" else 8)
    x = r.array(r.shape(), dtype, 0.2, r.pick((1, 100, 1e-4)))
    return (lambda a: lax.reduce_precision(a, e, m)), [x]


SMALL = (
    "float8_e4m3fn",
    "float8_e5m2",
    "float8_e4m3b11fnuz",
    "float8_e4m3fnuz",
    "float8_e5m2fnuz",
    "float8_e4m3",
    "float8_e3m4",
    "float4_e2m1fn",
)


def small_floats(r: Random) -> Program:
    a = r.pick(SMALL)
    dtype, shape = jnp.dtype(a), r.shape()
    x = r.array(shape, "float32", 0.1, r.pick((1, 100))).astype(dtype)
    y = r.array(shape, "float32", 0, 1).astype(dtype)
    kind = r.integer(0, 5)
    if kind == 0:
        return (lambda v: v.astype("float32")), [x]
    if kind == 1:
        return (lambda v: v.astype(dtype)), [
            r.array(shape, r.pick(("float32", "bfloat16", "float16")), 0.1, r.pick((1, 300, 0.01)))
        ]
    if kind == 2:
        m, k, n = (r.pick((1, 3, 4)) for _ in range(3))
        return (lambda p, q: lax.dot(p, q, preferred_element_type="float32")), [
            r.array((m, k), "float32").astype(dtype),
            r.array((k, n), "float32").astype(dtype),
        ]
    if kind == 3:
        return (lambda p, q: (p + q, lax.max(p, q), p < q)), [x, y]
    return (lambda p: (jnp.concatenate([p.reshape(-1), p.reshape(-1)]), p.reshape(-1)[::-1])), [x]


def small_integers(r: Random) -> Program:
    a = r.pick(("int4", "uint4", "int2", "uint2"))
    dtype, shape = jnp.dtype(a), r.shape()
    low, high = (-8, 8) if a == "int4" else (0, 16) if a == "uint4" else (-2, 2) if a == "int2" else (0, 4)
    x, y = (r.rng.integers(low, high, shape).astype(dtype) for _ in range(2))
    kind = r.integer(0, 5)
    if kind == 0:
        return (lambda v: v.astype(r0)), [x] if (r0 := r.pick(("int32", "float32", "int8"))) else []
    if kind == 1:
        return (lambda v: v.astype(dtype)), [r.array(shape, "int32", 0.2)]
    if kind == 2:
        return (lambda p, q: (p + q, p * q, lax.max(p, q), p < q)), [x, y]
    if kind == 3:
        m, k, n = (r.pick((1, 3, 4)) for _ in range(3))
        return (
            lambda p, q: (
                lax.dot(p, q.astype("int8"), preferred_element_type="int32")
                if False
                else lax.dot(p.astype("int8"), q.astype("int8"), preferred_element_type="int32")
            )
        ), [r.rng.integers(low, high, (m, k)).astype(dtype), r.rng.integers(low, high, (k, n)).astype(dtype)]
    # XLA's CPU compiler aborts at some concatenations of such types.
    return (lambda p: (jnp.tile(p.reshape(-1), 2), p.reshape(-1)[::-1])), [x]


def composites(r: Random) -> Program:
    x = r.array(r.shape(0, 2), r.pick(("float32", "int32", "uint8")))

    @jax.jit
    def inner(v):
        return v * v + v

    f = lax.composite(lambda v: v * v - v, name="my.op", version=1)
    g = jax.checkpoint(lambda v: jnp.sin(v.astype("float32")))
    kind = r.integer(0, 4)
    if kind == 0:
        return (lambda v: f(v)), [x]
    if kind == 1:
        return (lambda v: inner(inner(v))), [x]
    if kind == 2:
        return jax.grad(lambda v: jnp.sum(g(v.astype("float32")))), [x.astype("float32")]
    return (lambda v: lax.optimization_barrier((f(v), inner(v)))), [x]


def nets(r: Random) -> Program:
    b, n, m, o = (r.pick((1, 2, 4, 5, 8)) for _ in range(4))
    dtype = r.pick(("float32", "float32", "float64", "bfloat16"))
    wide = "float64" if dtype == "float64" else "float32"  # of losses: as exact as what they are compared as
    act = r.pick([jnp.tanh, jax.nn.relu, jax.nn.gelu, jax.nn.silu, jax.nn.softmax, jax.nn.elu])
    x, w, v = r.array((b, n), dtype, scale=1), r.array((n, m), dtype, scale=0.5), r.array((m, o), dtype, scale=0.5)
    kind = r.integer(0, 5)
    if kind == 0:
        return (lambda a, p, q: jax.nn.log_softmax(act(a @ p) @ q)), [x, w, v]
    if kind == 1:
        return jax.grad(lambda p, q, a: jnp.sum(jnp.square((act(a @ p) @ q).astype(wide))), (0, 1)), [w, v, x]
    if kind == 2:
        k = r.array((3, 3, 2, 3), "float32", scale=0.5)
        img = r.array((b, 6, 6, 2), "float32", scale=1)

        def net(kk, im):
            y = act(lax.conv_general_dilated(im, kk, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")))
            return jnp.sum(lax.reduce_window(y, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") ** 2)

        return jax.value_and_grad(net, (0, 1)), [k, img]
    if kind == 3:

        def attn(q, kk, vv):
            return jnp.sum(jax.nn.dot_product_attention(q, kk, vv, is_causal=True))

        s = (1, r.pick((2, 4)), 2, 4)
        return jax.grad(attn, (0, 1, 2)), [r.array(s, "float32") for _ in range(3)]
    labels = r.rng.integers(0, o, b).astype("int32")

    def loss(p, q, a, wanted):
        logits = jax.nn.log_softmax((act(a @ p) @ q).astype(wide))
        return -jnp.mean(jnp.take_along_axis(logits, wanted[:, None], 1))

    return jax.value_and_grad(loss, (0, 1)), [w, v, x, labels]


def linear_algebra(r: Random) -> Program:
    dtype = r.pick(("float32", "float64"))
    n = r.pick((1, 2, 3, 5))
    a = r.array((n, n), dtype, scale=1) + n * np.eye(n, dtype=dtype)
    return r.pick(
        [
            lambda m: jnp.linalg.matrix_power(m, 3),
            lambda m: jnp.trace(m),
            lambda m: jnp.tril(m) + jnp.triu(m, 1),
            lambda m: jax.scipy.linalg.expm(m * 0.1) if False else m.T @ m,
            lambda m: jax.scipy.linalg.solve_triangular(m, m, lower=True),
            lambda m: jnp.kron(m, m),
            lambda m: jnp.convolve(m[0], m[:, 0]),
            lambda m: jnp.interp(m, m[0] * 0 + jnp.arange(n), m[0]),
        ]
    ), [a]


def dynamic(r: Random) -> tuple[Callable[..., Any], list[Any], list[str]]:
    """Of extents that are known when the program runs."""
    dtype = r.pick(("float32", "float64", "int32", "uint8", "bfloat16"))
    a, b = r.pick((1, 2, 3, 5)), r.pick((1, 2, 4))
    x = r.array((a, b), dtype, scale=1)
    idx = r.rng.integers(0, a, 3).astype("int32")
    square, wide = r.array((a, a), "float32", scale=1), r.array((a, 4), "float32", scale=1)
    options: list[tuple[Callable[..., Any], list[Any], list[str]]] = [
        (lambda v: v + v * 2, [x], ["a, b"]),
        (lambda v: jnp.sum(v, axis=0), [x], ["a, b"]),
        (lambda v: jnp.sum(v, axis=1) / v.shape[1], [x.astype("float32")], ["a, b"]),
        (lambda v: jnp.reshape(v, (-1,)), [x], ["a, b"]),
        (lambda v: jnp.concatenate([v, v[::-1]], axis=0), [x], ["a, b"]),
        (lambda v: v.T @ v, [x], ["a, b"]),
        (lambda v: jax.nn.softmax(v), [wide], ["a, 4"]),
        (lambda v: jnp.broadcast_to(v[:, None], (v.shape[0], 3, v.shape[1])), [x], ["a, b"]),
        (lambda v: jnp.arange(v.shape[0]) + jnp.sum(v).astype("int64"), [x.astype("float32")], ["a, b"]),
        (lambda v, i: v[i], [x, idx], ["a, b", "3"]),
        (lambda v, i: v.at[i].add(v[0]), [x, idx], ["a, b", "3"]),
        (lambda v: jnp.pad(v, ((1, 2), (0, 1))), [x], ["a, b"]),
        (lambda v: jnp.sort(v, axis=0), [x], ["a, b"]),
        (lambda v: jnp.cumsum(v, axis=1), [wide], ["a, 4"]),
        (lambda v: v[:-1] if False else v[: v.shape[0]], [x], ["a, b"]),
        (lambda v: lax.fori_loop(0, v.shape[0], lambda i, c: c + v[i], v[0]), [x], ["a, b"]),
        (lambda v: jnp.argmax(v, axis=1), [wide], ["a, 4"]),
        (lambda v: jnp.tril(v), [square], ["a, a"]),
        (lambda v: jax.nn.relu(v @ np.ones((4, 3), "float32") + 1), [wide], ["a, 4"]),
        (lambda v: lax.dynamic_slice_in_dim(v, 1, v.shape[0], axis=0), [x], ["a, b"]),
    ]
    return r.pick(options)


FAMILIES: dict[str, Callable[[Random], Any]] = {
    f.__name__: f
    for f in (
        floats,
        integers,
        booleans,
        compares,
        converts,
        bitcasts,
        complexes,
        special,
        shapes,
        dots,
        convolutions,
        reduces,
        general_reduces,
        windows,
        cumulative,
        select_and_scatters,
        gathers,
        scatters,
        scatter_grads,
        dynamic_slices,
        sorts,
        top_ks,
        whiles,
        cases,
        scans,
        choleskys,
        triangular_solves,
        ffts,
        rngs,
        precisions,
        small_floats,
        small_integers,
        composites,
        nets,
        linear_algebra,
        dynamic,
        dynamic_convolutions,
    )
}
