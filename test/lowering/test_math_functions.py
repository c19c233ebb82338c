"""Elementary functions in plain arithmetic, run on the host."""

from __future__ import annotations

import ctypes
import functools
import itertools
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import mpmath
import numpy as np
import pytest
from scipy import special

sys.path.insert(0, str(Path(__file__).parent))

import minimax

import devscope
from devscope.lowering.codegen.llvm_text import to_llvm_ir
from devscope.lowering.gpu.math_functions import math_function
from devscope.lowering.interop.session import Session
from devscope.lowering.pipelines import pipeline
from devscope.lowering.polynomials import COEFFICIENTS

#: The reference and the range of arguments; where the function leaves it, it is tried at special values.
FUNCTIONS: dict[str, tuple[Callable[..., Any], float, float]] = {
    "acos": (np.arccos, -1, 1),
    "acosh": (np.arccosh, 1, 1e5),
    "asin": (np.arcsin, -1, 1),
    "asinh": (np.arcsinh, -1e5, 1e5),
    "atan": (np.arctan, -20, 20),
    "atan2": (np.arctan2, -3, 3),
    "atanh": (np.arctanh, -1, 1),
    "cbrt": (np.cbrt, -50, 50),
    "cos": (np.cos, -100, 100),
    "cosh": (np.cosh, -88, 88),
    "erf": (special.erf, -6, 6),
    "erfc": (np.vectorize(math.erfc), -6, 5),
    "exp": (np.exp, -80, 80),
    "exp2": (np.exp2, -140, 127),
    "expm1": (np.expm1, -20, 20),
    "log": (np.log, 1e-30, 100),
    "log10": (np.log10, 1e-30, 100),
    "log1p": (np.log1p, -0.99, 50),
    "log2": (np.log2, 1e-30, 100),
    "powf": (np.power, 0, 22),
    "remf": (np.fmod, -1000, 1000),
    "sin": (np.sin, -100, 100),
    "sinh": (np.sinh, -88, 88),
    "tan": (np.tan, -100, 100),
    "tanh": (np.tanh, -20, 20),
}
TYPES = {"f32": (ctypes.c_float, np.float32), "f64": (ctypes.c_double, np.float64)}
SPECIAL = (
    0.0,
    -0.0,
    1.0,
    -1.0,
    1e-10,
    -1e-10,
    1e-40,
    3.0,
    4.0,
    1000.0,
    -1000.0,
    1e38,
    math.inf,
    -math.inf,
    math.nan,
)


def arity(name: str) -> int:
    return 2 if name in ("atan2", "powf", "remf") else 1


def dialect(name: str) -> str:
    return "arith" if name == "remf" else "math"


@functools.cache
def compiled() -> Any:
    texts = [
        math_function(f"{name}_{type_}", f"{dialect(name)}.{name}", [type_] * arity(name), type_)
        for name in FUNCTIONS
        for type_ in TYPES
    ]
    session = Session()
    module = session.parse("".join(texts))
    session.run_passes(module, pipeline("gpu/to_llvm"))
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(opt=2)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(to_llvm_ir(module, "cuda")), machine)
    engine.finalize_object()
    return engine


@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_it_computes_what_numpy_computes(name: str, type_: str) -> None:
    reference, low, high = FUNCTIONS[name]
    c_type, dtype = TYPES[type_]
    count = arity(name)
    function = ctypes.CFUNCTYPE(c_type, *[c_type] * count)(compiled().get_function_address(f"{name}_{type_}"))
    rng = np.random.default_rng(7)
    least = max(low, -1e-3)
    near = rng.uniform(least, min(high, least + 2e-3), (50, count))
    arguments = np.concatenate([rng.uniform(low, high, (300, count)), near]).astype(dtype)
    special = list(itertools.product(SPECIAL, repeat=count))
    arguments = np.concatenate([arguments, np.array(special, dtype)])
    found = np.array([function(*map(float, row)) for row in arguments])
    with np.errstate(all="ignore"):
        expected = np.asarray(reference(*arguments.astype(np.float64).T)).astype(dtype).astype(np.float64)
    unit = float(np.finfo(dtype).eps)
    absolute = 0.0 if name == "remf" else 4 * float(np.finfo(dtype).smallest_subnormal)
    relative = 0.0 if name == "remf" else 4 * unit
    np.testing.assert_allclose(found, expected, rtol=relative, atol=absolute, equal_nan=True)
    zeros = (expected == 0) & (found == 0)
    np.testing.assert_array_equal(np.signbit(found[zeros]), np.signbit(expected[zeros]))


@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("name", ["sin", "cos"])
def test_sines_of_the_whole_range(name: str, type_: str) -> None:
    """Of all sizes, near multiples of pi/2, and of the numbers that are nearest to one."""
    c_type, dtype = TYPES[type_]
    function = ctypes.CFUNCTYPE(c_type, c_type)(compiled().get_function_address(f"{name}_{type_}"))
    rng = np.random.default_rng(7)
    bits = rng.integers(0, 2 ** (8 * dtype().itemsize), 300, dtype=np.uint64).astype(f"u{dtype().itemsize}")
    turns = np.concatenate([rng.integers(-5000, 5000, 50), rng.integers(-(10**12), 10**12, 50)]) * (np.pi / 2)
    nearest = {"f32": (16367173 * 2.0**72, 2.0**12), "f64": (6381956970095103 * 2.0**797, 2.0**30)}[type_]
    numbers = np.concatenate([bits.view(dtype), turns.astype(dtype), np.array(nearest, dtype)])
    info = np.finfo(dtype)
    with mpmath.workprec(1200):
        for number in map(float, numbers[np.isfinite(numbers)]):
            exact = getattr(mpmath, name)(mpmath.mpf(number))
            exponent = max(int(mpmath.frexp(exact)[1]) - 1, int(info.minexp))
            assert abs(function(number) - exact) <= 2 * mpmath.ldexp(1, exponent - info.nmant), number


def test_powers_of_two_are_exact() -> None:
    log2 = ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_float)(compiled().get_function_address("log2_f32"))
    assert [log2(2.0**n) for n in range(-126, 128)] == list(range(-126, 128))


def test_what_has_no_polynomial_stays() -> None:
    assert 'math.ctlz"(%arg0) : (i32) -> i32' in math_function("f", "math.ctlz", ["i32"], "i32")


@pytest.mark.parametrize("name", ["exp f32", "sin f64"])
def test_coefficients_are_those_of_the_fits(name: str) -> None:
    coefficients, error = minimax.minimax(minimax.FITS[name])
    assert COEFFICIENTS[name] == [float(coefficient) for coefficient in coefficients]
    assert error < 2.0**-26


def test_every_polynomial_has_a_fit() -> None:
    assert {name: len(terms) - 1 for name, terms in COEFFICIENTS.items()} == {
        name: fit.degree for name, fit in minimax.FITS.items()
    }


def test_sines_of_the_host_in_vectorised_loops() -> None:
    """Numbers that libm computes stand among others, in whole vectors and in what is left of them."""
    columns = "tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf64>, tensor<?xf64>"
    text = f"""
        func.func @main(%x: tensor<?xf32>, %y: tensor<?xf64>) -> ({columns}) {{
          %sin = math.sin %x : tensor<?xf32>
          %cos = math.cos %x : tensor<?xf32>
          %tan = math.tan %x : tensor<?xf32>
          %sin_y = math.sin %y : tensor<?xf64>
          %cos_y = math.cos %y : tensor<?xf64>
          return %sin, %cos, %tan, %sin_y, %cos_y : {columns}
        }}
    """
    rng = np.random.default_rng(7)
    turns = (np.arange(1, 2**15, 7) * (np.pi / 2)).astype(np.float32)
    with devscope.compile(text) as executable:
        for count in (0, 1, 7, 16, 37, 3000):
            x = np.concatenate([rng.standard_normal(count).astype(np.float32), turns[: count // 2]])
            far = rng.integers(0, max(count, 1), count // 5)
            x[far] = 10.0 ** rng.uniform(0, 38, len(far))
            x[: count // 7] = np.resize([np.inf, np.nan, -0.0, -np.inf, 1e30], count // 7)
            y = x.astype(np.float64)
            y[count // 2 : count // 2 + count // 9] *= 1e50
            found = executable.run("main", x, y)
            with np.errstate(all="ignore"):
                wide = x.astype(np.float64)
                expected = [np.sin(wide), np.cos(wide), np.tan(wide), np.sin(y), np.cos(y)]
            for got, right in zip(found, expected, strict=True):
                np.testing.assert_allclose(got, right.astype(got.dtype), rtol=4 * np.finfo(got.dtype).eps)
                zeros = right == 0
                np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(right[zeros]))


def test_remainders_of_the_host_are_exact() -> None:
    """Quotients of all sizes, and such that are next to an integer."""
    dtypes = {"f32": np.float32, "f64": np.float64, "f16": np.float16}
    functions = (
        f"func.func @{name}(%x: tensor<?x{name}>, %y: tensor<?x{name}>) -> tensor<?x{name}> {{\n"
        f"%r = arith.remf %x, %y : tensor<?x{name}>\nreturn %r : tensor<?x{name}>\n}}"
        for name in dtypes
    )
    rng = np.random.default_rng(7)
    with devscope.compile("\n".join(functions)) as executable:
        for name, dtype in dtypes.items():
            size = dtype().itemsize
            bits = rng.integers(0, 2 ** (8 * size), (2, 2000), dtype=np.uint64).astype(f"u{size}").view(dtype)
            near = rng.uniform(-9, 9, (2, 2001)).astype(dtype)
            special = np.array(list(itertools.product((*SPECIAL, 5e-324, 6e-8), repeat=2))).T
            with np.errstate(all="ignore"):
                multiples = (np.float64(near[1]) * rng.integers(1, 2000, 2001)).astype(dtype)
                multiples = np.nextafter(multiples, dtype(rng.choice([-np.inf, 0, np.inf])))
                pairs = [bits, near, np.stack([multiples, near[1]]), special.astype(dtype), bits[:, :0]]
                for x, y in pairs:
                    found = executable.run(name, x, y)
                    np.testing.assert_array_equal(found, np.fmod(x, y))
                    zeros = (found == 0) & (y == y)
                    np.testing.assert_array_equal(np.signbit(found[zeros]), np.signbit(x[zeros]))
