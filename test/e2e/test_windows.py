"""Convolutions and pooling of every layout compute what numpy does: strides, dilations, windows that leave the end
of an input unread, results of one element along an axis.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from test_workgroup_tiles import gpu  # noqa: F401  (a fixture)

import devscope
from devscope.runtime.executable import Executable

pytestmark = pytest.mark.sampled(12)

Array = np.ndarray[Any, np.dtype[Any]]
_SPATIAL = "dhw"


@dataclass(frozen=True)
class Window:
    """One operation; ``window`` and ``extents`` are sizes along the spatial axes of the kernel and the result,
    ``unread`` is how many elements at the end of the input are not read along each."""

    name: str
    window: tuple[int, ...]
    extents: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    unread: tuple[int, ...]
    dynamic: bool = False

    @property
    def kind(self) -> str:
        return self.name.rsplit("_", 1)[-1] if self.name.startswith("pooling") else "conv"

    @property
    def layouts(self) -> tuple[str, str, str]:
        """Of the input, the kernel and the result, a letter for each axis."""
        parts = [part for part in self.name.split("_") if set(part) <= set("nchwdfgm") and part[0] in "nchwdfg"]
        if not parts:  # conv_1d and so on
            letters = "dhw"[3 - int(self.name[5]) :]
            return letters, letters, letters
        if self.name.startswith("pooling"):
            return parts[0], "".join(letter for letter in parts[0] if letter in _SPATIAL), parts[0]
        image, kernel = parts
        if self.name.startswith("depthwise"):
            return image, kernel, image + ("m" if "m" in kernel else "")
        return image, kernel, image.replace("c", "f") if "f" in kernel else image

    def size(self, letter: str) -> tuple[int, int, int]:
        """Along an axis, of the input, the kernel and the result."""
        if letter not in _SPATIAL:
            return ({"n": 2, "c": 3, "f": 4, "g": 2, "m": 2}[letter],) * 3
        axis = [spatial for spatial in _SPATIAL if spatial in self.layouts[0]].index(letter)
        last = (self.extents[axis] - 1) * self.strides[axis] + (self.window[axis] - 1) * self.dilations[axis]
        return last + 1 + self.unread[axis], self.window[axis], self.extents[axis]

    def shapes(self) -> list[list[int]]:
        return [[self.size(letter)[n] for letter in layout] for n, layout in enumerate(self.layouts)]

    def text(self, symbol: str) -> str:
        def shaped(shape: Sequence[int], layout: str) -> str:
            sizes = [
                "?" if self.dynamic and letter in _SPATIAL else str(n)
                for n, letter in zip(shape, layout, strict=True)
            ]
            return f"tensor<{'x'.join([*sizes, 'f32'])}>"

        types = [shaped(shape, layout) for shape, layout in zip(self.shapes(), self.layouts, strict=True)]
        types[2] = f"tensor<{'x'.join([*map(str, self.shapes()[2]), 'f32'])}>"
        count = len(self.strides)
        attributes = "".join(
            f"{name} = dense<{list(values)}> : tensor<{count}xi64>, "
            for name, values in (("strides", self.strides), ("dilations", self.dilations))
        )
        plain = self.name in ("conv_1d", "conv_2d", "conv_3d")
        return f"""
        func.func @{symbol}(%x: {types[0]}, %k: {types[1]}, %init: {types[2]}) -> {types[2]} {{
          %0 = linalg.{self.name} {"" if plain else f"{{{attributes[:-2]}}}"}
            ins(%x, %k : {types[0]}, {types[1]}) outs(%init : {types[2]}) -> {types[2]}
          return %0 : {types[2]}
        }}
        """

    def reference(self, x: Array, kernel: Array, init: Array) -> Array:
        image, weights, result = self.layouts
        out = init.astype(np.float64)
        for position in itertools.product(*map(range, self.window)):
            at = dict(zip([letter for letter in _SPATIAL if letter in image], position, strict=True))
            part = x[tuple(self._read(letter, at) if letter in _SPATIAL else slice(None) for letter in image)]
            if self.kind == "conv":
                factor = kernel[tuple(at.get(letter, slice(None)) for letter in weights)]
                rest = "".join(letter for letter in weights if letter not in _SPATIAL)
                out += np.einsum(f"{image},{rest}->{result}", part.astype(np.float64), factor)
            else:
                out = {"max": np.maximum, "min": np.minimum, "sum": np.add}[self.kind](out, part)
        return out

    def _read(self, letter: str, at: dict[str, int]) -> slice:
        axis = list(at).index(letter)
        first = at[letter] * self.dilations[axis]
        return slice(first, first + (self.extents[axis] - 1) * self.strides[axis] + 1, self.strides[axis])


NAMES = [
    *("conv_1d", "conv_2d", "conv_3d"),
    *(f"conv_1d_{layouts}" for layouts in ("ncw_fcw", "nwc_wcf")),
    *(f"conv_2d_{layouts}" for layouts in ("nchw_fchw", "nhwc_hwcf", "nhwc_fhwc", "ngchw_fgchw")),
    *(f"conv_3d_{layouts}" for layouts in ("ncdhw_fcdhw", "ndhwc_dhwcf")),
    *(f"depthwise_conv_1d_{layouts}" for layouts in ("ncw_cw", "nwc_wc", "nwc_wcm")),
    *(f"depthwise_conv_2d_{layouts}" for layouts in ("nchw_chw", "nhwc_hwc", "nhwc_hwcm")),
    *(f"depthwise_conv_3d_{layouts}" for layouts in ("ncdhw_cdhw", "ndhwc_dhwc", "ndhwc_dhwcm")),
    *(f"pooling_{layout}_{kind}" for layout in ("ncw", "nchw") for kind in ("max", "sum")),
    *(f"pooling_{layout}_{kind}" for layout in ("nwc", "nhwc", "ndhwc") for kind in ("max", "min", "sum")),
]


def windows(name: str) -> list[Window]:
    probe = Window(name, (), (), (), (), ())
    rank = sum(letter in _SPATIAL for letter in probe.layouts[0])
    ones, twos = (1,) * rank, (2,) * rank
    unread = (1,) * rank
    if name in ("conv_1d", "conv_2d", "conv_3d"):
        return [Window(name, twos, ones, ones, ones, (0,) * rank)]
    return [
        Window(name, (3, 2, 2)[:rank], ones, twos, ones, unread),
        Window(name, (2, 3, 2)[:rank], (2, 1, 1)[-rank:], twos, (2, 1, 2)[:rank], unread),
        Window(name, ones, ones, twos, ones, unread),
        Window(name, (1, 2, 1)[:rank], (3, 2, 2)[:rank], twos, ones, unread),
        Window(name, (3, 2, 2)[:rank], ones, twos, ones, unread, dynamic=True),
    ]


#: One case of each operation, and more of some.
CASES = {
    f"{name}_{case}": window
    for number, name in enumerate(NAMES)
    for case, window in enumerate(windows(name))
    if case in (number % 5, 0 if number % 3 == 0 else None)
}

#: Contractions, with and without sizes.
CASES |= {
    f"{name}_{kind}": Window(name, ones, (3, 2, 2)[: len(ones)], ones, ones, (0,) * len(ones), kind == "some")
    for name in NAMES
    if name.startswith("conv_") and "_n" in name
    for kind in ("ones", "some")
    for ones in [(1,) * int(name[5])]
}

GENERIC = """
func.func @generic(%x: tensor<8xf32>, %k: tensor<7xf32>, %init: tensor<1xf32>) -> tensor<1xf32> {
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i * 2 + j)>, affine_map<(i, j) -> (j)>,
      affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%x, %k : tensor<8xf32>, tensor<7xf32>) outs(%init : tensor<1xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %1 = arith.mulf %a, %b : f32
    %2 = arith.addf %1, %c : f32
    linalg.yield %2 : f32
  } -> tensor<1xf32>
  return %0 : tensor<1xf32>
}
"""


@functools.cache
def compiled(target: str) -> Executable:
    chosen = list(CASES.items())[:: 1 if target == "cpu" else 3]
    text = "".join(window.text(symbol) for symbol, window in chosen)
    return devscope.compile(text + GENERIC, default=f"{target}:0")


@pytest.mark.parametrize("target", ["cpu", "opencl"])
def test_named_operations(target: str) -> None:
    rng = np.random.default_rng(5)
    executable = compiled(target)
    for symbol in executable.entries:
        if symbol not in CASES:
            continue
        window = CASES[symbol]
        arguments = [rng.integers(-4, 5, shape).astype(np.float32) for shape in window.shapes()]
        found = executable.run(symbol, *arguments)
        np.testing.assert_array_equal(found, window.reference(*arguments), symbol)


@pytest.mark.parametrize("target", ["cpu", "opencl"])
def test_a_generic_operation(target: str) -> None:
    x = np.arange(8, dtype=np.float32)
    found = compiled(target).run("generic", x, np.ones(7, np.float32), np.ones(1, np.float32))
    assert found == [1 + math.fsum(x[:7])]


def test_pooling_by_work_items(gpu: None) -> None:  # noqa: F811
    """As GPUs do it, each result by one work-item."""
    rng = np.random.default_rng(5)
    chosen = {symbol: window for symbol, window in CASES.items() if window.kind != "conv"}
    chosen = dict(list(chosen.items())[::8])
    text = "".join(window.text(symbol) for symbol, window in chosen.items())
    executable = devscope.compile(text, default="opencl:0", cache=False)
    for symbol, window in chosen.items():
        arguments = [rng.integers(-4, 5, shape).astype(np.float32) for shape in window.shapes()]
        found = executable.run(symbol, *arguments)
        np.testing.assert_array_equal(found, window.reference(*arguments), symbol)


WHOLE = """
func.func @main(%x: tensor<?x{channels}x{size}xf32>) -> tensor<?x{channels}x{ones}xf32> {{
  %c0 = arith.constant 0 : index
  %first = arith.constant {first} : f32
  %n = tensor.dim %x, %c0 : tensor<?x{channels}x{size}xf32>
  %window = tensor.empty() : tensor<{size}xf32>
  %e = tensor.empty(%n) : tensor<?x{channels}x{ones}xf32>
  %f = linalg.fill ins(%first : f32) outs(%e : tensor<?x{channels}x{ones}xf32>) -> tensor<?x{channels}x{ones}xf32>
  %y = math.absf %x : tensor<?x{channels}x{size}xf32>
  %0 = linalg.pooling_{name} ins(%y, %window : tensor<?x{channels}x{size}xf32>, tensor<{size}xf32>)
    outs(%f : tensor<?x{channels}x{ones}xf32>) -> tensor<?x{channels}x{ones}xf32>
  return %0 : tensor<?x{channels}x{ones}xf32>
}}
"""


@pytest.mark.parametrize("target", ["cpu", "opencl", "gpu"])
@pytest.mark.parametrize("name", ["ncw_max", "nchw_max", "nchw_sum"])
def test_windows_as_large_as_the_image(name: str, target: str, request: pytest.FixtureRequest) -> None:
    """Also of what is computed, of NaN and infinities, and of no images; on GPUs work-items share each sum."""
    if target == "gpu":
        request.getfixturevalue("gpu")
        target = "opencl"
    rank, rng = len(name.split("_")[0]) - 2, np.random.default_rng(7)
    size, ones = "x".join(["9", "23"][-rank:]), "x".join("1" * rank)
    first = "0xFF800000" if name.endswith("max") else "0.0"
    text = WHOLE.format(name=name, channels=5, size=size, ones=ones, first=first)
    program = devscope.compile(text, default=f"{target}:0", cache=False)
    reduce = np.max if name.endswith("max") else np.sum
    for images in (0, 1, 3):
        x = rng.standard_normal((images, 5, *([9, 23][-rank:]))).astype(np.float32)
        if images:
            x[0, 0, 1], x[0, 1, 2], x[0, 2] = np.nan, -np.inf, 0
        want = reduce(np.abs(x), axis=tuple(range(2, 2 + rank)), keepdims=True)
        np.testing.assert_allclose(program(x), want, rtol=1e-5)


JOINED = """
func.func @main(%x: tensor<2x3x{high}x9xf32>, %w: tensor<3x{size}x{size}xf32>, %init: {result},
    %bias: tensor<3xf32>, %by_row: tensor<{rows}xf32>, %more: {result}) -> {result} {{
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : {result}
  %f = linalg.fill ins(%zero : f32) outs(%e : {result}) -> {result}
  %p = tensor.pad %x low[0, 0, {pad}, {pad}] high[0, 0, {pad}, {pad}] {{
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f32
  }} : tensor<2x3x{high}x9xf32> to tensor<2x3x{padded}xf32>
  %0 = linalg.depthwise_conv_2d_nchw_chw {{strides = dense<[{stride}, 1]> : tensor<2xi64>,
      dilations = dense<1> : tensor<2xi64>}} ins(%p, %w : tensor<2x3x{padded}xf32>, tensor<3x{size}x{size}xf32>)
    outs({begin} : {result}) -> {result}
  %1 = linalg.generic {{indexing_maps = [affine_map<(n, c, h, w) -> (n, c, h, w)>, affine_map<(n, c, h, w) -> (c)>,
      affine_map<(n, c, h, w) -> (h)>, affine_map<(n, c, h, w) -> (n, c, h, w)>,
      affine_map<(n, c, h, w) -> (n, c, h, w)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}}
    ins(%0, %bias, %by_row, %more : {result}, tensor<3xf32>, tensor<{rows}xf32>, {result}) outs(%e : {result}) {{
  ^bb0(%a: f32, %b: f32, %c: f32, %d: f32, %o: f32):
    %s = arith.addf %a, %b : f32
    %r = arith.maximumf %s, %c : f32
    %t = arith.addf %r, %d : f32
    linalg.yield %t : f32
  }} -> {result}
  return %1 : {result}
}}
"""


@pytest.mark.parametrize("begin", ["%f", "%init"])
@pytest.mark.parametrize(("rows", "size", "stride"), [(7, 3, 1), (14, 5, 1), (5, 3, 2), (12, 3, 2), (11, 3, 1)])
def test_rows_that_are_computed_at_once(rows: int, size: int, stride: int, begin: str) -> None:
    """Also what is done with each row behind, of NaN and infinities."""
    pad, rng = size // 2, np.random.default_rng(rows)
    high, padded = (rows - 1) * stride + 1, f"{(rows - 1) * stride + size}x{9 + 2 * pad}"
    names = {"pad": pad, "high": high, "padded": padded, "size": size, "stride": stride, "rows": rows}
    program = devscope.compile(
        JOINED.format(result=f"tensor<2x3x{rows}x9xf32>", begin=begin, **names), cache=False
    )
    shapes = (2, 3, high, 9), (3, size, size), (2, 3, rows, 9), (3,), (rows,), (2, 3, rows, 9)
    x, w, init, bias, by_row, more = (rng.standard_normal(shape).astype(np.float32) for shape in shapes)
    x[0, 1, 2, 3], x[1, 2, 0, 0], more[0, 0, 1, 1] = np.nan, np.inf, -np.inf
    image = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    out = np.zeros_like(init) if begin == "%f" else init.copy()
    for i, j in itertools.product(range(size), repeat=2):
        part = image[:, :, i : i + (rows - 1) * stride + 1 : stride, j : j + 9]
        with np.errstate(invalid="ignore"):
            out += part * w[:, i, j][:, None, None]
    want = np.maximum(out + bias[:, None, None], by_row[:, None]) + more
    np.testing.assert_allclose(program(x, w, init, bias, by_row, more), want, rtol=1e-4, atol=1e-4)


_ONE = """
func.func @column(%x: tensor<1x3x?x2xf32>, %k: tensor<3x1x2xf32>, %init: tensor<1x3x?x1xf32>)
    -> tensor<1x3x?x1xf32> {
  %0 = linalg.depthwise_conv_2d_nchw_chw {strides = dense<1> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>}
    ins(%x, %k : tensor<1x3x?x2xf32>, tensor<3x1x2xf32>) outs(%init : tensor<1x3x?x1xf32>) -> tensor<1x3x?x1xf32>
  return %0 : tensor<1x3x?x1xf32>
}
func.func @channel(%x: tensor<2x21x19x1xf32>, %k: tensor<3x3xf32>, %least: tensor<1x17xf32>)
    -> tensor<2x10x17x1xf32> {
  %low = arith.constant 0xFF800000 : f32
  %empty = tensor.empty() : tensor<2x10x17x1xf32>
  %init = linalg.fill ins(%low : f32) outs(%empty : tensor<2x10x17x1xf32>) -> tensor<2x10x17x1xf32>
  %0 = linalg.pooling_nhwc_max {strides = dense<[2, 1]> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>}
    ins(%x, %k : tensor<2x21x19x1xf32>, tensor<3x3xf32>) outs(%init : tensor<2x10x17x1xf32>)
    -> tensor<2x10x17x1xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(n, h, w, c) -> (n, h, w, c)>,
      affine_map<(n, h, w, c) -> (c, w)>, affine_map<(n, h, w, c) -> (n, h, w, c)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%0, %least : tensor<2x10x17x1xf32>, tensor<1x17xf32>) outs(%empty : tensor<2x10x17x1xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %2 = arith.maximumf %a, %b : f32
    linalg.yield %2 : f32
  } -> tensor<2x10x17x1xf32>
  return %1 : tensor<2x10x17x1xf32>
}
"""


@pytest.mark.parametrize("target", ["cpu", "opencl"])
def test_one_column_or_channel(target: str) -> None:
    """Rows are side by side then. Intel's driver ended the process where rows of unknown number were not."""
    rng = np.random.default_rng(3)
    with devscope.compile(_ONE, default=f"{target}:0") as executable:
        for rows in (1, 40, 2000):
            x, k, init = (
                rng.integers(-4, 5, shape).astype(np.float32)
                for shape in ((1, 3, rows, 2), (3, 1, 2), (1, 3, rows, 1))
            )
            want = init + (x * k.transpose(1, 0, 2)[..., None, :]).sum(-1, keepdims=True)
            np.testing.assert_array_equal(executable.run("column", x, k, init), want)
        x, least = (rng.integers(-4, 5, shape).astype(np.float32) for shape in ((2, 21, 19, 1), (1, 17)))
        pooled = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (1, 2))[:, ::2].max((-2, -1))
        want = np.maximum(pooled, least.T)
        found = executable.run("channel", x, np.ones((3, 3), np.float32), least)
        np.testing.assert_array_equal(found, want)
