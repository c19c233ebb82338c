"""Operations of upstream's dialects that few programs have, on the host and on a device."""

import numpy as np
import pytest

import devscope
from devscope.runtime.executable import Executable

DEVICES = pytest.mark.parametrize("device", ["cpu:0", "opencl:0"])


def built(text: str, device: str) -> Executable:
    return devscope.compile(text, default=device)


@DEVICES
def test_quantised(device: str) -> None:
    """Values are divided by the scale, moved by the zero point and cut, as ``lower-quant-ops`` has it."""
    rows = "tensor<?x3x!quant.uniform<i8:f32:1, {0.5:3, 0.25, 2.0:-7}>>"
    made = built(
        f"""
func.func @stored(%x: tensor<?x3xf32>) -> tensor<?x3xi8> {{
  %q = quant.qcast %x : tensor<?x3xf32> to {rows}
  %s = quant.scast %q : {rows} to tensor<?x3xi8>
  return %s : tensor<?x3xi8>
}}
func.func @meant(%q: tensor<2x!quant.uniform<u8:f32, 0.5:3>>) -> tensor<2xf32> {{
  %d = quant.dcast %q : tensor<2x!quant.uniform<u8:f32, 0.5:3>> to tensor<2xf32>
  return %d : tensor<2xf32>
}}
""",
        device,
    )
    x = np.random.default_rng(0).uniform(-9, 9, (5, 3)).astype(np.float32)
    want = np.trunc(x / np.float32([0.5, 0.25, 2]) + np.float32([3, 0, -7])).astype(np.int8)
    np.testing.assert_array_equal(made.run("stored", x), want)
    np.testing.assert_array_equal(made.run("meant", np.array([1, 255], np.uint8)), [-1, 126])


def test_scopes_of_quantised_operations_stay() -> None:
    planned = devscope.plan("""
#d = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%x: tensor<3xf32>) -> tensor<3xi8> {
  %q = quant.qcast %x {device.scope = #d} : tensor<3xf32> to tensor<3x!quant.uniform<i8:f32, 0.5:3>>
  %s = quant.scast %q : tensor<3x!quant.uniform<i8:f32, 0.5:3>> to tensor<3xi8>
  return %s : tensor<3xi8>
}
""")
    assert "from cpu:0 to opencl:0" in str(planned)


def test_buffers_that_grow() -> None:
    made = devscope.compile("""
func.func @main(%small: index, %large: index) -> (f32, index) {
  %c0 = arith.constant 0 : index
  %v = arith.constant 3.5 : f32
  %a = memref.alloc(%small) : memref<?xf32>
  memref.store %v, %a[%c0] : memref<?xf32>
  %b = memref.realloc %a(%large) : memref<?xf32> to memref<?xf32>
  %n = memref.dim %b, %c0 : memref<?xf32>
  %r = memref.load %b[%c0] : memref<?xf32>
  return %r, %n : f32, index
}
""")
    for sizes in ((2, 5), (5, 2), (3, 3)):
        assert made(*sizes) == (3.5, sizes[1])


def test_what_is_written_to_the_buffer_of_a_constant_crosses() -> None:
    made = devscope.compile("""
#host = #device.scope<"cpu", 0 : i64, "", "">
func.func @main(%v: f32, %i: index) -> tensor<4xf32> {
  %c = arith.constant {device.scope = #host} dense<2.0> : tensor<4xf32>
  %m = bufferization.to_buffer %c {device.scope = #host} : tensor<4xf32> to memref<4xf32>
  linalg.fill {device.scope = #host} ins(%v : f32) outs(%m : memref<4xf32>)
  memref.store %v, %m[%i] : memref<4xf32>
  %t = bufferization.to_tensor %m restrict {device.scope = #host} : memref<4xf32> to tensor<4xf32>
  %r = math.absf %t {device.scope = #device.scope<"opencl", 0 : i64, "", "">} : tensor<4xf32>
  return %r : tensor<4xf32>
}
""")
    np.testing.assert_array_equal(made(-3.0, 1), [3.0] * 4)


def test_what_a_device_computed_is_written_to_in_a_loop_of_the_host() -> None:
    made = devscope.compile("""
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%x: tensor<8xf32>, %n: index) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.alloc() : memref<8xf32>
  %z = arith.constant 0.0 : f32
  linalg.fill ins(%z : f32) outs(%m : memref<8xf32>)
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> (tensor<8xf32>) {
    %k = math.absf %a {device.scope = #dev} : tensor<8xf32>
    %b = bufferization.to_buffer %k : tensor<8xf32> to memref<8xf32>
    memref.store %z, %b[%i] : memref<8xf32>
    linalg.add ins(%m, %b : memref<8xf32>, memref<8xf32>) outs(%m : memref<8xf32>)
    %c = memref.alloc() : memref<8xf32>
    memref.copy %m, %c : memref<8xf32> to memref<8xf32>
    %t = bufferization.to_tensor %c restrict : memref<8xf32> to tensor<8xf32>
    %q = arith.addf %t, %k {device.scope = #dev} : tensor<8xf32>
    scf.yield %q : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}
""")
    x = np.random.default_rng(2).standard_normal(8).astype(np.float32)
    carried, total = x, np.zeros(8, np.float32)
    for i in range(3):
        before = abs(carried)
        total = total + np.where(np.arange(8) == i, 0, before)
        carried = total + before
    np.testing.assert_allclose(made(x, 3), carried, rtol=1e-6)


@DEVICES
@pytest.mark.parametrize("kind", ["add", "maximumf"])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("inclusive", [True, False])
def test_scans(device: str, kind: str, axis: int, inclusive: bool) -> None:
    sides = (4, 3)
    left = f"vector<{sides[1 - axis]}xf32>"
    made = built(
        f"""
func.func @main(%x: tensor<4x3xf32>) -> (tensor<4x3xf32>, tensor<{sides[1 - axis]}xf32>) {{
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  %v = vector.transfer_read %x[%c0, %c0], %z {{in_bounds = [true, true]}} : tensor<4x3xf32>, vector<4x3xf32>
  %i = arith.constant dense<0.25> : {left}
  %s:2 = vector.scan <{kind}>, %v, %i {{inclusive = {str(inclusive).lower()}, reduction_dim = {axis}}}
      : vector<4x3xf32>, {left}
  %e = tensor.empty() : tensor<4x3xf32>
  %0 = vector.transfer_write %s#0, %e[%c0, %c0] {{in_bounds = [true, true]}} : vector<4x3xf32>, tensor<4x3xf32>
  %f = tensor.empty() : tensor<{sides[1 - axis]}xf32>
  %1 = vector.transfer_write %s#1, %f[%c0] {{in_bounds = [true]}} : {left}, tensor<{sides[1 - axis]}xf32>
  return %0, %1 : tensor<4x3xf32>, tensor<{sides[1 - axis]}xf32>
}}
""",
        device,
    )
    x = np.random.default_rng(1).standard_normal(sides).astype(np.float32)
    lines = np.moveaxis(x, axis, 0)
    if not inclusive:
        lines = np.concatenate([np.full_like(lines[:1], 0.25), lines[:-1]])
    want = (np.add if kind == "add" else np.maximum).accumulate(lines, 0)
    found, last = made(x)
    np.testing.assert_allclose(found, np.moveaxis(want, 0, axis), rtol=1e-6)
    np.testing.assert_allclose(last, want[-1], rtol=1e-6)


@DEVICES
def test_winograd(device: str) -> None:
    """What ``transform.structured.winograd_conv2d`` makes of a convolution; its matrices are constants."""
    made = built(
        """
func.func @main(%x: tensor<2x10x10x5xf32>, %f: tensor<3x3x3x5xf32>) -> (tensor<2x8x8x3xf32>, tensor<6x3xf32>) {
  // One of the matrices: a constant that is there twice.
  %k = arith.constant dense<[[1.0, 0.0, 0.0], [-0.333333343, 0.333333343, -0.333333343],
      [-0.333333343, -0.333333343, -0.333333343], [0.0833333358, -0.166666672, 0.333333343],
      [0.0833333358, 0.166666672, 0.333333343], [0.0, 0.0, 1.0]]> : tensor<6x3xf32>
  %own = arith.addf %k, %k : tensor<6x3xf32>
  %z = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<6x6x5x3xf32>
  %filter = linalg.winograd_filter_transform fmr(F_4_3) ins(%f : tensor<3x3x3x5xf32>)
      outs(%e0 : tensor<6x6x5x3xf32>) -> tensor<6x6x5x3xf32>
  %e1 = tensor.empty() : tensor<6x6x2x2x2x5xf32>
  %input = linalg.winograd_input_transform fmr(F_4_3) ins(%x : tensor<2x10x10x5xf32>)
      outs(%e1 : tensor<6x6x2x2x2x5xf32>) -> tensor<6x6x2x2x2x5xf32>
  %a = tensor.collapse_shape %filter [[0, 1], [2], [3]] : tensor<6x6x5x3xf32> into tensor<36x5x3xf32>
  %b = tensor.collapse_shape %input [[0, 1], [2, 3, 4], [5]] : tensor<6x6x2x2x2x5xf32> into tensor<36x8x5xf32>
  %e2 = tensor.empty() : tensor<36x8x3xf32>
  %fill = linalg.fill ins(%z : f32) outs(%e2 : tensor<36x8x3xf32>) -> tensor<36x8x3xf32>
  %m = linalg.batch_matmul ins(%b, %a : tensor<36x8x5xf32>, tensor<36x5x3xf32>)
      outs(%fill : tensor<36x8x3xf32>) -> tensor<36x8x3xf32>
  %o = tensor.expand_shape %m [[0, 1], [2, 3, 4], [5]] output_shape [6, 6, 2, 2, 2, 3]
      : tensor<36x8x3xf32> into tensor<6x6x2x2x2x3xf32>
  %e3 = tensor.empty() : tensor<2x8x8x3xf32>
  %none = linalg.fill ins(%z : f32) outs(%e3 : tensor<2x8x8x3xf32>) -> tensor<2x8x8x3xf32>
  %r = linalg.winograd_output_transform fmr(F_4_3) ins(%o : tensor<6x6x2x2x2x3xf32>)
      outs(%none : tensor<2x8x8x3xf32>) -> tensor<2x8x8x3xf32>
  return %r, %own : tensor<2x8x8x3xf32>, tensor<6x3xf32>
}
""",
        device,
    )
    rng = np.random.default_rng(2)
    x, f = rng.standard_normal((2, 10, 10, 5), np.float32), rng.standard_normal((3, 3, 3, 5), np.float32)
    windows = np.lib.stride_tricks.sliding_window_view(x.astype(np.float64), (3, 3), (1, 2))
    want = np.einsum("nhwcij,oijc->nhwo", windows, f)
    found, own = made(x, f)
    np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(own[:2], np.float32([[2, 0, 0], [-2 / 3, 2 / 3, -2 / 3]]))
