"""Kernels of OpenCL devices that are CPUs, by the tables for vectors of both sizes, whatever this device has."""

import numpy as np
import pytest

import devscope

PROGRAM = """
#device = #device.scope<"opencl", 0 : i64, #device.target<"opencl", {vector = VECTOR : i64}>, "">
func.func @main(%a: tensor<37x50xf32>, %b: tensor<50x70xf32>, %x: tensor<?x40xf64>, %y: tensor<40x33xf64>,
    %image: tensor<1x9x9x5xf32>, %filters: tensor<3x3x5x33xf32>)
    -> (tensor<37x70xf32>, tensor<?x33xf64>, tensor<1x7x7x33xf32>) attributes {device.scope = #device} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %none = arith.constant 0.0 : f64
  %n = tensor.dim %x, %c0 : tensor<?x40xf64>
  %e0 = tensor.empty() : tensor<37x70xf32>
  %e1 = tensor.empty(%n) : tensor<?x33xf64>
  %e2 = tensor.empty() : tensor<1x7x7x33xf32>
  %f0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<37x70xf32>) -> tensor<37x70xf32>
  %f1 = linalg.fill ins(%none : f64) outs(%e1 : tensor<?x33xf64>) -> tensor<?x33xf64>
  %f2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<1x7x7x33xf32>) -> tensor<1x7x7x33xf32>
  %0 = linalg.matmul ins(%a, %b : tensor<37x50xf32>, tensor<50x70xf32>)
    outs(%f0 : tensor<37x70xf32>) -> tensor<37x70xf32>
  %1 = linalg.matmul ins(%x, %y : tensor<?x40xf64>, tensor<40x33xf64>)
    outs(%f1 : tensor<?x33xf64>) -> tensor<?x33xf64>
  %2 = linalg.conv_2d_nhwc_hwcf {strides = dense<1> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>}
    ins(%image, %filters : tensor<1x9x9x5xf32>, tensor<3x3x5x33xf32>)
    outs(%f2 : tensor<1x7x7x33xf32>) -> tensor<1x7x7x33xf32>
  return %0, %1, %2 : tensor<37x70xf32>, tensor<?x33xf64>, tensor<1x7x7x33xf32>
}
"""


@pytest.mark.parametrize("vector", [32, 64])
def test_tables_for_vectors_of_all_sizes(vector: int) -> None:
    rng = np.random.default_rng(0)
    shapes = ((37, 50), (50, 70), (1, 9, 9, 5), (3, 3, 5, 33))
    a, b, image, filters = (rng.standard_normal(shape).astype(np.float32) for shape in shapes)
    x, y = rng.standard_normal((21, 40)), rng.standard_normal((40, 33))
    x[3, 4], x[5, 6], y[0, 1] = np.nan, np.inf, -np.inf
    windows = np.lib.stride_tricks.sliding_window_view(image, (3, 3), axis=(1, 2))
    with devscope.compile(PROGRAM.replace("VECTOR", str(vector)), cache=False) as executable:
        for rows in (0, 1, 21):
            first, second, third = executable(a, b, x[:rows], y, image, filters)
            np.testing.assert_allclose(first, a @ b, rtol=1e-4, atol=1e-5)
            with np.errstate(invalid="ignore"):
                np.testing.assert_allclose(second, x[:rows] @ y, rtol=1e-10, atol=1e-12)
            expected = np.einsum("nhwcij,ijcf->nhwf", windows, filters)
            np.testing.assert_allclose(third, expected, rtol=1e-4, atol=1e-4)


def test_doubles_are_rounded_to_halves_once() -> None:
    text = """
        func.func @main(%x: tensor<?xf64>) -> tensor<?xf16> {
          %r = arith.truncf %x : tensor<?xf64> to tensor<?xf16>
          return %r : tensor<?xf16>
        }"""
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    numbers = halves[np.isfinite(halves)].astype(np.float64)
    middles = (numbers[1:] + numbers[:-1]) / 2
    beside = [np.nextafter(middles, limit) for limit in (np.inf, -np.inf)]
    others = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e300, -1e300, 5e-324, 65519.99999999999, 65520.0]
    x = np.concatenate([numbers, middles, *beside, others])
    with np.errstate(over="ignore", under="ignore"):
        expected = x.astype(np.float16)
    found = devscope.run(text, x, default="opencl:0")
    same = (found.view(np.uint16) == expected.view(np.uint16)) | (np.isnan(found) & np.isnan(expected))
    assert same.all()
