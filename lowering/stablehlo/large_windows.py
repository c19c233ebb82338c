"""Convolutions whose windows are nearly as large as the image, as derivatives by filters are: a product for each place.

What is multiplied are all elements of a window and of all features at once, which the kernels of products are for.
"""

import itertools
import math
from typing import Any

from devscope.lowering.stablehlo.templates import RETURN, commas, element, expand, integers, number, shape, tensor

_PLACES, _LARGE = 64, 16
"""The most windows, and how many elements, for each of them, a window has at least."""


def expand_large_windows(op: Any, layouts: list[list[str]]) -> bool:
    """Whether ``op``, a ``stablehlo.convolution`` of known extents, is such a one, which it replaces then.

    ``layouts``: of its operands and its result, see `convolutions`.
    """
    types = [value.type for value in (*op.operands, *op.results)]
    of, space = element(types[2]), [str(axis) for axis in range(len(layouts[0]) - 2)]
    groups = number(op, "feature_group_count", 1) * number(op, "batch_group_count", 1)
    if any(element(type_) != of or -1 in shape(type_) for type_ in types) or str(of) not in ("f32", "f64"):
        return False
    if groups > 1 or any(integers(op, "window_reversal")) or set(integers(op, "lhs_dilation")) - {1}:
        return False
    window, counts = (dict(zip(layouts[n], shape(types[n]), strict=True)) for n in (1, 2))
    places = math.prod(counts[axis] for axis in space)
    if not 0 < places <= _PLACES or math.prod(window[axis] for axis in space) < _LARGE * (places + 8):
        return False
    strides, by, padding = (
        integers(op, name, default)
        for name, default in (
            ("window_strides", [1] * len(space)),
            ("rhs_dilation", [1] * len(space)),
            ("padding", [0] * (2 * len(space))),
        )
    )
    low, high, extents = {}, {}, dict(zip(layouts[0], shape(types[0]), strict=True))
    for axis in range(len(space)):
        low[str(axis)], high[str(axis)] = padding[2 * axis : 2 * axis + 2]
        extents[str(axis)] += sum(padding[2 * axis : 2 * axis + 2])
    padded = tensor([extents[letter] for letter in layouts[0]], of)
    lines = [
        f"%zero = stablehlo.constant dense<0.0> : {tensor([], of)}",
        f"%padded = stablehlo.pad %0, %zero, low = {[low.get(a, 0) for a in layouts[0]]}, "
        f"high = {[high.get(a, 0) for a in layouts[0]]}, interior = {[0] * len(layouts[0])} "
        f": ({types[0]}, {tensor([], of)}) -> {padded}",
    ]
    summed = ["i", *space]
    axes = [[layouts[n].index(letter) for letter in summed] for n in (0, 1)]
    part = tensor([window[a] if a in space else extents[a] for a in layouts[0]], of)
    pair = [extents["b"], window["o"]]
    for n, place in enumerate(itertools.product(*(range(counts[axis]) for axis in space))):
        bounds = [f"0:{extents[letter]}" for letter in layouts[0]]
        for axis, at in enumerate(place):
            first = at * strides[axis]
            end = first + (window[str(axis)] - 1) * by[axis] + 1
            bounds[layouts[0].index(str(axis))] = f"{first}:{end}:{by[axis]}"
        lines += [
            f"%x{n} = stablehlo.slice %padded [{commas(bounds)}] : ({padded}) -> {part}",
            f"%y{n} = stablehlo.dot_general %x{n}, %1, contracting_dims = {axes[0]} x {axes[1]} "
            f": ({part}, {types[1]}) -> {tensor(pair, of)}",
            f"%z{n} = stablehlo.reshape %y{n} : ({tensor(pair, of)}) -> {tensor([1, *pair], of)}",
        ]
    all_, apart = tensor([places, *pair], of), tensor([*(counts[axis] for axis in space), *pair], of)
    order = [[*space, "b", "o"].index(letter) for letter in layouts[2]]
    lines += [
        f"%all = stablehlo.concatenate {commas(f'%z{n}' for n in range(places))}, dim = 0 "
        f": ({commas([tensor([1, *pair], of)] * places)}) -> {all_}",
        f"%apart = stablehlo.reshape %all : ({all_}) -> {apart}",
        f"%r = stablehlo.transpose %apart, dims = {order} : ({apart}) -> {types[2]}",
        f'"{RETURN}"(%r) : ({types[2]}) -> ()',
    ]
    expand(op, "\n".join(lines))
    return True
