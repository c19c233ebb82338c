"""Integers of odd widths, exponents of any integer type, wide floats, and buffers that a program frees itself."""

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
POWERS = """
func.func @main(%x: tensor<4xf32>, %bits: tensor<4xi1>, %n: tensor<4xindex>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = math.fpowi %x, %bits : tensor<4xf32>, tensor<4xi1>
  %1 = math.fpowi %x, %n : tensor<4xf32>, tensor<4xindex>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}
"""
WIDE = """
func.func @main(%x: f32) -> (i1, i1, i1) {
  %f80 = arith.extf %x : f32 to f80
  %f128 = arith.extf %x : f32 to f128
  %0 = math.isfinite %f80 : f80
  %1 = math.isnan %f128 : f128
  %2 = math.isfinite %f128 : f128
  return %0, %1, %2 : i1, i1, i1
}
"""


@pytest.mark.parametrize("default", ["cpu:0", "opencl:0"])
def test_exponents_of_all_integer_types(default: str) -> None:
    """A true i1 is -1."""
    x, n = np.array([2, 4, -2, 0.5], np.float32), np.array([3, -1, 3, 0])
    of_bits, of_indices = devscope.compile(POWERS, default=default)(x, x < 1, n)
    np.testing.assert_array_equal(of_bits, np.where(x < 1, 1 / x, 1))
    np.testing.assert_array_equal(of_indices, x**n)


def test_classes_of_wide_floats() -> None:
    classes = devscope.compile(WIDE)
    assert [tuple(map(bool, classes(x))) for x in (1.5, np.inf, np.nan)] == [
        (True, False, True),
        (False, False, False),
        (False, True, False),
    ]


@pytest.mark.parametrize("type_", ["f80", "f128"])
@pytest.mark.parametrize("function", ["expm1", "powf", "asinh", "isinf", "fpowi"])
def test_functions_of_wide_floats_are_refused(function: str, type_: str) -> None:
    operands = {"powf": "%w, %w", "fpowi": "%w, %n"}.get(function, "%w")
    types = f"{type_}, i32" if function == "fpowi" else type_
    result, back = ("i1", "uitofp") if function == "isinf" else (type_, "truncf")
    source = f"""func.func @main(%x: f32, %n: i32) -> f32 {{
      %w = arith.extf %x : f32 to {type_}
      %r = math.{function} {operands} : {types}
      %y = arith.{back} %r : {result} to f32
      return %y : f32
    }}"""
    with pytest.raises(LoweringError, match=f"cannot compute math.{function} of {type_}") as caught:
        devscope.compile(source)
    assert caught.value.location
    assert caught.value.location.line == 3


def test_odd_widths_wrap_on_the_host_and_are_refused_on_opencl() -> None:
    x = np.array([1, 5, 100, -7, 123456, 2**30 + 77], np.int32)
    four, twelve = devscope.compile(ODD)(x)
    np.testing.assert_array_equal(four, (2 * x + 8) % 16 - 8)
    np.testing.assert_array_equal(twelve, (x % 4096) ** 2 % 4096)
    with pytest.raises(LoweringError, match="cannot compute with i4"):
        devscope.compile(ODD, default="opencl:0")


TRUTH = """
func.func @main(%x: tensor<?xi1>) -> (tensor<?xf32>, tensor<2xf32>, tensor<3xf16>) {
  %true = arith.constant true
  %all = tensor.splat %true : tensor<3xi1>
  %some = "tosa.const"() {values = dense<[true, false]> : tensor<2xi1>} : () -> tensor<2xi1>
  %0 = tosa.cast %x : (tensor<?xi1>) -> tensor<?xf32>
  %1 = tosa.cast %some : (tensor<2xi1>) -> tensor<2xf32>
  %2 = tosa.cast %all : (tensor<3xi1>) -> tensor<3xf16>
  return %0, %1, %2 : tensor<?xf32>, tensor<2xf32>, tensor<3xf16>
}
"""


def test_truth_as_numbers_in_tosa() -> None:
    found = devscope.compile(TRUTH)(np.array([True, False, True]))
    for value, wanted in zip(found, ([1, 0, 1], [1, 0], [1, 1, 1]), strict=True):
        np.testing.assert_array_equal(value, wanted)


ANGLES = """
func.func @main(%n: index) -> (f32, f32, tensor<?xf64>, tensor<2xf16>) {
  %zero = arith.constant 0.0 : f32
  %minus = arith.constant -0.0 : f32
  %wide = arith.constant 0.0 : f64
  %zeros = tensor.splat %wide[%n] : tensor<?xf64>
  %halves = arith.constant dense<[0.0, -0.0]> : tensor<2xf16>
  %0 = math.atan2 %zero, %zero : f32
  %1 = math.atan2 %minus, %minus : f32
  %2 = math.atan2 %zeros, %zeros : tensor<?xf64>
  %3 = math.atan2 %halves, %halves : tensor<2xf16>
  return %0, %1, %2, %3 : f32, f32, tensor<?xf64>, tensor<2xf16>
}
"""


@pytest.mark.parametrize("default", ["cpu:0", "opencl:0"])
def test_angles_of_constant_zeros(default: str) -> None:
    found = devscope.compile(ANGLES, default=default)(3)
    zeros = np.float32(0.0), np.float32(-0.0), np.zeros(3), np.array([0.0, -0.0], np.float16)
    for value, zero in zip(found, zeros, strict=True):
        np.testing.assert_allclose(value, np.arctan2(zero, zero), rtol=1e-3)


def test_a_buffer_that_is_freed() -> None:
    assert devscope.compile(FREED)(1.5) == 1.5


@pytest.mark.parametrize("target", ["cpu:0", "opencl:0"])
@pytest.mark.parametrize(
    ("conversion", "dtype", "true"),
    [("extui", "i32", 1), ("extsi", "i32", -1), ("uitofp", "f32", 1), ("sitofp", "f32", -1)],
)
def test_comparisons_as_numbers(target: str, conversion: str, dtype: str, true: int) -> None:
    """Of rows that are long enough for vectors."""
    program = f"""
    func.func @main(%x: tensor<4x257xi32>, %y: tensor<4x257xi32>) -> tensor<4x257x{dtype}> {{
      %0 = arith.cmpi eq, %x, %y : tensor<4x257xi32>
      %1 = arith.{conversion} %0 : tensor<4x257xi1> to tensor<4x257x{dtype}>
      return %1 : tensor<4x257x{dtype}>
    }}
    """
    x = np.arange(4 * 257, dtype=np.int32).reshape(4, 257) % 3
    got = devscope.compile(program, default=target, cache=False)(x, np.ones_like(x))
    np.testing.assert_array_equal(got, np.where(x == 1, true, 0))
