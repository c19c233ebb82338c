"""Integers of odd widths, and buffers that a program frees itself."""

from __future__ import annotations

import numpy as np
import pytest

import devscope
from devscope.errors import LoweringError

ODD = """
func.func @main(%x: tensor<6xi32>) -> (tensor<6xi32>, tensor<6xi32>) {
  %a = arith.trunci %x : tensor<6xi32> to tensor<6xi4>
  %b = arith.addi %a, %a : tensor<6xi4>
  %c = arith.extsi %b : tensor<6xi4> to tensor<6xi32>
  %d = arith.trunci %x : tensor<6xi32> to tensor<6xi12>
  %e = arith.muli %d, %d : tensor<6xi12>
  %f = arith.extui %e : tensor<6xi12> to tensor<6xi32>
  return %c, %f : tensor<6xi32>, tensor<6xi32>
}
"""
FREED = """
func.func private @fill(%m: memref<4xf32>, %v: f32) {
  %i = arith.constant 2 : index
  memref.store %v, %m[%i] : memref<4xf32>
  return
}
func.func @main(%v: f32) -> f32 {
  %m = memref.alloc() : memref<4xf32>
  %i = arith.constant 2 : index
  call @fill(%m, %v) : (memref<4xf32>, f32) -> ()
  %r = memref.load %m[%i] : memref<4xf32>
  memref.dealloc %m : memref<4xf32>
  return %r : f32
}
"""


def test_odd_widths_wrap_on_the_host_and_are_refused_on_opencl() -> None:
    x = np.array([1, 5, 100, -7, 123456, 2**30 + 77], np.int32)
    four, twelve = devscope.compile(ODD)(x)
    np.testing.assert_array_equal(four, (2 * x + 8) % 16 - 8)
    np.testing.assert_array_equal(twelve, (x % 4096) ** 2 % 4096)
    with pytest.raises(LoweringError, match="cannot compute with i4"):
        devscope.compile(ODD, default="opencl:0")


def test_a_buffer_that_is_freed() -> None:
    assert devscope.compile(FREED)(1.5) == 1.5
