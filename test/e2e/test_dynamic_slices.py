"""Slices along another axis than the first, of tensors with extents that are known as the program runs.

The types of their buffers do not say that their rows lie apart, so nothing may take them for whole ones.
"""

from __future__ import annotations

import numpy as np
import pytest

import devscope

PROGRAM = """
#there = #device.scope<"opencl", 0 : i64, "", "">
!whole = tensor<2x12x?xf32>
!part = tensor<2x4x?xf32>
func.func private @parts(%y: !whole) -> (!part, !part) {
  %c2 = arith.constant 2 : index
  %t = tensor.dim %y, %c2 : !whole
  %z = tensor.extract_slice %y[0, 0, 0] [2, 4, %t] [1, 1, 1] : !whole to !part
  %f = tensor.extract_slice %y[0, 4, 0] [2, 4, %t] [1, 1, 1] : !whole to !part
  return %z, %f : !part, !part
}
func.func private @twice(%y: !part) -> !part {
  %0 = arith.addf %y, %y : !part
  return %0 : !part
}
func.func @main(%x: !whole) -> (!part, !part, !part, !part) {
  %y = arith.mulf %x, %x {device.scope = #there} : !whole
  %0:2 = call @parts(%x) : (!whole) -> (!part, !part)
  %1:2 = call @parts(%y) : (!whole) -> (!part, !part)
  %c2 = arith.constant 2 : index
  %t = tensor.dim %y, %c2 : !whole
  %z = tensor.extract_slice %y[0, 0, 0] [2, 4, %t] [1, 1, 1] : !whole to !part
  %2 = call @twice(%z) : (!part) -> !part
  %3 = call @twice(%1#0) : (!part) -> !part
  return %0#0, %1#1, %2, %3 : !part, !part, !part, !part
}
// As a part of a convolution's channels that goes back to the host.
func.func @returned(%x: !whole) -> (!part, !part) {
  %y = arith.mulf %x, %x {device.scope = #there} : !whole
  %0:2 = call @parts(%y) : (!whole) -> (!part, !part)
  return %0#0, %0#1 : !part, !part
}
"""


@pytest.mark.parametrize("default", ["cpu:0", "opencl:0"])
@pytest.mark.parametrize("devices", [{}, {"opencl:0": "cpu:0"}], ids=["there", "here"])
def test_dynamic_slices(default: str, devices: dict[str, str]) -> None:
    with devscope.compile(PROGRAM, default=devices.get(default, default), devices=devices) as program:
        for size in (6, 1, 0):
            x = np.random.default_rng(0).standard_normal((2, 12, size)).astype(np.float32)
            y = x * x
            expected = {
                "main": (x[:, :4], y[:, 4:8], 2 * y[:, :4], 2 * y[:, :4]),
                "returned": (y[:, :4], y[:, 4:8]),
            }
            for entry, parts in expected.items():
                for found, part in zip(program.run(entry, x), parts, strict=True):
                    np.testing.assert_array_equal(found, part)


RANK_REDUCED = """
#there = #device.scope<"opencl", 0 : i64, "", "">
#here = #device.scope<"cpu", 0 : i64, "", "">
func.func @main(%x: tensor<?x?x?xf32>) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %a = tensor.dim %x, %c0 : tensor<?x?x?xf32>
  %c = tensor.dim %x, %c2 : tensor<?x?x?xf32>
  %y = arith.addf %x, %x {device.scope = #there} : tensor<?x?x?xf32>
  %z = tensor.extract_slice %y[0, 0, 0] [%a, 1, %c] [1, 1, 1] {device.scope = #here}
    : tensor<?x?x?xf32> to tensor<?x?xf32>
  %w = math.absf %z {device.scope = #there} : tensor<?x?xf32>
  return %w : tensor<?x?xf32>
}
"""


def test_slices_between_devices() -> None:
    """To the device, to the host for the slice, and back: rows that lie apart are copied into whole ones."""
    with devscope.compile(RANK_REDUCED, default="cpu:0") as program:
        for shape in ((5, 3, 7), (1, 1, 1), (2, 4, 0), (0, 2, 3)):
            x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
            np.testing.assert_array_equal(program.run("main", x), np.abs(2 * x[:, 0]))
