"""Products of matrices, convolutions, pooling and what is quantised."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from devscope.frontends.onnx.builder import SMALL_FLOATS, Builder, Value, limits, tensor_type
from devscope.frontends.onnx.einsums import terms_of
from devscope.frontends.onnx.elementwise import to_float8
from devscope.frontends.onnx.graph import Node, operator
from devscope.frontends.onnx.types import Refused, common_shape, element_of, is_float, is_unsigned


def matmul_of(b: Builder, x: Value, y: Value, element: str | None = None) -> Value:
    """``numpy.matmul``."""
    left, right = x.rank == 1, y.rank == 1
    x = b.reshape(x, [1, *x.shape]) if left else x
    y = b.reshape(y, [*y.shape, 1]) if right else y
    batch = common_shape(x.shape[:-2], y.shape[:-2])
    x, y = b.broadcast(x, [*batch, *x.shape[-2:]]), b.broadcast(y, [*batch, *y.shape[-2:]])
    outer = [*range(len(batch))]
    result = b.dot(x, y, (outer, outer), ([x.rank - 1], [y.rank - 2]), element)
    shape = [*batch, *([] if left else [x.shape[-2]]), *([] if right else [y.shape[-1]])]
    return b.reshape(result, shape)


@operator("MatMul")
def matmul(n: Node) -> Value:
    return matmul_of(n.b, n[0], n[1])


@operator("Gemm")
def gemm(n: Node) -> Value:
    b = n.b
    x = b.transpose(n[0], [1, 0]) if n.attr("transA", 0) else n[0]
    y = b.transpose(n[1], [1, 0]) if n.attr("transB", 0) else n[1]
    result = matmul_of(b, x, y)
    alpha, beta = n.attr("alpha", 1.0), n.attr("beta", 1.0)
    result = result if alpha == 1 else b.binary("multiply", result, alpha)
    if not n.has(2):
        return result
    return b.binary("add", result, n[2] if beta == 1 else b.binary("multiply", n[2], beta))


@operator("Einsum")
def einsum(n: Node) -> Value:
    b = n.b
    values = n.inputs
    terms, right = terms_of(n.attr("equation"), [value.rank for value in values])
    term, value = _diagonal(b, terms[0], values[0])
    for other, operand in zip(terms[1:], values[1:], strict=True):
        other, operand = _diagonal(b, other, operand)
        term, value = _einsum_pair(b, term, value, other, operand)
    gone = [axis for axis, letter in enumerate(term) if letter not in right]
    value = b.reduce("add", value, gone)
    term = "".join(letter for letter in term if letter in right)
    return b.transpose(value, [term.index(letter) for letter in right])


def _diagonal(b: Builder, term: str, value: Value) -> tuple[str, Value]:
    while len(set(term)) < len(term):
        letter = next(one for one in term if term.count(one) > 1)
        first = term.index(letter)
        second = term.index(letter, first + 1)
        rows, columns = b.iota(first, value.shape), b.iota(second, value.shape)
        value = b.reduce("add", b.select(b.compare("EQ", rows, columns), value, 0), [second])
        term = term[:second] + term[second + 1 :]
    return term, value


def _einsum_pair(b: Builder, one: str, x: Value, two: str, y: Value) -> tuple[str, Value]:
    """The product over all letters; none is summed."""
    letters = one + "".join(letter for letter in two if letter not in one)
    sizes = {**dict(zip(two, y.shape, strict=True)), **dict(zip(one, x.shape, strict=True))}
    for letter, extent in zip(two, y.shape, strict=True):
        sizes[letter] = max(sizes[letter], extent)
    parts: list[Value] = []
    for term, value in ((one, x), (two, y)):
        order = sorted(range(len(term)), key=lambda axis, term=term: letters.index(term[axis]))
        value = b.transpose(value, order)
        present = [letter for letter in letters if letter in term]
        wide = dict(zip(present, value.shape, strict=True))
        value = b.reshape(value, [wide.get(letter, 1) for letter in letters])
        parts.append(b.broadcast(value, [sizes[letter] for letter in letters]))
    return letters, b.binary("multiply", *parts)


# Windows.


def _paddings(
    n: Node, extents: Sequence[int], kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> list[tuple[int, int]]:
    count, mode = len(kernel), n.attr("auto_pad", "NOTSET")
    if mode in ("NOTSET", "", "VALID"):
        pads = n.attr("pads") or [0] * 2 * count
        pads = [0] * 2 * count if mode == "VALID" else pads
        return [(pads[axis], pads[axis + count]) for axis in range(count)]
    found: list[tuple[int, int]] = []
    for extent, k, s, d in zip(extents, kernel, strides, dilations, strict=True):
        total = max(0, (-(-extent // s) - 1) * s + (k - 1) * d + 1 - extent)
        small, large = total // 2, total - total // 2
        found.append((small, large) if mode == "SAME_UPPER" else (large, small))
    return found


def convolution_of(
    b: Builder,
    x: Value,
    w: Value,
    strides: Sequence[int],
    pads: Sequence[tuple[int, int]],
    dilations: Sequence[int],
    groups: int,
    element: str,
    spread: Sequence[int] | None = None,
) -> Value:
    """Operands as ONNX has them; ``spread``: dilations of ``x``. Sums are rounded once."""
    if element in SMALL_FLOATS:
        wide = convolution_of(b, x, w, strides, pads, dilations, groups, "f32", spread)
        return b.convert(wide, element)
    count = x.rank - 2
    spread = spread or [1] * count
    spatial = [
        ((e - 1) * g + 1 + lo + hi - ((k - 1) * d + 1)) // s + 1
        for e, g, (lo, hi), k, d, s in zip(x.shape[2:], spread, pads, w.shape[2:], dilations, strides, strict=True)
    ]
    axes = "".join(f", {axis}" for axis in range(count))
    shape = [x.shape[0], w.shape[0], *spatial]
    text = (
        f"stablehlo.convolution({x.name}, {w.name}) dim_numbers = [b, f{axes}]x[o, i{axes}]->[b, f{axes}], window = "
        f"{{stride = {[*strides]}, pad = {[list(p) for p in pads]}, lhs_dilate = {[*spread]}, rhs_dilate = "
        f"{[*dilations]}}} {{batch_group_count = 1 : i64, feature_group_count = {groups} : i64}} : "
        f"({x.type}, {w.type}) -> {tensor_type(element, shape)}"
    )
    return b.op(text, element, shape)


def _convolution(n: Node, x: Value, w: Value) -> Value:
    count = x.rank - 2
    strides, dilations = n.attr("strides") or [1] * count, n.attr("dilations") or [1] * count
    pads = _paddings(n, x.shape[2:], w.shape[2:], strides, dilations)
    return convolution_of(n.b, x, w, strides, pads, dilations, n.attr("group", 1), x.element)


def _biased(n: Node, y: Value, number: int) -> Value:
    bias = n.get(number)
    return y if bias is None else n.b.binary("add", y, n.b.reshape(bias, [bias.size, *[1] * (y.rank - 2)]))


@operator("Conv")
def convolution(n: Node) -> Value:
    return _biased(n, _convolution(n, n[0], n[1]), 2)


@operator("ConvTranspose")
def transposed_convolution(n: Node) -> Value:
    b, x, w, groups = n.b, n[0], n[1], n.attr("group", 1)
    count = x.rank - 2
    strides, dilations = n.attr("strides") or [1] * count, n.attr("dilations") or [1] * count
    more = n.attr("output_padding") or [0] * count
    kernel, extents = w.shape[2:], x.shape[2:]
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    full = [(e - 1) * s + r for e, s, r in zip(extents, strides, reach, strict=True)]
    asked, mode = n.attr("output_shape"), n.attr("auto_pad", "NOTSET")
    if asked is None and mode.startswith("SAME"):
        asked = [e * s for e, s in zip(extents, strides, strict=True)]
    if asked is not None:
        totals = [f + m - a for f, m, a in zip(full, more, list(asked)[-count:], strict=True)]
        halves = [total // 2 for total in totals]
        low = halves if mode == "SAME_UPPER" else [t - h for t, h in zip(totals, halves, strict=True)]
        pads = [(lo, t - lo) for lo, t in zip(low, totals, strict=True)]
    else:
        flat = n.attr("pads") or [0] * 2 * count
        pads = [(flat[axis], flat[axis + count]) for axis in range(count)]
    rows, columns = w.shape[0] // groups, w.shape[1]
    w = b.transpose(b.reshape(w, [groups, rows, columns, *kernel]), [0, 2, 1, *range(3, 3 + count)])
    w = b.reverse(b.reshape(w, [groups * columns, rows, *kernel]), [*range(2, 2 + count)])
    around = [(r - 1 - lo, r - 1 - hi + m) for r, (lo, hi), m in zip(reach, pads, more, strict=True)]
    y = convolution_of(b, x, w, [1] * count, around, dilations, groups, x.element, strides)
    return _biased(n, y, 2)


class _Windows:
    """The windows of a pooling: of every dimension size, stride, dilation and padding."""

    def __init__(self, n: Node, x: Value) -> None:
        self.kernel = list(n.attr("kernel_shape"))
        count = len(self.kernel)
        self.strides = list(n.attr("strides") or [1] * count)
        self.dilations = list(n.attr("dilations") or [1] * count)
        self.pads = _paddings(n, x.shape[2:], self.kernel, self.strides, self.dilations)
        self.extra = [0] * count
        for axis in range(count) if n.attr("ceil_mode", 0) else ():
            extent, (lo, hi), s = x.shape[2 + axis], self.pads[axis], self.strides[axis]
            reach = (self.kernel[axis] - 1) * self.dilations[axis] + 1
            out = -(-(extent + lo + hi - reach) // s) + 1
            if (out - 1) * s >= extent + lo:  # the last window would begin behind everything
                out -= 1
            self.extra[axis] = max(0, (out - 1) * s + reach - extent - lo - hi)

    def reduce(self, b: Builder, name: str, x: Value, padded: bool = True) -> Value:
        one = [1, 1]
        pads = [(lo, hi + e) for (lo, hi), e in zip(self.pads, self.extra, strict=True)]
        if not padded:
            pads = [(0, e) for e in self.extra]
        rest: list[tuple[int, int]] = [(0, 0), (0, 0)]
        return b.window(
            name, x, [*one, *self.kernel], [*one, *self.strides], [*one, *self.dilations], [*rest, *pads]
        )


@operator("MaxPool")
def max_pool(n: Node) -> list[Value]:
    b, x = n.b, n[0]
    windows = _Windows(n, x)
    if not n.wants(1):
        return [windows.reduce(b, "maximum", x)]
    order = [*range(x.rank)] if not n.attr("storage_order", 0) else [0, 1, *reversed(range(2, x.rank))]
    flat = b.transpose(
        b.reshape(b.iota(0, [x.size]), [x.shape[axis] for axis in order]), np.argsort(order).tolist()
    )
    low = [0, 0, *(lo for lo, _ in windows.pads)]
    high = [0, 0, *(hi + e for (_, hi), e in zip(windows.pads, windows.extra, strict=True))]
    lowest = -math.inf if is_float(x.element) else limits(x.element)[0]
    values, places = b.pad(x, lowest, low, high), b.pad(flat, 0, low, high)
    shape = windows.reduce(b, "maximum", x).shape
    best: tuple[Value, Value] | None = None
    for offset in itertools.product(*map(range, windows.kernel)):
        starts = [0, 0, *(o * d for o, d in zip(offset, windows.dilations, strict=True))]
        steps = [1, 1, *windows.strides]
        ends = [s + (e - 1) * t + 1 for s, e, t in zip(starts, shape, steps, strict=True)]
        value, place = (b.slice(one, starts, ends, steps) for one in (values, places))
        if best is None:
            best = value, place
            continue
        larger = b.compare("GT", value, best[0])
        best = b.select(larger, value, best[0]), b.select(larger, place, best[1])
    assert best is not None
    return [*best]


@operator("AveragePool")
def average_pool(n: Node) -> Value:
    b, x = n.b, n[0]
    windows = _Windows(n, x)
    total = windows.reduce(b, "add", x)
    if n.attr("count_include_pad", 0):
        ones = b.full(
            1, x.element, [1, 1, *(e + lo + hi for e, (lo, hi) in zip(x.shape[2:], windows.pads, strict=True))]
        )
        count = windows.reduce(b, "add", ones, padded=False)
    else:
        count = windows.reduce(b, "add", b.full(1, x.element, [1, 1, *x.shape[2:]]))
    return b.binary("divide", total, count)


@operator("LpPool")
def lp_pool(n: Node) -> Value:
    b, x, p = n.b, n[0], n.attr("p", 2)
    raised = b.binary("power", b.unary("abs", x), p)
    return b.binary("power", _Windows(n, x).reduce(b, "add", raised), 1 / p)


@operator("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def global_pool(n: Node) -> Value:
    b, x = n.b, n[0]
    axes = [*range(2, x.rank)]
    if n.proto.op_type == "GlobalMaxPool":
        return b.reduce("maximum", x, axes, True)
    if n.proto.op_type == "GlobalLpPool":
        p = n.attr("p", 2)
        total = b.reduce("add", b.binary("power", b.unary("abs", x), p), axes, True)
        return b.binary("power", total, 1 / p)
    return b.binary("divide", b.reduce("add", x, axes, True), math.prod(x.shape[2:]))


@operator("Col2Im")
def col2im(n: Node) -> Value:
    """Columns are added where they came from. A block computed at run time is one of those that fit the shapes."""
    b, x = n.b, n[0]
    image = n.integers(1, "image_shape") if n.known(1) is not None else [*n.declared_shape()[2:]]
    if n.known(2) is not None:
        return _columns_added(n, image, n.integers(2, "block_shape"))
    channels = n.declared_shape()[1]
    fits = [
        block
        for block in itertools.product(*(range(1, x.shape[1] + 1) for _ in image))
        if math.prod(block) * channels == x.shape[1] and math.prod(_steps(n, image, block)) == x.shape[2]
    ]
    if not fits:
        raise Refused("Col2Im whose block_shape, computed at run time, fits no declared shape")
    result = _columns_added(n, image, fits[0])
    for block in fits[1:]:
        same = b.compare("EQ", b.convert(n[2], "i64"), b.constant(np.array(block), "i64"))
        result = b.select(b.reduce("and", same, [0]), _columns_added(n, image, block), result)
    return result


def _steps(n: Node, image: Sequence[int], block: Sequence[int]) -> list[int]:
    """In how many places along each axis a block stands; 0 where it is larger than the padded image."""
    count = len(image)
    strides, dilations = n.attr("strides") or [1] * count, n.attr("dilations") or [1] * count
    pads = n.attr("pads") or [0] * 2 * count
    rest = [image[a] + pads[a] + pads[a + count] - (block[a] - 1) * dilations[a] - 1 for a in range(count)]
    return [max(0, extent // stride + 1) for extent, stride in zip(rest, strides, strict=True)]


def _columns_added(n: Node, image: Sequence[int], block: Sequence[int]) -> Value:
    """One padded slice for each place in the block."""
    b, x, count = n.b, n[0], len(image)
    strides, dilations = n.attr("strides") or [1] * count, n.attr("dilations") or [1] * count
    pads = n.attr("pads") or [0] * 2 * count
    padded = [image[a] + pads[a] + pads[a + count] for a in range(count)]
    steps = _steps(n, image, block)
    channels = x.shape[1] // math.prod(block)
    parts = b.reshape(x, [x.shape[0], channels, math.prod(block), *steps])
    total = b.full(0, x.element, [x.shape[0], channels, *padded])
    for number, offset in enumerate(itertools.product(*map(range, block))):
        low = [0, 0, *(o * d for o, d in zip(offset, dilations, strict=True))]
        reach = [(e - 1) * s + 1 for e, s in zip(steps, strides, strict=True)]
        high = [0, 0, *(p - lo - r for p, lo, r in zip(padded, low[2:], reach, strict=True))]
        part = b.at(parts, 2, number)
        total = b.binary("add", total, b.pad(part, 0, low, high, [0, 0, *(s - 1 for s in strides)]))
    starts = [0, 0, *pads[:count]]
    return b.slice(total, starts, [*total.shape[:2], *(s + e for s, e in zip(starts[2:], image, strict=True))])


# Quantised types.


def _along(n: Node, x: Value, operand: Value, axis: int, block: int) -> Value:
    """A scale or zero point as large as ``x``: one for all, one for each place of an axis, or one for each block."""
    b = n.b
    if operand.size == 1 and operand.rank <= 1:
        return b.broadcast(b.reshape(operand, []), x.shape)
    axis %= x.rank
    if operand.rank == 1 and not block:
        return b.broadcast_in_dim(operand, x.shape, [axis])
    if not block:
        raise Refused(f"{n.proto.op_type} with a scale of rank {operand.rank} and no block_size")
    between = [*operand.shape[: axis + 1], block, *operand.shape[axis + 1 :]]
    axes = [a for a in range(len(between)) if a != axis + 1]
    wide = b.broadcast_in_dim(operand, between, axes)
    shape = [*operand.shape]
    shape[axis] *= block
    return b.slice(b.reshape(wide, shape), [0] * x.rank, [*x.shape])


@operator("QuantizeLinear")
def quantize(n: Node) -> Value:
    b, x, scale = n.b, n[0], n[1]
    axis, block = n.attr("axis", 1), n.attr("block_size", 0)
    zero = n.get(2)
    to = element_of(n.attr("output_dtype")) if n.attr("output_dtype", 0) else zero.element if zero else "ui8"
    precision = n.attr("precision", 0)
    work = element_of(precision) if precision else "f32"
    if work not in ("f32", "f64"):
        raise Refused("QuantizeLinear with a precision other than f32")
    x = b.convert(x, work)
    y = b.binary("divide", x, _along(n, x, b.convert(scale, work), axis, block))
    if is_float(to):
        if zero is not None:
            y = b.binary("add", y, _along(n, x, b.convert(zero, work), axis, block))
        return to_float8(b, y, to, bool(n.attr("saturate", 1)))
    return _rounded(n, y, None if zero is None else _along(n, x, _as_float(b, zero), axis, block), to)


def _as_float(b: Builder, x: Value) -> Value:
    small = x.element in ("i4", "i2", "ui4", "ui2")
    x = b.convert(x, "ui8" if is_unsigned(x.element) else "i8") if small else x
    return b.convert(x, "f32")


def _rounded(n: Node, y: Value, zero: Value | None, to: str) -> Value:
    """Rounded to even, moved by the zero point, limited to the type."""
    b = n.b
    y = b.unary("round_nearest_even", y)
    y = y if zero is None else b.binary("add", y, zero)
    low, high = limits(to)
    y = b.binary("minimum", b.binary("maximum", y, low), high)
    y = b.convert(y, "i32")
    if to in ("i4", "i2", "ui4", "ui2"):
        y = b.convert(y, "ui8" if is_unsigned(to) else "i8")
    return b.convert(y, to)


@operator("DequantizeLinear")
def dequantize(n: Node) -> Value:
    b, x, scale = n.b, n[0], n[1]
    axis, block = n.attr("axis", 1), n.attr("block_size", 0)
    to = element_of(n.attr("output_dtype")) if n.attr("output_dtype", 0) else scale.element
    if x.element == "i32":
        y: Value = x
        y = b.binary("subtract", y, _along(n, x, n[2], axis, block)) if n.has(2) else y
        y = b.convert(y, "f32")
    else:
        y = _as_float(b, x)
        y = b.binary("subtract", y, _along(n, x, _as_float(b, n[2]), axis, block)) if n.has(2) else y
    return b.convert(b.binary("multiply", y, _along(n, x, b.convert(scale, "f32"), axis, block)), to)


@operator("DynamicQuantizeLinear")
def dynamic_quantize(n: Node) -> list[Value]:
    b, x = n.b, n[0]
    axes = [*range(x.rank)]
    low = b.binary("minimum", b.reduce("minimum", x, axes), 0)
    high = b.binary("maximum", b.reduce("maximum", x, axes), 0)
    scale = b.binary("divide", b.binary("subtract", high, low), 255)
    first = b.binary("divide", b.unary("negate", low), scale)
    zero = b.unary("round_nearest_even", b.binary("minimum", b.binary("maximum", first, 0), 255))
    y = _rounded(n, b.binary("divide", x, scale), b.broadcast(zero, x.shape), "ui8")
    return [y, scale, b.convert(b.convert(zero, "i32"), "ui8")]


def _centred(n: Node, x: Value, number: int, axis: int | None = None) -> Value:
    """Integers minus their zero point, as i32."""
    b = n.b
    wide = b.convert(x, "i32")
    if not n.has(number):
        return wide
    zero = b.convert(n[number], "i32")
    if zero.rank == 1 and zero.size > 1 and axis is not None:
        zero = b.broadcast_in_dim(zero, wide.shape, [axis % wide.rank])
    elif zero.rank <= 1 and zero.size == 1:
        zero = b.reshape(zero, [])
    return b.binary("subtract", wide, zero)


@operator("MatMulInteger")
def matmul_integer(n: Node) -> Value:
    return matmul_of(n.b, _centred(n, n[0], 2, -2), _centred(n, n[1], 3, -1))


@operator("ConvInteger")
def convolution_integer(n: Node) -> Value:
    return _convolution(n, _centred(n, n[0], 2), _centred(n, n[1], 3, 0))


def _requantised(n: Node, y: Value, scales: Sequence[Value], zero: Value, axis: int) -> Value:
    """``y``, sums of products, times the scales of the operands, by that of the result."""
    b = n.b
    factors = [b.convert(scale, "f32") for scale in scales]
    factors = [
        b.reshape(f, []) if f.size == 1 else b.broadcast_in_dim(f, y.shape, [axis % y.rank]) if f.rank == 1 else f
        for f in factors
    ]
    y = b.convert(y, "f32")
    factor = b.binary("divide", b.binary("multiply", factors[0], factors[1]), factors[2])
    y = b.binary("multiply", y, factor)
    zero_ = _as_float(b, zero)
    zero_ = b.reshape(zero_, []) if zero_.size == 1 else zero_
    return _rounded(n, y, b.broadcast(zero_, y.shape), zero.element)


@operator("QLinearMatMul")
def qlinear_matmul(n: Node) -> Value:
    if is_float(n[0].element):
        raise Refused("QLinearMatMul of floats of 8 bits")
    y = matmul_of(n.b, _centred(n, n[0], 2, -2), _centred(n, n[3], 5, -1))
    return _requantised(n, y, [n[1], n[4], n[6]], n[7], -1)


@operator("QLinearConv")
def qlinear_convolution(n: Node) -> Value:
    y = _biased(n, _convolution(n, _centred(n, n[0], 2), _centred(n, n[3], 5, 0)), 8)
    return _requantised(n, y, [n[1], n[4], n[6]], n[7], 1)
