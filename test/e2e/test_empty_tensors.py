"""Tensors without elements, of static and dynamic size, where tensors are put together, cut and reduced."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import devscope
from devscope.runtime.executable import Executable

PROGRAM = """
func.func @concat_static(%a: tensor<4xf32>, %b: tensor<0xf32>) -> tensor<4xf32> {
  %0 = tensor.concat dim(0) %a, %b : (tensor<4xf32>, tensor<0xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @hlo_slice(%a: tensor<3x2xf32>) -> tensor<0x2xf32> {
  %0 = stablehlo.slice %a [3:3:2, 0:2] : (tensor<3x2xf32>) -> tensor<0x2xf32>
  return %0 : tensor<0x2xf32>
}
func.func @hlo_reduce(%a: tensor<3x0xf32>, %i: tensor<f32>) -> tensor<3xf32> {
  %0 = stablehlo.reduce(%a init: %i) applies stablehlo.maximum across dimensions = [1]
    : (tensor<3x0xf32>, tensor<f32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}
func.func @hlo_reduce_dyn(%a: tensor<2x0x?xf32>, %i: tensor<f32>) -> tensor<2x?xf32> {
  %0 = stablehlo.reduce(%a init: %i) applies stablehlo.maximum across dimensions = [1]
    : (tensor<2x0x?xf32>, tensor<f32>) -> tensor<2x?xf32>
  return %0 : tensor<2x?xf32>
}
func.func @hlo_pad_dyn(%a: tensor<0x?xf32>, %i: tensor<f32>) -> tensor<3x?xf32> {
  %0 = stablehlo.pad %a, %i, low = [3, 0], high = [0, 2], interior = [1, 0]
    : (tensor<0x?xf32>, tensor<f32>) -> tensor<3x?xf32>
  return %0 : tensor<3x?xf32>
}
func.func @concat_first(%a: tensor<0x2xf32>, %b: tensor<3x2xf32>, %c: tensor<0x2xf32>, %d: tensor<1x2xf32>)
    -> tensor<4x2xf32> {
  %0 = tensor.concat dim(0) %a, %b, %c, %d
    : (tensor<0x2xf32>, tensor<3x2xf32>, tensor<0x2xf32>, tensor<1x2xf32>) -> tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}
func.func @concat_all(%a: tensor<0xf32>, %b: tensor<0xf32>) -> tensor<0xf32> {
  %0 = tensor.concat dim(0) %a, %b : (tensor<0xf32>, tensor<0xf32>) -> tensor<0xf32>
  return %0 : tensor<0xf32>
}
func.func @concat_other(%a: tensor<0x2xf32>, %b: tensor<0x3xf32>) -> tensor<0x5xf32> {
  %0 = tensor.concat dim(1) %a, %b : (tensor<0x2xf32>, tensor<0x3xf32>) -> tensor<0x5xf32>
  return %0 : tensor<0x5xf32>
}
func.func @concat_dyn2(%a: tensor<?xf32>, %b: tensor<0xf32>) -> tensor<?xf32> {
  %0 = tensor.concat dim(0) %a, %b : (tensor<?xf32>, tensor<0xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
func.func @reduce(%a: tensor<0x3xf32>, %i: tensor<3xf32>) -> tensor<3xf32> {
  %0 = linalg.reduce {arith.addf} ins(%a: tensor<0x3xf32>) outs(%i: tensor<3xf32>) dimensions=[0]
  return %0 : tensor<3xf32>
}
func.func @reduce_empty_out(%a: tensor<0x3xf32>, %i: tensor<0xf32>) -> tensor<0xf32> {
  %0 = linalg.reduce {arith.addf} ins(%a: tensor<0x3xf32>) outs(%i: tensor<0xf32>) dimensions=[1]
  return %0 : tensor<0xf32>
}
func.func @matmul_k0(%a: tensor<2x0xf32>, %b: tensor<0x3xf32>, %i: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = linalg.matmul ins(%a, %b: tensor<2x0xf32>, tensor<0x3xf32>) outs(%i: tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
func.func @matmul_dyn(%a: tensor<?x?xf32>, %b: tensor<?x?xf32>, %i: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %0 = linalg.matmul ins(%a, %b: tensor<?x?xf32>, tensor<?x?xf32>) outs(%i: tensor<?x?xf32>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}
func.func @pad_behind(%a: tensor<0x2xf32>) -> tensor<2x3xf32> {
  %0 = tensor.pad %a low[2, 1] high[0, 0] {
  ^bb0(%i: index, %j: index):
    %k = arith.addi %i, %j : index
    %l = arith.index_cast %k : index to i32
    %f = arith.sitofp %l : i32 to f32
    tensor.yield %f : f32
  } : tensor<0x2xf32> to tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
func.func @pad(%a: tensor<0x2xf32>) -> tensor<3x2xf32> {
  %c = arith.constant 5.0 : f32
  %0 = tensor.pad %a low[1,0] high[2,0] {
  ^bb0(%i: index, %j: index):
   tensor.yield %c : f32
  } : tensor<0x2xf32> to tensor<3x2xf32>
  return %0 : tensor<3x2xf32>
}
func.func @pad_dyn(%a: tensor<?x2xf32>) -> tensor<?x2xf32> {
  %c = arith.constant 5.0 : f32
  %0 = tensor.pad %a low[1,0] high[2,0] {
  ^bb0(%i: index, %j: index):
   tensor.yield %c : f32
  } : tensor<?x2xf32> to tensor<?x2xf32>
  return %0 : tensor<?x2xf32>
}
func.func @pad_none(%a: tensor<0x2xf32>) -> tensor<0x3xf32> {
  %c = arith.constant 5.0 : f32
  %0 = tensor.pad %a low[0,1] high[0,0] {
  ^bb0(%i: index, %j: index):
   tensor.yield %c : f32
  } : tensor<0x2xf32> to tensor<0x3xf32>
  return %0 : tensor<0x3xf32>
}
func.func @slice(%a: tensor<4x2xf32>) -> tensor<0x2xf32> {
  %0 = tensor.extract_slice %a[1,0][0,2][1,1] : tensor<4x2xf32> to tensor<0x2xf32>
  return %0 : tensor<0x2xf32>
}
func.func @slice_dyn(%a: tensor<?x2xf32>, %n: index) -> tensor<?x2xf32> {
  %z = arith.constant 0 : index
  %d = tensor.dim %a, %z : tensor<?x2xf32>
  %l = arith.subi %d, %n : index
  %0 = tensor.extract_slice %a[%n,0][%l,2][1,1] : tensor<?x2xf32> to tensor<?x2xf32>
  return %0 : tensor<?x2xf32>
}
func.func @insert(%a: tensor<4x2xf32>, %b: tensor<0x2xf32>) -> tensor<4x2xf32> {
  %0 = tensor.insert_slice %b into %a[1,0][0,2][1,1] : tensor<0x2xf32> into tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}
func.func @collapse(%a: tensor<0x2xf32>) -> tensor<0xf32> {
  %0 = tensor.collapse_shape %a [[0,1]] : tensor<0x2xf32> into tensor<0xf32>
  return %0 : tensor<0xf32>
}
func.func @collapse_unknown(%a: tensor<?x0x?x3xf32>) -> tensor<?x?xf32> {
  %0 = math.absf %a : tensor<?x0x?x3xf32>
  %1 = tensor.collapse_shape %0 [[0, 1], [2, 3]] : tensor<?x0x?x3xf32> into tensor<?x?xf32>
  return %1 : tensor<?x?xf32>
}
func.func @expand(%a: tensor<0xf32>) -> tensor<0x2xf32> {
  %0 = tensor.expand_shape %a [[0,1]] output_shape [0,2] : tensor<0xf32> into tensor<0x2xf32>
  return %0 : tensor<0x2xf32>
}
func.func @softmax0(%a: tensor<3x0xf32>) -> tensor<3x0xf32> {
  %e = tensor.empty() : tensor<3x0xf32>
  %0 = linalg.softmax dimension(1) ins(%a: tensor<3x0xf32>) outs(%e: tensor<3x0xf32>) -> tensor<3x0xf32>
  return %0 : tensor<3x0xf32>
}
func.func @constant_sum(%i: tensor<3xf32>) -> tensor<3xf32> {
  %c = arith.constant dense<1.0> : tensor<0x3xf32>
  %0 = linalg.reduce {arith.addf} ins(%c: tensor<0x3xf32>) outs(%i: tensor<3xf32>) dimensions=[0]
  return %0 : tensor<3xf32>
}
func.func @from_elements() -> tensor<0xf32> {
  %0 = tensor.from_elements : tensor<0xf32>
  return %0 : tensor<0xf32>
}
func.func @reshape(%a: tensor<0x2xf32>) -> tensor<2x0xf32> {
  %s = arith.constant dense<[2,0]> : tensor<2xi64>
  %0 = tensor.reshape %a(%s) : (tensor<0x2xf32>, tensor<2xi64>) -> tensor<2x0xf32>
  return %0 : tensor<2x0xf32>
}
func.func @conv(%x: tensor<1x4x4x0xf32>, %k: tensor<2x2x0x3xf32>, %i: tensor<1x3x3x3xf32>) -> tensor<1x3x3x3xf32> {
  %0 = linalg.conv_2d_nhwc_hwcf ins(%x, %k : tensor<1x4x4x0xf32>, tensor<2x2x0x3xf32>)
    outs(%i : tensor<1x3x3x3xf32>) -> tensor<1x3x3x3xf32>
  return %0 : tensor<1x3x3x3xf32>
}
func.func @slice_const(%a: tensor<4x2xf32>) -> tensor<?x2xf32> {
  %c4 = arith.constant 4 : index
  %z = arith.constant 0 : index
  %0 = tensor.extract_slice %a[%c4,0][%z,2][1,1] : tensor<4x2xf32> to tensor<?x2xf32>
  return %0 : tensor<?x2xf32>
}
func.func @insert_const(%a: tensor<4x2xf32>, %b: tensor<?x2xf32>) -> tensor<4x2xf32> {
  %c4 = arith.constant 4 : index
  %z = arith.constant 0 : index
  %0 = tensor.insert_slice %b into %a[%c4,0][%z,2][1,1] : tensor<?x2xf32> into tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}
func.func @concat_some(%a: tensor<?x2xf32>, %b: tensor<0x2xf32>, %c: tensor<?x2xf32>) -> tensor<?x2xf32> {
  %0 = tensor.concat dim(0) %a, %b, %c : (tensor<?x2xf32>, tensor<0x2xf32>, tensor<?x2xf32>) -> tensor<?x2xf32>
  return %0 : tensor<?x2xf32>
}
func.func @concat_dynother(%a: tensor<0x?xf32>, %b: tensor<0x?xf32>) -> tensor<0x?xf32> {
  %0 = tensor.concat dim(1) %a, %b : (tensor<0x?xf32>, tensor<0x?xf32>) -> tensor<0x?xf32>
  return %0 : tensor<0x?xf32>
}
func.func @stablehlo_slice(%a: tensor<0x3xf32>) -> tensor<0x2xf32> {
  %0 = stablehlo.slice %a [0:0, 1:3] : (tensor<0x3xf32>) -> tensor<0x2xf32>
  return %0 : tensor<0x2xf32>
}
func.func @stablehlo_slice_end(%a: tensor<2x3xf32>) -> tensor<2x0xf32> {
  %0 = stablehlo.slice %a [0:2, 3:3] : (tensor<2x3xf32>) -> tensor<2x0xf32>
  return %0 : tensor<2x0xf32>
}
func.func @last_static(%a: tensor<0x0x3xf32>, %i: tensor<3xf32>) -> tensor<3xf32> {
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (k)>],
                       iterator_types = ["reduction", "reduction", "parallel"]}
    ins(%a : tensor<0x0x3xf32>) outs(%i : tensor<3xf32>) {
  ^bb0(%x: f32, %old: f32):
    linalg.yield %x : f32
  } -> tensor<3xf32>
  return %0 : tensor<3xf32>
}
func.func @last(%a: tensor<?x3xf32>, %i: tensor<3xf32>) -> tensor<3xf32> {
  %0 = linalg.reduce ins(%a : tensor<?x3xf32>) outs(%i : tensor<3xf32>) dimensions = [0] (%x: f32, %old: f32) {
    linalg.yield %x : f32
  }
  return %0 : tensor<3xf32>
}
func.func @product(%a: tensor<?x?xf32>) -> (tensor<?xi32>, tensor<i1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %a, %c0 : tensor<?x?xf32>
  %m = tensor.dim %a, %c1 : tensor<?x?xf32>
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %false = arith.constant false
  %true = arith.constant true
  %zeros = tensor.splat %zero[%n, %m] : tensor<?x?xi32>
  %empty = tensor.empty(%n) : tensor<?xi32>
  %ones = linalg.fill ins(%one : i32) outs(%empty : tensor<?xi32>) -> tensor<?xi32>
  %0 = linalg.reduce {arith.muli} ins(%zeros : tensor<?x?xi32>) outs(%ones : tensor<?xi32>) dimensions = [1]
  %no = tensor.splat %false[%n, %m] : tensor<?x?xi1>
  %scalar = tensor.empty() : tensor<i1>
  %yes = linalg.fill ins(%true : i1) outs(%scalar : tensor<i1>) -> tensor<i1>
  %1 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> ()>],
                       iterator_types = ["reduction", "reduction"]}
    ins(%no : tensor<?x?xi1>) outs(%yes : tensor<i1>) {
  ^bb0(%x: i1, %old: i1):
    %y = arith.andi %x, %old : i1
    linalg.yield %y : i1
  } -> tensor<i1>
  return %0, %1 : tensor<?xi32>, tensor<i1>
}
"""

ZERO = np.zeros

#: Shapes of the arguments, or a number, and the result.
CASES: dict[str, tuple[list[Any], Callable[..., Any]]] = {
    "concat_static": ([(4,), (0,)], lambda a, b: a),
    "hlo_slice": ([(3, 2)], lambda a: a[3:]),
    "hlo_reduce": ([(3, 0), ()], lambda a, i: np.full(3, i)),
    "hlo_reduce_dyn": ([(2, 0, 3), ()], lambda a, i: np.full((2, 3), i)),
    "hlo_pad_dyn": ([(0, 3), ()], lambda a, i: np.full((3, 5), i)),
    "concat_first": ([(0, 2), (3, 2), (0, 2), (1, 2)], lambda a, b, c, d: np.concatenate([a, b, c, d])),
    "concat_all": ([(0,), (0,)], lambda a, b: a),
    "concat_other": ([(0, 2), (0, 3)], lambda a, b: np.zeros((0, 5), np.float32)),
    "concat_dyn2": ([(4,), (0,)], lambda a, b: a),
    "reduce": ([(0, 3), (3,)], lambda a, i: i),
    "reduce_empty_out": ([(0, 3), (0,)], lambda a, i: i),
    "matmul_k0": ([(2, 0), (0, 3), (2, 3)], lambda a, b, i: i),
    "matmul_dyn": ([(2, 0), (0, 3), (2, 3)], lambda a, b, i: i),
    "pad": ([(0, 2)], lambda a: np.full((3, 2), 5, np.float32)),
    "pad_behind": ([(0, 2)], lambda a: np.array([[0, 1, 2], [1, 2, 3]], np.float32)),
    "pad_dyn": ([(0, 2)], lambda a: np.full((3, 2), 5, np.float32)),
    "pad_none": ([(0, 2)], lambda a: np.zeros((0, 3), np.float32)),
    "slice": ([(4, 2)], lambda a: a[1:1]),
    "slice_dyn": ([(4, 2), 4], lambda a, n: a[4:]),
    "insert": ([(4, 2), (0, 2)], lambda a, b: a),
    "collapse": ([(0, 2)], lambda a: a.reshape(-1)),
    "collapse_unknown": ([(2, 0, 4, 3)], lambda a: a.reshape(0, 12)),
    "expand": ([(0,)], lambda a: a.reshape(0, 2)),
    "softmax0": ([(3, 0)], lambda a: a),
    "constant_sum": ([(3,)], lambda i: i),
    "from_elements": ([], lambda: np.zeros(0, np.float32)),
    "reshape": ([(0, 2)], lambda a: a.reshape(2, 0)),
    "conv": ([(1, 4, 4, 0), (2, 2, 0, 3), (1, 3, 3, 3)], lambda x, k, i: i),
    "slice_const": ([(4, 2)], lambda a: a[4:]),
    "insert_const": ([(4, 2), (0, 2)], lambda a, b: a),
    "concat_some": ([(4, 2), (0, 2), (1, 2)], lambda a, b, c: np.concatenate([a, b, c])),
    "stablehlo_slice": ([(0, 3)], lambda a: a[:, 1:]),
    "stablehlo_slice_end": ([(2, 3)], lambda a: a[:, 3:]),
    "concat_dynother": ([(0, 4), (0, 1)], lambda a, b: np.zeros((0, 5), np.float32)),
}


@functools.cache
def compiled(target: str) -> Executable:
    return devscope.compile(PROGRAM, default=f"{target}:0")


@pytest.mark.parametrize("target", ["cpu", "opencl"])
def test_nothing_is_nothing(target: str) -> None:
    rng = np.random.default_rng(1)
    for name, (shapes, reference) in CASES.items():
        arguments = [
            rng.uniform(-1, 1, shape).astype(np.float32) if isinstance(shape, tuple) else shape for shape in shapes
        ]
        found, wanted = compiled(target).run(name, *arguments), reference(*arguments)
        np.testing.assert_array_equal(found, wanted, name, strict=True)


@pytest.mark.parametrize("target", ["cpu", "opencl"])
def test_results_of_no_iterations(target: str) -> None:
    """Bodies that do not use what was there, or become such: it is the result where they are never run."""
    rng = np.random.default_rng(1)
    start = np.float32([1, 2, 3])
    empty = np.zeros((0, 0, 3), np.float32)
    np.testing.assert_array_equal(compiled(target).run("last_static", empty, start), start)
    for rows in (0, 1, 4):
        x = rng.normal(size=(rows, 3)).astype(np.float32)
        found = compiled(target).run("last", x, start)
        np.testing.assert_array_equal(found, x[-1] if rows else start)
    for shape in ((0, 3), (3, 0), (0, 0), (3, 2)):
        products, conjunction = compiled(target).run("product", np.zeros(shape, np.float32))
        np.testing.assert_array_equal(products, np.full(shape[0], shape[1] == 0, np.int32), strict=True)
        assert bool(conjunction) == (0 in shape)
