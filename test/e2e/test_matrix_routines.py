"""Calls of XLA's and LAPACK's factors of matrices in StableHLO, on the host and on a device."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from scipy.linalg import expm

import devscope
from devscope.lowering import mlir_util
from devscope.lowering.stablehlo.templates import expand
from devscope.parsed_source import parse_source
from devscope.runtime.executable import Executable

FACTORS = """
func.func @lu(%x: tensor<2x5x3xf64>) -> (tensor<2x5x3xf64>, tensor<2x3xi32>, tensor<2x5xi32>) {
  %0:3 = stablehlo.custom_call @LuDecomposition(%x)
    : (tensor<2x5x3xf64>) -> (tensor<2x5x3xf64>, tensor<2x3xi32>, tensor<2x5xi32>)
  return %0#0, %0#1, %0#2 : tensor<2x5x3xf64>, tensor<2x3xi32>, tensor<2x5xi32>
}
func.func @getrf(%x: tensor<?x?xf32>) -> (tensor<?x?xf32>, tensor<?xi32>, tensor<i32>) {
  %0:3 = stablehlo.custom_call @lapack_sgetrf_ffi(%x) {mhlo.backend_config = {}}
    : (tensor<?x?xf32>) -> (tensor<?x?xf32>, tensor<?xi32>, tensor<i32>)
  return %0#0, %0#1, %0#2 : tensor<?x?xf32>, tensor<?xi32>, tensor<i32>
}
func.func @qr(%x: tensor<?x?x?xcomplex<f32>>) -> (tensor<?x?x?xcomplex<f32>>, tensor<?x?x?xcomplex<f32>>) {
  %0:2 = stablehlo.custom_call @Qr(%x)
    : (tensor<?x?x?xcomplex<f32>>) -> (tensor<?x?x?xcomplex<f32>>, tensor<?x?xcomplex<f32>>)
  %sizes = shape.shape_of %x : tensor<?x?x?xcomplex<f32>> -> tensor<3xindex>
  %shape = arith.index_cast %sizes : tensor<3xindex> to tensor<3xi32>
  // As JAX says shapes of results that are known as the program runs.
  %1 = stablehlo.custom_call @ProductOfElementaryHouseholderReflectors(%0#0, %0#1, %shape)
    {indices_of_shape_operands = dense<2> : tensor<1xi64>}
    : (tensor<?x?x?xcomplex<f32>>, tensor<?x?xcomplex<f32>>, tensor<3xi32>) -> tensor<?x?x?xcomplex<f32>>
  return %0#0, %1 : tensor<?x?x?xcomplex<f32>>, tensor<?x?x?xcomplex<f32>>
}
func.func @cholesky(%x: tensor<2x2x2xf32>) -> (tensor<2x2x2xf32>, tensor<2x2x2xf32>) {
  %0 = stablehlo.cholesky %x, lower = true : tensor<2x2x2xf32>
  %1 = stablehlo.cholesky %x, lower = false : tensor<2x2x2xf32>
  return %0, %1 : tensor<2x2x2xf32>, tensor<2x2x2xf32>
}
func.func @of_any_size(%x: tensor<?x?x?xf32>, %b: tensor<?x?x?xf32>) -> (tensor<?x?x?xf32>, tensor<?x?x?xf32>) {
  %0 = stablehlo.cholesky %x, lower = true : tensor<?x?x?xf32>
  %1 = "stablehlo.triangular_solve"(%0, %b) <{left_side = false, lower = true, unit_diagonal = false,
      transpose_a = #stablehlo<transpose TRANSPOSE>}> : (tensor<?x?x?xf32>, tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
  return %0, %1 : tensor<?x?x?xf32>, tensor<?x?x?xf32>
}
func.func @large(%x: tensor<2x130x130xcomplex<f32>>, %b: tensor<2x130x17xcomplex<f32>>)
    -> tensor<2x130x17xcomplex<f32>> {
  %0 = stablehlo.cholesky %x, lower = true : tensor<2x130x130xcomplex<f32>>
  %1 = "stablehlo.triangular_solve"(%0, %b) <{left_side = true, lower = true, unit_diagonal = false,
      transpose_a = #stablehlo<transpose NO_TRANSPOSE>}>
    : (tensor<2x130x130xcomplex<f32>>, tensor<2x130x17xcomplex<f32>>) -> tensor<2x130x17xcomplex<f32>>
  %2 = "stablehlo.triangular_solve"(%0, %1) <{left_side = true, lower = true, unit_diagonal = false,
      transpose_a = #stablehlo<transpose ADJOINT>}>
    : (tensor<2x130x130xcomplex<f32>>, tensor<2x130x17xcomplex<f32>>) -> tensor<2x130x17xcomplex<f32>>
  return %2 : tensor<2x130x17xcomplex<f32>>
}
func.func @nothing(%x: tensor<2x0x0xf32>)
    -> (tensor<2x0x0xf32>, tensor<2xi32>, tensor<2x0x0xf32>, tensor<2x0xf32>, tensor<2x0x0xf32>) {
  %0:3 = stablehlo.custom_call @lapack_sgetrf_ffi(%x) {mhlo.backend_config = {}}
    : (tensor<2x0x0xf32>) -> (tensor<2x0x0xf32>, tensor<2x0xi32>, tensor<2xi32>)
  %1:2 = stablehlo.custom_call @Eigh(%x) {backend_config = "1,1,100,1e-6"}
    : (tensor<2x0x0xf32>) -> (tensor<2x0x0xf32>, tensor<2x0xf32>)
  %2 = stablehlo.cholesky %0#0, lower = true : tensor<2x0x0xf32>
  %3 = "stablehlo.triangular_solve"(%2, %x) <{left_side = true, lower = true, unit_diagonal = false,
      transpose_a = #stablehlo<transpose NO_TRANSPOSE>}>
    : (tensor<2x0x0xf32>, tensor<2x0x0xf32>) -> tensor<2x0x0xf32>
  return %0#0, %0#2, %1#0, %1#1, %3
    : tensor<2x0x0xf32>, tensor<2xi32>, tensor<2x0x0xf32>, tensor<2x0xf32>, tensor<2x0x0xf32>
}
"""
DECOMPOSITIONS = """
func.func @large_lu(%x: tensor<2x100x97xf64>) -> (tensor<2x100x97xf64>, tensor<2x97xi32>, tensor<2x100xi32>) {
  %0:3 = stablehlo.custom_call @LuDecomposition(%x)
    : (tensor<2x100x97xf64>) -> (tensor<2x100x97xf64>, tensor<2x97xi32>, tensor<2x100xi32>)
  return %0#0, %0#1, %0#2 : tensor<2x100x97xf64>, tensor<2x97xi32>, tensor<2x100xi32>
}
func.func @large_qr(%x: tensor<97x98xcomplex<f32>>) -> (tensor<97x98xcomplex<f32>>, tensor<97x97xcomplex<f32>>) {
  %0:2 = stablehlo.custom_call @Qr(%x)
    : (tensor<97x98xcomplex<f32>>) -> (tensor<97x98xcomplex<f32>>, tensor<97xcomplex<f32>>)
  %1 = stablehlo.slice %0#0 [0:97, 0:97] : (tensor<97x98xcomplex<f32>>) -> tensor<97x97xcomplex<f32>>
  %2 = stablehlo.custom_call @ProductOfElementaryHouseholderReflectors(%1, %0#1)
    : (tensor<97x97xcomplex<f32>>, tensor<97xcomplex<f32>>) -> tensor<97x97xcomplex<f32>>
  return %0#0, %2 : tensor<97x98xcomplex<f32>>, tensor<97x97xcomplex<f32>>
}
func.func @eigh(%x: tensor<5x5xf64>) -> (tensor<5x5xf64>, tensor<5xf64>) {
  %0:2 = stablehlo.custom_call @Eigh(%x) {backend_config = "1,1,100,1e-6"}
    : (tensor<5x5xf64>) -> (tensor<5x5xf64>, tensor<5xf64>)
  return %0#0, %0#1 : tensor<5x5xf64>, tensor<5xf64>
}
func.func @svd(%x: tensor<5x3xf64>) -> (tensor<5x5xf64>, tensor<3xf64>, tensor<3x3xf64>, tensor<i32>) {
  %0:5 = stablehlo.custom_call @lapack_dgesdd_ffi(%x) {mhlo.backend_config = {mode = 65 : ui8}}
    : (tensor<5x3xf64>) -> (tensor<5x3xf64>, tensor<3xf64>, tensor<5x5xf64>, tensor<3x3xf64>, tensor<i32>)
  return %0#2, %0#1, %0#3, %0#4 : tensor<5x5xf64>, tensor<3xf64>, tensor<3x3xf64>, tensor<i32>
}
func.func @values(%x: tensor<5x3xf64>) -> tensor<3xf64> {
  // As JAX asks for singular values alone.
  %0:5 = stablehlo.custom_call @lapack_dgesdd_ffi(%x) {mhlo.backend_config = {mode = 78 : ui8}}
    : (tensor<5x3xf64>) -> (tensor<5x3xf64>, tensor<3xf64>, tensor<5x3xf64>, tensor<3x3xf64>, tensor<i32>)
  return %0#1 : tensor<3xf64>
}
func.func @exponential(%x: tensor<?x?x?xf64>) -> tensor<?x?x?xf64> {
  %0 = stablehlo.custom_call @devscope.exponential(%x) : (tensor<?x?x?xf64>) -> tensor<?x?x?xf64>
  return %0 : tensor<?x?x?xf64>
}
func.func @geev(%x: tensor<?x5x5xf64>)
    -> (tensor<?x5xf64>, tensor<?x5xf64>, tensor<?x5x5xcomplex<f64>>, tensor<?x5x5xcomplex<f64>>, tensor<?xi32>) {
  %0:5 = stablehlo.custom_call @lapack_dgeev_ffi(%x)
      {mhlo.backend_config = {compute_left = 86 : ui8, compute_right = 86 : ui8}} : (tensor<?x5x5xf64>)
    -> (tensor<?x5xf64>, tensor<?x5xf64>, tensor<?x5x5xcomplex<f64>>, tensor<?x5x5xcomplex<f64>>, tensor<?xi32>)
  return %0#0, %0#1, %0#2, %0#3, %0#4
    : tensor<?x5xf64>, tensor<?x5xf64>, tensor<?x5x5xcomplex<f64>>, tensor<?x5x5xcomplex<f64>>, tensor<?xi32>
}
func.func @gees(%x: tensor<4x4xcomplex<f32>>)
    -> (tensor<4x4xcomplex<f32>>, tensor<4x4xcomplex<f32>>, tensor<4xcomplex<f32>>, tensor<i32>, tensor<i32>) {
  %0:5 = stablehlo.custom_call @lapack_cgees_ffi(%x) {mhlo.backend_config = {mode = 86 : ui8, sort = 78 : ui8}}
    : (tensor<4x4xcomplex<f32>>)
    -> (tensor<4x4xcomplex<f32>>, tensor<4x4xcomplex<f32>>, tensor<4xcomplex<f32>>, tensor<i32>, tensor<i32>)
  return %0#0, %0#1, %0#2, %0#3, %0#4
    : tensor<4x4xcomplex<f32>>, tensor<4x4xcomplex<f32>>, tensor<4xcomplex<f32>>, tensor<i32>, tensor<i32>
}
func.func @sytrd(%x: tensor<4x4xf64>)
    -> (tensor<4x4xf64>, tensor<4xf64>, tensor<3xf64>, tensor<3xf64>, tensor<i32>) {
  %0:5 = stablehlo.custom_call @lapack_dsytrd_ffi(%x) {mhlo.backend_config = {uplo = 85 : ui8}}
    : (tensor<4x4xf64>) -> (tensor<4x4xf64>, tensor<4xf64>, tensor<3xf64>, tensor<3xf64>, tensor<i32>)
  return %0#0, %0#1, %0#2, %0#3, %0#4 : tensor<4x4xf64>, tensor<4xf64>, tensor<3xf64>, tensor<3xf64>, tensor<i32>
}
"""


@pytest.fixture(scope="module", params=["cpu:0", pytest.param("opencl:0", marks=pytest.mark.long)])
def factors(request: pytest.FixtureRequest) -> Iterator[Executable]:
    with devscope.compile(FACTORS, default=request.param, cache=False) as executable:
        yield executable


@pytest.fixture(scope="module", params=[pytest.param(d, marks=pytest.mark.long) for d in ("cpu:0", "opencl:0")])
def decompositions(request: pytest.FixtureRequest) -> Iterator[Executable]:
    """It takes long to compile: programs of JAX and PyTorch have some of it in each run."""
    with devscope.compile(DECOMPOSITIONS, default=request.param, cache=False) as executable:
        yield executable


def test_lu_swaps_rows_for_the_largest_pivot(factors: Executable) -> None:
    x = np.random.default_rng(0).standard_normal((2, 5, 3))
    packed, pivots, order = factors.run("lu", x)
    lower = np.tril(packed, -1) + np.eye(5, 3)
    np.testing.assert_allclose(
        lower @ np.triu(packed)[:, :3], np.take_along_axis(x, order[..., None], 1), atol=1e-12
    )
    assert np.abs(np.tril(packed, -1)).max() <= 1
    np.testing.assert_array_equal(order[:, 0], pivots[:, 0])


def test_what_has_no_factor_of_cholesky_is_not_a_number(factors: Executable) -> None:
    good, bad = [[4, 2], [2, 5]], [[1, 2], [2, 1]]
    lower, upper = factors.run("cholesky", np.array([good, bad], np.float32))
    np.testing.assert_allclose([lower[0], upper[0].T], [[[2, 0], [1, 2]]] * 2)
    assert np.isnan([lower[1], upper[1]]).all()


@pytest.mark.parametrize(("batch", "size"), [(2, 3), (1, 1), (3, 0), (0, 2)])
def test_factors_of_any_size(factors: Executable, batch: int, size: int) -> None:
    rng = np.random.default_rng(size)
    a, b = (rng.standard_normal((batch, n, size)).astype(np.float32) for n in (size, 2))
    x = a @ a.mT + 2 * np.eye(size, dtype=np.float32)
    factor, solved = factors.run("of_any_size", x, b)
    np.testing.assert_allclose(factor @ factor.mT, x, atol=1e-5)
    np.testing.assert_array_equal(factor, np.tril(factor))
    np.testing.assert_allclose(solved @ factor.mT, b, atol=1e-5)


def test_blocks_of_large_matrices_read_one_triangle(factors: Executable) -> None:
    rng = np.random.default_rng(4)
    a, b = ((rng.standard_normal((2, 130, n, 2)) @ [1, 1j]).astype(np.complex64) for n in (130, 17))
    x = a @ a.conj().mT / 130 + np.eye(130)
    given = (x + np.triu(np.full((130, 130), np.nan), 1)).astype(np.complex64)
    np.testing.assert_allclose(x @ factors.run("large", given, b), b, atol=1e-4)


def test_blocks_of_lu_exchange_rows_of_all_columns(decompositions: Executable) -> None:
    x = np.random.default_rng(0).standard_normal((2, 100, 97))
    x[1, :, 40] = x[1, :, 3]  # a pivot of about 0
    packed, pivots, order = decompositions.run("large_lu", x)
    lower, upper = np.tril(packed, -1) + np.eye(100, 97), np.triu(packed)[:, :97]
    np.testing.assert_allclose(lower @ upper, np.take_along_axis(x, order[..., None], 1), atol=1e-12)
    assert np.abs(lower).max() <= 1
    for swaps, found in zip(pivots, order, strict=True):
        rows = np.arange(100)
        for row, other in enumerate(swaps):
            rows[[row, other]] = rows[[other, row]]
        np.testing.assert_array_equal(rows, found)


def test_blocks_of_reflections(decompositions: Executable) -> None:
    x = (np.random.default_rng(6).standard_normal((97, 98, 2)) @ [1, 1j]).astype(np.complex64)
    packed, q = decompositions.run("large_qr", x)
    np.testing.assert_allclose(q @ np.triu(packed), x, atol=1e-4)
    np.testing.assert_allclose(q.conj().T @ q, np.eye(97), atol=1e-5)


def test_what_needs_to_know_sizes_says_so() -> None:
    text = """func.func @main(%x: tensor<2x?x?xf64>) -> tensor<2x?xf64> {
      %0:2 = stablehlo.custom_call @Eigh(%x) {backend_config = "1,1,100,1e-6"}
        : (tensor<2x?x?xf64>) -> (tensor<2x?x?xf64>, tensor<2x?xf64>)
      return %0#1 : tensor<2x?xf64>
    }"""
    with pytest.raises(devscope.DevscopeError, match=r"'Eigh' needs matrices whose numbers of rows(?s:.*)LU, QR"):
        devscope.compile(text)


def test_matrices_of_nothing(factors: Executable) -> None:
    found = factors.run("nothing", np.ones((2, 0, 0), np.float32))
    assert [value.shape for value in found] == [(2, 0, 0), (2,), (2, 0, 0), (2, 0), (2, 0, 0)]
    assert not found[1].any()


def test_getrf_says_which_pivot_is_zero_and_goes_on(factors: Executable) -> None:
    packed, pivots, info = factors.run("getrf", np.ones((3, 3), np.float32))
    np.testing.assert_array_equal(packed, [[1, 1, 1], [1, 0, 0], [1, 0, 0]])
    np.testing.assert_array_equal(pivots, [1, 2, 3])
    assert info == 2
    packed, _, info = factors.run("getrf", np.full((3, 3), np.nan, np.float32))
    assert np.isnan(packed).all()
    assert info == 0


@pytest.mark.parametrize("shape", [(0, 4, 3), (2, 4, 3), (1, 3, 3), (2, 1, 1), (1, 3, 0), (1, 0, 0)])
def test_qr_of_sizes_known_as_the_program_runs(factors: Executable, shape: tuple[int, int, int]) -> None:
    rng = np.random.default_rng(1)
    x = (rng.standard_normal((*shape, 2)) @ [1, 1j]).astype(np.complex64)
    packed, q = factors.run("qr", x)
    np.testing.assert_allclose(q @ np.triu(packed)[:, : shape[2]], x, atol=1e-5)
    np.testing.assert_allclose(
        np.conj(np.swapaxes(q, 1, 2)) @ q, np.broadcast_to(np.eye(shape[2]), (shape[0], *shape[2:] * 2)), atol=1e-5
    )


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (1, 4), (0, 2), (2, 0)])
def test_lu_of_sizes_known_as_the_program_runs(factors: Executable, shape: tuple[int, int]) -> None:
    x = np.random.default_rng(2).standard_normal(shape).astype(np.float32)
    packed, pivots, info = factors.run("getrf", x)
    lower, upper = np.tril(packed, -1) + np.eye(*shape), np.triu(packed)
    product = lower[:, : min(shape)] @ upper[: min(shape)]
    for row, other in reversed([*enumerate(pivots - 1)]):
        product[[row, other]] = product[[other, row]]
    np.testing.assert_allclose(product, x, atol=1e-5)
    assert pivots.shape == (min(shape),)
    assert info == 0


@pytest.mark.parametrize("values", [[-2.0, 1e-9, 1.0, 1.0, 3e5], [0.0, 0.0, 0.0, 0.0, 0.0]])
def test_eigh_with_equal_and_small_values(decompositions: Executable, values: list[float]) -> None:
    basis, _ = np.linalg.qr(np.random.default_rng(2).standard_normal((5, 5)))
    x = basis @ np.diag(values) @ basis.T
    vectors, found = decompositions.run("eigh", np.tril(x) + np.triu(np.full((5, 5), 7.0), 1))
    scale = np.abs(values).max()
    np.testing.assert_allclose(found, sorted(values), atol=1e-14 * scale)
    np.testing.assert_allclose(vectors @ np.diag(found) @ vectors.T, x, atol=1e-14 * scale)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(5), atol=1e-14)


def test_eigh_of_what_is_not_finite_is_not_a_number(decompositions: Executable) -> None:
    x = np.eye(5)
    x[3, 1] = np.nan
    assert all(np.isnan(result).all() for result in decompositions.run("eigh", x))


@pytest.mark.parametrize("rank", [0, 1, 3])
def test_svd_has_all_vectors_at_any_rank(decompositions: Executable, rank: int) -> None:
    rng = np.random.default_rng(3)
    x = rng.standard_normal((5, rank)) @ rng.standard_normal((rank, 3))
    left, values, right, info = decompositions.run("svd", x)
    np.testing.assert_allclose(values, np.linalg.svd(x, compute_uv=False), atol=1e-14)
    np.testing.assert_allclose(left[:, :3] * values @ right, x, atol=1e-13)
    np.testing.assert_allclose(left.T @ left, np.eye(5), atol=1e-14)
    np.testing.assert_allclose(right @ right.T, np.eye(3), atol=1e-14)
    assert info == 0


def test_singular_values_alone(decompositions: Executable) -> None:
    x = np.random.default_rng(0).standard_normal((5, 3))
    np.testing.assert_allclose(decompositions.run("values", x), np.linalg.svd(x)[1], rtol=1e-12)


def test_eigenvalues_and_vectors_of_both_sides(decompositions: Executable) -> None:
    """Of matrices with pairs of complex eigenvalues, with equal ones, without enough vectors, of small numbers."""
    rng = np.random.default_rng(4)
    x = rng.standard_normal((8, 5, 5))
    basis = np.linalg.qr(x[1])[0]
    x[1] = basis @ np.diag([3.0, 3, -1, -1, 0]) @ basis.T
    x[2], x[3], x[4] = np.roll(np.eye(5), 1, 0), np.eye(5, k=1), np.zeros((5, 5))
    x[5], x[6], x[7] = np.triu(x[5]), 1e-200 * x[6], np.kron(np.eye(3), [[0, 1], [-1, 0]])[:5, :5]
    real, imaginary, left, right, info = decompositions.run("geev", x)
    values = (real + 1j * imaginary)[:, None]
    scale = np.maximum(np.abs(x).max((1, 2), keepdims=True), 1e-300)
    np.testing.assert_allclose(x / scale @ right, right * (values / scale), atol=1e-13)
    left = np.conj(np.swapaxes(left, 1, 2))
    np.testing.assert_allclose(left @ (x / scale), np.swapaxes(values / scale, 1, 2) * left, atol=1e-13)
    np.testing.assert_allclose(np.linalg.norm(right, axis=1), 1, atol=1e-14)
    np.testing.assert_array_equal(real[1] * 0, imaginary[1])
    assert (right.imag * (imaginary == 0)[:, None] == 0).all()
    np.testing.assert_allclose(sorted(np.abs(values[0, 0])), sorted(np.abs(np.linalg.eigvals(x[0]))), atol=1e-13)
    np.testing.assert_array_equal(info, 0)


@pytest.mark.parametrize("shape", [(0, 5, 5), (1, 5, 5)])
def test_eigenvalues_of_nothing_and_of_what_is_not_a_number(
    decompositions: Executable, shape: tuple[int, ...]
) -> None:
    real, _, _, right, _ = decompositions.run("geev", np.full(shape, np.nan))
    assert real.shape == shape[:2]
    assert np.isnan(real).all()
    assert np.isnan(right).all()


def test_schur_of_complex_matrices(decompositions: Executable) -> None:
    rng = np.random.default_rng(5)
    x = (rng.standard_normal((4, 4)) + 1j * rng.standard_normal((4, 4))).astype(np.complex64)
    t, z, values, _, info = decompositions.run("gees", x)
    np.testing.assert_array_equal(np.tril(t, -1), 0)
    np.testing.assert_array_equal(np.diagonal(t), values)
    np.testing.assert_allclose(z @ t @ np.conj(z.T), x, atol=1e-5)
    np.testing.assert_allclose(np.conj(z.T) @ z, np.eye(4), atol=1e-6)
    assert info == 0


def test_tridiagonal_form_of_an_upper_triangle(decompositions: Executable) -> None:
    x = np.random.default_rng(6).standard_normal((4, 4))
    packed, diagonal, above, taus, info = decompositions.run("sytrd", x)
    np.testing.assert_array_equal(np.tril(packed, -1), np.tril(x, -1))
    np.testing.assert_array_equal(np.diagonal(packed), diagonal)
    q = np.eye(4)
    for i in reversed(range(3)):
        v = np.concatenate([packed[:i, i + 1], [1], np.zeros(3 - i)])
        q = q @ (np.eye(4) - taus[i] * np.outer(v, v))
    tridiagonal = np.diag(diagonal) + np.diag(above, 1) + np.diag(above, -1)
    np.testing.assert_allclose(q @ tridiagonal @ q.T, np.triu(x) + np.triu(x, 1).T, atol=1e-13)
    assert info == 0


@pytest.mark.parametrize("result", ["tensor<4x4xf32>", "tensor<?x3xf32>"])
def test_results_of_other_types_are_refused(result: str) -> None:
    text = f"""func.func @f(%x: tensor<3x3xf32>) -> {result} {{
  %0 = stablehlo.custom_call @devscope.cholesky(%x) : (tensor<3x3xf32>) -> {result}
  return %0 : {result}
}}"""
    with pytest.raises(devscope.DevscopeError, match=r":2:8: error: 'stablehlo.custom_call' cannot be lowered"):
        devscope.compile(text, cache=False)


def test_values_of_an_expansion_have_the_types_of_the_results() -> None:
    parsed = parse_source(FACTORS)
    with parsed.context:
        op = next(op for op in mlir_util.walk(parsed.module.operation) if op.name == "stablehlo.custom_call")
        given = op.operands[0].type
        text = f'"devscope.return"(%0, %0, %0) : ({given}, {given}, {given}) -> ()'
        with pytest.raises(ValueError, match=r"values of tensor<2x5x3xf64>, .* for results"):
            expand(op, text)


def test_exponentials_are_right_for_matrices_of_any_norm(decompositions: Executable) -> None:
    x = np.random.default_rng(5).standard_normal((5, 3, 3))
    x[1:3] *= [[[1e-9]], [[20]]]
    x[3] = np.diag([-1e5, 0, 3])  # halved 19 times
    x[4, 0, 0] = np.nan
    np.testing.assert_allclose(decompositions.run("exponential", x), expm(x), rtol=1e-9, atol=1e-300)
