"""Poolings and transposed convolutions of sizes known at run time only, whose windows torch-mlir lays elsewhere."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from devscope.frontends.onnx.images import filled
from devscope.frontends.onnx.rewriter import Writer, rewrites
from devscope.frontends.onnx.types import Refused

Ends = tuple[int | str, int | str]
"""How much is put before and behind: numbers, or scalars that are computed."""
_END = 1 << 31
"""Of a Slice: behind the last."""


class Windows:
    """Those of a pooling: of every dimension size, stride, dilation and padding."""

    def __init__(self, w: Writer) -> None:
        self.w, self.kernel = w, list(w.attr("kernel_shape"))
        count = len(self.kernel)
        self.strides: list[int] = w.attr("strides") or [1] * count
        self.dilations: list[int] = w.attr("dilations") or [1] * count
        self.ceil = bool(w.attr("ceil_mode", 0))
        self.mode = w.attr("auto_pad", "NOTSET")
        given = w.attr("pads") if self.mode in ("NOTSET", "") else None
        flat: list[int] = given or [0] * 2 * count
        self.is_same = self.mode.startswith("SAME")
        self.ends: list[Ends] = [(flat[axis], flat[axis + count]) for axis in range(count)]
        if self.is_same:
            self.ceil = False  # as many windows as strides begin
            self.ends = [self._same(axis) for axis in range(count)]

    def _same(self, axis: int) -> Ends:
        w, stride = self.w, self.strides[axis]
        extent = w.shape(0)[2 + axis]
        reach = (self.kernel[axis] - 1) * self.dilations[axis] + 1
        if isinstance(extent, int):
            total = max(0, (-(-extent // stride) - 1) * stride + reach - extent)
            return (
                (total // 2, total - total // 2) if self.mode == "SAME_UPPER" else (total - total // 2, total // 2)
            )
        found, (one, step, two) = w.extent(w[0], 2 + axis), (w.constant(k, np.int64) for k in (1, stride, 2))
        begun = w.op("Div", w.op("Sub", w.op("Add", found, step), one), step)
        spanned = w.op("Add", w.op("Mul", w.op("Sub", begun, one), step), w.constant(reach, np.int64))
        whole = w.op("Max", w.op("Sub", spanned, found), w.constant(0, np.int64))
        half = w.op("Div", whole, two)
        rest = w.op("Sub", whole, half)
        return (half, rest) if self.mode == "SAME_UPPER" else (rest, half)

    @property
    def is_plain(self) -> bool:
        """Whether torch-mlir lays them so: as much before as behind."""
        return all(isinstance(low, int) and low == high for low, high in self.ends)

    @property
    def plain_pads(self) -> list[int]:
        return [int(low) for low, _ in self.ends] * 2

    def padded(self, x: str, filler: str, behind: str) -> str:
        """``behind`` is what windows reach that ``ceil_mode`` adds."""
        w = self.w
        fixed = [all(isinstance(end, int) for end in ends) for ends in self.ends]
        pairs = [ends if is_fixed else (0, 0) for ends, is_fixed in zip(self.ends, fixed, strict=True)]
        pads = [0, 0, *(low for low, _ in pairs), 0, 0, *(high for _, high in pairs)]
        x = w.op("Pad", x, w.constant(pads, np.int64), filler) if any(pads) else x
        for axis, (ends, is_fixed) in enumerate(zip(self.ends, fixed, strict=True), 2):
            x = x if is_fixed else filled(w, x, axis, filler, [str(end) for end in ends])
        if self.ceil and max(self.strides) > 1:
            more = [*[0] * (4 + len(self.kernel)), *(stride - 1 for stride in self.strides)]
            x = w.op("Pad", x, w.constant(more, np.int64), behind)
        return x

    def begun(self, pooled: str) -> str:
        """Without the windows that begin behind the image, which ``ceil_mode`` does not have."""
        w = self.w
        for axis, (stride, (low, _)) in enumerate(zip(self.strides, self.ends, strict=True), 2):
            if self.ceil and stride > 1:
                most = w.op("Add", w.extent(w[0], axis), w.constant(int(low) + stride - 1, np.int64))
                end = w.reshape(w.op("Div", most, w.constant(stride, np.int64)), 1)
                pooled = w.op("Slice", pooled, w.constant([0], np.int64), end, w.constant([axis], np.int64))
        return pooled

    def attributes(self) -> dict[str, Any]:
        found: dict[str, Any] = {"kernel_shape": self.kernel, "strides": self.strides}
        return {**found, "dilations": self.dilations} if set(self.dilations) != {1} else found


@rewrites("MaxPool")
def _max_pool(w: Writer) -> None:
    """torch-mlir pads as much behind as before, and counts indices from the beginning of an image's channel."""
    windows, x = Windows(w), w[0]
    more: dict[str, Any] = {}
    if windows.is_plain:
        more = {"pads": windows.plain_pads, "ceil_mode": int(windows.ceil)}
    else:
        filler = w.number(-np.inf if w.dtype.kind not in "iu" else np.iinfo(w.dtype).min)
        x = windows.padded(x, filler, filler)
    names = w.several("MaxPool", x, count=1 + w.wants(1), **windows.attributes(), **more)
    if not windows.is_plain:
        names = [windows.begun(name) for name in names]
    w.op("Identity", names[0], result=0)
    if w.wants(1):
        w.op("Identity", _in_all(windows, x, names[1]), result=1)


def _in_all(windows: Windows, padded: str, index: str) -> str:
    """Indices in a padded channel as those in the whole tensor."""
    w, axes = windows.w, range(2, 2 + len(windows.kernel))
    extents = [w.extent(w[0], axis) for axis in axes]
    column = bool(w.attr("storage_order", 0))
    if column and len(axes) > 2:
        raise Refused("MaxPool of shapes known at run time only, of indices by columns of more than two axes")
    if column or not windows.is_plain:
        places: list[str] = []
        for axis, (low, _) in reversed([*zip(axes, windows.ends, strict=True)]):
            extent = w.extent(padded, axis)
            before = w.constant(low, np.int64) if isinstance(low, int) else low
            within = w.op(
                "Sub", w.op("Mod", index, extent), w.constant(0, np.int64) if windows.is_plain else before
            )
            index = w.op("Div", index, extent)
            places.insert(0, within)
        order = [*range(len(places))]
        order = order[::-1] if column else order
        index = places[order[0]]
        for number in order[1:]:
            index = w.op("Add", w.op("Mul", index, extents[number]), places[number])
    size = extents[0]
    for extent in extents[1:]:
        size = w.op("Mul", size, extent)
    images, channels = (w.range(w.extent(w[0], axis)) for axis in (0, 1))
    first = w.op("Mul", w.unsqueeze(images, *range(1, len(axes) + 2)), w.extent(w[0], 1))
    first = w.op("Add", first, w.unsqueeze(channels, *range(1, len(axes) + 1)))
    return w.op("Add", index, w.op("Mul", first, size))


@rewrites("AveragePool")
def _average_pool(w: Writer) -> None:
    """Windows that reach over the end (``ceil_mode``), which torch-mlir weighs in another way, and computed pads."""
    windows = Windows(w)
    counted = w.attr("count_include_pad", 0)
    flat = [end for side in (0, 1) for end in [ends[side] for ends in windows.ends] if isinstance(end, int)]
    if not windows.ceil and len(flat) == 2 * len(windows.kernel):
        w.op("AveragePool", w[0], result=0, pads=flat, count_include_pad=counted, **windows.attributes())
        return
    ones = w.op("Expand", w.number(1), w.op("Shape", w[0]))
    sides: list[str] = []
    for x, filler in ((w[0], 0), (ones, counted)):
        padded = windows.padded(x, w.number(filler), w.number(0))
        pooled = w.op("AveragePool", padded, count_include_pad=1, **windows.attributes())
        sides.append(windows.begun(pooled))
    w.op("Div", *sides, result=0)


@rewrites("LpPool")
def _lp_pool(w: Writer) -> None:
    windows, p = Windows(w), w.attr("p", 2)
    raised = w.op("Pow", w.op("Abs", w[0]), w.number(p))
    padded = windows.padded(raised, w.number(0), w.number(0))
    mean = windows.begun(w.op("AveragePool", padded, **windows.attributes()))
    w.op("Pow", w.op("Mul", mean, w.number(math.prod(windows.kernel))), w.number(1 / p), result=0)


@rewrites("MaxUnpool")
def _max_unpool(w: Writer) -> None:
    """Of a wanted shape, what is more stands behind."""
    windows, rank = Windows(w), w.rank(0)
    sizes: list[str] = [w.extent(w[0], axis) for axis in (0, 1)]
    for axis, (size, stride, ends) in enumerate(
        zip(windows.kernel, windows.strides, windows.ends, strict=True), 2
    ):
        steps = w.op("Mul", w.extent(w[0], axis), w.constant(stride, np.int64))
        sizes.append(w.op("Add", steps, w.constant(size - stride - sum(map(int, ends)), np.int64)))
    shape = w.vector(*sizes)
    none = w.op("Expand", w.number(0), w.op("ReduceProd", shape, keepdims=1))
    found = w.op("ScatterElements", none, w.reshape(w[1], -1), w.reshape(w[0], -1), axis=0)
    found = w.op("Reshape", found, shape)
    if w.has(2):
        zero, more = w.constant(0, np.int64), w.op("Sub", w[2], shape)
        for axis in range(2, rank):
            behind = w.op("Gather", more, w.constant(axis, np.int64), axis=0)
            found = filled(w, found, axis, w.number(0), [zero, behind])
    w.op("Identity", found, result=0)


@rewrites("Col2Im")
def _columns_added(w: Writer) -> None:
    """One axis after the other: at each place, what each place of the block that may stand there has."""
    block = w.data(2)
    if block is None:
        raise Refused("Col2Im of shapes known at run time only, of a block whose size is")
    count = len(block)
    strides, dilations = w.attr("strides") or [1] * count, w.attr("dilations") or [1] * count
    pads, one = w.attr("pads") or [0] * 2 * count, w.constant(1, np.int64)
    sizes = [w.op("Gather", w.to(w[1], np.int64), w.constant(axis, np.int64), axis=0) for axis in range(count)]
    steps: list[str] = []
    for axis, size in enumerate(sizes):
        rest = pads[axis] + pads[axis + count] - (int(block[axis]) - 1) * dilations[axis] - 1
        begun = w.op("Div", w.op("Add", size, w.constant(rest, np.int64)), w.constant(strides[axis], np.int64))
        steps.append(w.op("Add", begun, one))
    channels = w.op("Div", w.extent(w[0], 1), w.constant(math.prod(map(int, block)), np.int64))
    x = w.shaped(w[0], w.extent(w[0], 0), channels, *map(int, block), *steps)
    for axis in range(count):
        stride, total = w.constant(strides[axis], np.int64), ""
        behind = [*[0] * (2 + count), 1, *[0] * (count - 1 - axis)]
        # Behind the last block is one of zeros, for places where none stands.
        x = w.op("Pad", x, w.constant([*[0] * len(behind), *behind], np.int64), w.number(0))
        for tap in range(int(block[axis])):
            away = w.op("Add", w.range(sizes[axis]), w.constant(pads[axis] - tap * dilations[axis], np.int64))
            step = w.op("Max", w.op("Div", away, stride), w.constant(0, np.int64))
            stands = w.op("Equal", w.op("Mul", step, stride), away)
            step = w.op("Min", w.op("Where", stands, step, steps[axis]), steps[axis])
            part = w.op("Gather", w.op("Gather", x, w.constant(tap, np.int64), axis=2), step, axis=1 + count)
            total = w.op("Add", total, part) if total else part
        x = total
    w.op("Identity", x, result=0)


@rewrites("ConvTranspose")
def _transposed_convolution(w: Writer) -> None:
    """Of groups, or with other pads before than behind: a convolution of what has zeros between its elements."""
    count, groups, weights = w.rank(0) - 2, w.attr("group", 1), w.data(1)
    strides, dilations = w.attr("strides") or [1] * count, w.attr("dilations") or [1] * count
    more, mode = w.attr("output_padding") or [0] * count, w.attr("auto_pad", "NOTSET")
    flat = w.attr("pads") or [0] * 2 * count
    is_plain = mode in ("NOTSET", "", "VALID") and (mode == "VALID" or flat[:count] == flat[count:])
    if weights is None or w.attr("output_shape") or (is_plain and groups == 1):
        w.op("ConvTranspose", *w.node.input, result=0, **w.attributes)
        return
    kernel = weights.shape[2:]
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    pads = [(0, 0) if mode == "VALID" else (flat[axis], flat[axis + count]) for axis in range(count)]
    if mode.startswith("SAME"):
        totals = [r - s + m for r, s, m in zip(reach, strides, more, strict=True)]
        low = [total // 2 if mode == "SAME_UPPER" else total - total // 2 for total in totals]
        pads = [(one, total - one) for one, total in zip(low, totals, strict=True)]
    x, zero = w[0], w.number(0)
    for axis, stride in enumerate(strides, 2):
        x = _spread(w, x, axis, stride, zero) if stride > 1 else x
    # What is cut off, which a convolution cannot, is cut from x: where it is less than a window reaches there is none.
    around = [(r - 1 - lo, r - 1 - hi + m) for r, (lo, hi), m in zip(reach, pads, more, strict=True)]
    for axis, (first, behind) in enumerate(around, 2):
        if first < 0 or behind < 0:
            x = w.part(x, axis, max(0, -first), min(0, behind) or _END)
    around = [(max(0, first), max(0, behind)) for first, behind in around]
    rows, columns = weights.shape[0] // groups, weights.shape[1]
    turned = np.moveaxis(weights.reshape(groups, rows, columns, *kernel), 1, 2)
    turned = np.flip(turned.reshape(groups * columns, rows, *kernel), tuple(range(2, 2 + count)))
    outer = [end for side in (0, 1) for end in [ends[side] for ends in around]]
    given = [x, w.graph.constant(np.ascontiguousarray(turned)), *w.node.input[2:]]
    w.op("Conv", *given, result=0, group=groups, dilations=dilations, pads=outer, kernel_shape=[*kernel])


def _spread(w: Writer, x: str, axis: int, stride: int, zero: str) -> str:
    """With ``stride`` - 1 zeros between elements."""
    step, behind = w.constant(stride, np.int64), w.rank(0) - 1 - axis
    places = w.range(w.op("Sub", w.op("Mul", w.extent(x, axis), step), w.constant(stride - 1, np.int64)))
    within = w.op("Div", places, step)
    is_own = w.op("Equal", w.op("Mul", within, step), places)
    is_own = w.unsqueeze(is_own, *range(1, behind + 1)) if behind else is_own
    return w.op("Where", is_own, w.op("Gather", x, within, axis=axis), zero)


@rewrites("LRN")
def _local_response(w: Writer) -> None:
    """torch-mlir puts dimensions of any size together."""
    size, rank = w.attr("size"), w.rank(0)
    low = (size - 1) // 2
    pads = [0, low, *[0] * (rank - 1), size - 1 - low, *[0] * (rank - 2)]
    squares = w.op("Pad", w.op("Mul", w[0], w[0]), w.constant(pads, np.int64), w.number(0))
    total = w.part(squares, 1, 0, 1 - size) if size > 1 else squares
    for first in range(1, size):
        total = w.op("Add", total, w.part(squares, 1, first, first + 1 - size or _END))
    scaled = w.op("Mul", total, w.number(w.attr("alpha", 1e-4) / size))
    around = w.op("Add", scaled, w.number(w.attr("bias", 1.0)))
    w.op("Div", w[0], w.op("Pow", around, w.number(w.attr("beta", 0.75))), result=0)
