"""Complex numbers, on the host and on a device: all operations, and all places where programs have numbers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import devscope
from devscope.errors import InputError
from devscope.runtime.executable import Executable

PROGRAM = Path(__file__).with_name("complex.mlir")
KERNEL = Path(__file__).with_name("complex_kernel.mlir")
SEED = int(os.environ["DEVSCOPE_TEST_SEED"])  # set in test/conftest.py
pytestmark = [pytest.mark.fuzz, pytest.mark.sampled(2)]

UNARY = ["exp", "expm1", "log", "log1p", "sqrt", "rsqrt", "sin", "cos", "tan", "tanh"]
UNARY += ["sign", "neg", "conj", "abs", "angle"]
BINARY = ["add", "sub", "mul", "div", "pow"]

#: Largest error in units of the last place of the result's magnitude; docs/types.md states it.
ULPS = 4.0


def functions(element: str) -> str:
    """A function ``f`` of two vectors that has a result for every operation."""
    number, tensor = f"complex<{element}>", f"tensor<?xcomplex<{element}>>"
    kinds = [element if name in ("abs", "angle") else number for name in UNARY + BINARY]
    lines = [
        *(f"%v{i} = complex.{name} %a : {number}" for i, name in enumerate(UNARY)),
        *(f"%v{i} = complex.{name} %a, %b : {number}" for i, name in enumerate(BINARY, len(UNARY))),
    ]
    count = len(lines)
    types = ", ".join(f"tensor<?x{kind}>" for kind in kinds)
    empty = "\n".join(f"%e{i} = tensor.empty(%n) : tensor<?x{kind}>" for i, kind in enumerate(kinds))
    return f"""
        func.func @{element}(%x: {tensor}, %y: {tensor}) -> ({types}) {{
          %zero = arith.constant 0 : index
          %n = tensor.dim %x, %zero : {tensor}
          {empty}
          %r:{count} = linalg.generic {{
            indexing_maps = [{", ".join(["affine_map<(i) -> (i)>"] * (count + 2))}], iterator_types = ["parallel"]
          }} ins(%x, %y : {tensor}, {tensor}) outs({", ".join(f"%e{i}" for i in range(count))} : {types}) {{
            ^bb0(%a: {number}, %b: {number}, {", ".join(f"%o{i}: {kind}" for i, kind in enumerate(kinds))}):
              {chr(10).join(lines)}
              linalg.yield {", ".join(f"%v{i}" for i in range(count))} : {", ".join(kinds)}
          }} -> ({types})
          return {", ".join(f"%r#{i}" for i in range(count))} : {types}
        }}"""


@pytest.fixture(scope="module", params=["cpu:0", "opencl:0"])
def all_functions(request: pytest.FixtureRequest) -> Executable:
    return devscope.compile(functions("f32") + functions("f64"), default=request.param)


@pytest.fixture(scope="module", params=["cpu:0", "opencl:0"])
def program(request: pytest.FixtureRequest) -> Executable:
    devices = {"opencl:0": request.param} if request.param == "cpu:0" else None
    return devscope.compile(PROGRAM, devices=devices)


def numbers(rng: np.random.Generator, dtype: Any) -> Any:
    """Of all magnitudes, on the unit circle and near 1, and some whose functions are known."""
    most = np.finfo(dtype).maxexp * 0.3
    parts = rng.standard_normal((2, 60)) * 10.0 ** rng.choice(
        [0, 0, 0, 1, -1, -3, -0.9 * most, 0.9 * most], (2, 60)
    )
    circle = np.exp(1j * rng.uniform(-np.pi, np.pi, 40))
    near = 1 + 1e-3 * (rng.standard_normal(20) + 1j * rng.standard_normal(20))
    known = [1e30 + 1e30j, 1e-30 - 1e-30j, -4, 3 + 4j, 0.6 + 0.8j, 1e-20j, 1e20, 2, -1, 1j, -1j, 1.5 - 2j]
    return np.concatenate([parts[0] + 1j * parts[1], circle, near, known]).astype(dtype)


def reference(name: str, x: Any, y: Any) -> Any:
    """In the next wider type: numpy's functions of double and extended precision."""
    wide = np.complex128 if x.dtype == np.complex64 else np.clongdouble
    x, y = x.astype(wide), y.astype(wide)
    with np.errstate(all="ignore"):
        match name:
            case "div":
                return x / y
            case "rsqrt":
                return 1 / np.sqrt(x)
            case "expm1":
                return _expm1(x)
            case "log1p":
                small = np.abs(x) < 0.25
                return np.where(small, _log1p(x), np.log(1 + x))
            case _:
                known = {
                    "neg": np.negative,
                    "add": np.add,
                    "sub": np.subtract,
                    "mul": np.multiply,
                    "pow": np.power,
                }
                function = known.get(name) or getattr(np, name)
                return function(x, y) if name in BINARY else function(x)


def _expm1(x: Any) -> Any:
    re = np.expm1(x.real) * np.cos(x.imag) - 2 * np.sin(x.imag / 2) ** 2
    return re + 1j * (np.exp(x.real) * np.sin(x.imag))


def _log1p(x: Any) -> Any:
    return np.log1p(x.real * (x.real + 2) + x.imag**2) / 2 + 1j * np.arctan2(x.imag, 1 + x.real)


@pytest.mark.parametrize("element", ["f32", "f64"])
def test_functions_are_accurate(all_functions: Executable, element: str) -> None:
    dtype = np.complex64 if element == "f32" else np.complex128
    rng = np.random.default_rng([SEED, element == "f32"])
    x, y = numbers(rng, dtype), rng.permutation(numbers(rng, dtype))
    info = np.finfo(dtype)
    results = dict(zip(UNARY + BINARY, all_functions.run(element, x, y), strict=True))
    # Powers of numbers of moderate size.
    results["pow"] = all_functions.run(element, x, np.clip(y.real, -3, 3) + 1j * np.clip(y.imag, -3, 3))[-1]
    for name, got in results.items():
        b = np.clip(y.real, -3, 3) + 1j * np.clip(y.imag, -3, 3) if name == "pow" else y
        want = reference(name, x, b)
        size = np.abs(want)
        normal = np.isfinite(want) & (size < info.max / 2) & (size > info.tiny * 4)
        assert np.isfinite(got[normal]).all(), name
        error = np.abs(got[normal] - want[normal]) / size[normal] / info.eps
        if name == "pow":  # the exponential of a product, whose error grows with its size
            error /= 1 + np.abs(b * np.log(x.astype(np.complex128)))[normal]
        worst = int(np.argmax(error))
        assert error[worst] <= ULPS, (name, x[normal][worst], b[normal][worst], got[normal][worst], error[worst])


def grid() -> Any:
    parts = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 3.0, 1e30, -1e30]
    values = np.empty((len(parts), len(parts)), np.complex64)
    values.real, values.imag = np.meshgrid(parts, parts, indexing="ij")
    return values.ravel()


def same_kind(got: Any, want: Any) -> Any:
    """Where two arrays of numbers have infinities, NaNs, zeros and signs in the same places."""
    finite = np.isfinite(got) & np.isfinite(want)
    close = np.isclose(got, want, rtol=1e-5, atol=0) & (np.signbit(got) == np.signbit(want))
    return (np.isnan(got) & np.isnan(want)) | np.where(finite, close, got == want)


def test_special_values_are_numpys(all_functions: Executable) -> None:
    x = grid()
    results = dict(zip(UNARY + BINARY, all_functions.run("f32", x, np.ones_like(x)), strict=True))
    for name in ("exp", "log", "sqrt", "sin", "cos", "tan", "tanh", "neg", "conj", "abs", "angle"):
        got = results[name]
        with np.errstate(all="ignore"):
            want = np.negative(x) if name == "neg" else getattr(np, name)(x)
        parts = [(got, want)] if name in ("abs", "angle") else [(got.real, want.real), (got.imag, want.imag)]
        for got_part, want_part in parts:
            # The sign of a zero beside an infinity or a NaN is not defined.
            free = ~np.isfinite(x) & (got_part == 0) & (want_part == 0)
            right = same_kind(got_part, want_part) | free
            assert right.all(), (name, x[~right], got[~right], want[~right])


def test_division_recovers_infinities_as_in_c(all_functions: Executable) -> None:
    """C99, annex G.5.1; numpy's results have NaNs in these places."""
    x = np.array([1 + 1j, complex(np.inf, 1), 1 + 2j], np.complex64)
    y = np.array([0, 1 + 1j, complex(np.inf, np.inf)], np.complex64)
    got = all_functions.run("f32", x, y)[len(UNARY) + BINARY.index("div")]
    assert np.isinf(got[0])
    assert np.isinf(got[1])
    assert got[2] == 0


@pytest.mark.parametrize("element", ["f32", "f64"])
def test_division_neither_overflows_nor_underflows(all_functions: Executable, element: str) -> None:
    """Both numbers, and the sums on the way, may be as large and as small as there are any."""
    dtype, wide = (np.complex64, np.complex128) if element == "f32" else (np.complex128, np.clongdouble)
    info, rng = np.finfo(dtype), np.random.default_rng([SEED, element == "f32"])
    most = [info.max / 1.1, -info.max, info.max / 2, info.smallest_normal / 8, -info.smallest_subnormal]
    parts = rng.choice([*most, 1.0, -0.75], (4, 400))
    x, y = (parts[0] + 1j * parts[1]).astype(dtype), (parts[2] + 1j * parts[3]).astype(dtype)
    got = all_functions.run(element, x, y)[len(UNARY) + BINARY.index("div")]
    with np.errstate(all="ignore"):
        want = x.astype(wide) / y.astype(wide)
    size = np.abs(want)
    is_result = size < info.max
    unit = np.maximum(size * info.eps, info.smallest_subnormal)
    assert np.max(np.abs(got - want)[is_result] / unit[is_result]) <= ULPS


def test_scalars(program: Executable) -> None:
    power, size = program.run("scalars", 1 + 0.5j, 5)
    np.testing.assert_allclose(power, (1 + 0.5j) ** 5, rtol=1e-6)
    np.testing.assert_allclose(size, abs((1 + 0.5j) ** 5), rtol=1e-6)
    assert isinstance(power, np.complex64)
    assert program.run("scalars", np.complex64(1j), 3)[0] == -1j
    assert program.run("scalars", 2, 3)[0] == 8
    bits, number = program.run("bits", 1 + 2j, int(np.array([3 - 4j], np.complex64).view(np.int64)[0]))
    assert np.array([bits]).view(np.complex64)[0] == 1 + 2j
    assert number == 3 - 4j


def test_constants(program: Executable) -> None:
    x, y = (np.arange(4) + 1j).astype(np.complex64), (np.arange(40) * 1j + 1).astype(np.complex64)
    small, large, splat = program.run("consts", x, y)
    np.testing.assert_array_equal(small[[0, 3]], x[[0, 3]] + np.array([1 + 2j, 3 + 4j], np.complex64))
    assert small[1] == x[1] + np.complex64(0.1)
    assert np.isnan(small[2].real)
    assert np.isposinf(small[2].imag)
    np.testing.assert_allclose(large, y * (np.arange(40) + 0.1j), rtol=1e-6)
    np.testing.assert_allclose(splat, x * (0.5 + 2j), rtol=1e-6)


def test_calls_loops_reductions_and_slices(program: Executable) -> None:
    x = (np.arange(8) * 0.01 + 0.02j).astype(np.complex64)
    total, tensor, carried, part = program.run("reduce", x, 0.01, 3)
    y = x - np.complex64(0.01)
    np.testing.assert_allclose(total, y.sum(), rtol=1e-6)
    assert tensor == total
    np.testing.assert_allclose(carried, y - 3 * np.exp(y.sum()), rtol=1e-5)
    np.testing.assert_array_equal(part, carried[1:5:2])


def test_choices(program: Executable) -> None:
    x = np.arange(8) * (1 + 2j)
    mask = np.array([True, False] * 4)
    chosen, equal, real = program.run("tensorcond", mask, x.astype(np.complex64), (x + 1).astype(np.complex64))
    np.testing.assert_array_equal(chosen, np.where(mask, x, x + 1))
    np.testing.assert_array_equal(equal, mask)
    np.testing.assert_array_equal(real, chosen.real)
    for flag in (True, False):
        tensor, number = program.run("choose", flag, x[:4].astype(np.complex64), 1 + 1j)
        np.testing.assert_array_equal(tensor, 2 * x[:4] + 2j if flag else x[:4])
        assert number == (2j if flag else 1 + 1j)


@pytest.mark.parametrize("target", ["cpu:0", "opencl:0"])
def test_choices_alone(target: str) -> None:
    """Nothing else in the program is of complex numbers."""
    type_, mask = "tensor<4xcomplex<f32>>", "tensor<4xi1>"
    arguments = ", ".join([*(f"%{name}: {mask}" for name in "pqr"), *(f"%{name}: {type_}" for name in "abcd")])
    text = f"""func.func @main({arguments}) -> {type_} {{
      %0 = stablehlo.select %p, %a, %b : {mask}, {type_}
      %1 = stablehlo.select %q, %c, %d : {mask}, {type_}
      %2 = stablehlo.select %r, %0, %1 : {mask}, {type_}
      return %2 : {type_}
    }}"""
    p, q, r = np.array([[0, 0, 1, 1], [0, 1, 1, 0], [1, 0, 1, 0]], bool)
    a, b, c, d = np.arange(16, dtype=np.complex64).reshape(4, 4) * (1 - 2j)
    got = devscope.run(text, p, q, r, a, b, c, d, default=target, cache=False)
    np.testing.assert_array_equal(got, np.where(r, np.where(p, a, b), np.where(q, c, d)))


def test_contractions_shapes_and_kernels(program: Executable) -> None:
    rng = np.random.default_rng(SEED)
    a, b = (rng.standard_normal((2, *shape)) for shape in ((4, 5), (5, 6)))
    a, b = a[0] + 1j * a[1], b[0] + 1j * b[1]
    np.testing.assert_allclose(program.run("mm", a, b), a @ b + (1 + 2j), rtol=1e-13)
    y, z, k = b[:, 0], a[:, 0], np.array(2 - 1j)
    for value, wanted in zip(program.run("products", a, y, z, k), (a @ y + z, z @ (a @ y + z) + k), strict=True):
        np.testing.assert_allclose(value, wanted, rtol=1e-13)
    packed = (a @ b).reshape(2, 2, 3, 2).swapaxes(1, 2)
    np.testing.assert_array_equal(program.run("pack", a @ b), packed)
    x, k = a[:2, :3], 2 - 1j
    logarithm = np.log(x[1, 0])
    inserted = x.copy()
    inserted[0, 1] = logarithm
    want = (
        np.pad(x, 1, constant_values=k),
        x.ravel(),
        x.T,
        inserted,
        np.array([k, logarithm, x[1, 0]]),
        np.full(2, 0.5 + 1.5j),
        np.concatenate([x, inserted]),
    )
    for got, expected in zip(program.run("shapes", x, k), want, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-14)
    empty, unit, rank0 = program.run("tiny", np.zeros((0, 3), complex), np.array([[1 + 2j]]), np.array(2j))
    assert empty.shape == (0, 3)
    assert unit[0, 0] == (1 + 2j) ** 2 + 1 + 2j
    assert rank0 == -4


def test_own_kernels() -> None:
    x = np.array([3 - 4j, 2j, -1], np.complex64)
    got = devscope.compile(KERNEL).run("own", x)
    np.testing.assert_allclose(got, np.sqrt(x.conj()) + x.sum(), rtol=1e-6)


def test_arguments_are_checked(program: Executable) -> None:
    with pytest.raises(InputError, match="expected dtype complex64, got complex128"):
        program.run("reduce", np.zeros(3, np.complex128), 1, 1)
    with pytest.raises(InputError, match="1e\\+300 is outside the range of complex<f32>"):
        program.run("scalars", 1e300, 1)
    with pytest.raises(InputError, match=r"argument 1 .*expected a value of type index, got 1j of type complex"):
        program.run("scalars", 1, 1j)


def test_saved_programs(program: Executable, tmp_path: Path) -> None:
    program.save(tmp_path / "complex.dsx")
    assert devscope.load(tmp_path / "complex.dsx").run("scalars", 1j, 2)[0] == -1


def test_the_command_line(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([1 + 1j, 4], np.complex64))
    command = [sys.executable, "-m", "devscope.cli.main", "run"]
    run = [*command, str(KERNEL), "--input", str(tmp_path / "x.npy"), "--output", str(tmp_path / "r.npz")]
    subprocess.run(run, check=True, capture_output=True)
    np.testing.assert_allclose(np.load(tmp_path / "r.npz")["result0"], np.sqrt([1 - 1j, 4]) + 5 + 1j, rtol=1e-6)
    command += [str(PROGRAM), "--entry"]
    checked = subprocess.run(
        [*command, "mm", "--random", "1", "--check"], check=True, capture_output=True, text=True
    )
    assert "result0: 4x6xcomplex<f64>" in checked.stdout
    assert "agrees with the host" in checked.stdout
