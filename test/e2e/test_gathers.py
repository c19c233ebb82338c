"""``tensor.gather`` and ``tensor.scatter``: static and dynamic, with dimensions of one or without, on both."""

from typing import Any

import numpy as np
import pytest

import devscope
from devscope.errors import ExecutionError

PROGRAM = """
func.func @columns(%x: tensor<4x5x6xf32>, %i: tensor<3x2xindex>) -> (tensor<3x4x1x1xf32>, tensor<3x4xf32>) {
  %0 = tensor.gather %x[%i] gather_dims([1, 2])
      : (tensor<4x5x6xf32>, tensor<3x2xindex>) -> tensor<3x4x1x1xf32>
  %1 = tensor.gather %x[%i] gather_dims([1, 2]) : (tensor<4x5x6xf32>, tensor<3x2xindex>) -> tensor<3x4xf32>
  return %0, %1 : tensor<3x4x1x1xf32>, tensor<3x4xf32>
}
func.func @any(%x: tensor<?x5x?xi8>, %i: tensor<?x2x1xi32>) -> tensor<?x2x?x?xi8> {
  %0 = tensor.gather %x[%i] gather_dims([1])
      : (tensor<?x5x?xi8>, tensor<?x2x1xi32>) -> tensor<?x2x?x?xi8>
  return %0 : tensor<?x2x?x?xi8>
}
func.func @element(%x: tensor<4x5xf64>, %i: tensor<2xindex>) -> tensor<f64> {
  %0 = tensor.gather %x[%i] gather_dims([0, 1]) unique : (tensor<4x5xf64>, tensor<2xindex>) -> tensor<f64>
  return %0 : tensor<f64>
}
func.func @into(%s: tensor<3x4xf32>, %x: tensor<4x5x6xf32>, %i: tensor<3x2xindex>) -> tensor<4x5x6xf32> {
  %0 = tensor.scatter %s into %x[%i] scatter_dims([1, 2]) unique
      : (tensor<3x4xf32>, tensor<4x5x6xf32>, tensor<3x2xindex>) -> tensor<4x5x6xf32>
  return %0 : tensor<4x5x6xf32>
}
func.func @rows(%s: tensor<?x1x?xf64>, %x: tensor<?x?xf64>, %i: tensor<?x1xi64>) -> tensor<?x?xf64> {
  %0 = tensor.scatter %s into %x[%i] scatter_dims([0]) unique
      : (tensor<?x1x?xf64>, tensor<?x?xf64>, tensor<?x1xi64>) -> tensor<?x?xf64>
  return %0 : tensor<?x?xf64>
}
"""


@pytest.mark.parametrize("device", ["cpu:0", "opencl:0"])
def test_gathers_and_scatters(device: str) -> None:
    rng = np.random.default_rng(7)
    cube, places = rng.standard_normal((4, 5, 6), np.float32), np.array([[0, 5], [4, 1], [2, 2]])
    at: Any = (slice(None), *places.T)
    with devscope.compile(PROGRAM, default=device) as executable:
        ones, dropped = executable.run("columns", cube, places)
        np.testing.assert_array_equal(dropped, cube[at].T)
        np.testing.assert_array_equal(ones, dropped[..., None, None])

        bytes_ = rng.integers(-128, 128, (3, 5, 7), np.int8)
        for rows in (3, 0):
            index = rng.integers(0, 5, (rows, 2, 1), np.int32)
            want = np.moveaxis(bytes_[:, index[..., 0]], 0, 2)
            np.testing.assert_array_equal(executable.run("any", bytes_, index), want)

        square = rng.standard_normal((4, 5))
        assert executable.run("element", square, np.array([3, 1])) == square[3, 1]

        new, want = rng.standard_normal((3, 4), np.float32), cube.copy()
        want[at] = new.T
        np.testing.assert_array_equal(executable.run("into", new, cube, places), want)

        into, rows = rng.standard_normal((5, 3)), rng.standard_normal((2, 1, 3))
        want = into.copy()
        want[[4, 1]] = rows[:, 0]
        np.testing.assert_array_equal(executable.run("rows", rows, into, np.array([[4], [1]])), want)


ASSERTED = """
func.func @main(%x: tensor<40x?xf32>, %i: tensor<40x?xi64>) -> tensor<40x?xf32> {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : index
  %n = tensor.dim %i, %c1 : tensor<40x?xi64>
  %w = tensor.dim %x, %c1 : tensor<40x?xf32>
  %e = tensor.empty(%n) : tensor<40x?xf32>
  %r = linalg.generic {
    indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a, b)>],
    iterator_types = ["parallel", "parallel"]
  } ins(%i : tensor<40x?xi64>) outs(%e : tensor<40x?xf32>) {
  ^bb0(%at: i64, %old: f32):
    %row = linalg.index 0 : index
    %place = arith.index_cast %at : i64 to index
    %below = arith.cmpi slt, %place, %w : index
    cf.assert %below, "too large"
    %above = arith.cmpi sge, %at, %c0 : i64
    cf.assert %above, "too small"
    %v = tensor.extract %x[%row, %place] : tensor<40x?xf32>
    linalg.yield %v : f32
  } -> tensor<40x?xf32>
  return %r : tensor<40x?xf32>
}
"""


@pytest.mark.parametrize("device", ["cpu:0", "opencl:0"])
@pytest.mark.parametrize("count", [0, 3, 700])
def test_each_element_asserts_its_place(device: str, count: int) -> None:
    rng = np.random.default_rng(1)
    x, places = rng.standard_normal((40, 25), np.float32), rng.integers(0, 25, (40, count))
    checks = "off" if device == "cpu:0" else "on"  # without them kernels drop assertions
    with devscope.compile(ASSERTED, default=device, checks=checks, cache=False) as program:
        np.testing.assert_array_equal(program(x, places), np.take_along_axis(x, places, 1))
        for wrong, message in ((25, "too large"), (-1, "too small")) if count else ():
            wrongs = places.copy()
            wrongs[-1, -1] = wrong
            with pytest.raises(ExecutionError, match=message):
                program(x, wrongs)
        np.testing.assert_array_equal(program(x, places), np.take_along_axis(x, places, 1))
