"""Iterations of parallel loops are work-items of a device, also of loops of one, such as flat scatters."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import devscope

_SCATTER = """
func.func @main(%x: tensor<ROWSxTYPE>, %i: tensor<?x1xi64>, %u: tensor<?xTYPE>) -> tensor<ROWSxTYPE> {
  %r = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<TYPE>, %b: tensor<TYPE>):
    %c = stablehlo.COMBINE : tensor<TYPE>
    stablehlo.return %c : tensor<TYPE>
  }) : (tensor<ROWSxTYPE>, tensor<?x1xi64>, tensor<?xTYPE>) -> tensor<ROWSxTYPE>
  return %r : tensor<ROWSxTYPE>
}
"""

_COMBINERS: dict[str, Callable[[Any, Any], Any]] = {
    "add %a, %b": lambda a, b: a + b,
    "maximum %a, %b": np.maximum,
    "multiply %a, %b": lambda a, b: a * b,
    "subtract %b, %a": lambda a, b: b - a,  # the order counts
}


@pytest.mark.parametrize("rows", ["7", "?"])
@pytest.mark.parametrize("combine", _COMBINERS)
@pytest.mark.parametrize(("type_", "dtype"), [("f32", np.float32), ("bf16", ml_dtypes.bfloat16), ("i8", np.int8)])
def test_flat_scatters(rows: str, combine: str, type_: str, dtype: Any) -> None:
    rng = np.random.default_rng(11)
    text = _SCATTER.replace("ROWS", rows).replace("TYPE", type_).replace("COMBINE", combine)
    with devscope.compile(text, default="opencl:0", cache=False) as program:
        for count in (60, 1, 0):
            x, u = ((rng.standard_normal(n) * 9).astype(dtype) for n in (7, count))
            if type_ != "i8":
                x[2], u[:2] = np.nan, [-0.0, np.inf][:count]
            places = rng.integers(-1, 9, count)  # some are outside
            want = x.copy()
            with np.errstate(all="ignore"):
                for place, update in zip(places, u, strict=True):
                    if 0 <= place < 7:
                        want[place] = _COMBINERS[combine](want[place], update)
            program.reset_counters()
            found = program(x, places[:, None], u)
            np.testing.assert_array_equal(found.astype(np.float64), want.astype(np.float64))
            assert program.counters().launches["opencl:0"] <= 2


_ONE_ROW = """
func.func @main(%x: tensor<1x30xf32>, %i: tensor<4xi64>) -> tensor<1x30xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  %r = scf.forall (%a) in (1) shared_outs(%o = %x) -> (tensor<1x30xf32>) {
    %s = tensor.extract_slice %o[%a, 0] [1, 30] [1, 1] : tensor<1x30xf32> to tensor<30xf32>
    %z = linalg.fill ins(%zero : f32) outs(%s : tensor<30xf32>) -> tensor<30xf32>
    %l = scf.for %k = %c0 to %c4 step %c1 iter_args(%t = %z) -> (tensor<30xf32>) {
      %v = tensor.extract %i[%k] : tensor<4xi64>
      %w = arith.index_cast %v : i64 to index
      %old = tensor.extract %t[%w] : tensor<30xf32>
      %f = arith.sitofp %v : i64 to f32
      %new = arith.addf %old, %f : f32
      %p = tensor.insert %new into %t[%w] : tensor<30xf32>
      scf.yield %p : tensor<30xf32>
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %l into %o[%a, 0] [1, 30] [1, 1] : tensor<30xf32> into tensor<1x30xf32>
    }
  }
  return %r : tensor<1x30xf32>
}
"""


@pytest.mark.parametrize("device", ["cpu:0", "opencl:0"])
def test_a_loop_of_one_row_that_it_fills_before(device: str) -> None:
    places = np.array([3, 29, 3, 7])
    want = np.zeros((1, 30), np.float32)
    np.add.at(want[0], places, places.astype(np.float32))
    with devscope.compile(_ONE_ROW, default=device, cache=False) as program:
        np.testing.assert_array_equal(program(np.ones((1, 30), np.float32), places), want)


_STEPS = """
func.func @main(%x: tensor<?xf32>, %l: index, %u: index, %s: index) -> tensor<?xf32> {
  %r = scf.forall (%a) = (%l) to (%u) step (%s) shared_outs(%o = %x) -> (tensor<?xf32>) {
    %v = tensor.extract_slice %o[%a] [1] [1] : tensor<?xf32> to tensor<1xf32>
    %f = arith.index_cast %a : index to i32
    %g = arith.sitofp %f : i32 to f32
    %c0 = arith.constant 0 : index
    %t = tensor.insert %g into %v[%c0] : tensor<1xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %t into %o[%a] [1] [1] : tensor<1xf32> into tensor<?xf32>
    }
  }
  return %r : tensor<?xf32>
}
"""


@pytest.mark.parametrize("device", ["cpu:0", "opencl:0"])
def test_ranges_with_steps(device: str) -> None:
    with devscope.compile(_STEPS, default=device, cache=False) as program:
        for size, *range_ in ((60, 0, 60, 2), (61, 3, 61, 7), (5, 0, 0, 1), (5, 4, 2, 1), (100, 1, 99, 1)):
            x = np.full(size, -1, np.float32)
            want = x.copy()
            want[slice(*range_)] = np.arange(*range_)
            np.testing.assert_array_equal(program(x, *range_), want)


_ROWS = """
func.func @main(%x: tensor<?x?xf32>, %i: tensor<?x?xi32>, %u: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c0 : tensor<?x?xf32>
  %m = tensor.dim %x, %c1 : tensor<?x?xf32>
  %k = tensor.dim %i, %c1 : tensor<?x?xi32>
  %r = scf.forall (%a) in (%n) shared_outs(%o = %x) -> (tensor<?x?xf32>) {
    %s = tensor.extract_slice %o[%a, 0] [1, %m] [1, 1] : tensor<?x?xf32> to tensor<?xf32>
    %l = scf.for %j = %c0 to %k step %c1 iter_args(%t = %s) -> (tensor<?xf32>) {
      %to = tensor.extract %i[%a, %j] : tensor<?x?xi32>
      %at = arith.index_cast %to : i32 to index
      %old = tensor.extract %t[%at] : tensor<?xf32>
      %v = tensor.extract %u[%a, %j] : tensor<?x?xf32>
      %new = arith.addf %old, %v : f32
      %p = tensor.insert %new into %t[%at] : tensor<?xf32>
      scf.yield %p : tensor<?xf32>
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %l into %o[%a, 0] [1, %m] [1, 1] : tensor<?xf32> into tensor<?x?xf32>
    }
  }
  return %r : tensor<?x?xf32>
}
"""


@pytest.mark.parametrize("device", ["cpu:0", "opencl:0"])
def test_rows_of_their_own(device: str) -> None:
    rng = np.random.default_rng(0)
    with devscope.compile(_ROWS, default=device, cache=False) as program:
        for rows, columns, adds in ((0, 3, 3), (1, 1, 1), (5, 70, 0), (33, 70, 130), (700, 40, 300)):
            x, u = (rng.integers(-9, 9, (rows, n)).astype(np.float32) for n in (columns, adds))
            i = rng.integers(0, columns, (rows, adds), np.int32)
            want = x.copy()
            np.add.at(want, (np.arange(rows)[:, None], i), u)
            np.testing.assert_array_equal(program(x, i, u), want)
