"""Truth values, which are bytes in memory: moved, combined, counted, chosen by, in constants and own kernels."""

from __future__ import annotations

import numpy as np
import pytest

import devscope

PROGRAM = """
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @combined(%a: tensor<?x?xi1>, %b: tensor<?x?xi1>, %x: tensor<?x?xf32>)
    -> (tensor<?xi1>, tensor<?xi1>, tensor<?xi1>, tensor<?xi32>, tensor<?x?xf32>, tensor<?x?xi1>, tensor<?x?xi8>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %false = arith.constant false
  %true = arith.constant true
  %none = arith.constant 0 : i32
  %n = tensor.dim %a, %c0 : tensor<?x?xi1>
  %m = tensor.dim %a, %c1 : tensor<?x?xi1>
  %e = tensor.empty(%n) : tensor<?xi1>
  %e32 = tensor.empty(%n) : tensor<?xi32>
  %zeros = linalg.fill ins(%false : i1) outs(%e : tensor<?xi1>) -> tensor<?xi1>
  %ones = linalg.fill ins(%true : i1) outs(%e : tensor<?xi1>) -> tensor<?xi1>
  %nothing = linalg.fill ins(%none : i32) outs(%e32 : tensor<?xi32>) -> tensor<?xi32>
  %both = arith.andi %a, %b : tensor<?x?xi1>
  %any = linalg.reduce {arith.ori} ins(%both : tensor<?x?xi1>) outs(%zeros : tensor<?xi1>) dimensions = [1]
  %all = linalg.reduce {arith.andi} ins(%a : tensor<?x?xi1>) outs(%ones : tensor<?xi1>) dimensions = [1]
  %large:2 = linalg.generic {indexing_maps = [#id, #id, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x, %b : tensor<?x?xf32>, tensor<?x?xi1>) outs(%zeros, %nothing : tensor<?xi1>, tensor<?xi32>) {
  ^bb0(%number: f32, %mark: i1, %so_far: i1, %count: i32):
    %limit = arith.constant 1.5 : f32
    %is_large = arith.cmpf ogt, %number, %limit : f32
    %more = arith.ori %is_large, %so_far : i1
    %one = arith.extui %mark : i1 to i32
    %sum = arith.addi %count, %one : i32
    linalg.yield %more, %sum : i1, i32
  } -> (tensor<?xi1>, tensor<?xi32>)
  %number = arith.uitofp %a : tensor<?x?xi1> to tensor<?x?xf32>
  %chosen = arith.select %b, %number, %x : tensor<?x?xi1>, tensor<?x?xf32>
  %swapped = arith.select %a, %b, %both : tensor<?x?xi1>, tensor<?x?xi1>
  %signed = arith.extsi %swapped : tensor<?x?xi1> to tensor<?x?xi8>
  return %any, %all, %large#0, %large#1, %chosen, %swapped, %signed
    : tensor<?xi1>, tensor<?xi1>, tensor<?xi1>, tensor<?xi32>, tensor<?x?xf32>, tensor<?x?xi1>, tensor<?x?xi8>
}
func.func @moved(%a: tensor<?x70xi1>) -> (tensor<?x70xi1>, tensor<70x?xi1>, tensor<?x74xi1>) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %a, %c0 : tensor<?x70xi1>
  %last = arith.constant 69 : index
  %true = arith.constant true
  %turned = tensor.generate %n {
  ^bb0(%r: index, %c: index):
    %k = arith.subi %last, %c : index
    %v = tensor.extract %a[%r, %k] : tensor<?x70xi1>
    tensor.yield %v : i1
  } : tensor<?x70xi1>
  %e = tensor.empty(%n) : tensor<70x?xi1>
  %t = linalg.transpose ins(%a : tensor<?x70xi1>) outs(%e : tensor<70x?xi1>) permutation = [1, 0]
  %p = tensor.pad %a low[0, 1] high[0, 3] {
  ^bb0(%r: index, %c: index):
    tensor.yield %true : i1
  } : tensor<?x70xi1> to tensor<?x74xi1>
  return %turned, %t, %p : tensor<?x70xi1>, tensor<70x?xi1>, tensor<?x74xi1>
}
func.func @compared(%x: tensor<5x64xf32>) -> (tensor<5xi1>, tensor<5xi1>, tensor<5xi1>) {
  %false = arith.constant false
  %true = arith.constant true
  %limit = arith.constant 0.5 : f32
  %e = tensor.empty() : tensor<5xi1>
  %zeros = linalg.fill ins(%false : i1) outs(%e : tensor<5xi1>) -> tensor<5xi1>
  %ones = linalg.fill ins(%true : i1) outs(%e : tensor<5xi1>) -> tensor<5xi1>
  %r:3 = linalg.generic {indexing_maps = [#id, #row, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<5x64xf32>) outs(%ones, %zeros, %zeros : tensor<5xi1>, tensor<5xi1>, tensor<5xi1>) {
  ^bb0(%number: f32, %all: i1, %any: i1, %odd: i1):
    %is_large = arith.cmpf ogt, %number, %limit : f32
    %a = arith.andi %is_large, %all : i1
    %b = arith.ori %is_large, %any : i1
    %c = arith.xori %is_large, %odd : i1
    linalg.yield %a, %b, %c : i1, i1, i1
  } -> (tensor<5xi1>, tensor<5xi1>, tensor<5xi1>)
  return %r#0, %r#1, %r#2 : tensor<5xi1>, tensor<5xi1>, tensor<5xi1>
}
func.func @constants(%x: tensor<4xi1>) -> tensor<4xi1> {
  %c = arith.constant dense<[true, false, true, false]> : tensor<4xi1>
  %r = arith.xori %x, %c : tensor<4xi1>
  return %r : tensor<4xi1>
}
func.func @scattered(%x: tensor<9xi1>, %i: tensor<5xi64>, %new: tensor<5xi1>) -> tensor<9xi1> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %r = scf.for %k = %c0 to %c5 step %c1 iter_args(%so_far = %x) -> tensor<9xi1> {
    %to = tensor.extract %i[%k] : tensor<5xi64>
    %at = arith.index_cast %to : i64 to index
    %v = tensor.extract %new[%k] : tensor<5xi1>
    %next = tensor.insert %v into %so_far[%at] : tensor<9xi1>
    scf.yield %next : tensor<9xi1>
  }
  return %r : tensor<9xi1>
}
"""


def truths(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2, shape).astype(bool)


@pytest.fixture(scope="module", params=["cpu:0", "opencl:0"])
def executable(request: pytest.FixtureRequest) -> devscope.Executable:
    return devscope.compile(PROGRAM, default=request.param)


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (1, 1), (3, 130), (65, 33)])
def test_combined(executable: devscope.Executable, shape: tuple[int, int]) -> None:
    a, b = truths(*shape), truths(*shape, seed=1)
    x = np.random.default_rng(2).standard_normal(shape, np.float32)
    swapped = np.where(a, b, a & b)
    expected = [
        (a & b).any(1),
        a.all(1),
        (x > 1.5).any(1),
        b.sum(1, dtype=np.int32),
        np.where(b, a.astype(np.float32), x),
        swapped,
        -swapped.astype(np.int8),
    ]
    for found, wanted in zip(executable.run("combined", a, b, x), expected, strict=True):
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found.view(np.uint8), np.ascontiguousarray(wanted).view(np.uint8))


@pytest.mark.parametrize("rows", [0, 1, 67])
def test_moved(executable: devscope.Executable, rows: int) -> None:
    a = truths(rows, 70)
    turned, transposed, padded = executable.run("moved", a)
    np.testing.assert_array_equal(turned, a[:, ::-1])
    np.testing.assert_array_equal(transposed, a.T)
    np.testing.assert_array_equal(padded, np.pad(a, ((0, 0), (1, 3)), constant_values=True))


def test_compared(executable: devscope.Executable) -> None:
    x = np.random.default_rng(0).standard_normal((5, 64), np.float32)
    x[0], x[1] = 1, 0
    large = x > 0.5
    expected = large.all(1), large.any(1), large.sum(1) % 2 == 1
    for found, wanted in zip(executable.run("compared", x), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_constants_and_single_elements(executable: devscope.Executable) -> None:
    x, i, new = truths(9), np.array([1, 8, 3, 1, 0]), truths(5, seed=3)
    np.testing.assert_array_equal(executable.run("constants", x[:4]), x[:4] ^ np.array([1, 0, 1, 0], bool))
    expected = x.copy()
    for to, value in zip(i, new, strict=True):
        expected[to] = value
    np.testing.assert_array_equal(executable.run("scattered", x, i, new), expected)


KERNEL = """
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func private @differs(%x: memref<?xi1>, %flag: i1, %out: memref<?xi1>) attributes {device.kernel} {
  %i = gpu.global_id x
  %v = memref.load %x[%i] : memref<?xi1>
  %r = arith.xori %v, %flag : i1
  memref.store %r, %out[%i] : memref<?xi1>
  return
}
func.func @main(%x: tensor<?xi1>, %flag: i1) -> (tensor<?xi1>, tensor<?xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c0 : tensor<?xi1>
  %e = tensor.empty(%n) : tensor<?xi1>
  %0 = "device.launch"(%n, %c1, %c1, %c1, %c1, %c1) ({
    "device.in"(%x) : (tensor<?xi1>) -> ()
    "device.in"(%flag) : (i1) -> ()
    "device.out"(%e) : (tensor<?xi1>) -> ()
  }) {kernel = @differs, device.scope = #dev} : (index, index, index, index, index, index) -> tensor<?xi1>
  %1 = arith.andi %0, %x {device.scope = #dev} : tensor<?xi1>
  return %0, %1 : tensor<?xi1>, tensor<?xi1>
}
"""


@pytest.mark.parametrize("flag", [False, True])
def test_own_kernel(flag: bool) -> None:
    x = truths(77)
    found, both = devscope.compile(KERNEL)(x, flag)
    np.testing.assert_array_equal(found, x ^ flag)
    np.testing.assert_array_equal(both, (x ^ flag) & x)
