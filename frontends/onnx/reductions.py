"""Reductions, cumulative sums and products, softmax and norms."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np

from devscope.frontends.onnx.builder import Builder, Value
from devscope.frontends.onnx.graph import Node, operator
from devscope.frontends.onnx.types import Refused, is_float

Reduction = Callable[[Builder, Value, Sequence[int], bool], Value]


def _plain(name: str) -> Reduction:
    return lambda b, x, axes, keep: b.reduce(name, x, axes, keep)


def _mean(b: Builder, x: Value, axes: Sequence[int], keep: bool) -> Value:
    return b.binary("divide", b.reduce("add", x, axes, keep), _count(x, axes))


def _count(x: Value, axes: Sequence[int]) -> int:
    return math.prod(x.shape[axis] for axis in axes)


def _log_sum_exp(b: Builder, x: Value, axes: Sequence[int], keep: bool) -> Value:
    """With the largest taken out, where it is finite: sums of exponentials do not overflow."""
    largest = b.reduce("maximum", x, axes, True)
    finite = b.op(
        f"stablehlo.is_finite {largest.name} : ({largest.type}) -> {largest.type.replace(largest.element, 'i1')}",
        "i1",
        largest.shape,
    )
    base = b.select(finite, largest, 0)
    total = b.reduce("add", b.unary("exponential", b.binary("subtract", x, base)), axes, True)
    result = b.binary("add", b.unary("log", total), base)
    return result if keep else b.reshape(result, [e for a, e in enumerate(x.shape) if a not in axes])


def _extreme(name: str) -> Reduction:
    def reduce(b: Builder, x: Value, axes: Sequence[int], keep: bool) -> Value:
        return b.reduce({"maximum": "or", "minimum": "and"}[name] if x.element == "i1" else name, x, axes, keep)

    return reduce


_REDUCTIONS: dict[str, Reduction] = {
    "ReduceSum": _plain("add"),
    "ReduceProd": _plain("multiply"),
    "ReduceMax": _extreme("maximum"),
    "ReduceMin": _extreme("minimum"),
    "ReduceMean": _mean,
    "ReduceL1": lambda b, x, axes, keep: b.reduce("add", b.unary("abs", x), axes, keep),
    "ReduceL2": lambda b, x, axes, keep: _root(b, b.reduce("add", b.binary("multiply", x, x), axes, keep)),
    "ReduceSumSquare": lambda b, x, axes, keep: b.reduce("add", b.binary("multiply", x, x), axes, keep),
    "ReduceLogSum": lambda b, x, axes, keep: _log(b, b.reduce("add", x, axes, keep)),
    "ReduceLogSumExp": _log_sum_exp,
}


def _root(b: Builder, x: Value) -> Value:
    if is_float(x.element):
        return b.unary("sqrt", x)
    return b.convert(b.unary("sqrt", b.convert(x, "f64")), x.element)


def _log(b: Builder, x: Value) -> Value:
    if is_float(x.element):
        return b.unary("log", x)
    return b.convert(b.unary("log", b.convert(x, "f64")), x.element)


@operator(*_REDUCTIONS)
def reduces(n: Node) -> Value:
    b, x, keep = n.b, n[0], bool(n.attr("keepdims", 1))
    reduction = _REDUCTIONS[n.proto.op_type]
    if n.has(1) and n.known(1) is None and n[1].size:
        return _reduce_at_run_time(n, reduction, keep)
    axes = [] if n.has(1) and n.known(1) is None else n.optional_integers("axes", 1)
    if not axes:
        if n.attr("noop_with_empty_axes", 0):
            return reduction(b, x, [], True) if n.proto.op_type != "ReduceLogSumExp" else x
        axes = [*range(x.rank)]
    return reduction(b, x, [axis % x.rank for axis in axes], keep)


def _reduce_at_run_time(n: Node, reduction: Reduction, keep: bool) -> Value:
    """Axes computed at run time: of those that give the declared shape, the ones that are asked for."""
    b, x, shape = n.b, n[0], n.declared_shape()
    fits: list[tuple[int, ...]] = []
    for axes in itertools.combinations(range(x.rank), n[1].size):
        rest = [1 if a in axes else e for a, e in enumerate(x.shape) if keep or a not in axes]
        if tuple(rest) == shape:
            fits.append(axes)
    if not fits:
        raise Refused(f"{n.proto.op_type} whose axes, computed at run time, fit no declared shape")
    asked = b.convert(n[1], "i64")
    asked = b.select(b.compare("LT", asked, 0), b.binary("add", asked, x.rank), asked)
    result = reduction(b, x, fits[0], keep)
    for axes in fits[1:]:
        same = b.full(True, "i1", [])
        for axis in axes:
            hit = b.reduce("or", b.compare("EQ", asked, axis), [0])
            same = b.binary("and", same, hit)
        result = b.select(same, reduction(b, x, axes, keep), result)
    return result


@operator("CumSum", "CumProd")
def cumulative(n: Node) -> Value:
    b, x = n.b, n[0]
    name = "add" if n.proto.op_type == "CumSum" else "multiply"
    if n.known(1) is not None:
        return _cumulate(n, x, n.integers(1, "axis")[0] % x.rank, name)
    axis = b.reshape(b.convert(n[1], "i64"), [])
    axis = b.select(b.compare("LT", axis, 0), b.binary("add", axis, x.rank), axis)
    result = _cumulate(n, x, 0, name)
    for other in range(1, x.rank):
        result = b.select(b.compare("EQ", axis, other), _cumulate(n, x, other, name), result)
    return result


def _cumulate(n: Node, x: Value, axis: int, name: str) -> Value:
    """In log n steps, each of which adds what is 1, 2, 4... places before."""
    b, extent = n.b, x.shape[axis]
    start = 0 if name == "add" else 1
    if n.attr("reverse", 0):
        x = b.reverse(x, [axis])
    low = [0] * x.rank
    if n.attr("exclusive", 0) and extent:
        low[axis] = 1
        x = b.pad(b.part(x, axis, 0, extent - 1), start, low, [0] * x.rank)
    step = 1
    while step < extent:
        low[axis] = step
        x = b.binary(name, x, b.pad(b.part(x, axis, 0, extent - step), start, low, [0] * x.rank))
        step *= 2
    return b.reverse(x, [axis]) if n.attr("reverse", 0) else x


def _on_axes(n: Node, default: int, apply: Callable[[Value, int], Value]) -> Value:
    """Before version 13 an axis is where a matrix is made of the operand."""
    x = n[0]
    if n.opset >= 13:
        return apply(x, n.attr("axis", -1) % max(1, x.rank))
    axis = n.attr("axis", default) % x.rank
    matrix = n.b.reshape(x, [math.prod(x.shape[:axis]), math.prod(x.shape[axis:])])
    return n.b.reshape(apply(matrix, 1), x.shape)


def softmax_of(b: Builder, x: Value, axis: int, log: bool = False) -> Value:
    shifted = b.binary("subtract", x, b.reduce("maximum", x, [axis], True))
    raised = b.unary("exponential", shifted)
    total = b.reduce("add", raised, [axis], True)
    return b.binary("subtract", shifted, b.unary("log", total)) if log else b.binary("divide", raised, total)


@operator("Softmax", "LogSoftmax")
def softmax(n: Node) -> Value:
    return _on_axes(n, 1, lambda x, axis: softmax_of(n.b, x, axis, n.proto.op_type == "LogSoftmax"))


@operator("Hardmax")
def hardmax(n: Node) -> Value:
    b = n.b

    def apply(x: Value, axis: int) -> Value:
        places = b.iota(axis, x.shape)
        best = b.compare("EQ", x, b.reduce("maximum", x, [axis], True))
        first = b.reduce("minimum", b.select(best, places, x.shape[axis]), [axis], True)
        return b.convert(b.compare("EQ", places, first), x.element)

    return _on_axes(n, 1, apply)


@operator("LpNormalization")
def lp_normalization(n: Node) -> Value:
    b, x, axis = n.b, n[0], n.attr("axis", -1) % n[0].rank
    name = "ReduceL1" if n.attr("p", 2) == 1 else "ReduceL2"
    norm = _REDUCTIONS[name](b, x, [axis], True)
    norm = b.broadcast(norm, x.shape)
    return b.select(b.compare("EQ", norm, 0), 0.0 if norm.size < 0 else b.like(0, x), b.binary("divide", x, norm))


def moments(b: Builder, x: Value, axes: Sequence[int]) -> tuple[Value, Value]:
    """Mean, and variance of all, with the axes kept."""
    mean = _mean(b, x, axes, True)
    centred = b.binary("subtract", x, mean)
    return mean, _mean(b, b.binary("multiply", centred, centred), axes, True)


@operator("LayerNormalization")
def layer_normalization(n: Node) -> list[Value | None]:
    b, x = n.b, n[0]
    axes = [*range(n.attr("axis", -1) % x.rank, x.rank)]
    wide = b.convert(x, "f32") if x.element in ("f16", "bf16") and n.attr("stash_type", 1) == 1 else x
    mean, variance = moments(b, wide, axes)
    scale = b.unary("rsqrt", b.binary("add", variance, n.attr("epsilon", 1e-5)))
    y = b.convert(b.binary("multiply", b.binary("subtract", wide, mean), scale), x.element)
    y = b.binary("multiply", y, n[1])
    return [b.binary("add", y, n[2]) if n.has(2) else y, mean, scale]


def _channels(b: Builder, x: Value, rank: int) -> Value:
    return b.reshape(x, [x.size, *[1] * (rank - 2)])


@operator("InstanceNormalization")
def instance_normalization(n: Node) -> Value:
    b, x = n.b, n[0]
    mean, variance = moments(b, x, [*range(2, x.rank)])
    return _normalised(n, x, mean, variance, 1e-5)


def _normalised(n: Node, x: Value, mean: Value, variance: Value, epsilon: float) -> Value:
    b = n.b
    scale = b.unary("rsqrt", b.binary("add", variance, n.attr("epsilon", epsilon)))
    y = b.binary("multiply", b.binary("subtract", x, mean), scale)
    y = b.binary("multiply", y, _channels(b, n[1], x.rank))
    return b.binary("add", y, _channels(b, n[2], x.rank))


@operator("BatchNormalization")
def batch_normalization(n: Node) -> list[Value]:
    b, x = n.b, n[0]
    mean, variance = n[3], n[4]
    if n.opset < 14 and sum(1 for name in n.proto.output if name) > 1:
        raise Refused("BatchNormalization in training, of a version before 14")
    if not n.attr("training_mode", 0):
        rank = max(2, x.rank)
        return [_normalised(n, x, _channels(b, mean, rank), _channels(b, variance, rank), 1e-5)]
    now, spread = moments(b, x, [axis for axis in range(x.rank) if axis != 1])
    keep = n.attr("momentum", 0.9)
    running = [
        b.binary("add", b.binary("multiply", old, keep), b.binary("multiply", b.reshape(new, old.shape), 1 - keep))
        for old, new in ((mean, now), (variance, spread))
    ]
    return [_normalised(n, x, now, spread, 1e-5), *running]


@operator("LRN")
def local_response_normalization(n: Node) -> Value:
    b, x, size = n.b, n[0], n.attr("size")
    pads = [(0, 0)] * x.rank
    pads[1] = ((size - 1) // 2, size // 2)
    ones = [1] * x.rank
    sizes = [size if axis == 1 else 1 for axis in range(x.rank)]
    total = b.window("add", b.binary("multiply", x, x), sizes, ones, ones, pads)
    base = b.binary("add", b.binary("multiply", total, n.attr("alpha", 1e-4) / size), n.attr("bias", 1.0))
    return b.binary("divide", x, b.binary("power", base, n.attr("beta", 0.75)))


@operator("Det")
def determinant(n: Node) -> Value:
    """By Laplace's rule on columns, over subsets of rows: small matrices only."""
    b, x = n.b, n[0]
    size = x.shape[-1]
    if size > 8:
        raise Refused("Det of matrices larger than 8x8")
    rank = x.rank
    cells = [[b.at(b.at(x, rank - 1, c), rank - 2, r) for c in range(size)] for r in range(size)]
    minors: dict[tuple[int, ...], Value] = {(): b.full(1, x.element, x.shape[:-2])}
    for column in range(size):
        now: dict[tuple[int, ...], Value] = {}
        for rows in itertools.combinations(range(size), column + 1):
            total: Value | None = None
            for place, row in enumerate(rows):
                term = b.binary("multiply", cells[row][column], minors[rows[:place] + rows[place + 1 :]])
                odd = (place + column) % 2 == 1
                total = (
                    (b.unary("negate", term) if odd else term)
                    if total is None
                    else b.binary("subtract" if odd else "add", total, term)
                )
            assert total is not None
            now[rows] = total
        minors = now
    return minors[tuple(range(size))]


@operator("ai.onnx.preview.training.Momentum")
def momentum(n: Node) -> list[Value]:
    b = n.b
    count = (len(n) - 2) // 3
    rate, step = n[0], n[1]
    alpha, beta, norm = n.attr("alpha"), n.attr("beta"), n.attr("norm_coefficient")
    new_x: list[Value] = []
    new_v: list[Value] = []
    for number in range(count):
        x, g, v = (n[2 + number + part * count] for part in range(3))
        g = b.binary("add", b.binary("multiply", x, norm), g)
        first = b.compare("GT", step, 0)
        weight = b.select(first, b.scalar(beta, x.element), b.scalar(1, x.element))
        v = b.binary("add", b.binary("multiply", v, alpha), b.binary("multiply", g, weight))
        move = v
        if n.attr("mode") == "nesterov":
            move = b.binary("add", g, b.binary("multiply", v, alpha))
        new_x.append(b.binary("subtract", x, b.binary("multiply", move, rate)))
        new_v.append(v)
    return [*new_x, *new_v]


@operator("ai.onnx.preview.training.Adagrad")
def adagrad(n: Node) -> list[Value]:
    b = n.b
    count = (len(n) - 2) // 3
    steps = b.convert(n[1], n[0].element)
    rate = b.binary("divide", n[0], b.binary("add", b.binary("multiply", steps, n.attr("decay_factor", 0.0)), 1))
    xs: list[Value] = []
    hs: list[Value] = []
    for number in range(count):
        x, g, h = (n[2 + number + part * count] for part in range(3))
        g = b.binary("add", b.binary("multiply", x, n.attr("norm_coefficient", 0.0)), g)
        h = b.binary("add", h, b.binary("multiply", g, g))
        root = b.binary("add", b.unary("sqrt", h), n.attr("epsilon", 1e-6))
        xs.append(b.binary("subtract", x, b.binary("divide", b.binary("multiply", g, rate), root)))
        hs.append(h)
    return [*xs, *hs]


@operator("ai.onnx.preview.training.Adam")
def adam(n: Node) -> list[Value]:
    b = n.b
    count = (len(n) - 2) // 4
    alpha, beta = n.attr("alpha", 0.9), n.attr("beta", 0.999)
    rate = n[0]
    steps = b.convert(n[1], rate.element)
    one = b.scalar(1, rate.element)
    down = [b.binary("subtract", one, b.binary("power", b.scalar(c, rate.element), steps)) for c in (alpha, beta)]
    adjusted = b.binary("multiply", rate, b.binary("divide", b.unary("sqrt", down[1]), down[0]))
    adjusted = b.select(b.compare("GT", steps, 0), adjusted, rate)
    made: list[list[Value]] = [[], [], []]
    for number in range(count):
        x, g, v, h = (n[2 + number + part * count] for part in range(4))
        g = b.binary("add", b.binary("multiply", x, n.attr("norm_coefficient", 0.0)), g)
        v = b.binary("add", b.binary("multiply", v, alpha), b.binary("multiply", g, 1 - alpha))
        squares = b.binary("multiply", b.binary("multiply", g, g), 1 - beta)
        h = b.binary("add", b.binary("multiply", h, beta), squares)
        root = b.binary("add", b.unary("sqrt", h), n.attr("epsilon", 1e-6))
        x = b.binary("subtract", x, b.binary("divide", b.binary("multiply", v, adjusted), root))
        x = b.binary("multiply", x, 1 - n.attr("norm_coefficient_post", 0.0))
        for kind, value in zip(made, (x, v, h), strict=True):
            kind.append(value)
    return [one for kind in made for one in kind]


def windows_of(kind: str, size: int, periodic: bool) -> np.ndarray:
    count = size if periodic else size - 1
    angle = 2 * np.pi * np.arange(size) / count
    if kind == "HannWindow":
        return np.sin(angle / 2) ** 2
    if kind == "HammingWindow":
        return 25 / 46 - 21 / 46 * np.cos(angle)
    return 0.42 - 0.5 * np.cos(angle) + 0.08 * np.cos(2 * angle)


@operator("HannWindow", "HammingWindow", "BlackmanWindow")
def window(n: Node) -> Value:
    from devscope.frontends.onnx.types import element_of

    (size,) = n.declared_shape() if n.known(0) is None else n.integers(0, "size")
    found = windows_of(n.proto.op_type, size, bool(n.attr("periodic", 1)))
    return n.b.constant(found, element_of(n.attr("output_datatype", 1)))
