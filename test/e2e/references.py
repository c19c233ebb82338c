"""The numpy reference of every program in ``programs/``, with the arguments that it is called with."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from program_case import Array, Rng, case, f16, f32, f64, i1, i8, i16, i32, i64, index

erf = np.vectorize(math.erf, otypes=[np.float64])


def few_values(rng: Rng, shape: tuple[int, ...]) -> Array:
    return rng.choice([-1.0, 0.0, 2.5, np.nan, np.inf], shape)


def softmax_of(x: Array, axis: int) -> Array:
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def sigmoid_of(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


@case(f32(8), results="f32, f32")
def vectors(x: Array) -> Any:
    y = np.abs(x)
    written = y.copy()
    written[:4] = 2 * y[2:6]
    return written + y, written[1:2]


# ---- contractions ----


@case(f32("n", 16), f32(16, 8), results="f32")
def matmul_tanh(x: Array, w: Array) -> Array:
    return np.tanh(x @ w)


@case(f64("n", 6), f64(6, "n"), f64(6, 5), f64(5, 6), results="f64, f64, f64")
def matmul_transposed_maps(a: Array, at: Array, b: Array, bt: Array) -> Any:
    return a @ bt.T, at.T @ b, at.T @ bt.T


@case(i32("n", "m"), i32("m", "n"), i64("n", 4), i64(4, 3), i8(5, 9), i8(9, 2), results="i32, i64, i32")
def matmul_integers(a: Array, b: Array, c: Array, d: Array, e: Array, f: Array) -> Any:
    return a @ b, c @ d, e.astype(np.int32) @ f.astype(np.int32)


# f16 accumulates 8 products, each rounded.
@case(f16("n", 8), f16(8, 4), results="f16, f32", tolerance=1e-2)
def matmul_half(a: Array, b: Array) -> Any:
    return a @ b, a @ b


@case(f32("n", 4, 5), f32("n", 5, 3), f32("n", 3, 5), results="f32, f32")
def batch_matmul(a: Array, b: Array, bt: Array) -> Any:
    return a @ b, a @ bt.transpose(0, 2, 1)


@case(f32("n", 7), f32(7), f32("n"), f32(7), results="f32, f32, f32", tolerance=1e-4)  # dot may cancel
def matvec_dot(a: Array, x: Array, y: Array, start: Array) -> Any:
    return a @ x, start + y @ a, 1 + (a @ x) @ y


@case(f32(3, "n", 4, 5), f32(5, 2, 4), results="f32")
def contract(a: Array, b: Array) -> Array:
    return np.einsum("ijpq,qkp->kij", a, b)


# ---- convolution and pooling ----


def windows(x: Array, sizes: Any, strides: Any, dilations: Any, axes: Any) -> Array:
    """Sliding windows over two ``axes``; the windows' own dimensions come last."""
    spans = [(size - 1) * dilation + 1 for size, dilation in zip(sizes, dilations, strict=True)]
    view = np.lib.stride_tricks.sliding_window_view(x, spans, axes)
    steps: list[slice] = [slice(None)] * view.ndim
    for axis, stride in zip(axes, strides, strict=True):
        steps[axis] = slice(None, None, stride)
    for position, dilation in enumerate(dilations):
        steps[x.ndim + position] = slice(None, None, dilation)
    return view[tuple(steps)]


@case(f32("n", 3, 9, 8), f32(4, 3, 3, 2), f32(4), results="f32")
def conv2d_nchw(x: Array, w: Array, bias: Array) -> Array:
    y = np.einsum("nchwij,fcij->nfhw", windows(x, (3, 2), (2, 1), (1, 1), (2, 3)), w)
    return np.maximum(y + bias[:, None, None], 0)


@case(f32(2, 8, 7, 3), f32(3, 2, 3, 4), i32(1, 5, 5, 2), i32(2, 2, 2, 3), results="f32, i32")
def conv2d_nhwc(x: Array, w: Array, xi: Array, wi: Array) -> Any:
    y = np.einsum("nhwcij,ijcf->nhwf", windows(x, (3, 2), (1, 1), (2, 1), (1, 2)), w)
    yi = np.einsum("nhwcij,ijcf->nhwf", windows(xi, (2, 2), (2, 2), (1, 1), (1, 2)), wi)
    return y, yi


@case(f32("n", 6, 6, 5), f32(3, 3, 5), f32(20), f32(4), results="f32, f32")
def conv_depthwise(x: Array, w: Array, signal: Array, kernel: Array) -> Any:
    y = np.einsum("nhwcij,ijc->nhwc", windows(x, (3, 3), (1, 1), (1, 1), (1, 2)), w)
    return y, np.correlate(signal, kernel, "valid")


@case(f32("n", 3, 6, 8), f32(2, 7, 7, 4), results="f32, f32, f32, f32")
def pooling(x: Array, y: Array) -> Any:
    one, two = (1, 1), (2, 2)
    return (
        windows(x, (2, 2), two, one, (2, 3)).max(axis=(4, 5)),
        windows(x, (2, 2), one, one, (2, 3)).sum(axis=(4, 5)),
        windows(y, (3, 2), two, one, (1, 2)).max(axis=(4, 5)),
        windows(y, (3, 2), one, one, (1, 2)).sum(axis=(4, 5)),
    )


# ---- elementwise ----


@case(f32("n", "m"), f32("m"), f32("n"), f32(), f32(), results="f32, f32")
def elementwise_broadcast(x: Array, r: Array, c: Array, s: Array, factor: Array) -> Any:
    y = (x * r + c[:, None] - s) * factor
    return y, np.repeat(y[:, None], 2, axis=1)


@case(f32("n", "m"), f32("m", "n"), f64(2, 3, "n"), results="f32, f64")
def transposes(x: Array, y: Array, z: Array) -> Any:
    return (x - y.T).T * y, z.transpose(2, 0, 1)


@case(f32("n", 5), f32("n", 5), results="f32, f32")
def named_elementwise(x: Array, y: Array) -> Any:
    total = x + y
    root = np.sqrt(np.abs(total * x - y))
    t = np.tanh(np.minimum(np.maximum(root, x), total))
    return t + y, -np.exp(t)


@case(f32("n", low=0.05, high=0.95), f32("n", low=-3, high=3), results="f32, " * 29)
def math_f32(x: Array, y: Array) -> Any:
    return (
        *(np.exp(x), np.exp2(x), np.expm1(x), np.log(x), np.log2(x), np.log10(x), np.log1p(x)),
        *(np.sin(x), np.cos(x), np.tan(x), np.tanh(y), np.sinh(y), np.cosh(x)),
        *(np.arcsin(x), np.arccos(x), np.arctan(y), erf(y), np.sqrt(x), 1 / np.sqrt(x), np.cbrt(x)),
        *(np.floor(y), np.ceil(y), np.copysign(np.floor(np.abs(y) + 0.5), y), np.rint(y), np.trunc(y)),
        *(np.abs(y), x**y, np.arctan2(x, y), np.copysign(x, y)),
    )


@case(f64("n", low=0.05, high=0.95), f64("n", low=-3, high=3), results="f64, " * 17)
def math_f64(x: Array, y: Array) -> Any:
    return (
        *(np.exp(x), np.expm1(x), np.log(x), np.log1p(x), np.sin(x), np.cos(x), np.tanh(y), erf(y)),
        *(np.sqrt(x), 1 / np.sqrt(x), np.cbrt(x), np.floor(y), np.arcsinh(x), np.arccosh(x + 1)),
        *(np.arctanh(x), x**y, np.arctan2(x, y)),
    )


@case(f16("n", low=0.1, high=0.95), f16("n", low=-3, high=3), results="f16, " * 10)
def math_f16(x: Array, y: Array) -> Any:
    return (
        *(np.exp(x), np.log(x), np.sin(x), np.tanh(y), erf(y), np.sqrt(x), 1 / np.sqrt(x)),
        *(np.floor(y), np.abs(y), x**y),
    )


@case(i32("n", low=-99999, high=99999), i64("n", low=-(2**60), high=2**60), results="i32, i32, i64, i64, i32")
def math_integers(x: Array, y: Array) -> Any:
    ones = np.bitwise_count(x.view(np.uint32)).astype(np.int32)
    leading = np.array([64 - int(v).bit_length() for v in y.view(np.uint64)])
    trailing = np.array([(int(v) & -int(v)).bit_length() - 1 if v else 64 for v in y])
    return np.abs(x), ones, leading, trailing, np.maximum(np.minimum(x, ones), np.abs(x))


@case(f32("n", 6, low=-4, high=4), results="f32, f32, f32, f32, f32")
def activations(x: Array) -> Any:
    gelu = x / 2 * (1 + erf(x / math.sqrt(2)))
    return sigmoid_of(x), x * sigmoid_of(x), gelu, np.log1p(np.exp(x)), np.where(x >= 0, x, x * 0.01)


@case(
    f32("n", make=few_values),
    f32("n", make=few_values),
    i32("n", low=-50, high=50),
    results="f32, f32, i32, i32, f32, i64",
    sizes=({"n": 1}, {"n": 7}, {"n": 67}),
)
def arithmetic_extras(x: Array, y: Array, k: Array) -> Any:
    cube = k**3
    product = k.astype(np.int64) * cube
    low, high = product.astype(np.int32), (product >> 32).astype(np.int32)
    places = np.arange(len(x))
    return np.fmod(x, y), np.fmax(x, y), cube, low + high, y**3, 2 * places // 3 + places % 5


@case(i8("n", low=-128, high=128), i8("n", low=-128, high=128), i16("n"), results="i8, i8, i16, i1, i16")
def narrow_integers(a: Array, b: Array, c: Array) -> Any:
    product = (a + b) * b
    difference = product.astype(np.int16) - c
    return a + b, product, difference, a < b, difference.sum(dtype=np.int16)


# ---- reductions ----


# Sums of up to 2300 elements, one after the other.
@case(
    f32("n", "m", low=-1, high=3),
    i32("n", make=lambda rng, shape: rng.choice([-3, -1, 1, 2], shape)),
    results="f32, f32 scalar, f32, i32",
    tolerance=1e-4,
)
def reduce_full(x: Array, k: Array) -> Any:
    return x.sum(), x.max(), x.min(), np.multiply.reduce(k)


@case(f32("n", "m", low=-1, high=3), i64(3, "n", 4), results="f32, f32, i64")
def reduce_axes(x: Array, y: Array) -> Any:
    return x.sum(axis=1), x.max(axis=0), (y * y).sum(axis=1) - 5


@case(f32("n", "m", make=lambda rng, shape: rng.integers(-9, 9, shape)), results="f32, index, i64")
def argmax(x: Array) -> Any:
    return x.max(axis=1), x.argmax(axis=1), x.argmax(axis=1)


@case(f32("n", "m", low=-5, high=5), f64(6, 3), results="f32, f64")
def softmax(x: Array, y: Array) -> Any:
    return softmax_of(x, 1), softmax_of(y, 0)


@case(f32("n", 12), f32(12), f32(12), results="f32")
def layernorm(x: Array, scale: Array, shift: Array) -> Array:
    centred = x - x.mean(axis=1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5) * scale + shift


# ---- shapes ----


@case(f32("n", 10), index(low=0, high=5), index(low=0, high=6), results="f32, f32, f32, f32, f32")
def slices(x: Array, offset: Array, size: Array) -> Any:
    row = x[:1, offset : offset + size]
    return np.abs(x[:, 2:5]), 2 * x[:, 1::2], row, np.exp(x[0]), x[:, offset]


@case(f32(6, 5), index(low=0, high=3), index(low=0, high=4), results="f32, f32, f32, f32, f32 scalar")
def slices_through_devices(x: Array, row: Array, count: Array) -> Any:
    rows = x.copy()
    rows[row] = np.sin(x[row])
    blocks = rows.copy()
    blocks[:count] = np.cos(x[row : row + count])
    columns = x.copy()
    columns[:, count] = np.exp(x[:, count])
    twice = columns.copy()
    twice[row] = np.abs(blocks[count])
    return rows, blocks, columns, twice, twice[row, 0]


@case(f32("n", 3), i32(2, 4), index(low=0, high=4), f32(), results="f32, f32, i32")
def pads(x: Array, k: Array, low: Array, value: Array) -> Any:
    wide = np.pad(x, ((1, 1), (2, 1)))
    tall = np.pad(x, ((int(low), 2), (0, 0)), constant_values=value)
    places = np.add.outer(10 * np.arange(4), np.arange(5))
    places[:2, 1:] = k
    return wide, tall, places


@case(f32("n", 3), f32("m", 3), f32(2, 3), results="f32, f32")
def concat(x: Array, y: Array, z: Array) -> Any:
    return np.concatenate([np.exp(x), np.abs(y)]), np.concatenate([z, -z, z], axis=1)


@case(f32(11, 4), i32("n", low=0, high=11), results="f32")
def gather(table: Array, ids: Array) -> Array:
    return table[ids]


@case(f32(6, 8), f32(2, 3), f32(8), index(low=0, high=6), results="f32, f32, f32, f32")
def insert_slices(x: Array, patch: Array, row: Array, at: Array) -> Any:
    first = x.copy()
    first[1:3, 4:7] = patch
    second = first.copy()
    second[at] = row
    third = second.copy()
    third[0:5:4, 1:6:2] = patch
    return first, second, third, second - x


@case(f32("n", 4, 3), i32(12), index(2, make=lambda rng, shape: [6, 2]), results="f32, f32, f32" + 5 * ", i32")
def reshapes(x: Array, y: Array, shape: Array) -> Any:
    flat = x.reshape(-1, 12)
    sine = np.sin(flat)
    twice = 2 * y * y
    computed = twice.reshape(shape[::-1]), twice[0], twice[:1] ** 2
    given = (y * y).reshape(3, 4), 2 * y.reshape(shape)
    return flat, sine.reshape(-1), 2 * sine.reshape(-1, 2, 6), *given, *computed


@case(f32("n"), f32("m"), results="f32, i64, index scalar, f32")
def dynamic_shapes(x: Array, y: Array) -> Any:
    outer = np.outer(x, y)
    return outer, np.arange(2 * len(x)) + len(x), 2 * len(x) + len(y), outer.reshape(-1)


@case(f32(), f32(), index(low=0, high=9), f32("n", 3), results="f32, f32, f32, f32, index, f32")
def make_tensors(a: Array, b: Array, n: Array, x: Array) -> Any:
    elements = np.array([[a, b], [a + b, a * b]])
    inserted = np.array([b, 2, a, 4])
    return elements, inserted, x[:, ::-1] + a, np.exp(np.full(n, a + b)), np.array([n, len(x), 1]), a * b


@case(f32("n", "m"), results="f32, i1, f32")
def masks(x: Array) -> Any:
    return np.tril(x), np.eye(len(x)), x.repeat(2, axis=0).repeat(2, axis=1)


@case(f32(), f32(2, 1, "n", 3, 2), i32(1, 1), f32(4, 5), results="f32, f32, i32, f32, f32, f32")
def ranks(s: Array, x: Array, u: Array, k: Array) -> Any:
    sine = np.sin(k)
    return np.exp(s), x * x, u + u, sine, sine.T, sine.sum(axis=1)


# ---- constants and element types ----


@case(f32("n", 8), f32(24, 25), results="f32, f32, f32")
def constants_large(x: Array, y: Array) -> Any:
    i, j = np.ogrid[:8, :12]
    w = (7 * i + 3 * j * j) % 19 - 9
    blob = (np.arange(600) % 251 - 125).reshape(24, 25)
    return x @ w, y * blob + blob, 2 * w


@case(f32(4), i64(3), f16(2), results="f32, f32, i1, i64, f16, f64, index")
def constants(x: Array, k: Array, h: Array) -> Any:
    special = np.array([np.inf, -np.inf, np.nan, -0.0])
    mask = np.array([True, False, False, True])
    selected = np.where(mask, special, x + np.array([1.5, -2, 0.25, 1e3]))
    big = np.array([-(2**63), 2**62, 7])
    doubles = np.array([-np.inf, -0.1, 0.1])
    return special, selected, (special < np.inf) ^ mask, k + big, h + np.array([1, -np.inf]), doubles, [6, 1, 13]


@case(
    f32("n", make=few_values),
    f32("n", make=few_values),
    i32("n", low=-3, high=3),
    i32("n", low=-3, high=3),
    i1("n"),
    results="i1, i1, i1, i1, f32, i32",
)
def compare_select(x: Array, y: Array, i: Array, j: Array, mask: Array) -> Any:
    unsigned = i.view(np.uint32) < j.view(np.uint32)
    return x < y, x != y, i < j, unsigned, np.where((x < y) & mask, x, y), np.where((i < j) | mask, i, j)


@case(
    f32("n", low=-100, high=100),
    i32("n", low=-1000, high=1000),
    i8("n", low=-128, high=128),
    i1("n"),
    results="f64, f16, i32, f32, f64, i64, i64, i8, index, i32, f32, i16, f32",
    exact=True,
)
def casts(x: Array, k: Array, b: Array, m: Array) -> Any:
    return (
        *(x, x, np.trunc(x), k, k.view(np.uint32), b, b.view(np.uint8), k, k),
        *(x.view(np.int32), m, -m.astype(np.int16), np.where(m, -1, 0)),
    )


@case(
    i32("n", low=-1000, high=1000),
    i32("n", make=lambda rng, shape: rng.choice([-9, -4, -1, 1, 2, 7], shape)),
    i32("n", low=0, high=32),
    results="i32, " * 10,
)
def integer_arithmetic(x: Array, d: Array, s: Array) -> Any:
    ux, ud = x.view(np.uint32), d.view(np.uint32)
    return (
        *(np.trunc(x / d), ux // ud, np.fmod(x, d), ux % ud, x // d, -(-x // d)),
        *(x << s, x >> s, ux >> s.view(np.uint32), x ^ d),
    )


@case(index("n", "m"), index(), i64(low=-(2**40), high=2**40), results="index, i64")
def index_tensors(x: Array, step: Array, offset: Array) -> Any:
    y = x + np.arange(x.size).reshape(x.shape) * step
    return y, y - offset


# ---- control flow ----


@case(f32("n", 4), index(low=0, high=6), results="f32, f32")
def for_carried(x: Array, steps: Array) -> Any:
    total = np.full_like(x, 0.5)
    for _ in range(int(steps)):
        x = np.tanh(x) / 2
        total += x
    return x, total


@case(f32("n"), f32("n"), results="f32")
def for_mixed_body(x: Array, w: Array) -> Array:
    for _ in range(3):
        x = np.sin(x * w) + w
    return x


@case(f32("n"), f32(), results="f32, f32 scalar, i64 scalar")
def for_scalars(x: Array, rate: Array) -> Any:
    for i in range(5):
        x = x * rate + i
        rate = rate / 2
    return x, rate, 10


@case(f32("n"), i1(), i32(low=0, high=15), results="f32, i32 scalar")
def if_argument(x: Array, flag: Array, limit: Array) -> Any:
    y, number = (np.exp(x) + x, int(limit)) if flag else (-x, 7)
    return y * x if number > 7 else y, number


@case(f32("n"), results="f32, i1 scalar")
def if_read_back(x: Array) -> Any:
    norm = x @ x
    return x / np.sqrt(norm) if norm > 1 else x, norm > 1


@case(f64("n", low=0.1, high=50), results="f64, i64 scalar")
def while_read_back(x: Array) -> Any:
    return np.sqrt(x), 1


@case(f32(3, 7), results="f32, f32")
def loop_inside_piece(x: Array) -> Any:
    sums = np.cumsum(2 * x, axis=1)
    changed = -sums
    changed[1] = np.abs(sums[1])
    return sums, changed


@case(f32("n"), f32("n"), index(low=0, high=4), f32(), results="f32, f32")
def switch(x: Array, y: Array, which: Array, value: Array) -> Any:
    chosen = (x if which == 1 else y).copy()
    chosen[0] = value
    return {0: np.exp(x), 2: -x}.get(int(which), x) + x, chosen


@case(f32("n"), i32(low=0, high=6), i32(low=0, high=6), results="f32, i32 scalar")
def branches_cf(x: Array, steps: Array, stop: Array) -> Any:
    t = x
    for i in range(int(steps)):
        t = np.cos(t) + x
        if i + 1 == stop:
            return -t, i + 1
    return t, steps


@case(f32(4, low=0), f32(low=0.5, high=1.5), results="f32, i32 scalar")
def nested_control(x: Array, limit: Array) -> Any:
    t, count = x, 0
    for i in range(4):
        t = t + x
        if t[i] > limit:
            while t[i] > limit:
                t, count = t / 2, count + 1
        else:
            t = np.abs(t)
    return t, count


@case(f64("n", "n", low=0, high=1), results="f64, f64 scalar")
def power_iteration(a: Array) -> Any:
    v, norm = np.ones(len(a)), 0.0
    for _ in range(8):
        v = a @ v
        norm = np.sqrt(v @ v)
        v = v / norm
    return v, norm


@case(f64(8, 9), results="f64")
def jacobi(u: Array) -> Array:
    for _ in range(6):
        u = u.copy()
        u[1:-1, 1:-1] = (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]) / 4
    return u


@case(f64("n"), f64("m", low=-1.2, high=1.2), results="i32")
def mandelbrot(re: Array, im: Array) -> Array:
    c = re + 1j * im[:, None]
    z, count = np.zeros_like(c), np.zeros(c.shape, int)
    for _ in range(30):
        inside = np.abs(z) <= 2
        count += inside
        z = np.where(inside, z * z + c, z)
    return count


@case(
    f32("n"),
    f32("m", low=-1, high=1),
    results="f32",
    sizes=({"n": 1, "m": 1}, {"n": 67, "m": 5}, {"n": 7, "m": 0}),
)
def horner(x: Array, coefficients: Array) -> Array:
    return np.where(x > 0, np.polyval(coefficients, x), x)


@case(i32("n", low=0, high=6), results="i64, i64")
def histogram(ids: Array) -> Any:
    return np.bincount(ids, minlength=6), len(ids)


@case(i32("n"), results="i32", sizes=({"n": 1}, {"n": 13}, {"n": 2}), device_work=False)
def bubble_sort(x: Array) -> Array:
    return np.sort(x)


@case(i8("n", "m", low=0, high=2), index(low=0, high=4), results="i8")
def life(cells: Array, turns: Array) -> Array:
    for _ in range(int(turns)):
        shifted = [np.roll(cells, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1)]
        neighbours = np.sum(shifted, axis=0, dtype=np.int8) - cells
        cells = ((neighbours | cells) == 3).astype(np.int8)
    return cells


@case(f32("n", 6), results="f32")
def forall(x: Array) -> Array:
    return 2 * np.sin(x)


@case(f32("n"), f32("n"), index(low=0, high=5), results="f32, f32, f32, f32")
def swaps(x: Array, y: Array, steps: Array) -> Any:
    first = np.sin(x)
    a, b, c = first, y, first
    for _ in range(int(steps)):
        a, b, c = b, a + b, a
    p, q = a, first
    turn = 0
    while True:
        p, q = p - q, p
        if turn >= steps:
            return b, c, p, q
        p, q, turn = q, p, int(steps)


@case(f64("n"), f64("n", low=0.5, high=1), results="f64")
def alternating_chain(x: Array, y: Array) -> Array:
    value = x
    for i in range(12):
        value = np.sin(value) if i % 3 else np.cos(value)
    for i in range(12, 36):
        other = y if i % 3 else x
        value = value + other if i % 2 else value * other
    return value


# ---- functions, arguments, results ----


@case(f32("n"), f32("n"), results="f32, f32")
def calls_private(x: Array, y: Array) -> Any:
    s, e = np.sin(x), np.exp(y)
    return np.cos(s * s + s), -(e * e + e)


@case(f32("n", low=0), f32(low=0.5, high=1.2), results="f32, f32, f32 scalar")
def calls_device(x: Array, factor: Array) -> Any:
    t, total = x * factor / 2, 0.5
    for _ in range(4):
        t = t * factor
        total = total + t.sum()
    return t, (x * factor).sum(), total


@case(f32("n"), results="f32, f32, i32 scalar")
def known_results(x: Array) -> Any:
    return np.tanh(2 * x) / 16, np.full(4, 4.0), 3


@case(f32("n"), f32(), results="f32, f32 scalar", tolerance=1e-4)
def calls_in_kernels(x: Array, s: Array) -> Any:
    return x**3 + np.maximum(x**3, 0) ** 3, s**3


@case(f32("n"), f32(low=0.5, high=1.2), i1(), results="f32, f32, f32 scalar")
def calls_inlined(x: Array, s: Array, doubled: Array) -> Any:
    t = np.tanh(np.tanh(np.tanh(x))) * (2 if doubled else 1)
    return t, np.sin(t) + t, s**8


@case(f64("n"), i32(low=2, high=7), results="f64, i1 scalar")
def recursion(x: Array, n: Array) -> Any:
    return x ** int(n), n % 2 == 0


@case(f32("n"), f32("n"), program="function_values", entry="higher_order", results="f32")
def function_values_higher_order(x: Array, y: Array) -> Array:
    return x - (x - y)


@case(f32("n"), f32("n"), program="function_values", entry="beside", results="f32")
def function_values_beside(x: Array, y: Array) -> Array:
    return x + y


@case(i1(), f32("n"), f32("n"), program="function_values", entry="conditional", results="f32")
def function_values_conditional(p: Array, y: Array, z: Array) -> Array:
    return z + y if p else z - y


@case(f32("n"), index(low=0, high=4), i1(), program="function_values", entry="carried", results="f32")
def function_values_carried(x: Array, n: Array, p: Array) -> Array:
    first = np.sin if p else np.negative
    for number in range(int(n) + 1):
        x = np.exp(x) if number % 2 else first(x)
    return x


@case(f32("n"), f32(), program="function_values", entry="while", results="f32, index scalar")
def function_values_while(x: Array, limit: Array) -> Any:
    function = np.sin
    for _ in range(6):
        x = function(x)
        function = np.negative if x[0] < limit else np.sin
    return x, 6


@case(f32("n"), i32(low=0, high=3), program="function_values", entry="blocks", results="f32")
def function_values_blocks(x: Array, n: Array) -> Array:
    return np.sin(x) if n == 0 else np.sin(-x) if n == 1 else np.exp(x)


@case(f32("n"), index(low=0, high=3), program="function_values", entry="nested", results="f32")
def function_values_nested(x: Array, which: Array) -> Array:
    function = (np.sin, np.exp, np.negative)[which]
    return function(function(x))


@case(i1(), f32("n"), f32("n"), program="function_values", entry="results", results="f32, f32")
def function_values_results(p: Array, x: Array, y: Array) -> Any:
    return (np.cos(y), np.sin(x)) if p else (x, y)


@case(f32("n"), index(low=0, high=4), program="function_values", entry="recursive", results="f32")
def function_values_recursive(x: Array, n: Array) -> Array:
    for _ in range(int(n) + 1):
        x = np.cos(x)
    return x


@case(f32("n"), i1(), program="function_values", entry="kernels", results="f32, f32, f32")
def function_values_kernels(x: Array, p: Array) -> Any:
    chosen = x * x if p else x / 2
    return x * x, chosen, np.where((x < 0) | (p != 0), x**4, x / 4)


@case(f32(2, 8, 4), f32(2, 4, 3), f32(1, 1, 3), results="f32, f32, f32")
def tosa(x: Array, w: Array, y: Array) -> Any:
    z = sigmoid_of(x @ w + y)
    return z, z.sum(axis=1), z.transpose(2, 0, 1)


@case(f32(1, 8, 8, 3), program="tosa", entry="pooled", results="f32")
def tosa_pooled(x: Array) -> Array:
    return np.clip(x, 0, 1).reshape(1, 4, 2, 4, 2, 3).max(axis=(2, 4))


@case(f32("n", 4), f32(4, 3), f32(3), results="f32, f32, f32")
def stablehlo(x: Array, w: Array, b: Array) -> Any:
    z = np.tanh(x @ w)
    return z, z.sum(axis=0) + b, z.T


@case(f32(8, 3), f32(3), program="stablehlo", entry="chosen", results="f32")
def stablehlo_chosen(x: Array, b: Array) -> Array:
    return np.maximum(x, b).ravel()


@case(f32(8), index(low=0, high=9), program="foreign_control_flow", entry="affine", results="f32, f32 scalar")
def affine_control_flow(x: Array, n: Array) -> Any:
    v = np.sin(x) if n in (1, 3, 5) else x
    steps = range(max(int(n) - 4, 1), min(int(n) + 5, 8), 2)
    return v + len(steps) * x, sum(x[7 - i] for i in steps)


@case(f32(8), i32(low=0, high=6), program="foreign_control_flow", entry="stablehlo", results="f32, i32")
def stablehlo_control_flow(x: Array, n: Array) -> Any:
    v = x
    for i in range(int(n)):
        v = np.sin(v) if i % 2 else v + x
    return v, n


@case(*(f32(8), i32(low=-2, high=5)), program="foreign_control_flow", entry="case", results="f32", sizes=({},) * 4)
def stablehlo_case(x: Array, n: Array) -> Array:
    return np.sin(x) if n == 0 else x if n == 1 else -x


@case(f32("n", 4), results="f32, i32, i32, index scalar", exact=True)
def other_forms(x: Array) -> Any:
    y = np.abs(x) * np.array([1, 2, 3, 4], np.float32)
    bits = y.view(np.int32)
    return y, bits + bits, len(x), 4


@case(
    *(f32("n", 3), index(make=lambda rng, shape: 2)), program="other_forms", entry="pack", results="f32",
    sizes=({"n": 7},),
)  # fmt: skip
def other_forms_pack(x: Array, n: Array) -> Array:
    return np.pad(x, ((0, 1), (0, 1))).reshape(2, 4, 2, 2).transpose(2, 0, 1, 3)


@case(f32(4, 2, 2, 2), program="other_forms", entry="unpack", results="f32")
def other_forms_unpack(x: Array) -> Array:
    return x.transpose(0, 2, 1, 3).reshape(8, 4)[:7]


@case(f32("n"), program="several_entries", entry="double", results="f32")
def several_entries_double(x: Array) -> Array:
    return 2 * x


@case(f32("n"), program="several_entries", entry="quadruple", results="f32")
def several_entries_quadruple(x: Array) -> Array:
    return 4 * x


@case(program="several_entries", entry="table", results="i32")
def several_entries_table() -> Any:
    return [[0, 2, 6], [0, 5, 12]]


@case(f32("n"), program="several_entries", entry="nothing", results="", device_work=False)
def several_entries_nothing(x: Array) -> None:
    return None


@case(
    *(f32(), f64(), f16(), i32(), i64(), index(low=0), i1(), f32("n")),
    results="f32 scalar, f64 scalar, f16 scalar, i32 scalar, i64 scalar, index scalar, i1 scalar, f32",
)
def scalars(a: Array, b: Array, c: Array, i: Array, j: Array, k: Array, flag: Array, x: Array) -> Any:
    y = x * a + i + b + c + j + np.arange(len(x)) + k if flag else x
    return a * a, np.exp(b), c + c, i * i, j - i, k + len(x), not flag, y


@case(f32("n"), f32("n"), i64(), results="f32, f32, f32, f32, i32, i64 scalar, f64 scalar", device_work=False)
def return_arguments(x: Array, y: Array, s: Array) -> Any:
    return y, x, x, [1, 2, 3], [[42, 42], [42, 42]], s, 2.5


@case(f32("n"), results="f32, f32, f32, f32")
def return_device_value(x: Array) -> Any:
    e = np.exp(x)
    return e, e, e + x, e * e


@case(f32("n", 3), f32(4, 0), f32(0, 5), results="f32, f32, f32, f32", sizes=({"n": 0}, {"n": 1}, {"n": 7}))
def empty_tensors(x: Array, y: Array, z: Array) -> Any:
    return np.exp(x), 1 + np.exp(x).sum(axis=0), 2 + y @ z, -z


@case(f32("n", 5), f32(5, 5), results="f32, f32")
def two_devices(x: Array, w: Array) -> Any:
    t = np.tanh(x @ w)
    y = t @ w + x @ w
    return y, np.sin(t) * y


@case(f32("n"), f32("n"), index(low=1, high=5), results="f32, f32")
def two_devices_loop(x: Array, y: Array, steps: Array) -> Any:
    for _ in range(int(steps)):
        x, y = np.cos(y), np.sin(x)
    return x, y


@case(f32("n", 4), f32("n", 4), results="f32, f32")
def annotations(x: Array, y: Array) -> Any:
    root = np.sqrt(np.abs(x + y))
    return np.exp(root * y) - x, root


@case(f32("n", 4), f32(4, 3), f32("n", 3), results="f32, f32, f32")
def accumulate_into_arguments(a: Array, b: Array, c: Array) -> Any:
    y = a @ b + c
    return y, y + a @ b, y * c


@case(f32(5), f32(), results="f32, f32, f32, f32")
def shared_updates(x: Array, a: Array) -> Any:
    old = np.sin(x)
    first, second = old.copy(), old.copy()
    first[1] = second[3] = a
    return old, first, first, first + second


@case(f32("n", 4), f32(4, 4), results="f32, f32, f32", tolerance=1e-4)  # six layers multiply rounding errors
def calls_on_two_devices(x: Array, w: Array) -> Any:
    values = [np.tanh(x @ w)]
    for _ in range(6):
        values.append(np.tanh(values[-1] @ w))
    return values[3], values[6], values[6]


@case(f32("n"), i1(), f32(), results="f32, f32, f32")
def copies_and_updates(x: Array, flag: Array, s: Array) -> Any:
    e = np.exp(x)
    updated = (x if flag else e).copy()
    updated[0] = s
    return np.sin(e), np.sqrt(e), updated


@case(f32("n"), f64("n", "m"), i1(), results="f32, f32, f32")
def dead_and_shared(x: Array, unused: Array, nothing: Array) -> Any:
    return np.abs(x), [0, 1, -3], [1, 2, -2]


@case(f32("n", 3), index(low=0, high=1), results="f32 scalar, f32, i64 scalar")
def read_elements(x: Array, i: Array) -> Any:
    b = np.exp(x[i, 1])
    total = np.exp(x[0, 2]) + b
    return total, np.log([total, b]), np.trunc(total)


@case(f32("n"), i1(), results="f32, f32, f32")
def identity_calls(x: Array, flag: Array) -> Any:
    e = np.exp(x)
    return np.sqrt(2 * e if flag else e), x, 2 * e


@case(f32("n"), i1(), f32(), results="f32, f32, f32, f32, f32, f32, f32")
def aliased_results(x: Array, flag: Array, s: Array) -> Any:
    def first(values: Array) -> Array:
        return np.concatenate([[s], values[1:]])

    t = np.tanh(x)
    sine = np.sin(2 * t)
    perhaps = sine if flag else -sine
    cosine = np.cos(first(t))
    updates = t + first(t), cosine - first(cosine), sine * first(perhaps)
    return np.tanh(2 * t), sine, perhaps, sine * perhaps, *updates


@case(*[f32("n")] * 12, *[f32()] * 12, results="f32, " * 12)
def many_arguments(*values: Array) -> Any:
    total = sum(a * s for a, s in zip(values[:12], values[12:], strict=True))
    return tuple(total + a for a in values[:12])


@case(f32("n", 4), f32(4, 4), results="f32")
def foreign_device(x: Array, w: Array) -> Array:
    return np.abs(x @ w)


@case(f32("n"), f32(), results="f32, f32, f32, f32 scalar")
def targets(x: Array, s: Array) -> Any:
    sum_ = np.exp(np.tanh(np.abs(x))) + x
    return sum_, np.exp(sum_) + np.tanh(np.exp(sum_)), (np.tanh(x) ** 2 + s) ** 2, s * s + s


@case(f32("n"), f32("n"), program="targets", entry="exposed", results="f32, f32")
def targets_exposed(x: Array, y: Array) -> Any:
    return np.tanh(x), np.exp(y)


@case(f32(3, 3, 3), f32(3), f32(3, 3), results="f32, f32, f32, f32, f32")
def names(x: Array, v: Array, m: Array) -> Any:
    return x @ x + x, m @ m + m, np.exp(v), np.exp(v), np.tanh(v)


@case(f32("n"), i64(low=0, high=4), results="f32, f32 scalar")
def regions(x: Array, count: Array) -> Any:
    t = np.exp(np.tanh(x))
    first = 2 * t[0] + 1
    for _ in range(int(count)):
        t = np.sin(np.abs(np.tanh(t)) + first)
    return t, first


@case(f32("n", 3), f32("n", 3), results="f32, f32")
def open_scopes(x: Array, y: Array) -> Any:
    t = np.tanh(x + y)
    return t, -t


# ---- models ----


@case(f32("n", 12), f32(12, 12), f32(12), f32(12, 12), f32(12), f32(12, 4, low=-0.2, high=0.2), results="f32")
def mlp(x: Array, w0: Array, b0: Array, w1: Array, b1: Array, w2: Array) -> Array:
    h = np.maximum(x @ w0 + b0, 0)
    return softmax_of(np.maximum(h @ w1 + b1, 0) @ w2, 1)


@case(f32("n", 1, 8, 8), f32(4, 1, 3, 3), f32(4), f32(64, 5), results="f32")
def cnn(x: Array, w: Array, b: Array, v: Array) -> Array:
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    y = np.einsum("nchwij,fcij->nfhw", windows(padded, (3, 3), (1, 1), (1, 1), (2, 3)), w)
    relu = np.maximum(y + b[:, None, None], 0)
    return windows(relu, (2, 2), (2, 2), (1, 1), (2, 3)).max(axis=(4, 5)).reshape(-1, 64) @ v


@case(f32("n", 8), *[f32(8, 8, low=-0.5, high=0.5)] * 5, results="f32")
def attention(x: Array, wq: Array, wk: Array, wv: Array, wo: Array, w1: Array) -> Array:
    q, k, v = ((x @ w).reshape(-1, 2, 4).transpose(1, 0, 2) for w in (wq, wk, wv))
    past = np.tri(len(x), dtype=bool)
    scores = np.where(past, q @ k.transpose(0, 2, 1) / 2, -np.inf)
    mixed = (softmax_of(scores, 2) @ v).transpose(1, 0, 2).reshape(-1, 8)
    residual = mixed @ wo + x
    normal = residual / np.sqrt((residual**2).mean(axis=1, keepdims=True) + 1e-5)
    return np.tanh(normal @ w1) + residual


@case(f32("n", 2, 4), f32(4, 12), f32(3, 12), results="f32, f32")
def lstm(x: Array, w: Array, u: Array) -> Any:
    h, c = np.zeros((2, 3)), np.zeros((2, 3))
    outputs: list[Array] = []
    for step in x:
        i, f, g, o = np.split(step @ w + h @ u, 4, axis=1)
        c = sigmoid_of(f) * c + sigmoid_of(i) * np.tanh(g)
        h = sigmoid_of(o) * np.tanh(c)
        outputs.append(h)
    return np.array(outputs), c


@case(f32("n", 3, 5, 5), f32(3), f32(3, low=0.1), results="f32")
def batchnorm_residual(x: Array, mean: Array, variance: Array) -> Array:
    factor = np.array([0.5, 1, 2]) / np.sqrt(variance + 1e-3)
    normal = (x - mean[:, None, None]) * factor[:, None, None] + np.array([-1, 0, 0.25])[:, None, None]
    return (normal + x).mean(axis=(2, 3))


# Points on a grid: f32 then computes distances exactly, and ties fall as they do in numpy.
@case(
    f32("n", 2, make=lambda rng, shape: rng.integers(-24, 24, shape) / 8),
    f32(3, 2, make=lambda rng, shape: rng.integers(-24, 24, shape) / 8),
    results="i32, f32",
)
def kmeans_step(points: Array, centres: Array) -> Any:
    ids = ((points[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
    hot = np.eye(3)[ids]
    return ids, (hot.T @ points) / np.maximum(hot.sum(axis=0), 1)[:, None]


# The scale is a power of two, so that the quotients are exact.
@case(
    f32("n", 6),
    i8(6, 4, low=-128, high=128),
    f32(make=lambda rng, shape: 0.5 ** rng.integers(3, 8)),
    results="i8, f32",
)
def quantised(x: Array, w: Array, scale: Array) -> Any:
    q = np.clip(np.rint(x / scale), -128, 127).astype(np.int32)
    return q, (q - 3) @ (w.astype(np.int32) + 2) * scale


TABLE = [
    *([0.5, -1, 2], [1.5, 0.25, -0.75], [-2, 3, 0.125], [4, 0, -1]),
    *([0.1, 0.2, 0.3], [-0.4, 0.5, 0.6], [7, -8, 9]),
]


@case(i64("n", 5, low=0, high=7), i64("n", low=1, high=6), results="f32")
def embedding_mean(ids: Array, lengths: Array) -> Array:
    used = np.arange(5) < lengths[:, None]
    return (np.array(TABLE)[ids] * used[:, :, None]).sum(axis=1) / lengths[:, None]


# f16 accumulates 8 products, and the row sums add their errors.
@case(f16("n", 8), f16(8, 8, low=-0.5, high=0.5), f16(8), results="f16, f32", tolerance=2e-2)
def half_network(x: Array, w: Array, b: Array) -> Any:
    z = x @ w + b
    y = (np.tanh(0.85 * z) + 1) / 2 * z
    return y, y.sum(axis=1)


# ---- kernels of the program's own ----

_OWN: dict[str, Any] = {"program": "own_kernels", "on_host": False}
_PARTS = ({"n": 1, "k": 1}, {"n": 5, "k": 5}, {"n": 3, "k": 11})


@case(f32(), f32("n"), f32("n"), results="f32, f32", **_OWN)
def saxpy(a: Array, x: Array, y: Array) -> Any:
    return np.tanh(a * x + y), a * x


@case(f32("n"), index(low=0, high=8), results="f32, f32", entry="reduction", **_OWN)
def block_sums(x: Array, log: Array) -> Any:
    block = 1 << int(log)
    sums = np.array([x[i : i + block].sum() for i in range(0, len(x), block)])
    return 2 * sums, np.sin(sums)


@case(
    *(f32("n", "m", low=-1, high=1), f32("m", "n", low=-1, high=1), f32("n", 9, low=-1, high=1)),
    results="f32, f32",
    entry="matmuls",
    tolerance=1e-4,
    **_OWN,
)
def matmuls(a: Array, b: Array, w: Array) -> Any:
    return a @ b, np.exp(a @ b) @ w


@case(f32("n"), results="f32, f32, f32, f32, f32", entry="same_tensor", **_OWN)
def same_tensor(x: Array) -> Any:
    reversed_ = np.sin(x)[::-1]
    return np.exp(x)[::-1], np.zeros_like(x), reversed_, reversed_ + x, reversed_ * (reversed_ + x)


@case(i1(), i8(), i32(), i64(), f16(), f64(), i32("n"), f32("n"), results="i32, f32", entry="types", **_OWN)
def kernel_types(flag: Array, small: Array, i: Array, l: Array, h: Array, d: Array, x: Array, y: Array) -> Any:  # noqa: E741
    return x * i + small.astype(np.int32) + l.astype(np.int32), y * (h if flag else d)


@case(f32("n"), f32("n"), index(low=0, high=5), results="f32, f32", entry="loops", **_OWN)
def kernel_loops(x: Array, y: Array, steps: Array) -> Any:
    carried = y + 0.5 * x * int(steps)
    for _ in range(int(steps)):
        y = np.tanh(y) + 0.5 * x + x
    return carried, y


@case(f32(24), i1(), results="f32, f32", entry="parts", **_OWN)
def kernel_parts(x: Array, many: Array) -> Any:
    y = np.exp(x)
    first, second = y.copy(), x.copy()
    if many:
        first[2:22] += 2 * np.arange(20)
    second[3:23] = np.arange(20) + 2 * y[2:22]
    return first, second


@case(f32("n"), f32("n"), results="f32, f32", entry="functions", **_OWN)
def kernel_functions(x: Array, y: Array) -> Any:
    return np.abs(x + y), np.abs(x + np.abs(x + y))


@case(f32(24), results="f32", entry="pipelined", **_OWN)
def kernel_pipelined(x: Array) -> Any:
    return np.tanh(3 * x)


@case(f32("n"), i1(), index(low=0, high=4), results="f32, f32, f32", entry="branches", **_OWN)
def kernel_branches(x: Array, flag: Array, steps: Array) -> Any:
    start = carried = np.exp(x)
    for _ in range(int(steps)):
        carried = carried + (start if flag else carried)
    return start, start + x if flag else start, carried


@case(f32(8), results="f32, f32", entry="reused", **_OWN)
def kernel_reused(x: Array) -> Any:
    return np.exp(x) + 3, np.full(8, 3.0)


@case(f32("n", 6), f32(9, "k"), results="f32", entry="blocks_of_matrices", sizes=_PARTS, **_OWN)
def kernel_blocks(x: Array, w: Array) -> Any:
    result = np.sin(w)
    result[3:7, : len(x)] = np.exp(x)[:, 1:5].T
    return result


# ---- copies that move ----


@case(f32("n"), index(low=0, high=4), program="moved_copies", entry="carried", results="f32")
def carried(x: Array, steps: Array) -> Any:
    for _ in range(int(steps) ** 2):
        x = np.sin(x)
    return x


@case(f32("n"), f32("n"), index(low=0, high=5), i1(), program="moved_copies", entry="passed_round", results="f32")
def passed_round(x: Array, y: Array, steps: Array, flag: Array) -> Any:
    for _ in range(int(steps)):
        x, y = y, x + y if flag else x - y
    return y


@case(f32("n"), index(low=0, high=3), program="moved_copies", entry="switched", results="f32")
def switched(x: Array, n: Array) -> Any:
    return (np.tanh, np.sin, np.array)[int(n)](np.abs(x))


@case(
    *(f32("n"), f32("n"), index(low=0, high=4), i1()),
    program="moved_copies",
    entry="mixed",
    results="f32, f32",
)
def mixed(x: Array, w: Array, steps: Array, flag: Array) -> Any:
    p, q = x, x
    for _ in range(int(steps)):
        p, q = p * w if flag else np.sin(w), np.sin(np.cos(q))
    return p, q
