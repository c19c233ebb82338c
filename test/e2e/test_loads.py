"""Bodies that load elements: rows, backwards, at equal distances, anywhere, and windows that overlap."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import devscope

TYPES = {"i1": np.bool_, "i8": np.int8, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "i64": np.int64}

PROGRAM = """
#windows = affine_map<(i, j, k) -> (i, j * 3 + k)>
#all = affine_map<(i, j, k) -> (i, j, k)>
func.func @main(%x: tensor<?x?xTYPE>, %rows: tensor<?xi32>, %at: tensor<?x?xi64>)
    -> (tensor<?x?xTYPE>, tensor<?x?xTYPE>, tensor<?x?xTYPE>, tensor<?x?xTYPE>, tensor<?x?x5xTYPE>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %n = tensor.dim %x, %c0 : tensor<?x?xTYPE>
  %m = tensor.dim %x, %c1 : tensor<?x?xTYPE>
  %last_row = arith.subi %n, %c1 : index
  %last = arith.subi %m, %c1 : index
  %turned = tensor.generate %n, %m {
  ^bb0(%i: index, %j: index):
    %k = arith.subi %last_row, %i : index
    %l = arith.subi %last, %j : index
    %v = tensor.extract %x[%k, %l] : tensor<?x?xTYPE>
    tensor.yield %v : TYPE
  } : tensor<?x?xTYPE>
  %r = tensor.dim %rows, %c0 : tensor<?xi32>
  %chosen = tensor.generate %r, %m {
  ^bb0(%i: index, %j: index):
    %row = tensor.extract %rows[%i] : tensor<?xi32>
    %k = arith.index_cast %row : i32 to index
    %v = tensor.extract %x[%k, %j] : tensor<?x?xTYPE>
    tensor.yield %v : TYPE
  } : tensor<?x?xTYPE>
  %a = tensor.dim %at, %c1 : tensor<?x?xi64>
  %e = tensor.empty(%n, %a) : tensor<?x?xTYPE>
  %gathered = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]} ins(%at : tensor<?x?xi64>) outs(%e : tensor<?x?xTYPE>) {
  ^bb0(%to: i64, %out: TYPE):
    %i = linalg.index 0 : index
    %k = arith.index_cast %to : i64 to index
    %v = tensor.extract %x[%i, %k] : tensor<?x?xTYPE>
    linalg.yield %v : TYPE
  } -> tensor<?x?xTYPE>
  %half = arith.divui %m, %c2 : index
  %odd = tensor.generate %n, %half {
  ^bb0(%i: index, %j: index):
    %twice = arith.muli %j, %c2 : index
    %l = arith.addi %twice, %c1 : index
    %v = tensor.extract %x[%i, %l] : tensor<?x?xTYPE>
    tensor.yield %v : TYPE
  } : tensor<?x?xTYPE>
  %behind = arith.subi %m, %c2 : index
  %count = arith.divui %behind, %c3 : index
  %f = tensor.empty(%n, %count) : tensor<?x?x5xTYPE>
  %parts = linalg.generic {indexing_maps = [#windows, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<?x?xTYPE>) outs(%f : tensor<?x?x5xTYPE>) {
  ^bb0(%v: TYPE, %out: TYPE):
    linalg.yield %v : TYPE
  } -> tensor<?x?x5xTYPE>
  return %turned, %chosen, %gathered, %odd, %parts
    : tensor<?x?xTYPE>, tensor<?x?xTYPE>, tensor<?x?xTYPE>, tensor<?x?xTYPE>, tensor<?x?x5xTYPE>
}
"""


@pytest.mark.parametrize("device", ["cpu:0", "opencl:0"])
@pytest.mark.parametrize("element", TYPES)
def test_loads(element: str, device: str) -> None:
    rng = np.random.default_rng(0)
    with devscope.compile(PROGRAM.replace("TYPE", element), default=device) as executable:
        for n, m, chosen, gathered in ((1, 5, 1, 1), (3, 8, 0, 3), (2, 35, 5, 67), (9, 16, 4, 0), (5, 131, 7, 40)):
            x = (rng.standard_normal((n, m)) * 20).astype(TYPES[element])
            rows, at = rng.integers(0, n, chosen, np.int32), rng.integers(0, m, (n, gathered))
            windows = np.lib.stride_tricks.sliding_window_view(x, 5, 1)[:, ::3]
            expected = [x[::-1, ::-1], x[rows], np.take_along_axis(x, at, 1), x[:, 1::2], windows]
            for found, wanted in zip(executable(x, rows, at), expected, strict=True):
                np.testing.assert_array_equal(found, wanted)


CHAIN = """
func.func @main(%x: tensor<4096xi64>, %n: index) -> tensor<300xi64> {
  %c4095 = arith.constant 4095 : index
  %e = tensor.empty() : tensor<300xi64>
  %r = linalg.generic {indexing_maps = [affine_map<(a) -> (a)>], iterator_types = ["parallel"]}
      outs(%e : tensor<300xi64>) {
  ^bb0(%old: i64):
    %i = linalg.index 0 : index
    %place0 = arith.andi %i, %c4095 : index
STEPS
    linalg.yield %value40 : i64
  } -> tensor<300xi64>
  return %r : tensor<300xi64>
}
"""


@pytest.mark.parametrize("device", ["cpu:0", "opencl:0"])
def test_places_that_are_loaded_themselves_again_and_again(device: str) -> None:
    """Numbers that are used twice each, forty in a row, are followed once."""
    steps = [
        f"""%value{n} = tensor.extract %x[%place{n - 1}] : tensor<4096xi64>
    %at{n} = arith.index_cast %value{n} : i64 to index
    %twice{n} = arith.addi %at{n}, %at{n} : index
    %four{n} = arith.addi %twice{n}, %twice{n} : index
    %place{n} = arith.andi %four{n}, %c4095 : index"""
        for n in range(1, 41)
    ]
    x = np.random.default_rng(0).integers(0, 1 << 40, 4096)
    at = np.arange(300)
    for _ in range(40):
        want = x[at]
        at = (want * 4) & 4095
    with devscope.compile(CHAIN.replace("STEPS", "\n".join(steps)), default=device, cache=False) as program:
        np.testing.assert_array_equal(program(x, 1), want)
