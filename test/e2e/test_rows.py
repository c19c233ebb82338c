"""Passes over rows of buffers that other operations write before."""

import numpy as np

import devscope

PROGRAM = """
func.func @main(%a: tensor<?x8xf32>, %n: index, %m: index) -> (tensor<?x?xf32>, tensor<?x?xf32>) {
  %one = arith.constant 1.0 : f32
  %0 = tensor.empty(%n, %m) : tensor<?x?x8xf32>
  %ones = linalg.fill ins(%one : f32) outs(%0 : tensor<?x?x8xf32>) -> tensor<?x?x8xf32>
  %1 = tensor.empty(%n, %m) : tensor<?x?xf32>
  %begin = linalg.fill ins(%one : f32) outs(%1 : tensor<?x?xf32>) -> tensor<?x?xf32>
  %sums = linalg.batch_matvec ins(%ones, %a : tensor<?x?x8xf32>, tensor<?x8xf32>)
    outs(%begin : tensor<?x?xf32>) -> tensor<?x?xf32>
  %soft = linalg.softmax dimension(1) ins(%sums : tensor<?x?xf32>) outs(%1 : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %sums, %soft : tensor<?x?xf32>, tensor<?x?xf32>
}
"""


def test_a_fill_stays_in_front_of_what_adds_to_it() -> None:
    a = np.arange(16, dtype=np.float32).reshape(2, 8)
    with devscope.compile(PROGRAM, cache=False) as program:
        sums, soft = program(a, 2, 3)
    np.testing.assert_array_equal(sums, np.repeat(a.sum(axis=1)[:, None] + 1, 3, axis=1))
    np.testing.assert_allclose(soft, np.full((2, 3), 1 / 3, np.float32), rtol=1e-6)
