"""Programs as shared libraries, called from C and C++ without Python."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import devscope
from devscope.api import CompileOptions
from devscope.backends import Backend, Claimed, LlvmIr, PythonCall, Row
from devscope.cli.main import main
from devscope.errors import DevscopeError, OptionError
from devscope.patterns import constant, op, wildcard
from devscope.runtime.drivers.opencl import opencl_devices
from devscope.runtime.library import write_library
from devscope.runtime.native import compile_native
from devscope.runtime.plugins import LibraryRuntime, Runtime, register_runtime

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "c_library"
EXPECTED = "2 2.5\n5 5.5\n4\nelement: {file}:20:3: assertion failed: the index is too large\n"

pytestmark = pytest.mark.skipif(not compile_native.has_compiler(), reason="this machine has no C compiler")


def build(program: devscope.api.Source, folder: Path, **options: Any) -> None:
    write_library(devscope.build(program, CompileOptions(**options)), folder / "libmodel.so")


def run(source: Path, folder: Path, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """What a C program that is linked with the library prints; nothing but the C library is in its reach."""
    compiler = compile_native.machine_compiler()
    assert compiler is not None
    executable = folder / "main"
    flags = ["-Wall", "-Wextra", "-Werror", "-std=c11", "-I", str(folder), "-L", str(folder)]
    command = [*compiler, *flags, str(source), "-lmodel", f"-Wl,-rpath,{folder}", "-o", str(executable)]
    subprocess.run(command, check=True)
    return subprocess.run(
        [executable], env=environment or {}, capture_output=True, text=True, check=False, timeout=60
    )


def test_example_in_c(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = EXAMPLE / "model.mlir"
    assert main(["build", str(source), "--shared", "-o", str(tmp_path / "libmodel.so")]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["libmodel.so", "model.h", "modelConfig.cmake"]
    done = run(EXAMPLE / "main.c", tmp_path)
    assert done.stdout == EXPECTED.format(file=source), done.stderr
    bad = {"DEVSCOPE_THREADS": "2x"}
    done = subprocess.run([tmp_path / "main"], env=bad, capture_output=True, text=True, check=False)
    assert done.stderr == "error: DEVSCOPE_THREADS: '2x' is not a number of threads: 1 to 1024\n"
    needed = subprocess.run(["ldd", tmp_path / "libmodel.so"], capture_output=True, text=True, check=True).stdout
    assert "python" not in needed


def test_example_in_cpp_by_cmake(tmp_path: Path) -> None:
    cmake = shutil.which("cmake")
    if cmake is None:
        pytest.skip("this machine has no CMake")
    build(EXAMPLE / "model.mlir", tmp_path)
    made = tmp_path / "build"
    configure = ["-S", EXAMPLE, "-B", made, f"-DCMAKE_PREFIX_PATH={tmp_path}"]
    subprocess.run([cmake, *configure], check=True, capture_output=True)
    subprocess.run([cmake, "--build", made], check=True, capture_output=True)
    assert subprocess.run([made / "example"], capture_output=True, text=True, check=True).stdout == "1x2: 8 10\n"


def test_example_on_opencl(tmp_path: Path) -> None:
    """Without a driver, there is an error that says so; with one, the results are the same."""
    source = EXAMPLE / "model.mlir"
    build(source, tmp_path, default="opencl:0")
    alone = run(EXAMPLE / "main.c", tmp_path, {"DEVSCOPE_OPENCL": "/nowhere.so", "LD_LIBRARY_PATH": "/nowhere"})
    if "no OpenCL library" not in alone.stderr:
        assert "there is no OpenCL device" in alone.stderr or alone.returncode == 0
    devices, _ = opencl_devices()
    if not devices:
        pytest.skip("no OpenCL device")
    path = os.path.abspath(devices[0].library.path)
    environment = {"DEVSCOPE_OPENCL": path, "LD_LIBRARY_PATH": os.path.dirname(path)}
    done = run(EXAMPLE / "main.c", tmp_path, environment)
    assert done.stdout == EXPECTED.format(file=source), done.stderr


TYPES = """
func.func @main(%bf: tensor<2xbf16>, %flag: tensor<2xi1>, %z: tensor<2xcomplex<f32>>, %int: i64,
                %none: tensor<0xf32>, %w: complex<f64>, %x: f16)
    -> (tensor<2xbf16>, tensor<2xi1>, tensor<2xcomplex<f32>>, i64, tensor<0xf32>, complex<f64>, f16) {
  %sum = arith.addi %int, %int : i64
  return %bf, %flag, %z, %sum, %none, %w, %x
    : tensor<2xbf16>, tensor<2xi1>, tensor<2xcomplex<f32>>, i64, tensor<0xf32>, complex<f64>, f16
}
func.func @twice(%x: tensor<?xf32>, %table: tensor<20xf32>) -> (tensor<?xf32>, tensor<?xf32>, tensor<20xf32>) {
  %e = arith.constant dense<[
    0., 1., 2., 3., 4., 5., 6., 7., 8., 9., 10., 11., 12., 13., 14., 15., 16., 17., 18., 19.
  ]> : tensor<20xf32>
  %s = linalg.add ins(%table, %e : tensor<20xf32>, tensor<20xf32>) outs(%e : tensor<20xf32>) -> tensor<20xf32>
  return %x, %x, %s : tensor<?xf32>, tensor<?xf32>, tensor<20xf32>
}
func.func @turned(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %e = tensor.empty() : tensor<2x2xf32>
  %t = linalg.transpose ins(%x : tensor<2x2xf32>) outs(%e : tensor<2x2xf32>) permutation = [1, 0]
  return %t : tensor<2x2xf32>
}
func.func @nothing() { return }
"""
CALLER = r"""
#include "model.h"
#include <stdio.h>
int main(void) {
  const uint16_t bf[2] = {0x3f80, 0x4000};
  const bool flag[2] = {true, false};
  const float z[4] = {1, 2, 3, 4};
  const double w[2] = {5, 6};
  uint16_t bf_out[2], x_out;
  bool flag_out[2];
  float z_out[4];
  double w_out[2];
  int64_t sum;
  if (model_main(bf, flag, z, 21, 0, w, 0x3c00, bf_out, flag_out, z_out, &sum, 0, w_out, &x_out))
    return puts(model_error()), 1;
  printf("%x %x %d %d %g %g %lld %g %x\n", bf_out[0], bf_out[1], flag_out[0], flag_out[1], z_out[0], z_out[3],
         (long long)sum, w_out[1], x_out);
  float table[20] = {0}, out[20], *one, *two;
  int64_t sizes[3];
  for (int64_t count = 0; count < 3; count++) {
    if (model_twice(table, &count, table, &one, sizes, &two, sizes + 1, out))
      return puts(model_error()), 1;
    printf("%lld %lld %g %d\n", (long long)sizes[0], (long long)sizes[1], out[19], one != two);
    model_free(one);
    model_free(two);
  }
  float square[4] = {1, 2, 3, 4};
  if (model_turned(square, square)) /* in place */
    return puts(model_error()), 1;
  printf("%g %g %g %g\n", square[0], square[1], square[2], square[3]);
  return model_nothing();
}
"""


def test_types_and_shared_results(tmp_path: Path) -> None:
    build(TYPES, tmp_path)
    (tmp_path / "main.c").write_text(CALLER)
    done = run(tmp_path / "main.c", tmp_path)
    assert done.stdout == "3f80 4000 1 0 1 4 42 6 3c00\n0 0 19 1\n1 1 19 1\n2 2 19 1\n1 3 2 4\n", done.stderr


IDENTITY = "func.func @{name}(%{x}: tensor<4xf32>) -> tensor<4xf32> {{ return %{x} : tensor<4xf32> }}\n"


@pytest.mark.parametrize(
    ("text", "file", "message"),
    [
        (IDENTITY.format(name="open", x="x"), "libmodel.so", "no name for function 'open'"),
        (IDENTITY.format(name="f", x="x"), "lib7.so", "cannot be called 'lib7.so'"),
        (IDENTITY.format(name="f", x="x"), "libint.so", "cannot be called"),
    ],
)
def test_names_that_c_lacks(tmp_path: Path, text: str, file: str, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        write_library(devscope.build(text), tmp_path / file)
    assert not list(tmp_path.iterdir())


def test_a_compiler_that_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "nope")
    compile_native.machine_compiler.cache_clear()
    try:
        with pytest.raises(DevscopeError, match=r"\$CC is 'nope', which is no C compiler"):
            build("func.func @main() { return }", tmp_path)
    finally:
        compile_native.machine_compiler.cache_clear()
    assert not list(tmp_path.iterdir())


def test_names_that_c_reserves(tmp_path: Path) -> None:
    build(IDENTITY.format(name='"a b"', x="int") + IDENTITY.format(name="f", x="x"), tmp_path)
    header = (tmp_path / "model.h").read_text()
    assert "int model_a_b(const float *arg_0_, float *result_0_);" in header


@pytest.mark.parametrize("name", ["model.h", "modelConfig.cmake"])
def test_files_of_others_are_kept(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")
    with pytest.raises(OptionError, match=f"would overwrite '.*{name}'"):
        build("func.func @main() { return }", tmp_path)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["mine"]


def test_parts_of_devices(tmp_path: Path) -> None:
    program = devscope.build(IDENTITY.format(name="f", x="x"))
    with pytest.raises(OptionError, match=r"cannot run on 'opencl:0\.1'"):
        write_library(program, tmp_path / "libmodel.so", {"opencl:0": "opencl:0.1"})


def test_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = str(EXAMPLE / "model.mlir")
    assert main(["build", source, "--shared", "-o", str(tmp_path / "libm.so"), "--sign-with", "key"]) == 2
    assert "--sign-with has no effect on a shared library" in capsys.readouterr().err


SMALL = """
func.func @main(%a: tensor<?x3xi4>, %f: tensor<2xf8E4M3FN>)
    -> (tensor<?x3xi4>, tensor<2xf8E4M3FN>, tensor<2xf32>) {
  %r = stablehlo.add %a, %a : tensor<?x3xi4>
  %w = stablehlo.add %f, %f : tensor<2xf8E4M3FN>
  %x = stablehlo.convert %f : (tensor<2xf8E4M3FN>) -> tensor<2xf32>
  return %r, %w, %x : tensor<?x3xi4>, tensor<2xf8E4M3FN>, tensor<2xf32>
}
"""
SMALL_CALLER = r"""
#include "model.h"
#include <stdio.h>
int main(void) {
  const uint8_t a[3] = {1, 0xfe, 7}, f[2] = {0x38, 0xc0};
  int64_t sizes[2] = {1, 3}, sizes_out[2];
  uint8_t *r, w[2];
  float x[2];
  if (model_main(a, sizes, f, &r, sizes_out, w, x))
    return puts(model_error()), 1;
  printf("%d %d %d %x %x %g %g\n", r[0] & 15, r[1] & 15, r[2] & 15, w[0], w[1], x[0], x[1]);
  model_free(r);
  const int64_t wrong[2][2] = {{1, 4}, {-1, 3}};
  for (int i = 0; i < 2; i++)
    if (model_main(a, wrong[i], f, &r, sizes_out, w, x) && !r)
      puts(model_error());
  return 0;
}
"""


def test_small_types_and_wrong_sizes(tmp_path: Path) -> None:
    build(SMALL, tmp_path)
    (tmp_path / "main.c").write_text(SMALL_CALLER)
    assert run(tmp_path / "main.c", tmp_path).stdout.splitlines() == [
        "2 12 14 40 c8 1 -2",
        "main: a: the size of dimension 1 is 4, expected 3",
        "main: a: the size of dimension 0 is -1",
    ]


PRODUCT = """
func.func @main(%a: tensor<2x3xf32>, %b: tensor<3x2xf32>) -> tensor<2x2xf32> {
  %z = arith.constant dense<0.0> : tensor<2x2xf32>
  %r = linalg.matmul ins(%a, %b : tensor<2x3xf32>, tensor<3x2xf32>) outs(%z : tensor<2x2xf32>) -> tensor<2x2xf32>
  return %r : tensor<2x2xf32>
}
"""
PRODUCT_CALLER = r"""
#include "model.h"
#include <stdio.h>
int main(void) {
  const float a[6] = {1, 2, 3, 4, 5, 6}, b[6] = {1, 0, 0, 1, 1, 1};
  float r[4];
  for (int i = 0; i < 2; i++) {
    if (model_main(a, b, r))
      return puts(model_error()), 1;
    printf("%g %g %g %g\n", r[0], r[1], r[2], r[3]);
    model_close();
  }
  return 0;
}
"""


def test_backends_that_are_c_libraries(tmp_path: Path) -> None:
    pytest.importorskip("scipy_openblas32")
    program = devscope.build(PRODUCT, CompileOptions(backends=["blas"]))
    assert program.uses
    write_library(program, tmp_path / "libmodel.so")
    (tmp_path / "main.c").write_text(PRODUCT_CALLER)
    assert run(tmp_path / "main.c", tmp_path).stdout == "4 5 10 11\n" * 2


COUNTING = r"""
#include <stdio.h>
static int calls;
void counting_product(const float *a, const float *b, float *out) {
  calls++;
  for (int i = 0; i < 4; i++)
    out[i] = a[i / 2 * 3] * b[i % 2] + a[i / 2 * 3 + 1] * b[2 + i % 2] + a[i / 2 * 3 + 2] * b[4 + i % 2];
}
void counting_closed(void) { printf("closed after %d\n", calls), fflush(stdout); }
"""
COUNTING_IR = """
declare void @counting_product(ptr, ptr, ptr)
declare void @counting_closed()
define i32 @product_of_c(ptr %a, i64 %m, i64 %k, ptr %b, i64 %k2, i64 %n, ptr %out, i64 %m2, i64 %n2) {
  call void @counting_product(ptr %a, ptr %b, ptr %out)
  ret i32 0
}
define void @product_closed() {
  call void @counting_closed()
  ret void
}
"""


class Counting(Backend):
    name = "counting"
    patterns = (Row("matmul", op("linalg.matmul", wildcard(), wildcard(), constant(0.0))),)

    def codegen(self, function: Claimed) -> LlvmIr:
        calls = ["counting_product", "counting_closed"]
        return LlvmIr(COUNTING_IR, "product_of_c", calls=calls, close="product_closed")


def test_what_backends_made_is_released_when_the_library_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "libcounting.so"
    command = [*(compile_native.machine_compiler() or ()), "-x", "c", "-shared", "-fPIC", "-o", str(path), "-"]
    subprocess.run(command, input=COUNTING, text=True, check=True)

    class CountingRuntime(LibraryRuntime):
        name = "counting"

        def open(self) -> ctypes.CDLL:
            return ctypes.CDLL(str(path))

    devscope.register_backend(Counting)
    register_runtime(CountingRuntime)
    write_library(devscope.build(PRODUCT, CompileOptions(backends=["counting"])), tmp_path / "libmodel.so")
    caller = PRODUCT_CALLER.replace("i < 2", "i < 3").replace("model_close", "if (i)\n      model_close")
    (tmp_path / "main.c").write_text(caller)
    said = run(tmp_path / "main.c", tmp_path).stdout.splitlines()
    assert sorted(said) == sorted(["4 5 10 11"] * 3 + ["closed after 2", "closed after 3"])


class InPython(Backend):
    name = "in_python"
    patterns = (Row("matmul", op("linalg.matmul", wildcard(), wildcard(), constant(0.0))),)

    def codegen(self, function: Claimed) -> PythonCall:
        return PythonCall("product")


class OfPython(Runtime):
    name = "in_python"

    def function(self, name: str) -> Any:
        return lambda a, b, out: np.matmul(a, b, out=out)


def test_backends_of_python_are_refused(tmp_path: Path) -> None:
    devscope.register_backend(InPython)
    register_runtime(OfPython)
    program = devscope.build(PRODUCT, CompileOptions(backends=["in_python"]))
    with pytest.raises(OptionError, match="cannot call backend 'in_python'"):
        write_library(program, tmp_path / "libmodel.so")
    program.uses["in_rust"] = program.uses.pop("in_python")
    with pytest.raises(OptionError, match="backend 'in_rust', which is not installed"):
        write_library(program, tmp_path / "libmodel.so")
    assert not list(tmp_path.iterdir())


SEVERAL = """
#one = #device.scope<"opencl", 0 : i64, "", "">
#two = #device.scope<"opencl", 1 : i64, "", "">
func.func @main(%a: tensor<2x3xf32>, %b: tensor<3x2xf32>) -> tensor<2x2xf32> {
  %z = arith.constant dense<0.0> : tensor<2x2xf32>
  %e = tensor.empty() : tensor<2x3xf32>
  %x = linalg.abs {device.scope = #one} ins(%a : tensor<2x3xf32>) outs(%e : tensor<2x3xf32>) -> tensor<2x3xf32>
  %r = linalg.matmul {device.scope = #two}
    ins(%x, %b : tensor<2x3xf32>, tensor<3x2xf32>) outs(%z : tensor<2x2xf32>) -> tensor<2x2xf32>
  return %r : tensor<2x2xf32>
}
"""


def test_several_devices(tmp_path: Path) -> None:
    """On one that is both; where the machine has one only, there is an error that names the other."""
    devices, _ = opencl_devices()
    if not devices:
        pytest.skip("no OpenCL device")
    path = os.path.abspath(devices[0].library.path)
    environment = {"DEVSCOPE_OPENCL": path, "LD_LIBRARY_PATH": os.path.dirname(path)}
    program = devscope.build(SEVERAL, CompileOptions())
    (tmp_path / "main.c").write_text(PRODUCT_CALLER)
    write_library(program, tmp_path / "libmodel.so", {"opencl:1": "opencl:0"})
    assert run(tmp_path / "main.c", tmp_path, environment).stdout == "4 5 10 11\n" * 2
    write_library(program, tmp_path / "libmodel.so", {"opencl:1": "opencl:77"})
    done = run(tmp_path / "main.c", tmp_path, environment)
    assert done.stdout == "there is no OpenCL device number 77 that takes SPIR-V, for 'opencl:1'\n"
