"""bf16 where processors and devices lack it: 16 bits in memory, f32 in between, rounded after each operation."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from test_contractions import Case as Contraction
from test_workgroup_tiles import gpu  # noqa: F401  (a fixture)

import devscope
from devscope.lowering.opencl import target

BF16 = ml_dtypes.bfloat16

PROGRAM = """
func.func @chain(%a: tensor<?xbf16>, %b: tensor<?xbf16>) -> (tensor<?xbf16>, tensor<?xbf16>, tensor<?xi1>) {
  %0 = arith.addf %a, %b : tensor<?xbf16>
  %1 = arith.mulf %0, %a : tensor<?xbf16>
  %2 = arith.subf %1, %b : tensor<?xbf16>
  %3 = arith.maximumf %2, %b : tensor<?xbf16>
  %4 = arith.cmpf ogt, %2, %b : tensor<?xbf16>
  return %2, %3, %4 : tensor<?xbf16>, tensor<?xbf16>, tensor<?xi1>
}
func.func @casts(%a: tensor<?xbf16>, %d: tensor<?xf64>, %f: tensor<?xf32>, %i: tensor<?xi32>)
    -> (tensor<?xf64>, tensor<?xbf16>, tensor<?xbf16>, tensor<?xbf16>, tensor<?xbf16>) {
  %0 = arith.extf %a : tensor<?xbf16> to tensor<?xf64>
  %1 = arith.truncf %d : tensor<?xf64> to tensor<?xbf16>
  %2 = arith.truncf %f : tensor<?xf32> to tensor<?xbf16>
  %3 = arith.sitofp %i : tensor<?xi32> to tensor<?xbf16>
  %4 = math.exp %a : tensor<?xbf16>
  return %0, %1, %2, %3, %4 : tensor<?xf64>, tensor<?xbf16>, tensor<?xbf16>, tensor<?xbf16>, tensor<?xbf16>
}
func.func @functions(%a: tensor<?xbf16>, %b: tensor<?xbf16>)
    -> (tensor<?xbf16>, tensor<?xbf16>, tensor<?xbf16>, tensor<?xbf16>, tensor<?xbf16>, tensor<?xbf16>) {
  %0 = math.sqrt %a : tensor<?xbf16>
  %1 = math.rsqrt %a : tensor<?xbf16>
  %2 = math.floor %a : tensor<?xbf16>
  %3 = math.roundeven %a : tensor<?xbf16>
  %4 = arith.cmpf ugt, %a, %b : tensor<?xbf16>
  %5 = arith.select %4, %a, %b : tensor<?xi1>, tensor<?xbf16>
  %6 = math.fma %a, %a, %b : tensor<?xbf16>
  return %0, %1, %2, %3, %5, %6
    : tensor<?xbf16>, tensor<?xbf16>, tensor<?xbf16>, tensor<?xbf16>, tensor<?xbf16>, tensor<?xbf16>
}
func.func @signs(%a: tensor<?xbf16>, %b: tensor<?xbf16>) -> (tensor<?xbf16>, tensor<?xbf16>, tensor<?xbf16>) {
  %0 = math.absf %a : tensor<?xbf16>
  %1 = arith.negf %a : tensor<?xbf16>
  %2 = math.copysign %a, %b : tensor<?xbf16>
  return %0, %1, %2 : tensor<?xbf16>, tensor<?xbf16>, tensor<?xbf16>
}
func.func @integers(%a: tensor<?xbf16>, %i: tensor<?xi8>) -> (tensor<?xi32>, tensor<?xbf16>, tensor<?xbf16>) {
  %0 = arith.fptosi %a : tensor<?xbf16> to tensor<?xi32>
  %1 = arith.sitofp %i : tensor<?xi8> to tensor<?xbf16>
  %2 = arith.uitofp %i : tensor<?xi8> to tensor<?xbf16>
  return %0, %1, %2 : tensor<?xi32>, tensor<?xbf16>, tensor<?xbf16>
}
func.func @numbers(%x: bf16, %t: tensor<4xbf16>) -> (tensor<4xbf16>, tensor<bf16>, tensor<4xbf16>) {
  %factor = arith.constant dense<0xBF57> : tensor<4xbf16>
  %1 = arith.mulf %t, %factor : tensor<4xbf16>
  %low = arith.constant 0xFF80 : bf16
  %e = tensor.empty() : tensor<4xbf16>
  %f = linalg.fill ins(%x : bf16) outs(%e : tensor<4xbf16>) -> tensor<4xbf16>
  %0 = arith.divf %t, %f : tensor<4xbf16>
  %s = tensor.empty() : tensor<bf16>
  %g = linalg.fill ins(%low : bf16) outs(%s : tensor<bf16>) -> tensor<bf16>
  %r = linalg.reduce {arith.maximumf} ins(%t : tensor<4xbf16>) outs(%g : tensor<bf16>) dimensions = [0]
  return %0, %r, %1 : tensor<4xbf16>, tensor<bf16>, tensor<4xbf16>
}
"""


def assert_same(found: Any, expected: Any) -> None:
    """Bit by bit, but for those of NaN."""
    found, expected = np.asarray(found), np.asarray(expected, BF16)
    assert found.dtype == BF16
    nan = np.isnan(expected.astype(np.float32))
    np.testing.assert_array_equal(np.isnan(found.astype(np.float32)), nan)
    np.testing.assert_array_equal(found.view(np.uint16)[~nan], expected.view(np.uint16)[~nan])


@pytest.mark.parametrize("default", ["cpu:0", "opencl:0"])
def test_all_numbers(default: str) -> None:
    """Each operation rounds, also in the middle of several; once from f64."""
    a = np.arange(65536, dtype=np.uint16).view(BF16)
    rng = np.random.default_rng(0)
    b = rng.permutation(a)
    d = rng.standard_normal(65536) * 2.0 ** rng.integers(-130, 130, 65536)
    # Between two numbers of bf16 by less than f32 can say, on either side; and beyond the largest number.
    d[:30000] = 1 + 2.0**-8 + rng.integers(-3, 4, 30000) * 2.0**-40
    d[-3:] = 1e300, -np.inf, np.nan
    f, i = d.astype(np.float32), rng.integers(-(2**24), 2**24, 65536).astype(np.int32)
    with devscope.compile(PROGRAM, default=default, cache=False) as executable, np.errstate(all="ignore"):
        two, three, four = executable.run("chain", a, b)
        expected = ((a + b) * a) - b
        assert_same(two, expected)
        wide = expected.astype(np.float32), b.astype(np.float32)
        assert_same(
            np.where(three == 0, 0, three.astype(np.float32)).astype(BF16), np.maximum(*wide) + np.float32(0)
        )
        np.testing.assert_array_equal(four, wide[0] > wide[1])
        back, from_f64, from_f32, from_int, power = executable.run("casts", a, d, f, i)
        np.testing.assert_array_equal(back, a.astype(np.float64))
        assert_same(from_f32, f.astype(BF16))
        assert_same(from_int, i.astype(np.float32).astype(BF16))
        assert_same(from_f64[:30000], np.where(d[:30000] > 1 + 2.0**-8, 1 + 2.0**-7, 1.0).astype(BF16))
        assert_same(from_f64[-3:], np.array([np.inf, -np.inf, np.nan], BF16))
        exact = np.exp(a.astype(np.float64))
        real = np.isfinite(exact) & (exact > 1e-30) & (exact < 1e30)
        np.testing.assert_allclose(power.astype(np.float64)[real], exact[real], 2.0**-8)
        t = np.array([1, -0.0, np.inf, 3], BF16)
        quotients, largest, products = executable.run("numbers", BF16(3), t)
        assert_same(quotients, t / BF16(3))
        assert_same(largest, BF16(np.inf))
        assert_same(products, t * BF16(-0.83984375))


@pytest.mark.parametrize("default", ["cpu:0", "opencl:0"])
def test_functions_of_all_numbers(default: str) -> None:
    """Computed in f32, rounded once; signs are those of NaNs, too."""
    a = np.arange(65536, dtype=np.uint16).view(BF16)
    b = np.random.default_rng(0).permutation(a)
    x, y = a.astype(np.float32), b.astype(np.float32)
    with devscope.compile(PROGRAM, default=default, cache=False) as executable, np.errstate(all="ignore"):
        root, inverse, floor, even, chosen, more = executable.run("functions", a, b)
        inverses = 1 / np.sqrt(x.astype(np.float64))
        expected = np.sqrt(x), inverses, np.floor(x), np.rint(x), np.where(~(x <= y), x, y)
        normal = np.isfinite(x) & (np.abs(x) >= 2.0**-126)
        is_host = default == "cpu:0"  # OpenCL's functions may take small numbers for 0, and change NaNs
        for number, (found, each) in enumerate(zip((root, inverse, floor, even, chosen), expected, strict=True)):
            where = slice(None) if is_host or number >= 2 else normal
            assert_same(found[where], each.astype(np.float32).astype(BF16)[where])
        exact = x.astype(np.float64) ** 2 + y
        sane = np.isfinite(exact) & (np.abs(exact) < 1e30) & (np.abs(exact) > 1e-30)
        np.testing.assert_allclose(more.astype(np.float64)[sane], exact[sane], 2.0**-8)
        bits = [each.view(np.uint16) for each in executable.run("signs", a, b)]
        i, j = a.view(np.uint16), b.view(np.uint16)
        for found, each in zip(bits, (i & 0x7FFF, i ^ 0x8000, i & 0x7FFF | j & 0x8000), strict=True):
            np.testing.assert_array_equal(found[is_host | normal], each[is_host | normal])
        k = np.arange(256, dtype=np.uint8)
        small = a[np.abs(x) < 2.0**31]
        whole, signed, unsigned = executable.run("integers", small, k.view(np.int8))
        np.testing.assert_array_equal(whole, small.astype(np.float32).astype(np.int32))
        assert_same(signed, k.view(np.int8).astype(np.float32))
        assert_same(unsigned, k.astype(np.float32))


@pytest.mark.parametrize("default", ["cpu:0", "opencl:0"])
@pytest.mark.parametrize(("element", "dtype"), [("bf16", BF16), ("f16", np.float16)])
def test_doubles_are_rounded_once(default: str, element: str, dtype: Any) -> None:
    """Between two neighbours, and by one digit of f64 on either side, subnormal numbers included."""
    bits = np.arange(int(np.array(np.inf, dtype).view(np.uint16)) - 1, dtype=np.uint16)
    middle = (
        bits.view(dtype).astype(np.float64) + (bits + 1).astype(np.uint16).view(dtype).astype(np.float64)
    ) / 2
    numbers = np.concatenate(
        [np.nextafter(middle, 0), middle, np.nextafter(middle, np.inf), [1e300, np.inf, np.nan]]
    )
    expected = np.concatenate([bits, bits + bits % 2, bits + 1, [bits[-1] + 2] * 2]).astype(np.uint16)
    text = f"""func.func @main(%x: tensor<?xf64>) -> tensor<?x{element}> {{
      %y = arith.truncf %x : tensor<?xf64> to tensor<?x{element}>
      return %y : tensor<?x{element}>
    }}"""
    with devscope.compile(text, default=default, cache=False) as executable:
        for sign in (0, 0x8000):
            found = executable(-numbers if sign else numbers)
            np.testing.assert_array_equal(found[:-1].view(np.uint16), expected | sign)
            assert np.isnan(found[-1].astype(np.float32))


def test_contractions(monkeypatch: pytest.MonkeyPatch) -> None:
    """On devices that are CPUs, with vectors, and on GPUs, by tiles; sums are f32."""
    case = Contraction("mk,kn->mn", {"m": 33, "n": 40, "k": 24}, "bf16", "f32")
    other = Contraction("km,nk->mn", {"m": 70, "n": 35, "k": 40}, "bf16", adds=False)
    texts = "\n".join([case.function("first"), other.function("second")])
    choose = target.TARGET.choose_kernels
    for type_ in ("cpu", "gpu"):
        monkeypatch.setitem(
            target.TARGET.__dict__,
            "choose_kernels",
            lambda options, rows, type_=type_: choose({**options, "type": type_}, rows),
        )
        with devscope.compile(texts, default="opencl:0", cache=False) as executable:
            for name, each in (("first", case), ("second", other)):
                arguments = each.arguments(np.random.default_rng(0))
                np.testing.assert_array_equal(executable.run(name, *arguments), each.expected(*arguments))


SUMS = """
#ab = affine_map<(a, b, k) -> (a, b, k)>
#kb = affine_map<(a, b, k) -> (k, b)>
#a = affine_map<(a, b, k) -> (a)>
func.func @dot(%x: tensor<?xT>, %y: tensor<?xT>, %z: tensor<T>) -> tensor<T> {
  %0 = linalg.dot ins(%x, %y : tensor<?xT>, tensor<?xT>) outs(%z : tensor<T>) -> tensor<T>
  return %0 : tensor<T>
}
func.func @short(%x: tensor<2x900xT>, %y: tensor<900x1xT>, %z: tensor<2x1xT>) -> tensor<2x1xT> {
  %0 = linalg.matmul ins(%x, %y : tensor<2x900xT>, tensor<900x1xT>) outs(%z : tensor<2x1xT>) -> tensor<2x1xT>
  return %0 : tensor<2x1xT>
}
func.func @two(%x: tensor<?x?x?xT>, %y: tensor<?x?xT>, %z: tensor<?xT>) -> tensor<?xT> {
  %0 = linalg.generic
      {indexing_maps = [#ab, #kb, #a], iterator_types = ["parallel", "reduction", "reduction"]}
      ins(%x, %y : tensor<?x?x?xT>, tensor<?x?xT>) outs(%z : tensor<?xT>) {
  ^bb0(%one: T, %other: T, %old: T):
    %product = arith.mulf %one, %other : T
    %sum = arith.addf %product, %old : T
    linalg.yield %sum : T
  } -> tensor<?xT>
  return %0 : tensor<?xT>
}
func.func @window(%x: tensor<1x12x12x12xT>, %w: tensor<12x12x12x1xT>, %z: tensor<1x1x1x1xT>) -> tensor<1x1x1x1xT> {
  %0 = linalg.conv_2d_nhwc_hwcf ins(%x, %w : tensor<1x12x12x12xT>, tensor<12x12x12x1xT>)
      outs(%z : tensor<1x1x1x1xT>) -> tensor<1x1x1x1xT>
  return %0 : tensor<1x1x1x1xT>
}
func.func @plain(%x: tensor<3x?xT>, %z: tensor<3xT>) -> tensor<3xT> {
  %0 = linalg.reduce {arith.addf} ins(%x : tensor<3x?xT>) outs(%z : tensor<3xT>) dimensions = [1]
  return %0 : tensor<3xT>
}
"""
SHAPES_OF_SUMS = {
    "dot": ("k,k->", [(3000,), (3000,), ()]),
    "short": ("ak,kb->ab", [(2, 900), (900, 1), (2, 1)]),
    "two": ("abk,kb->a", [(3, 40, 50), (50, 40), (3,)]),
    "window": ("nhwc,hwcf->nf", [(1, 12, 12, 12), (12, 12, 12, 1), (1, 1, 1, 1)]),
    "plain": ("ak->a", [(3, 2000), (3,)]),
}


@pytest.mark.parametrize("default", ["cpu:0", "opencl:0", "gpu"])
@pytest.mark.parametrize(("element", "dtype"), [("bf16", BF16), ("f16", np.float16)])
def test_sums_are_rounded_once(default: str, element: str, dtype: Any, request: pytest.FixtureRequest) -> None:
    """Also where no kernel computes them: few results, results of several sums, small images."""
    if default == "gpu":
        request.getfixturevalue("gpu")
        default = "opencl:0"
    exe = devscope.compile(SUMS.replace("T", element), default=default, cache=False)
    rng = np.random.default_rng(0)
    for name, (formula, shapes) in SHAPES_OF_SUMS.items():
        inputs = [rng.random(shape).astype(dtype) for shape in shapes]
        *factors, start = (x.astype(np.float64) for x in inputs)
        exact = np.einsum(formula, *factors).reshape(start.shape) + start
        found = exe.run(name, *inputs)
        error = np.max(np.abs(np.asarray(found, np.float64) - exact) / exact)
        assert error <= 1.01 * float(ml_dtypes.finfo(dtype).eps) / 2, name
