"""Contractions of bf16 and of bytes, which some processors have instructions for: as exact as without them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_contractions import DTYPES, Case, check

import devscope

Array = np.ndarray[Any, Any]

# More blocks and parts of sums than one; rows, columns and steps behind the last whole ones.
SIZES = {"m": 205, "n": 300, "k": 37}
LONG = {"m": 11, "n": 130, "k": 2051}


@pytest.mark.parametrize(("element", "result"), [("bf16", "bf16"), ("bf16", "f32"), ("i8", "i32")])
def test_layouts_and_sizes(element: str, result: str) -> None:
    specs = ("mk,kn->mn", "km,kn->mn", "mk,nk->mn", "km,nk->mn")
    cases = [Case(spec, SIZES, element, result, adds=spec == "mk,nk->mn") for spec in specs]
    cases += [
        Case(spec, {**SIZES, "k": k}, element, result, "kmn") for spec, k in zip(specs, (0, 1, 2, 7), strict=True)
    ]
    cases += [Case(spec, {**SIZES, "n": n}, element, result) for spec in specs[1:3] for n in (13, 16, 27)]
    # Whole numbers of bf16 have 8 bits: long sums are exact in f32 and in i32.
    if result != "bf16":
        cases += [Case(spec, LONG, element, result) for spec in (specs[0], specs[3])]
    check([*cases, Case("bmk,bkn->bmn", {"b": 3, "m": 40, "n": 50, "k": 21}, element, result)])


@pytest.mark.parametrize("extend", ["arith.extsi", "arith.extui"])
def test_all_bytes(extend: str) -> None:
    case = Case("mk,kn->mn", {"m": 40, "n": 70, "k": 1030}, "i8", "i32", extend=extend)
    rng = np.random.default_rng(0)
    a, b = (rng.choice(np.array([-128, -1, 0, 127], np.int8), case.shape(axes)) for axes in ("mk", "kn"))
    c = rng.integers(-(2**31), 2**31, (40, 70)).astype(np.int32)
    with devscope.compile(case.function("main"), cache=False) as executable:
        result = executable(a, b, c)
    kind = np.int8 if extend == "arith.extsi" else np.uint8
    one, other = (x.view(kind).astype(np.int32) for x in (a, b))
    np.testing.assert_array_equal(result, one @ other + c)


@pytest.mark.parametrize(("small", "large"), [(1e-39, 1e30), (3e-20, 3e-20), (1e-38, 1e-2)])
def test_subnormal_numbers(small: float, large: float) -> None:
    """Elements, products and differences are such; the largest error is that of a sum in f32."""
    bf16 = DTYPES["bf16"]
    case = Case("mk,kn->mn", {"m": 40, "n": 130, "k": 64}, "bf16", "f32", adds=False)
    rng = np.random.default_rng(0)
    a, b = (rng.uniform(1, 2, case.shape(axes)) * rng.choice([-1, 1], case.shape(axes)) for axes in ("mk", "kn"))
    a, b, c = (a * small).astype(bf16), (b * large).astype(bf16), np.zeros((40, 130), np.float32)
    with devscope.compile(case.function("main"), cache=False) as executable:
        result = executable(a, b, c)
        exact = a.astype(np.float64) @ b.astype(np.float64)
        products = np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64)
        assert np.all(np.abs(result - exact) <= products * 2.0**-22 + 64 * 2.0**-149)
        # Normal in one part of the result, subnormal in another.
        a[:32], b[:, :64] = 1.0, 1.0
        result, exact = executable(a, b, c), a.astype(np.float64) @ b.astype(np.float64)
        products = np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64)
        assert np.all(np.abs(result - exact) <= products * 2.0**-22 + 64 * 2.0**-149)


def test_special_values() -> None:
    """Infinities and NaNs get into the sums that they belong to, also where steps are packed with zeros behind."""
    case = Case("mk,kn->mn", {"m": 33, "n": 67, "k": 71}, "bf16", "f32", adds=False)
    a, b, c = case.arguments(np.random.default_rng(0))
    a[3, 5], a[32, -1], b[-1, -1], b[1, 0] = np.nan, np.inf, -np.inf, np.nan
    with devscope.compile(case.function("main"), cache=False) as executable, np.errstate(all="ignore"):
        expected = a.astype(np.float64) @ b.astype(np.float64)
        np.testing.assert_array_equal(executable(a, b, c), expected)


@pytest.mark.parametrize(("element", "result"), [("bf16", "f32"), ("i8", "i32")])
def test_constants(element: str, result: str) -> None:
    """On either side, with steps behind the last whole word."""
    rng = np.random.default_rng(0)
    weights = {
        "right": rng.integers(-100, 100, (37, 70)).astype(DTYPES[element]),
        "turned": rng.integers(-100, 100, (70, 37)).astype(DTYPES[element]),
        "left": rng.integers(-100, 100, (40, 37)).astype(DTYPES[element]),
    }
    specs = {"right": "mk,kn->mn", "turned": "mk,nk->mn", "left": "mk,kn->mn"}
    functions: list[str] = []
    for name, array in weights.items():
        k = f'dense<"0x{array.tobytes().hex()}"> : tensor<{"x".join(map(str, array.shape))}x{element}>'
        other = f"tensor<37x80x{element}>" if name == "left" else f"tensor<50x37x{element}>"
        to = f"tensor<40x80x{result}>" if name == "left" else f"tensor<50x70x{result}>"
        one, two = specs[name].removesuffix("->mn").split(",")
        maps = ", ".join(f"affine_map<(m, n, k) -> ({', '.join(axes)})>" for axes in (one, two, "mn"))
        kinds = k.split(" : ")[1]
        operands = f"%k, %x : {kinds}, {other}" if name == "left" else f"%x, %k : {other}, {kinds}"
        functions.append(f"""func.func @{name}(%x: {other}, %c: {to}) -> {to} {{
          %k = arith.constant {k}
          %r = linalg.contract indexing_maps = [{maps}] ins({operands}) outs(%c : {to}) -> {to}
          return %r : {to}
        }}""")
    with devscope.compile("\n".join(functions), cache=False) as executable:
        for name, array in weights.items():
            shape, size = ((37, 80), (40, 80)) if name == "left" else ((50, 37), (50, 70))
            x = rng.integers(-100, 100, shape).astype(DTYPES[element])
            found = executable.run(name, x, np.ones(size, DTYPES[result]))
            one, two = (array, x) if name == "left" else (x, array.T if name == "turned" else array)
            np.testing.assert_array_equal(found, one.astype(np.int64) @ two.astype(np.int64) + 1)
