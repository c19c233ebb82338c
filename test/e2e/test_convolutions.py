"""Convolutions and pooling by kernels compute what numpy does: layouts, element types, groups, padding that is not
copied, holes between elements (transposed convolutions), sizes that are no multiples of blocks, nothing to sum.
"""

from __future__ import annotations

import functools
import itertools
import math
import threading
from dataclasses import dataclass, replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import devscope
from devscope.runtime.executable import Executable

pytestmark = pytest.mark.sampled(12)

Array = np.ndarray[Any, np.dtype[Any]]
_TYPES: dict[str, Any] = {
    **{"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64},
    **{"i8": np.int8, "i32": np.int32, "i64": np.int64},
}


@dataclass(frozen=True)
class Case:
    """``layouts``: of image, filters and result, a letter per axis: n, g, c, f, and d, h, w for space.

    ``low``, ``high``: padding along each axis of space; ``holes``: one more than the zeros between two elements.
    ``dynamic``: axes whose sizes are not known.
    """

    layouts: tuple[str, str, str]
    size: int = 11
    window: int = 3
    strides: int = 1
    dilations: int = 1
    low: int = 0
    high: int = 0
    holes: int = 1
    batch: int = 2
    channels: int = 5
    filters: int = 9
    groups: int = 1
    types: tuple[str, str, str] = ("f32", "f32", "f32")
    fill: bool = True
    relu: bool = False
    dynamic: str = ""

    def padded(self) -> int:
        return self.low + self.high + max(0, (self.size - 1) * self.holes + 1)

    def extent(self, letter: str, operand: int) -> int:
        if letter in "dhw":
            result = (self.padded() - (self.window - 1) * self.dilations - 1) // self.strides + 1
            return (self.size, self.window, result)[operand]
        return {"n": self.batch, "g": self.groups, "c": self.channels, "f": self.filters}[letter]

    def shape(self, operand: int) -> list[int]:
        return [self.extent(letter, operand) for letter in self.layouts[operand]]

    def text(self, symbol: str) -> str:
        letters = sorted(set("".join(self.layouts)))
        space = [letter for letter in letters if letter in "dhw"]
        loops = [letter.upper() for letter in space] + letters  # an upper case letter is a pixel of the result
        image = [
            f"{a.upper()} * {self.strides} + {a} * {self.dilations}" if a in space else a for a in self.layouts[0]
        ]
        dims = ", ".join(f"{loop}{loop}" for loop in loops)
        maps = ", ".join(
            f"affine_map<({dims}) -> ({', '.join(_named(i) for i in indices)})>"
            for indices in (image, self.layouts[1], [a.upper() if a in space else a for a in self.layouts[2]])
        )
        result_loops = {a.upper() if a in space else a for a in self.layouts[2]}
        kinds = ", ".join('"parallel"' if loop in result_loops else '"reduction"' for loop in loops)
        inside = [self.padded() if a in space else self.extent(a, 0) for a in self.layouts[0]]
        x, w, c = self.types

        def tensor(shape: list[int], layout: str, element: str) -> str:
            sizes = ["?" if a in self.dynamic else str(size) for a, size in zip(layout, shape, strict=True)]
            return f"tensor<{'x'.join([*sizes, element])}>"

        types = [tensor(self.shape(n), self.layouts[n], self.types[n]) for n in range(3)]
        padded = tensor(inside, self.layouts[0], x)
        zero = "0" if x.startswith("i") else "0.0"
        lines = [f"%pad = arith.constant {zero} : {x}", f"%zero = arith.constant {zero} : {c}"]
        begin = [self.low if a in space else 0 for a in self.layouts[0]]
        read = "%x"
        if self.low or self.high or self.holes > 1:
            dims = [n for n, a in enumerate(self.layouts[0]) if a in self.dynamic]
            lines += [
                f"%n{n} = arith.constant {n} : index\n%dim{n} = tensor.dim %x, %n{n} : {types[0]}" for n in dims
            ]
        if self.holes > 1:
            steps = [self.holes if a in space else 1 for a in self.layouts[0]]
            sizes = [f"%dim{n}" if n in dims else size for n, size in enumerate(self.shape(0))]
            shape = f"[{', '.join(map(str, sizes))}]"
            assert not set(self.dynamic) & set(space)
            lines += [
                f"%room = tensor.empty({', '.join(f'%dim{n}' for n in dims)}) : {padded}",
                f"%full = linalg.fill ins(%pad : {x}) outs(%room : {padded}) -> {padded}",
                f"%padded = tensor.insert_slice %x into %full{begin} {shape} {steps}",
                f": {types[0]} into {padded}",
            ]
            read = "%padded"
        elif self.low or self.high:
            end = [self.high if a in space else 0 for a in self.layouts[0]]
            indices = ", ".join(f"%i{n}: index" for n in range(len(begin)))
            lines += [
                f"%padded = tensor.pad %x low{begin} high{end} {{",
                f"^bb0({indices}):\n tensor.yield %pad : {x}\n}} : {types[0]} to {padded}",
            ]
            read = "%padded"
        start = "%init"
        if self.fill:
            sizes = "%init"
            lines.append(f"%filled = linalg.fill ins(%zero : {c}) outs({sizes} : {types[2]}) -> {types[2]}")
            start = "%filled"
        integer = c.startswith("i")
        extend = "arith.extsi" if integer else "arith.extf"
        long = [
            f"%{n}l = {extend} %{n}e : {t} to {c}" if t != c else f"%{n}l = arith.bitcast %{n}e : {t} to {c}"
            for n, t in (("x", x), ("w", w))
        ]
        suffix = "i" if integer else "f"
        lines += [
            f"%sums = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}",
            f"ins({read}, %w : {padded}, {types[1]}) outs({start} : {types[2]}) {{",
            f"^bb0(%xe: {x}, %we: {w}, %ce: {c}):",
            *long,
            f"%p = arith.mul{suffix} %xl, %wl : {c}\n%s = arith.add{suffix} %ce, %p : {c}",
            f"linalg.yield %s : {c}\n}} -> {types[2]}",
        ]
        last = "%sums"
        if self.relu:
            maximum = "maxsi" if integer else "maximumf"
            axes = ", ".join(f"a{n}" for n in range(len(self.layouts[2])))
            same = f"affine_map<({axes}) -> ({axes})>"
            parallel = ", ".join(['"parallel"'] * len(self.layouts[2]))
            lines += [
                f"%relu = linalg.generic {{indexing_maps = [{same}, {same}], iterator_types = [{parallel}]}}",
                f"ins(%sums : {types[2]}) outs(%init : {types[2]}) {{",
                f"^bb0(%a: {c}, %b: {c}):\n%r = arith.{maximum} %a, %zero : {c}",
                f"linalg.yield %r : {c}\n}} -> {types[2]}",
            ]
            last = "%relu"
        body = "\n".join(lines)
        return (
            f"func.func @{symbol}(%x: {types[0]}, %w: {types[1]}, %init: {types[2]}) -> {types[2]} {{\n"
            f"{body}\nreturn {last} : {types[2]}\n}}\n"
        )

    def reference(self, x: Array, w: Array, init: Array) -> Array:
        image, filters, result = self.layouts
        inside = np.zeros([self.padded() if a in "dhw" else self.extent(a, 0) for a in image])
        part = tuple(
            slice(self.low, self.low + max(0, (self.size - 1) * self.holes + 1), self.holes)
            if a in "dhw"
            else slice(None)
            for a in image
        )
        inside[part] = x
        out = np.zeros(self.shape(2)) if self.fill else init.astype(np.float64)
        space = [a for a in image if a in "dhw"]
        for position in itertools.product(range(self.window), repeat=len(space)):
            at = dict(zip(space, position, strict=True))
            seen = tuple(self._read(a, at[a]) if a in at else slice(None) for a in image)
            factor = w[tuple(at.get(a, slice(None)) for a in filters)].astype(np.float64)
            rest = "".join(a for a in filters if a not in at)
            out += np.einsum(f"{image},{rest}->{result}", inside[seen], factor)
        return np.maximum(out, 0) if self.relu else out

    def _read(self, letter: str, at: int) -> slice:
        first = at * self.dilations
        return slice(first, first + (self.extent(letter, 2) - 1) * self.strides + 1, self.strides)


def _named(index: str) -> str:
    return "".join(character * 2 if character.isalpha() else character for character in index)


_NHWC, _NCHW = ("nhwc", "hwcf", "nhwf"), ("nchw", "fchw", "nfhw")
_CASES = {
    "nhwc": Case(_NHWC, relu=True),
    "nhwc_one": Case(_NHWC, batch=1, relu=True, low=1, high=2),
    "nchw_one": Case(_NCHW, batch=1, relu=True, low=1, filters=17),
    "depthwise_one": Case(("nhwc", "hwc", "nhwc"), batch=1, channels=37, relu=True, high=1),
    "nhwc_padded": Case(_NHWC, low=1, high=1, channels=20, filters=40),
    "nhwc_strided": Case(_NHWC, size=12, window=5, strides=2, low=2, high=1, channels=3, fill=False),
    "nhwc_dilated": Case(_NHWC, dilations=3, low=3, high=3, channels=17),
    "nhwc_outside": Case(_NHWC, strides=2, low=5, high=9, size=4, filters=40),
    "nhwc_images": Case(_NHWC, size=4, batch=5, low=1, high=1, filters=40),
    "nhwc_holes": Case(_NHWC, window=4, holes=2, low=2, high=3, size=6, channels=6),
    "nhwc_dynamic": Case(_NHWC, low=2, high=1, dynamic="dhw", channels=17),
    "nhwc_deep": Case(_NHWC, size=3, channels=70, low=1, high=1, relu=True),
    "nhwc_fhwc": Case(("nhwc", "fhwc", "nhwf"), low=1, filters=33),
    "nchw": Case(_NCHW, relu=True, fill=True),
    "nchw_padded": Case(_NCHW, low=1, high=1, filters=17, fill=False),
    "nchw_strided": Case(_NCHW, size=12, window=5, strides=2, low=2, high=1),
    "nchw_dilated": Case(_NCHW, dilations=2, strides=3, low=2, high=3),
    "nchw_holes": Case(_NCHW, window=4, holes=2, low=2, high=3, size=6),
    "nchw_uneven_holes": Case(_NCHW, window=3, holes=2, low=1, high=2, size=6, filters=17),
    "nchw_holes_dynamic": Case(_NCHW, window=4, holes=2, low=2, high=3, size=6, dynamic="n"),
    "nhwc_holes_dynamic": Case(_NHWC, window=3, holes=2, low=2, high=3, size=6, filters=17, dynamic="n"),
    "bf16_holes": Case(_NCHW, window=4, holes=2, low=2, high=3, size=6, types=("bf16",) * 3),
    "f16_holes": Case(_NHWC, window=3, holes=2, low=1, high=2, size=6, filters=17, types=("f16",) * 3),
    "nchw_far_holes": Case(_NCHW, window=2, holes=3, low=1, high=1, size=6),
    "nchw_holes_begun": Case(_NCHW, window=4, holes=2, low=2, high=3, size=6, fill=False, dynamic="n"),
    "nhwc_far_holes_begun": Case(_NHWC, window=2, holes=3, low=1, high=1, size=6, filters=17, fill=False),
    "bf16_holes_begun": Case(_NCHW, holes=2, low=2, high=1, size=6, types=("bf16",) * 3, fill=False),
    "one_filter_holes_begun": Case(("nchw", "chw", "nhw"), holes=2, low=1, size=8, types=("f16",) * 3, fill=False),
    "one_filter_space_holes": Case(("ncdhw", "fcdhw", "nfdhw"), holes=2, size=4, filters=1, fill=False),
    "multiplied_holes_begun": Case(("nhwc", "hwcf", "nhwcf"), holes=2, low=1, size=6, filters=5, fill=False),
    "one_filter_holes": Case(("nchw", "chw", "nhw"), window=4, holes=2, low=2, high=3, size=8, dynamic="n"),
    "one_filter_far_holes": Case(("nhwc", "hwc", "nhw"), window=2, holes=3, low=1, high=1, size=8),
    "nchw_dynamic": Case(_NCHW, low=2, high=1, dynamic="dhw"),
    "nchw_deep": Case(_NCHW, size=3, channels=70, low=1, high=1, relu=True),
    "nchw_many_filters": Case(_NCHW, batch=1, size=7, channels=64, filters=150, low=1, high=1, relu=True),
    "nhwc_many_filters": Case(_NHWC, batch=1, size=7, channels=64, filters=130, low=1, high=1, dynamic="dhw"),
    # Of few blocks, which tasks with parts of the filters share.
    "nhwc_shared": Case(_NHWC, size=9, channels=64, filters=150, low=1, high=1, relu=True),
    "nchw_shared_strided": Case(_NCHW, size=12, window=5, strides=2, low=2, high=1, channels=33, filters=100),
    "nchw_shared_holes": Case(_NCHW, batch=3, window=4, holes=2, low=2, high=3, size=8, channels=64, filters=100),
    "line_shared": Case(("nwc", "wcf", "nwf"), size=50, low=2, window=5, channels=64, filters=96),
    "space_shared": Case(("ncdhw", "fcdhw", "nfdhw"), size=6, low=1, high=1, channels=40, filters=70),
    "groups_shared": Case(("ngchw", "gfchw", "ngfhw"), groups=2, low=1, high=1, channels=48, filters=80),
    "nchw_hwcf": Case(("nchw", "hwcf", "nfhw"), low=1),
    "nhwc_to_nchw": Case(("nhwc", "hwcf", "nfhw"), low=1, high=1),
    "nchw_to_nhwc": Case(("nchw", "fchw", "nhwf"), low=1, high=1, strides=2),
    "pointwise": Case(_NHWC, window=1, channels=40, filters=24),
    "groups_nhwc": Case(("nhwgc", "hwgcf", "nhwgf"), groups=3, low=1, high=1),
    "groups_odd": Case(("nhwgc", "hwgcf", "nhwgf"), groups=5, channels=2, filters=3, low=1, high=1),
    "groups_even": Case(("nhwgc", "ghwcf", "nhwgf"), groups=9, channels=4, filters=4, strides=2, dynamic="n"),
    "groups_one_filter": Case(("nhwgc", "hwgc", "nhwg"), groups=37, channels=3, low=1, types=("bf16",) * 3),
    "groups_nchw": Case(("ngchw", "gfchw", "ngfhw"), groups=3, low=1, high=1),
    "groups_in_place": Case(("nhwgc", "hwgcf", "nhwgf"), groups=3, relu=True, filters=33),
    "depthwise_nhwc": Case(("nhwc", "hwc", "nhwc"), channels=37, low=1, high=1, strides=2),
    "depthwise_nchw": Case(("nchw", "chw", "nchw"), low=1, high=2, dilations=2),
    "depthwise_nchw_strided": Case(("nchw", "chw", "nchw"), low=1, high=1, strides=2, size=41),
    "depthwise_relu": Case(("nhwc", "hwc", "nhwc"), channels=37, low=1, high=1, relu=True, types=("f16",) * 3),
    "depthwise_chw": Case(("nhwc", "chw", "nhwc"), window=5, low=2, high=2, channels=20, types=("f16",) * 3),
    "one_filter": Case(("nchw", "chw", "nhw"), low=1, high=1, channels=6, dynamic="c"),
    "one_filter_space": Case(("ndhwc", "dhwc", "ndhw"), window=4, low=1, high=2, size=7, channels=3, relu=True),
    "depthwise_again": Case(("nhwc", "hwc", "nhwc"), window=5, size=15, channels=6, relu=True, types=("f16",) * 3),
    "depthwise_many": Case(("nhwc", "hwc", "nhwc"), window=7, low=3, high=3, channels=6, size=9),
    "depthwise_far": Case(("nchw", "chw", "nchw"), low=1, strides=5, size=43),
    "batch_last": Case(
        ("hwcn", "hwcf", "hwfn"), window=1, strides=3, low=2, high=3, holes=3, batch=3, channels=3, relu=True
    ),
    "depthwise_holes": Case(("nchw", "chw", "nchw"), holes=3, low=2, high=2, size=7),
    "depthwise_far_holes": Case(("nhwc", "hwc", "nhwc"), window=2, holes=3, low=2, high=2, size=7, fill=False),
    "depthwise_nhwc_holes": Case(("nhwc", "hwc", "nhwc"), holes=2, low=2, high=1, size=7, types=("bf16",) * 3),
    "multiplied": Case(("nhwc", "hwcf", "nhwcf"), low=1, high=1, filters=3),
    "multiplied_twice": Case(("nhwc", "hwcf", "nhwcf"), strides=2, channels=37, filters=2, types=("bf16",) * 3),
    "multiplied_nchw": Case(("nchw", "cfhw", "nhwcf"), low=1, high=1, filters=4, fill=False, dynamic="c"),
    "multiplied_holes": Case(("nhwc", "hwcf", "nhwcf"), low=2, high=2, holes=2, size=6, channels=9, filters=5),
    "plain": Case(("hw", "hw", "hw"), size=40, low=1, high=1),
    "line": Case(("nwc", "wcf", "nwf"), size=50, low=2, window=5),
    "space": Case(("ndhwc", "dhwcf", "ndhwf"), size=6, low=1, high=1, channels=3),
    "space_ncdhw": Case(("ncdhw", "fcdhw", "nfdhw"), size=6, low=1, high=1, channels=3),
    "space_outside": Case(("ndhwc", "dhwcf", "ndhwf"), size=5, low=5, high=4, dilations=2, channels=3, filters=18),
    "nothing": Case(_NHWC, channels=0, fill=False),
    "no_image": Case(_NCHW, batch=0),
    "f64": Case(_NHWC, types=("f64",) * 3, low=1, high=1),
    "f16": Case(_NHWC, types=("f16",) * 3, low=1, high=1, channels=3),
    "bf16": Case(_NCHW, types=("bf16", "bf16", "f32"), low=1, high=1),
    "i8": Case(_NHWC, types=("i8", "i8", "i32"), low=1, high=1),
    "i8_nchw": Case(_NCHW, types=("i8", "i8", "i32"), low=1, high=1),
    "i64": Case(_NCHW, types=("i64",) * 3, low=1, high=1),
}


@functools.cache
def _compiled() -> Executable:
    return devscope.compile("".join(case.text(name) for name, case in _CASES.items()))


@pytest.mark.parametrize("name", _CASES)
def test_convolutions(name: str) -> None:
    _check(_compiled(), name, _CASES[name])


def _check(executable: Executable, name: str, case: Case) -> None:
    rng = np.random.default_rng(7)
    arguments = [rng.integers(-2, 3, case.shape(n)).astype(_TYPES[case.types[n]]) for n in range(3)]
    found = executable.run(name, *arguments)
    np.testing.assert_array_equal(found.astype(np.float64), case.reference(*arguments), name)


def test_on_a_device() -> None:
    """The same kernels, whose tasks are work-items; and several blocks along two axes."""
    names = "nhwc_one nchw_strided nhwc_holes nchw_dynamic depthwise_nchw_strided depthwise_relu i8"
    names += " nchw_many_filters nchw_holes nchw_holes_dynamic nchw_uneven_holes bf16_holes f16_holes"
    names += " nchw_holes_begun bf16_holes_begun one_filter_holes_begun multiplied_holes_begun"
    names += " one_filter_holes one_filter_far_holes depthwise_nhwc_holes multiplied multiplied_twice groups_odd"
    blocks = Case(("nhwc", "hwc", "nhwc"), batch=1, size=56, channels=128, low=1, high=1)
    cases = {**{name: _CASES[name] for name in names.split()}, "blocks": blocks}
    with devscope.compile(
        "".join(case.text(name) for name, case in cases.items()), default="opencl:0", cache=False
    ) as executable:
        for name, case in cases.items():
            _check(executable, name, case)


@pytest.mark.parametrize("default", ["cpu:0", "opencl:0"])
def test_what_is_outside_is_multiplied(default: str) -> None:
    """A zero of the padding times infinity is no number: of all filters, or of one of several panels."""
    names = ("nhwc_padded", "nchw_padded", "nhwc_images", "depthwise_nhwc", "space", "space_outside")
    cases = {name: _CASES[name] for name in names}
    text = "".join(case.text(name) for name, case in cases.items())
    with devscope.compile(text, default=default) as executable, np.errstate(invalid="ignore"):
        for name, case in cases.items():
            filters = case.layouts[1].find("f")
            for which in (slice(None), slice(-1, None)) if filters >= 0 else (slice(None),):
                arguments = [np.ones(case.shape(n), np.float32) for n in range(3)]
                np.moveaxis(arguments[1], filters, 0)[which] = np.inf
                np.testing.assert_array_equal(executable.run(name, *arguments), case.reference(*arguments), name)


_POOLING = """
func.func @one(%x: tensor<7x5xf32>, %w: tensor<1x1xf32>, %init: tensor<7x5xf32>) -> tensor<7x5xf32> {
  %0 = linalg.conv_2d ins(%x, %w : tensor<7x5xf32>, tensor<1x1xf32>)
    outs(%init : tensor<7x5xf32>) -> tensor<7x5xf32>
  return %0 : tensor<7x5xf32>
}
func.func @pool(%x: tensor<2x9x9x5xf32>) -> tensor<2x5x5x5xf32> {
  %least = arith.constant 0xFF800000 : f32
  %window = tensor.empty() : tensor<3x3xf32>
  %padded = tensor.pad %x low[0, 1, 1, 0] high[0, 1, 1, 0] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %least : f32
  } : tensor<2x9x9x5xf32> to tensor<2x11x11x5xf32>
  %room = tensor.empty() : tensor<2x5x5x5xf32>
  %full = linalg.fill ins(%least : f32) outs(%room : tensor<2x5x5x5xf32>) -> tensor<2x5x5x5xf32>
  %0 = linalg.pooling_nhwc_max {strides = dense<2> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>}
    ins(%padded, %window : tensor<2x11x11x5xf32>, tensor<3x3xf32>) outs(%full : tensor<2x5x5x5xf32>)
    -> tensor<2x5x5x5xf32>
  return %0 : tensor<2x5x5x5xf32>
}
func.func @quantised(%x: tensor<1x9x9x4xi8>, %w: tensor<3x3x4x8xi8>, %x_zero: i32, %w_zero: i32,
                     %init: tensor<1x7x7x8xi32>) -> tensor<1x7x7x8xi32> {
  %0 = linalg.conv_2d_nhwc_hwcf_q {strides = dense<1> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>}
    ins(%x, %w, %x_zero, %w_zero : tensor<1x9x9x4xi8>, tensor<3x3x4x8xi8>, i32, i32)
    outs(%init : tensor<1x7x7x8xi32>) -> tensor<1x7x7x8xi32>
  return %0 : tensor<1x7x7x8xi32>
}
func.func @quantised_padded(%x: tensor<1x5x5x4xi8>, %w: tensor<3x3x4x8xi8>, %x_zero: i32, %w_zero: i32,
                            %init: tensor<1x7x7x8xi32>) -> tensor<1x7x7x8xi32> {
  %zero = arith.constant 0 : i8
  %padded = tensor.pad %x low[0, 2, 1, 0] high[0, 2, 3, 0] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : i8
  } : tensor<1x5x5x4xi8> to tensor<1x9x9x4xi8>
  %0 = linalg.conv_2d_nhwc_hwcf_q {strides = dense<1> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>}
    ins(%padded, %w, %x_zero, %w_zero : tensor<1x9x9x4xi8>, tensor<3x3x4x8xi8>, i32, i32)
    outs(%init : tensor<1x7x7x8xi32>) -> tensor<1x7x7x8xi32>
  return %0 : tensor<1x7x7x8xi32>
}
"""


@functools.cache
def _others() -> Executable:
    return devscope.compile(_POOLING)


def test_one_filter_of_each_group() -> None:
    """Which filters say, and not the type of the result."""
    maps = ("(n, g, f, x, k) -> (n, x + k, g)", "(n, g, f, x, k) -> (g, f, k)", "(n, g, f, x, k) -> (n, x, g, f)")
    text = f"""
        func.func @main(%x: tensor<1x6x3xi32>, %w: tensor<3x1x3xi32>, %o: tensor<1x4x3x?xi32>)
            -> tensor<1x4x3x?xi32> {{
          %0 = linalg.generic {{indexing_maps = [{", ".join(f"affine_map<{each}>" for each in maps)}],
              iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}}
              ins(%x, %w : tensor<1x6x3xi32>, tensor<3x1x3xi32>) outs(%o : tensor<1x4x3x?xi32>) {{
          ^bb0(%a: i32, %b: i32, %s: i32):
            %p = arith.muli %a, %b : i32
            %r = arith.addi %s, %p : i32
            linalg.yield %r : i32
          }} -> tensor<1x4x3x?xi32>
          return %0 : tensor<1x4x3x?xi32>
        }}
    """
    x, w = np.arange(18, dtype=np.int32).reshape(1, 6, 3), np.arange(9, dtype=np.int32).reshape(3, 1, 3)
    want = sum(x[:, k : k + 4, :, None] * w[..., k] for k in range(3))
    np.testing.assert_array_equal(devscope.compile(text)(x, w, np.zeros((1, 4, 3, 1), np.int32)), want)


def test_filter_of_one_element() -> None:
    x = np.arange(35, dtype=np.float32).reshape(7, 5)
    np.testing.assert_array_equal(_others().run("one", x, np.full((1, 1), 3, np.float32), x), 4 * x)


def test_padded_pooling_of_special_values() -> None:
    x = np.random.default_rng(3).standard_normal((2, 9, 9, 5)).astype(np.float32)
    x[0, 2, 3, 1], x[1, 0, 0, 4], x[1, 8, 8] = np.nan, np.inf, -np.inf
    inside = np.full((2, 11, 11, 5), -np.inf, np.float32)
    inside[:, 1:-1, 1:-1] = x
    windows = [inside[:, i : i + 9 : 2, j : j + 9 : 2] for i in range(3) for j in range(3)]
    np.testing.assert_array_equal(_others().run("pool", x), functools.reduce(np.maximum, windows))


@pytest.mark.parametrize("layouts", [_NHWC, _NCHW])
@pytest.mark.parametrize("holes", [1, 2])
def test_constant_filters(layouts: tuple[str, str, str], holes: int) -> None:
    """They are packed before: nothing is left of the plain ones. What is outside of the image is multiplied by
    those that are not finite, holes are not."""
    case = Case(layouts, size=9, low=1, high=1, channels=8, filters=40, relu=holes == 1, holes=holes)
    rng = np.random.default_rng(8)
    x, w, init = (rng.integers(-2, 3, case.shape(n)).astype(np.float32) for n in range(3))
    type_ = f"tensor<{'x'.join(map(str, case.shape(1)))}xf32>"
    head, _, body = case.text("main").replace(f", %w: {type_}", "", 1).partition("\n")
    for last in (1, np.inf) if holes == 1 else (1,):
        w.flat[-1] = last
        executable = devscope.compile(
            f'{head}\n%w = arith.constant dense<"0x{w.tobytes().hex()}"> : {type_}\n{body}'
        )
        assert sum(math.prod(constant.shape) for constant in executable.program.constants) < 1.5 * w.size
        with np.errstate(invalid="ignore"):
            np.testing.assert_array_equal(executable.run("main", x, init), case.reference(x, w, init))


@pytest.mark.parametrize("result", ["f32", "bf16"])
@pytest.mark.parametrize("layouts", [_NHWC, _NCHW, ("nhwc", "fchw", "nfhw"), ("nwc", "wcf", "nwf")])
def test_constant_filters_of_brain_floats(layouts: tuple[str, str, str], result: str) -> None:
    """Where a processor can, two channels are multiplied at once; not what is subnormal, which it takes for 0."""
    types = ("bf16", "bf16", result)
    case = Case(layouts, low=1, high=2, strides=2, channels=12, filters=40, relu=True, types=types, dynamic="n")
    rng = np.random.default_rng(9)
    x, w, init = (rng.integers(-2, 3, case.shape(n)).astype(_TYPES[case.types[n]]) for n in range(3))
    type_ = f"tensor<{'x'.join(map(str, case.shape(1)))}xbf16>"
    head, _, body = case.text("main").replace(f", %w: {type_}", "", 1).partition("\n")
    for last in (1, np.inf):
        w.flat[-1] = last
        executable = devscope.compile(
            f'{head}\n%w = arith.constant dense<"0x{w.tobytes().hex()}"> : {type_}\n{body}', threads=2
        )
        for scale, one in ((1, 2), (2.0**-120, 0), (2.0**-130, 1), (1, np.nan), (1, -np.inf)):
            image = (x.astype(np.float64) * scale).astype(x.dtype)
            image.flat[7] = one * scale
            with np.errstate(invalid="ignore", over="ignore"):
                right = case.reference(image, w, init).astype(_TYPES[result]).astype(np.float64)
                found = executable.run("main", image, init).astype(np.float64)
                np.testing.assert_array_equal(found, right, f"{last} {scale} {one}")


def test_zero_points() -> None:
    case = replace(_CASES["i8"], size=9, channels=4, filters=8, batch=1, low=0, high=0, fill=False)
    rng = np.random.default_rng(4)
    x, w = (rng.integers(-128, 128, case.shape(n)).astype(np.int8) for n in (0, 1))
    init = np.ones(case.shape(2), np.int32)
    expected = case.reference(x - np.float64(3), w - np.float64(-5), init)
    np.testing.assert_array_equal(_others().run("quantised", x, w, np.int32(3), np.int32(-5), init), expected)
    # Zeros of the padding are elements: their zero point is taken off, too.
    part = x[:, 2:7, 1:6].copy()
    x[...] = 0
    x[:, 2:7, 1:6] = part
    expected = case.reference(x - np.float64(3), w - np.float64(-5), init)
    found = _others().run("quantised_padded", part, w, np.int32(3), np.int32(-5), init)
    np.testing.assert_array_equal(found, expected)


OF_SMALL_STACKS = """
func.func @main(%x: tensor<1x40x40x64xf32>, %w: tensor<3x3x64x64xf32>) -> tensor<1x40x40x64xf32> {
  %zero = arith.constant 0.0 : f32
  %padded = tensor.pad %x low[0, 1, 1, 0] high[0, 1, 1, 0] {
    ^bb0(%a: index, %b: index, %c: index, %d: index):
      tensor.yield %zero : f32 } : tensor<1x40x40x64xf32> to tensor<1x42x42x64xf32>
  %e = tensor.empty() : tensor<1x40x40x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x40x40x64xf32>) -> tensor<1x40x40x64xf32>
  %r = linalg.conv_2d_nhwc_hwcf ins(%padded, %w : tensor<1x42x42x64xf32>, tensor<3x3x64x64xf32>)
    outs(%f : tensor<1x40x40x64xf32>) -> tensor<1x40x40x64xf32>
  return %r : tensor<1x40x40x64xf32>
}
"""


@pytest.mark.parametrize("threads", [1, 2])
def test_small_stacks(threads: int) -> None:
    """A task that packs more than the stack of the thread that calls has room for."""
    program = devscope.compile(OF_SMALL_STACKS, threads=threads)
    rng = np.random.default_rng(0)
    x, w = rng.random((1, 40, 40, 64), np.float32), rng.random((3, 3, 64, 64), np.float32)
    found: list[Any] = []
    before = threading.stack_size(1 << 16)
    try:
        thread = threading.Thread(target=lambda: found.append(program(x, w)))
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    np.testing.assert_array_equal(found[0], program(x, w))


def test_one_channel_on_a_device_adds_to_what_is_there() -> None:
    """Vectors of one element are numbers there, which `vector.fma` does not take."""
    made = devscope.compile(
        """
        func.func @main(%x: tensor<?x?x1xf32>, %w: tensor<3x1xf32>, %sums: tensor<?x?x1xf32>)
            -> tensor<?x?x1xf32> {
          %r = linalg.depthwise_conv_1d_nwc_wc ins(%x, %w : tensor<?x?x1xf32>, tensor<3x1xf32>)
                                               outs(%sums : tensor<?x?x1xf32>) -> tensor<?x?x1xf32>
          return %r : tensor<?x?x1xf32>
        }""",
        default="opencl:0",
    )
    rng = np.random.default_rng(0)
    x, w, sums = (rng.standard_normal(shape).astype(np.float32) for shape in ((2, 9, 1), (3, 1), (2, 7, 1)))
    expected = sums + sum(x[:, k : k + 7] * w[k] for k in range(3))
    np.testing.assert_allclose(made(x, w, sums), expected, rtol=1e-5, atol=1e-6)


_SLICES = {
    "[0, 0, 1, 1] [2, 8, 16, 16] [1, 1, 1, 1]": (slice(1, 17), slice(1, 17)),
    "[0, 0, 1, 2] [2, 8, 16, 16] [1, 1, 2, 1]": (slice(1, 32, 2), slice(2, 18)),
    "[0, 0, 3, 1] [2, 8, 16, 16] [1, 1, 1, 2]": (slice(3, 19), slice(1, 32, 2)),
}


@pytest.mark.parametrize("place", _SLICES)
def test_what_follows_reads_and_writes_slices(place: str) -> None:
    """The pixels of the result are one axis, those of a slice are not."""
    image, result = "tensor<2x8x16x16xf32>", "tensor<2x8x34x34xf32>"
    source = f"""
        func.func @main(%x: tensor<2x8x18x18xf32>, %w: tensor<8x8x3x3xf32>, %y: {result}) -> {result} {{
          %zero = arith.constant 0.0 : f32
          %empty = tensor.empty() : {image}
          %whole = tensor.empty() : {result}
          %filled = linalg.fill ins(%zero : f32) outs(%whole : {result}) -> {result}
          %zeros = linalg.fill ins(%zero : f32) outs(%empty : {image}) -> {image}
          %sums = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<2x8x18x18xf32>, tensor<8x8x3x3xf32>)
            outs(%zeros : {image}) -> {image}
          %part = tensor.extract_slice %y{place} : {result} to {image}
          %done = linalg.add ins(%sums, %part : {image}, {image}) outs(%empty : {image}) -> {image}
          %end = tensor.insert_slice %done into %filled{place} : {image} into {result}
          return %end : {result}
        }}
    """
    rng = np.random.default_rng(0)
    x, w, y = (rng.integers(-4, 5, s).astype(np.float32) for s in ((2, 8, 18, 18), (8, 8, 3, 3), (2, 8, 34, 34)))
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (2, 3))
    want, at = np.zeros_like(y), (slice(None), slice(None), *_SLICES[place])
    want[at] = np.einsum("nchwij,fcij->nfhw", windows, w) + y[at]
    with devscope.compile(source, cache=False) as executable:
        np.testing.assert_array_equal(executable(x, w, y), want)


_FEW = """
func.func @{name}(%x: {image}, %w: {filters}, %bias: tensor<{count}x{element}>) -> {result} {{
  %zero = arith.constant {zero} : {element}
  %padded = tensor.pad %x low[{pads}] high[{pads}] {{
  ^bb0({indices}):
    tensor.yield %zero : {element}
  }} : {image} to {wide}
  %empty = tensor.empty() : {result}
  %zeros = linalg.fill ins(%zero : {element}) outs(%empty : {result}) -> {result}
  %sums = linalg.conv_2d_{layout} {{strides = dense<[2, 1]> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>}}
    ins(%padded, %w : {wide}, {filters}) outs(%zeros : {result}) -> {result}
  %biases = linalg.broadcast ins(%bias : tensor<{count}x{element}>) outs(%empty : {result}) dimensions = {others}
  %done = linalg.add ins(%sums, %biases : {result}, {result}) outs(%empty : {result}) -> {result}
  return %done : {result}
}}
"""


@pytest.mark.parametrize("target", ["cpu:0", "opencl:0"])
def test_few_filters_of_planes(target: str) -> None:
    rng, cases, text = np.random.default_rng(4), dict[str, list[Array]](), ""
    for element, groups, count in itertools.product(("f32", "i32"), (0, 2), (1, 3)):
        name = f"{element}_{groups}_{count}"
        inside = [2, *([groups] if groups else []), 5]

        def shaped(*shape: int, of: str = element) -> str:
            return f"tensor<{'x'.join(map(str, shape))}x{of}>"

        weights = [*([count, groups] if groups else [count]), 5, 3, 3]
        others = [axis for axis in range(len(inside) + 2) if axis != len(inside) - 1]
        text += _FEW.format(
            name=name,
            element=element,
            zero="0" if element == "i32" else "0.0",
            count=count,
            layout="ngchw_fgchw" if groups else "nchw_fchw",
            image=shaped(*inside, 19, 21),
            wide=shaped(*inside, 21, 23),
            filters=shaped(*weights),
            result=shaped(*inside[:-1], count, 10, 21),
            pads=", ".join(["0"] * len(inside) + ["1", "1"]),
            indices=", ".join(f"%i{axis}: index" for axis in range(len(inside) + 2)),
            others=others,
        )
        dtype = np.int32 if element == "i32" else np.float32
        cases[name] = [rng.integers(-4, 5, s).astype(dtype) for s in ((*inside, 19, 21), weights, (count,))]
    with devscope.compile(text, default=target) as executable:
        for name, (x, w, bias) in cases.items():
            padded = np.pad(x, [*[(0, 0)] * (x.ndim - 2), (1, 1), (1, 1)])
            windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (-2, -1))[..., ::2, :, :, :]
            to = "ngchwij,fgcij->ngfhw" if x.ndim == 5 else "nchwij,fcij->nfhw"
            want = np.einsum(to, windows, w) + bias[:, None, None]
            np.testing.assert_array_equal(executable.run(name, x, w, bias), want, name)
