"""Resize, and samples of images at computed places."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from devscope.frontends.onnx.builder import Builder, Value
from devscope.frontends.onnx.graph import Node, operator
from devscope.frontends.onnx.types import Refused, UnknownShape


@operator("Resize", "Upsample")
def resize(n: Node) -> Value:
    """One axis after the other: a product with a matrix of weights where places are known, else samples at places
    that are computed from the scales as the program runs."""
    b, x = n.b, n[0]
    old = n.proto.op_type == "Upsample" or n.opset < 11
    at_scales, at_sizes, at_roi = (1, -1, -1) if old else (2, 3, 1)
    axes = [axis % x.rank for axis in n.attr("axes") or range(x.rank)]
    mode = n.attr("mode", "nearest")
    kind = "asymmetric" if old else n.attr("coordinate_transformation_mode", "half_pixel")
    scales: dict[int, Value | float] = {}
    sizes = [*x.shape]
    said = n.known(at_scales)
    if old and "scales" in n.attributes:
        scales = dict(enumerate(n.attributes["scales"]))
    elif said is not None and np.size(said):
        scales = dict(zip(axes, np.asarray(said, np.float64).tolist(), strict=True))
    elif said is None and n.has(at_scales) and n[at_scales].size:
        sizes = [*n.declared_shape()]
        scales = {axis: b.convert(b.at(n[at_scales], 0, number), "f32") for number, axis in enumerate(axes)}
    else:
        sizes = _asked(n, x, axes, at_sizes)
        policy = n.attr("keep_aspect_ratio_policy", "stretch")
        factors: dict[int, Value | float] = {axis: sizes[axis] / max(1, x.shape[axis]) for axis in axes}
        if policy != "stretch":
            name = "minimum" if policy == "not_larger" else "maximum"
            if n.known(at_sizes) is None:  # the declared sizes are the rounded ones
                extents = b.constant(np.array([max(1, x.shape[axis]) for axis in axes]), "f32")
                shared = b.reduce(name, b.binary("divide", b.convert(n[at_sizes], "f32"), extents), [0])
            else:
                shared = (min if name == "minimum" else max)(sizes[axis] / max(1, x.shape[axis]) for axis in axes)
                sizes = [math.floor(shared * e + 0.5) if a in axes else e for a, e in enumerate(x.shape)]
            factors = dict.fromkeys(axes, shared)
        scales.update(factors)
    for axis, scale in scales.items():
        if not isinstance(scale, Value) and ((said is not None and np.size(said)) or "scales" in n.attributes):
            sizes[axis] = math.floor(x.shape[axis] * scale)
    roi: list[tuple[Value | float, Value | float]] = [(0.0, 1.0)] * x.rank
    if kind == "tf_crop_and_resize":
        known = n.known(at_roi)
        for number, axis in enumerate(axes):
            ends = (number, number + len(axes))
            if known is not None:
                roi[axis] = float(known[ends[0]]), float(known[ends[1]])
            else:
                first, last = (b.convert(b.at(n[at_roi], 0, place), "f32") for place in ends)
                roi[axis] = first, last
    element = x.element
    y = x if element in ("f32", "f64") else b.convert(x, "f32")
    outside: list[Value] = []
    for axis, scale in sorted(scales.items(), reverse=True):  # the last first: single elements are moved while few
        if (
            not isinstance(scale, Value)
            and scale == 1
            and sizes[axis] == x.shape[axis]
            and kind != "tf_crop_and_resize"
        ):
            continue
        if (
            isinstance(scale, Value)
            and sizes[axis] == x.shape[axis]
            and axis < 2 < x.rank
            and kind != "tf_crop_and_resize"
        ):
            continue
        places = _places(b, kind, x.shape[axis], sizes[axis], scale, roi[axis])
        if kind == "tf_crop_and_resize":
            beyond = b.binary("or", b.compare("LT", places, 0), b.compare("GT", places, x.shape[axis] - 1))
            outside.append(b.broadcast_in_dim(beyond, sizes, [axis]))
        y = _sample_axis(n, y, axis, places, scale, mode)
    for mask in outside:
        y = b.select(mask, n.attr("extrapolation_value", 0.0), y)
    if y.element == element:
        return y
    if not element.startswith(("f", "bf")):
        raise Refused("Resize of integers")
    return b.convert(y, element)


def _asked(n: Node, x: Value, axes: Sequence[int], number: int) -> list[int]:
    if n.known(number) is None:
        return [*n.declared_shape()]
    sizes = [*x.shape]
    for axis, size in zip(axes, n.integers(number, "sizes"), strict=True):
        sizes[axis] = size
    return sizes


def _places(
    b: Builder, kind: str, extent: int, size: int, scale: Value | float, roi: tuple[Value | float, Value | float]
) -> Value:
    """Where in the operand each place of the result lies."""
    place = b.iota(0, [size], "f32")
    factor = scale if isinstance(scale, Value) else b.scalar(scale, "f32")
    if kind == "align_corners":
        # The result's length before it was rounded down, as ONNX's reference has it.
        last = b.binary("subtract", b.binary("multiply", factor, float(extent)), 1.0)
        step = b.select(b.compare("EQ", last, 0), 0, b.binary("divide", b.like(extent - 1, last), last))
        return b.binary("multiply", place, step)
    if kind == "asymmetric":
        return b.binary("divide", place, factor)
    if kind == "tf_crop_and_resize":
        start, end = (one if isinstance(one, Value) else b.scalar(one, "f32") for one in roi)
        if size == 1:
            middle = b.binary("multiply", b.binary("add", start, end), 0.5 * (extent - 1))
            return b.broadcast(middle, [1])
        step = b.binary("multiply", b.binary("subtract", end, start), (extent - 1) / (size - 1))
        return b.binary("add", b.binary("multiply", place, step), b.binary("multiply", start, float(extent - 1)))
    half = b.binary("subtract", b.binary("divide", b.binary("add", place, 0.5), factor), 0.5)
    if kind == "half_pixel" or (kind == "pytorch_half_pixel" and size > 1):
        return half
    if kind == "pytorch_half_pixel":
        return b.full(0.0, "f32", [size])
    if kind == "half_pixel_symmetric":
        # The result's size, before it was rounded down, is in the middle.
        wide = b.binary("multiply", factor, float(extent))
        adjust = b.binary("divide", b.scalar(float(size), "f32"), wide)
        offset = b.binary("multiply", b.binary("subtract", b.like(1, adjust), adjust), extent / 2)
        return b.binary("add", half, offset)
    raise Refused(f"Resize with the coordinates {kind}")


def _sample_axis(n: Node, x: Value, axis: int, places: Value, scale: Value | float, mode: str) -> Value:
    b, extent = n.b, x.shape[axis]
    if mode == "nearest":
        how = (
            n.attr("nearest_mode", "round_prefer_floor")
            if n.opset >= 11 and n.proto.op_type == "Resize"
            else "floor"
        )
        if how == "round_prefer_floor":
            place = b.unary("ceil", b.binary("subtract", places, 0.5))
        elif how == "round_prefer_ceil":
            place = b.unary("floor", b.binary("add", places, 0.5))
        else:
            place = b.unary(how, places)
        place = b.binary("minimum", b.binary("maximum", b.convert(place, "i64"), 0), extent - 1)
        return b.take(x, place, axis)
    antialias = bool(n.attr("antialias", 0))
    shrink = b.scalar(1.0, "f32")
    taps = 2 if mode in ("linear", "bilinear", "trilinear") else 4
    stretch = 1.0
    if antialias:
        if isinstance(scale, Value):
            # Of the sizes: how many places a window reaches over has to be known.
            size = places.shape[0]
            stretch = max(1.0, (extent + 1) / size)
            shrink = b.binary("minimum", scale, 1.0)
        else:
            stretch = max(1.0, 1 / scale)
            shrink = b.scalar(min(1.0, scale), "f32")
    reach = math.ceil(taps / 2 * stretch)
    first = b.unary("floor", places)
    total: Value | None = None
    weights: list[Value] = []
    gathered: list[Value] = []
    for offset in range(-reach + 1, reach + 1):
        place = b.binary("add", first, float(offset))
        distance = b.unary("abs", b.binary("multiply", b.binary("subtract", place, places), shrink))
        weight = _weight(b, taps, distance, n.attr("cubic_coeff_a", -0.75))
        if n.attr("exclude_outside", 0) or (antialias and True):
            inside = b.binary("and", b.compare("GE", place, 0), b.compare("LE", place, float(extent - 1)))
            if n.attr("exclude_outside", 0):
                weight = b.select(inside, weight, 0)
        weights.append(weight)
        clamped = b.binary("minimum", b.binary("maximum", b.convert(place, "i64"), 0), extent - 1)
        gathered.append(b.take(x, clamped, axis))
    norm = weights[0]
    for weight in weights[1:]:
        norm = b.binary("add", norm, weight)
    for weight, part in zip(weights, gathered, strict=True):
        wide = b.broadcast_in_dim(b.convert(b.binary("divide", weight, norm), x.element), part.shape, [axis])
        term = b.binary("multiply", wide, part)
        total = term if total is None else b.binary("add", total, term)
    assert total is not None
    return total


def _weight(b: Builder, taps: int, distance: Value, a: float) -> Value:
    """The weight of what is ``distance`` away: a tent, or Keys's cubic."""
    if taps == 2:
        return b.binary("maximum", b.binary("subtract", b.like(1, distance), distance), 0)

    def polynomial(*coefficients: float) -> Value:
        result = b.like(coefficients[0], distance)
        for coefficient in coefficients[1:]:
            result = b.binary("add", b.binary("multiply", result, distance), coefficient)
        return result

    near = polynomial(a + 2, -(a + 3), 0, 1)
    far = polynomial(a, -5 * a, 8 * a, -4 * a)
    outer = b.select(b.compare("LT", distance, 2), far, 0)
    return b.select(b.compare("LE", distance, 1), near, outer)


def _sample(b: Builder, x: Value, places: list[Value], inside_only: bool, batch: Value | None = None) -> Value:
    """``x[n, :, places...]``: elements of every channel at integer places, floats; 0 outside, or nearest inside.

    ``x`` is [N, C, ...], places [N, ...]; the result [N, C, ...].
    """
    extents = x.shape[2:]
    mask: Value | None = None
    coordinates: list[Value] = []
    for place, extent in zip(places, extents, strict=True):
        if inside_only:
            good = b.binary("and", b.compare("GE", place, 0), b.compare("LE", place, float(extent - 1)))
            mask = good if mask is None else b.binary("and", mask, good)
        limited = b.binary("minimum", b.binary("maximum", place, 0), float(extent - 1))
        coordinates.append(b.convert(limited, "i64"))
    shape = coordinates[0].shape
    first = b.iota(0, shape) if batch is None else batch
    points = b.concatenate([b.reshape(one, [*shape, 1]) for one in [first, *coordinates]], len(shape))
    last = b.transpose(x, [0, *range(2, x.rank), 1])
    found = b.gather_points(last, points)  # [N, ..., C]
    found = b.transpose(found, [0, found.rank - 1, *range(1, found.rank - 1)])
    if mask is None:
        return found
    return b.select(b.broadcast_in_dim(mask, found.shape, [0, *range(2, found.rank)]), found, 0)


def _times(b: Builder, found: Value, weight: Value) -> Value:
    return b.binary("multiply", found, b.broadcast_in_dim(weight, found.shape, [0, *range(2, found.rank)]))


def _linear(b: Builder, x: Value, places: list[Value], batch: Value | None = None) -> Value:
    """Between neighbours, linearly; what is outside counts as 0."""
    floors = [b.unary("floor", place) for place in places]
    total: Value | None = None
    for corner in itertools.product((0, 1), repeat=len(places)):
        at = [b.binary("add", f, float(c)) for f, c in zip(floors, corner, strict=True)]
        weight: Value | None = None
        for place, one in zip(places, at, strict=True):
            part = b.binary("subtract", b.like(1, place), b.unary("abs", b.binary("subtract", place, one)))
            weight = part if weight is None else b.binary("multiply", weight, part)
        assert weight is not None
        term = _times(b, _sample(b, x, at, True, batch), weight)
        total = term if total is None else b.binary("add", total, term)
    assert total is not None
    return total


@operator("GridSample")
def grid_sample(n: Node) -> Value:
    b, x, grid = n.b, n[0], n[1]
    mode, padding, corners = n.attr("mode", "linear"), n.attr("padding_mode", "zeros"), n.attr("align_corners", 0)
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
    extents = x.shape[2:]
    places: list[Value] = []
    for number, extent in enumerate(extents):
        given = b.at(grid, grid.rank - 1, len(extents) - 1 - number)
        if corners:
            place = b.binary("multiply", b.binary("add", given, 1), (extent - 1) / 2)
        else:
            place = b.binary(
                "multiply", b.binary("subtract", b.binary("multiply", b.binary("add", given, 1), extent), 1), 0.5
            )
        places.append(place)

    def bring_in(at: list[Value]) -> list[Value]:
        if padding == "border":
            return [
                b.binary("minimum", b.binary("maximum", p, 0), float(e - 1))
                for p, e in zip(at, extents, strict=True)
            ]
        if padding == "reflection":
            return [_reflected(b, p, e, bool(corners)) for p, e in zip(at, extents, strict=True)]
        return at

    if mode == "nearest":
        at = bring_in([b.unary("round_nearest_even", place) for place in places])
        if padding == "reflection":
            at = [b.unary("round_nearest_even", place) for place in at]
        return _sample(b, x, at, padding == "zeros")
    if mode == "linear":
        if padding == "zeros":
            return _linear(b, x, places)
        floors = [b.unary("floor", place) for place in places]
        return _blend(b, x, places, floors, (0, 1), 2, bring_in)
    floors = [b.unary("floor", place) for place in places]
    if padding == "zeros":
        return _blend(b, x, places, floors, (-1, 0, 1, 2), 4, None)
    return _blend(b, x, places, floors, (-1, 0, 1, 2), 4, bring_in)


def _blend(
    b: Builder,
    x: Value,
    places: list[Value],
    floors: list[Value],
    offsets: Sequence[int],
    taps: int,
    bring_in: object,
) -> Value:
    total: Value | None = None
    for corner in itertools.product(offsets, repeat=len(places)):
        at = [b.binary("add", f, float(c)) for f, c in zip(floors, corner, strict=True)]
        weight: Value | None = None
        for place, one in zip(places, at, strict=True):
            part = _weight(b, taps, b.unary("abs", b.binary("subtract", place, one)), -0.75)
            weight = part if weight is None else b.binary("multiply", weight, part)
        assert weight is not None
        inner = at if bring_in is None else bring_in(at)  # type: ignore[operator]
        term = _times(b, _sample(b, x, inner, bring_in is None), weight)
        total = term if total is None else b.binary("add", total, term)
    assert total is not None
    return total


def _reflected(b: Builder, place: Value, extent: int, corners: bool) -> Value:
    """Folded into the image, at the centres of its border elements or at their outer edges."""
    low, high = (0.0, float(extent - 1)) if corners else (-0.5, extent - 0.5)
    span = high - low
    if span <= 0:
        return b.like(0, place)
    away = b.unary("abs", b.binary("subtract", place, low))
    rest = b.binary(
        "subtract", away, b.binary("multiply", b.unary("floor", b.binary("divide", away, 2 * span)), 2 * span)
    )
    folded = b.select(b.compare("GT", rest, span), b.binary("subtract", b.like(2 * span, rest), rest), rest)
    return b.binary("add", folded, low)


@operator("RoiAlign")
def roi_align(n: Node) -> Value:
    b, x, rois = n.b, n[0], n[1]
    height, width = n.attr("output_height", 1), n.attr("output_width", 1)
    ratio, scale = n.attr("sampling_ratio", 0), n.attr("spatial_scale", 1.0)
    if ratio <= 0:
        raise UnknownShape("RoiAlign whose number of samples depends on the data (sampling_ratio 0)")
    aligned = n.attr("coordinate_transformation_mode", "half_pixel") == "half_pixel" and n.opset >= 16
    shift = 0.5 if aligned else 0.0
    count = rois.shape[0]
    ends = [b.binary("subtract", b.binary("multiply", b.at(rois, 1, k), scale), shift) for k in range(4)]
    places: list[Value] = []
    shape = [count, height * ratio, width * ratio]
    for axis, (first, last, bins) in enumerate(((ends[1], ends[3], height), (ends[0], ends[2], width))):
        length = b.binary("subtract", last, first)
        length = length if aligned else b.binary("maximum", length, 1)
        step = b.binary("divide", length, bins * ratio)
        place = b.binary("add", b.iota(axis + 1, shape, "f32"), 0.5)
        place = b.binary("multiply", place, b.broadcast_in_dim(step, shape, [0]))
        places.append(b.binary("add", place, b.broadcast_in_dim(first, shape, [0])))
    outside = b.full(False, "i1", shape)
    limited: list[Value] = []
    for place, extent in zip(places, x.shape[2:], strict=True):
        gone = b.binary("or", b.compare("LT", place, -1), b.compare("GT", place, float(extent)))
        outside = b.binary("or", outside, gone)
        limited.append(b.binary("minimum", b.binary("maximum", place, 0), float(extent - 1)))
    batch = b.broadcast_in_dim(b.convert(n[2], "i64"), shape, [0])
    kind = n.attr("mode", "avg")
    found = (_largest_corner if kind == "max" else _linear)(b, x, limited, batch)
    found = b.select(b.broadcast_in_dim(outside, found.shape, [0, 2, 3]), 0, found)
    parts = b.reshape(found, [count, x.shape[1], height, ratio, width, ratio])
    if kind == "max":
        return b.reduce("maximum", parts, [3, 5])
    return b.binary("divide", b.reduce("add", parts, [3, 5]), ratio * ratio)


def _largest_corner(b: Builder, x: Value, places: list[Value], batch: Value) -> Value:
    """The largest of the four weighted neighbours, as the standard has it for ``max``."""
    best: Value | None = None
    for corner in itertools.product((0, 1), repeat=2):
        at: list[Value] = []
        weight: Value | None = None
        for place, extent, c in zip(places, x.shape[2:], corner, strict=True):
            floor = b.unary("floor", place)
            part = b.binary("subtract", place, floor)
            part = part if c else b.binary("subtract", b.like(1, part), part)
            weight = part if weight is None else b.binary("multiply", weight, part)
            at.append(b.binary("minimum", b.binary("add", floor, float(c)), float(extent - 1)))
        assert weight is not None
        term = _times(b, _sample(b, x, at, False, batch), weight)
        best = term if best is None else b.binary("maximum", best, term)
    assert best is not None
    return best


@operator("DeformConv")
def deformed_convolution(n: Node) -> Value:
    """Samples of every place in the kernel, moved by the offsets; then a product with the weights."""
    b, x, w, offset = n.b, n[0], n[1], n[2]
    kernel = w.shape[2:]
    if len(kernel) != 2:
        raise Refused("DeformConv of other than two dimensions")
    strides, dilations = n.attr("strides") or [1, 1], n.attr("dilations") or [1, 1]
    pads, groups, spread = n.attr("pads") or [0] * 4, n.attr("group", 1), n.attr("offset_group", 1)
    count, channels = x.shape[:2]
    shape = [count, *offset.shape[2:]]
    taps = math.prod(kernel)
    offsets = b.reshape(offset, [count, spread, taps, 2, *offset.shape[2:]])
    masks = b.reshape(n[4], [count, spread, taps, *offset.shape[2:]]) if n.has(4) else None
    total: Value | None = None
    part = channels // spread
    for tap, at in enumerate(itertools.product(*map(range, kernel))):
        pieces: list[Value] = []
        for group in range(spread):
            places: list[Value] = []
            for axis in range(2):
                moved = b.at(b.at(b.at(offsets, 3, axis), 2, tap), 1, group)
                base = b.binary("multiply", b.iota(axis + 1, shape, x.element), float(strides[axis]))
                base = b.binary("add", base, float(at[axis] * dilations[axis] - pads[axis]))
                places.append(b.binary("add", base, moved))
            piece = _linear(b, b.part(x, 1, group * part, (group + 1) * part), places)
            if masks is not None:
                piece = _times(b, piece, b.at(b.at(masks, 2, tap), 1, group))
            pieces.append(piece)
        sampled = b.concatenate(pieces, 1)
        weight = b.at(b.at(w, 3, at[1]), 2, at[0])
        made = _grouped_product(b, sampled, weight, groups)
        total = made if total is None else b.binary("add", total, made)
    assert total is not None
    return b.binary("add", total, b.reshape(n[3], [n[3].size, 1, 1])) if n.has(3) else total


def _grouped_product(b: Builder, x: Value, weight: Value, groups: int) -> Value:
    """[N, C, H, W] by [O, C/groups]."""
    rows, columns = weight.shape[0] // groups, weight.shape[1]
    parts: list[Value] = []
    for group in range(groups):
        piece = b.part(x, 1, group * columns, (group + 1) * columns)
        made = b.dot(b.part(weight, 0, group * rows, (group + 1) * rows), piece, ([], []), ([1], [1]))
        parts.append(b.transpose(made, [1, 0, 2, 3]))
    return b.concatenate(parts, 1)
