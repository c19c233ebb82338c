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


def test_steps_that_write_a_slice_keep_rows() -> None:
    text = """
func.func @main(%x: tensor<?x?x16xf32>) -> tensor<?x?x16xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c0 : tensor<?x?x16xf32>
  %m = tensor.dim %x, %c1 : tensor<?x?x16xf32>
  %room = tensor.empty(%n, %m) : tensor<?x?x16xf32>
  %all = scf.forall (%i) in (%n) shared_outs(%out = %room) -> tensor<?x?x16xf32> {
    %part = tensor.extract_slice %x[%i, 0, 0] [1, %m, 16] [1, 1, 1] : tensor<?x?x16xf32> to tensor<?x16xf32>
    %to = tensor.extract_slice %out[%i, 0, 0] [1, %m, 16] [1, 1, 1] : tensor<?x?x16xf32> to tensor<?x16xf32>
    %soft = linalg.softmax dimension(1) ins(%part : tensor<?x16xf32>) outs(%to : tensor<?x16xf32>)
      -> tensor<?x16xf32>
    %once = linalg.exp ins(%soft : tensor<?x16xf32>) outs(%to : tensor<?x16xf32>) -> tensor<?x16xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %once into %out[%i, 0, 0] [1, %m, 16] [1, 1, 1]
        : tensor<?x16xf32> into tensor<?x?x16xf32>
    }
  }
  return %all : tensor<?x?x16xf32>
}
"""
    x = np.random.default_rng(0).standard_normal((3, 9, 16)).astype(np.float32)
    soft = np.exp(x) / np.exp(x).sum(axis=-1, keepdims=True)
    with devscope.compile(text, cache=False) as program:
        np.testing.assert_allclose(program(x), np.exp(soft), rtol=1e-5)
