"""Programs whose data can go to a device in chunks of rows, and some whose data cannot, with numpy references."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

_HEAD = """
#dev = #device.scope<"opencl", 0 : i64, "", "">
#other = #device.scope<"opencl", 1 : i64, "", "">
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>
#swapped = affine_map<(i, j) -> (j, i)>
"""


@dataclass(frozen=True)
class ChunkProgram:
    """``shapes``: of the arguments, in terms of n rows. ``whole``: arguments that are needed by all chunks."""

    body: str
    shapes: tuple[tuple[str | int, ...], ...]
    reference: Callable[..., Any]
    whole: tuple[int, ...] = ()

    def text(self, n: int, m: int) -> str:
        return _HEAD + self.body.replace("$n", str(n)).replace("$m", str(m)).replace("$k", str(m - 1))

    def arguments(self, n: int, m: int, seed: int = 0) -> list[Any]:
        rng = np.random.default_rng([seed, n, m])
        shapes = [tuple({"n": n, "m": m}.get(e, e) for e in shape) for shape in self.shapes]
        return [rng.uniform(-1, 1, shape).astype(np.float32) for shape in shapes]


def _softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def _windows(x: Any, w: Any) -> Any:
    views = np.lib.stride_tricks.sliding_window_view(x, (2, 2), axis=(2, 3))
    return np.einsum("nchwij,fcij->nfhw", views, w)


BY_ROWS: dict[str, ChunkProgram] = {
    "elementwise": ChunkProgram(
        """
func.func @main(%x: tensor<$nx$mxf32>, %y: tensor<$nx$mxf32>, %s: f32) -> tensor<$nx$mxf32> {
  %two = arith.constant dense<2.0> : tensor<$nx$mxf32>
  %e = tensor.empty() : tensor<$nx$mxf32>
  %a = arith.mulf %x, %two {device.scope = #dev} : tensor<$nx$mxf32>
  %b = math.tanh %a {device.scope = #dev} : tensor<$nx$mxf32>
  %c = linalg.add {device.scope = #dev} ins(%b, %y : tensor<$nx$mxf32>, tensor<$nx$mxf32>)
    outs(%e : tensor<$nx$mxf32>) -> tensor<$nx$mxf32>
  %d = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
    ins(%c : tensor<$nx$mxf32>) outs(%e : tensor<$nx$mxf32>) attrs = {device.scope = #dev} {
  ^bb0(%p: f32, %o: f32):
    %j = linalg.index 1 : index
    %k = arith.index_cast %j : index to i32
    %f = arith.sitofp %k : i32 to f32
    %q = arith.mulf %p, %s : f32
    %r = arith.addf %q, %f : f32
    linalg.yield %r : f32
  } -> tensor<$nx$mxf32>
  return %d : tensor<$nx$mxf32>
}
""",
        (("n", "m"), ("n", "m"), ()),
        lambda x, y, s: (np.tanh(2 * x) + y) * s + np.arange(x.shape[1]),
    ),
    "dense_layer": ChunkProgram(
        """
func.func @main(%x: tensor<$nx$mxf32>, %w: tensor<$mx5xf32>, %b: tensor<5xf32>) -> tensor<$nx5xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<$nx5xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<$nx5xf32>) -> tensor<$nx5xf32>
  %p = linalg.matmul {device.scope = #dev} ins(%x, %w : tensor<$nx$mxf32>, tensor<$mx5xf32>)
    outs(%f : tensor<$nx5xf32>) -> tensor<$nx5xf32>
  %c = linalg.broadcast ins(%b : tensor<5xf32>) outs(%e : tensor<$nx5xf32>) dimensions = [0]
    {device.scope = #dev}
  %s = arith.addf %p, %c {device.scope = #dev} : tensor<$nx5xf32>
  %r = math.tanh %s {device.scope = #dev} : tensor<$nx5xf32>
  return %r : tensor<$nx5xf32>
}
""",
        (("n", "m"), ("m", 5), (5,)),
        lambda x, w, b: np.tanh(x @ w + b),
        (1, 2),
    ),
    "turned_weights": ChunkProgram(
        """
func.func @main(%x: tensor<$nx$mxf32>, %w: tensor<5x$mxf32>, %y: tensor<$nx5xf32>, %z: tensor<7x5xf32>)
    -> tensor<$nx5xf32> {
  %zero = arith.constant 0.0 : f32
  %a = arith.constant dense<0.0> : tensor<5xf32>
  %e = tensor.empty() : tensor<$nx5xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<$nx5xf32>) -> tensor<$nx5xf32>
  %d = tensor.empty() : tensor<$mx5xf32>
  %u = math.exp %w {device.scope = #dev} : tensor<5x$mxf32>
  %v = linalg.transpose ins(%u : tensor<5x$mxf32>) outs(%d : tensor<$mx5xf32>) permutation = [1, 0]
    {device.scope = #dev}
  %b = linalg.reduce { arith.addf } ins(%z : tensor<7x5xf32>) outs(%a : tensor<5xf32>) dimensions = [0]
    {device.scope = #dev}
  %p = linalg.matmul {device.scope = #dev} ins(%x, %v : tensor<$nx$mxf32>, tensor<$mx5xf32>)
    outs(%f : tensor<$nx5xf32>) -> tensor<$nx5xf32>
  %c = linalg.broadcast ins(%b : tensor<5xf32>) outs(%e : tensor<$nx5xf32>) dimensions = [0]
    {device.scope = #dev}
  %s = arith.addf %p, %c {device.scope = #dev} : tensor<$nx5xf32>
  %r = arith.mulf %s, %y {device.scope = #dev} : tensor<$nx5xf32>
  return %r : tensor<$nx5xf32>
}
""",
        (("n", "m"), (5, "m"), ("n", 5), (7, 5)),
        lambda x, w, y, z: (x @ np.exp(w).T + z.sum(axis=0)) * y,
        (1, 3),
    ),
    "reductions": ChunkProgram(
        """
func.func @main(%x: tensor<$nx$mxf32>, %v: tensor<$mxf32>) -> (tensor<$nx$mxf32>, tensor<$nxf32>, tensor<$nxf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<$nx$mxf32>
  %d = tensor.empty() : tensor<$nxf32>
  %f = linalg.fill ins(%zero : f32) outs(%d : tensor<$nxf32>) -> tensor<$nxf32>
  %p = linalg.softmax {device.scope = #dev} dimension(1) ins(%x : tensor<$nx$mxf32>) outs(%e : tensor<$nx$mxf32>)
    -> tensor<$nx$mxf32>
  %r = linalg.reduce { arith.addf } ins(%x : tensor<$nx$mxf32>) outs(%f : tensor<$nxf32>) dimensions = [1]
    {device.scope = #dev}
  %q = linalg.matvec {device.scope = #dev} ins(%p, %v : tensor<$nx$mxf32>, tensor<$mxf32>)
    outs(%f : tensor<$nxf32>) -> tensor<$nxf32>
  return %p, %r, %q : tensor<$nx$mxf32>, tensor<$nxf32>, tensor<$nxf32>
}
""",
        (("n", "m"), ("m",)),
        lambda x, v: (_softmax(x), x.sum(axis=1), _softmax(x) @ v),
        (1,),
    ),
    "images": ChunkProgram(
        """
func.func @main(%x: tensor<$nx2x5x$mxf32>, %w: tensor<3x2x2x2xf32>) -> tensor<$nx3x4x$kxf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<$nx3x4x$kxf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<$nx3x4x$kxf32>) -> tensor<$nx3x4x$kxf32>
  %r = linalg.conv_2d_nchw_fchw {device.scope = #dev} ins(%x, %w : tensor<$nx2x5x$mxf32>, tensor<3x2x2x2xf32>)
    outs(%f : tensor<$nx3x4x$kxf32>) -> tensor<$nx3x4x$kxf32>
  return %r : tensor<$nx3x4x$kxf32>
}
""",
        (("n", 2, 5, "m"), (3, 2, 2, 2)),
        _windows,
        (1,),
    ),
    "batches": ChunkProgram(
        """
func.func @main(%x: tensor<$nx3x$mxf32>, %y: tensor<$nx$mx2xf32>, %z: tensor<$nx3x2xf32>) -> tensor<$nx2x3xf32> {
  %e = tensor.empty() : tensor<$nx2x3xf32>
  %p = linalg.batch_matmul {device.scope = #dev} ins(%x, %y : tensor<$nx3x$mxf32>, tensor<$nx$mx2xf32>)
    outs(%z : tensor<$nx3x2xf32>) -> tensor<$nx3x2xf32>
  %r = linalg.transpose ins(%p : tensor<$nx3x2xf32>) outs(%e : tensor<$nx2x3xf32>) permutation = [0, 2, 1]
    {device.scope = #dev}
  return %r : tensor<$nx2x3xf32>
}
""",
        (("n", 3, "m"), ("n", "m", 2), ("n", 3, 2)),
        lambda x, y, z: np.swapaxes(x @ y + z, 1, 2),
    ),
    "two_devices": ChunkProgram(
        """
func.func @main(%x: tensor<$nx$mxf32>) -> (tensor<$nx$mxf32>, tensor<$nx$mxf32>) {
  %a = math.tanh %x {device.scope = #dev} : tensor<$nx$mxf32>
  %b = arith.addf %a, %x {device.scope = #host} : tensor<$nx$mxf32>
  %c = math.sin %b {device.scope = #other} : tensor<$nx$mxf32>
  return %b, %c : tensor<$nx$mxf32>, tensor<$nx$mxf32>
}
""".replace("#host", '#device.scope<"cpu", 0 : i64, "", "">'),
        (("n", "m"),),
        lambda x: (np.tanh(x) + x, np.sin(np.tanh(x) + x)),
    ),
}

_SQUARE = "func.func @main(%x: tensor<$nx$nxf32>) -> {type} {{ {body} return %r : {type} }}"


def _square(body: str, reference: Callable[..., Any], type_: str = "tensor<$nx$nxf32>") -> ChunkProgram:
    return ChunkProgram(_SQUARE.format(body=body, type=type_), (("n", "n"),), reference)


#: What is copied is needed as a whole, or stays on the device.
NOT_BY_ROWS: dict[str, ChunkProgram] = {
    "transposed": _square(
        """%e = tensor.empty() : tensor<$nx$nxf32>
  %r = linalg.transpose ins(%x : tensor<$nx$nxf32>) outs(%e : tensor<$nx$nxf32>) permutation = [1, 0]
    {device.scope = #dev}""",
        np.transpose,
    ),
    "both_ways": _square(
        """%e = tensor.empty() : tensor<$nx$nxf32>
  %r = linalg.generic {indexing_maps = [#id, #swapped, #id], iterator_types = ["parallel", "parallel"]}
    ins(%x, %x : tensor<$nx$nxf32>, tensor<$nx$nxf32>) outs(%e : tensor<$nx$nxf32>) attrs = {device.scope = #dev} {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = arith.subf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<$nx$nxf32>""",
        lambda x: x - x.T,
    ),
    "second_turned": ChunkProgram(
        """
func.func @main(%x: tensor<$nx$nxf32>, %y: tensor<$nx$nxf32>) -> tensor<$nx$nxf32> {
  %e = tensor.empty() : tensor<$nx$nxf32>
  %r = linalg.generic {indexing_maps = [#id, #swapped, #id], iterator_types = ["parallel", "parallel"]}
    ins(%x, %y : tensor<$nx$nxf32>, tensor<$nx$nxf32>) outs(%e : tensor<$nx$nxf32>) attrs = {device.scope = #dev} {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = arith.subf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<$nx$nxf32>
  return %r : tensor<$nx$nxf32>
}
""",
        (("n", "n"), ("n", "n")),
        lambda x, y: x - y.T,
    ),
    "squared": _square(
        """%z = arith.constant dense<0.0> : tensor<$nx$nxf32>
  %r = linalg.matmul {device.scope = #dev} ins(%x, %x : tensor<$nx$nxf32>, tensor<$nx$nxf32>)
    outs(%z : tensor<$nx$nxf32>) -> tensor<$nx$nxf32>""",
        lambda x: x @ x,
    ),
    "columns": _square(
        """%z = arith.constant dense<0.0> : tensor<$nxf32>
  %r = linalg.reduce { arith.addf } ins(%x : tensor<$nx$nxf32>) outs(%z : tensor<$nxf32>) dimensions = [0]
    {device.scope = #dev}""",
        lambda x: x.sum(axis=0),
        "tensor<$nxf32>",
    ),
    "row_numbers": _square(
        """%e = tensor.empty() : tensor<$nx$nxf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
    ins(%x : tensor<$nx$nxf32>) outs(%e : tensor<$nx$nxf32>) attrs = {device.scope = #dev} {
  ^bb0(%p: f32, %o: f32):
    %i = linalg.index 0 : index
    %k = arith.index_cast %i : index to i32
    %f = arith.sitofp %k : i32 to f32
    %s = arith.addf %p, %f : f32
    linalg.yield %s : f32
  } -> tensor<$nx$nxf32>""",
        lambda x: x + np.arange(len(x))[:, None],
    ),
    "first_row": _square(
        """%e = tensor.empty() : tensor<$nx$nxf32>
  %zero = arith.constant 0 : index
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
    ins(%x : tensor<$nx$nxf32>) outs(%e : tensor<$nx$nxf32>) attrs = {device.scope = #dev} {
  ^bb0(%p: f32, %o: f32):
    %j = linalg.index 1 : index
    %f = tensor.extract %x[%zero, %j] : tensor<$nx$nxf32>
    %s = arith.addf %p, %f : f32
    linalg.yield %s : f32
  } -> tensor<$nx$nxf32>""",
        lambda x: x + x[0],
    ),
    "known_rows": _square(
        """%k = arith.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]> : tensor<3x3xf32>
  %c = tensor.cast %k : tensor<3x3xf32> to tensor<$nx$nxf32>
  %r = arith.mulf %x, %c {device.scope = #dev} : tensor<$nx$nxf32>""",
        lambda x: x * np.arange(1, 10, dtype=np.float32).reshape(3, 3),
    ),
    "total": _square(
        """%t = math.tanh %x {device.scope = #dev} : tensor<$nx$nxf32>
  %z = arith.constant dense<0.0> : tensor<f32>
  %q = linalg.reduce { arith.addf } ins(%t : tensor<$nx$nxf32>) outs(%z : tensor<f32>) dimensions = [0, 1]
    {device.scope = #dev}
  %s = tensor.extract %q[] : tensor<f32>
  %b = tensor.splat %s : tensor<$nx$nxf32>
  %r = arith.addf %t, %b {device.scope = #dev} : tensor<$nx$nxf32>""",
        lambda x: np.tanh(x) + np.tanh(x).sum(),
    ),
}
