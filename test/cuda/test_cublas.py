"""The backend ``cublas`` on the emulated device, with a library that computes as cuBLASLt does (``cublas.c``)."""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from emulation import emulated_cuda
from products import product_of

import devscope
from devscope.backends.cublas.runtime import CublasRuntime
from devscope.errors import DeviceNotFoundError, ExecutionError, LoweringError
from devscope.runtime import plugins

pytestmark = pytest.mark.sampled(2)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ctypes.CDLL]:
    folder = tmp_path_factory.mktemp("cublas")
    path, source = folder / "libcublasLt.so", Path(__file__).with_name("cublas.c")
    command = [os.environ.get("CC", "cc"), "-std=c11", "-O2", "-Wall", "-Werror", "-fPIC", "-shared"]
    subprocess.run([*command, str(source), "-o", str(path)], check=True)
    patch = pytest.MonkeyPatch()
    patch.setenv("DEVSCOPE_CUBLASLT", str(path))
    patch.setitem(plugins._registered, "cublas", CublasRuntime())  # pyright: ignore[reportPrivateUsage]
    with emulated_cuda(folder):
        yield ctypes.CDLL(str(path))
    patch.undo()


def number(library: ctypes.CDLL, name: str) -> ctypes.c_int64:
    return ctypes.c_int64.in_dll(library, f"cublas_{name}")


DTYPES = {name: np.dtype(f"f{int(name[1:]) // 8}") for name in ("f64", "f32", "f16")}
DTYPES["bf16"] = np.dtype(ml_dtypes.bfloat16)
TOLERANCE = {"f32": 1e-5, "f64": 1e-12, "f16": 2e-3, "bf16": 2e-2}


def compiled(text: str, options: str = "", **settings: object) -> devscope.Executable:
    return devscope.compile(text, backends=[f"cublas{options}"], default="cuda:0", cache=False, **settings)  # pyright: ignore


def random(*shapes: tuple[int, ...], element: str = "f32") -> list[np.ndarray]:
    generator = np.random.default_rng(0)
    return [generator.standard_normal(shape).astype(DTYPES[element]) for shape in shapes]


def close(found: np.ndarray, expected: np.ndarray, element: str = "f32") -> None:
    tolerance = TOLERANCE[element]
    np.testing.assert_allclose(found.astype("f8"), expected.astype("f8"), rtol=tolerance, atol=tolerance)


def taken(executable: devscope.Executable) -> list[str]:
    return [row["pattern"] for row in executable.program.report["backends"]]


CASES = [*product((0, 1), (0, 1), (0, 1), ("f32",)), (0, 0, 1, "f64"), (1, 0, 0, "f16"), (1, 1, 0, "bf16")]


@pytest.mark.parametrize(("left", "right", "before", "element"), CASES)
def test_transposes_and_a_matrix_that_is_added(
    library: ctypes.CDLL, left: int, right: int, before: int, element: str
) -> None:
    """``before``: whether an operation transposes the left one once more, which is folded."""
    program = product_of(bool(left), bool(right), bool(before), element)
    executable = compiled(program.text)
    assert taken(executable) == ["matmul"]
    given = random(*program.shapes, element=element)
    close(executable(*given), program.expected(*(one.astype("f8") for one in given)), element)


ROW = """func.func @main(%a: tensor<?x16xE>, %b: tensor<16x4xE>, %v: tensor<4xE>) -> tensor<?x4xE> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : E
  %m = tensor.dim %a, %c0 : tensor<?x16xE>
  %e = tensor.empty(%m) : tensor<?x4xE>
  %z = linalg.fill ins(%zero : E) outs(%e : tensor<?x4xE>) -> tensor<?x4xE>
  %x = math.absf %a : tensor<?x16xE>
  %r = linalg.matmul ins(%x, %b : tensor<?x16xE>, tensor<16x4xE>) outs(%z : tensor<?x4xE>) -> tensor<?x4xE>
  %w = linalg.broadcast ins(%v : tensor<4xE>) outs(%e : tensor<?x4xE>) dimensions = [0]
  %s = arith.addf %r, %w : tensor<?x4xE>
  %y = math.absf %s : tensor<?x4xE>
  return %y : tensor<?x4xE>
}"""


@pytest.mark.parametrize("element", list(DTYPES))
def test_a_row_between_kernels(library: ctypes.CDLL, element: str) -> None:
    """Sizes are known when it runs; data stays on the device, where generated code works on it, too.

    Of f64 that makes a matrix of the row, which the library has no epilogue for.
    """
    executable = compiled(ROW.replace("E", element))
    assert taken(executable) == ["matmul_bias"]
    for rows in (3, 0, 1, 7):
        a, b, v = random((rows, 16), (16, 4), (4,), element=element)
        before = number(library, "products").value
        executable.reset_counters()
        close(executable(a, b, v), np.abs(np.abs(a).astype("f8") @ b.astype("f8") + v.astype("f8")), element)
        assert number(library, "products").value == before + (rows > 0)
        assert executable.counters().d2h.copies <= 1
        assert set(executable.counters().live.values()) == {0}


def simple(name: str, a: str, b: str, c: str, tail: str = "", result: str = "%r") -> str:
    return f"""func.func @main(%a: tensor<{a}>, %b: tensor<{b}>) -> tensor<{c}> {{
      %z = arith.constant dense<0.0> : tensor<{c}>
      %f = arith.constant dense<0.1> : tensor<{c}>
      %r = linalg.{name} ins(%a, %b : tensor<{a}>, tensor<{b}>) outs(%z : tensor<{c}>) -> tensor<{c}>
      {tail}
      return {result} : tensor<{c}>
    }}"""


PLAIN = simple("matmul", "6x5xf32", "5x7xf32", "6x7xf32")


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("matvec", ((6, 5), (5,), (6,))),
        ("vecmat", ((5,), (5, 6), (6,))),
        ("batch_matmul", ((3, 6, 5), (3, 5, 7), (3, 6, 7))),
    ],
)
def test_vectors_batches_and_factors(library: ctypes.CDLL, name: str, shapes: tuple[tuple[int, ...], ...]) -> None:
    types = [f"{'x'.join(map(str, shape))}xf32" for shape in shapes]
    executable = compiled(simple(name, *types, f"%s = arith.mulf %r, %f : tensor<{types[2]}>", "%s"))
    assert taken(executable) == [f"{'matvec' if 'vec' in name else name}_scaled"]
    x, y = random(*shapes[:2])
    close(executable(x, y), np.float32(0.1) * (x @ y))


@pytest.mark.parametrize("element", ["f16", "bf16"])
def test_sums_in_f32(library: ctypes.CDLL, element: str) -> None:
    executable = compiled(simple("matmul", f"6x5x{element}", f"5x7x{element}", "6x7xf32"))
    assert taken(executable) == ["matmul"]
    x, y = random((6, 5), (5, 7), element=element)
    close(executable(x, y), x.astype("f4") @ y.astype("f4"))


SQUARE = "tensor<4x4xf32>"
WEIGHTS = np.random.default_rng(3).standard_normal((4, 4)).astype(np.float32)
LOOP = f"""func.func @main(%x: {SQUARE}, %n: index) -> {SQUARE} {{
  %w = arith.constant dense<"0x{WEIGHTS.tobytes().hex().upper()}"> : {SQUARE}
  %z = arith.constant dense<0.0> : {SQUARE}
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> ({SQUARE}) {{
    %m = linalg.matmul ins(%a, %w : {SQUARE}, {SQUARE}) outs(%z : {SQUARE}) -> {SQUARE}
    %t = math.tanh %m : {SQUARE}
    scf.yield %t : {SQUARE}
  }}
  return %r : {SQUARE}
}}"""


def test_constant_weights_in_a_loop(library: ctypes.CDLL) -> None:
    """They go to the device once, and what the loop carries stays there."""
    executable, (x,) = compiled(LOOP), random((4, 4))
    for times in (0, 1, 5):
        expected = x
        for _ in range(times):
            expected = np.tanh(expected @ WEIGHTS)
        close(executable(x, times), expected)
    counters = executable.counters()
    assert (counters.h2d.copies, counters.d2h.copies) == (3 + 1, 3)


def test_between_work_of_the_host(library: ctypes.CDLL) -> None:
    host = 'device.scope = #device.scope<"cpu", 0 : i64, "", "">'
    types = f"{SQUARE}, {SQUARE}"
    text = f"""func.func @main(%x: {SQUARE}) -> ({types}) {{
      %z = arith.constant dense<0.0> : {SQUARE}
      %h = math.exp %x {{{host}}} : {SQUARE}
      %m = linalg.matmul ins(%h, %x : {types}) outs(%z : {SQUARE}) -> {SQUARE}
      %g = math.absf %m {{{host}}} : {SQUARE}
      %s = linalg.matmul ins(%g, %m : {types}) outs(%m : {SQUARE}) -> {SQUARE}
      return %s, %m : {types}
    }}"""
    executable, (x,) = devscope.compile(text, backends=["cublas"], cache=False), random((4, 4))
    assert taken(executable) == ["matmul", "matmul"]
    product, (summed, given) = np.exp(x) @ x, executable(x)
    close(given, product)
    np.testing.assert_allclose(summed, np.abs(product) @ product + product, rtol=1e-4)


def test_precision(library: ctypes.CDLL) -> None:
    for options, compute in (("", 68), (":tf32=true", 77)):
        compiled(PLAIN, options)(*random((6, 5), (5, 7)))
        assert number(library, "last_compute").value == compute


def test_on_the_second_device_saved_and_closed(library: ctypes.CDLL, tmp_path: Path) -> None:
    """What the library made goes with the program."""
    executable = compiled(PLAIN, ":device=cuda:1")
    assert "cuda:1" in {device.name for device in executable.program.devices}
    executable.save(tmp_path / "p.dsx")
    loaded, given = devscope.load(tmp_path / "p.dsx"), random((6, 5), (5, 7))
    before = number(library, "live").value
    close(loaded(*given), given[0] @ given[1])
    assert number(library, "live").value == before + 1
    loaded.close()
    assert number(library, "live").value == before


def test_what_the_library_refuses(library: ctypes.CDLL) -> None:
    executable = compiled(PLAIN)
    given, fails = random((6, 5), (5, 7)), number(library, "fails")
    close(executable(*given), given[0] @ given[1])
    before = number(library, "live").value
    fails.value = 1
    try:
        with pytest.raises(ExecutionError, match=r"backend 'cublas': .* failed with status 15"):
            executable(*given)
    finally:
        fails.value = 0
    assert number(library, "live").value == before
    close(executable(*given), given[0] @ given[1])


UNKNOWN = PLAIN.replace("6x5xf32", "6x?xf32").replace("5x7xf32", "?x7xf32")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (UNKNOWN, "how many products it sums is not known, or none"),
        (PLAIN.replace("dense<0.0>", "dense<2.0>"), "it adds the same number everywhere"),
        (simple("matmul", "6x5xf32", "5x7xf32", "6x7xf64"), "operands are of f32 and f64"),
    ],
)
def test_what_it_does_not_take(library: ctypes.CDLL, text: str, said: str) -> None:
    executable = compiled(text)
    assert any(said in row["reason"] for row in executable.program.report["partition"]["refusals"])
    a, b = random((6, 5), (5, 7))
    close(executable(a, b), a @ b + (2 if "2.0" in text else 0))


def test_built_for_another_device(library: ctypes.CDLL) -> None:
    with pytest.raises(LoweringError, match="backend 'cublas' computes on devices of type 'cuda'"):
        compiled(PLAIN, devices={"cuda:0": "cpu:0"})


def test_without_the_library(library: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(plugins._registered, "cublas", CublasRuntime())  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setenv("DEVSCOPE_CUBLASLT", "/nowhere/libcublasLt.so")
    with pytest.raises(DeviceNotFoundError, match="backend 'cublas': what its programs need is missing") as raised:
        compiled(PLAIN)
    assert "install CUDA's cuBLAS, or set DEVSCOPE_CUBLASLT" in str(raised.value)
