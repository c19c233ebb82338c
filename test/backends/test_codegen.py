"""Every form of code that a backend may give, run on the host; what is wrong with code, and how that is said."""

import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pytest
import toy
from toy import registered_toy as registered_toy

import devscope
from devscope.backends import (
    Argument,
    Claimed,
    CSource,
    DeviceBinary,
    LibraryCall,
    LlvmIr,
    Mlir,
    ObjectCode,
    PythonCall,
)
from devscope.errors import BackendError, DevscopeWarning, ExecutionError

C = """
#include <stdint.h>
int32_t NAME(const float *a, int64_t m, int64_t k, const float *b, int64_t rows, int64_t n, float *out) {
  if (k != rows)
    return 7;
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++) {
      float sum = 0;
      for (int64_t l = 0; l < k; l++)
        sum += a[i * k + l] * b[l * n + j];
      out[i * n + j] = sum;
    }
  return STATUS;
}
"""


def compiler(text: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "toy.o"
        flags = ["-O1", "-fPIC", "-fno-asynchronous-unwind-tables"]
        subprocess.run(["cc", "-x", "c", *flags, "-c", "-o", path, "-"], input=text.encode(), check=True)
        return path.read_bytes()


def of_c(function: Claimed, status: int = 0) -> CSource:
    text = C.replace("NAME", function.name).replace("STATUS", str(status))
    arguments = [Argument.pointer(0), Argument.size(0, 0), Argument.size(0, 1), Argument.pointer(1)]
    arguments += [Argument.size(1, 0), Argument.size(1, 1), Argument.pointer(2)]
    return CSource(text, function.name, compiler, arguments)


def of_object(function: Claimed) -> ObjectCode:
    source = of_c(function)
    return ObjectCode(compiler(source.text), source.symbol, source.arguments)


def of_llvm(function: Claimed) -> LlvmIr:
    text = f"""
    define i32 @{function.name}(ptr %a, i64 %m, i64 %k, ptr %b, i64 %k2, i64 %n, ptr %o, i64 %m2, i64 %n2) {{
      %status = call i32 @matmul_of_c(ptr %a, i64 %m, i64 %k, ptr %b, i64 %k2, i64 %n, ptr %o)
      ret i32 %status
    }}
    """
    llvm_c = """
    define internal i32 @matmul_of_c(ptr %a, i64 %m, i64 %k, ptr %b, i64 %k2, i64 %n, ptr %o) {
    entry:
      %count = mul i64 %m, %n
      br label %next
    next:
      %at = phi i64 [0, %entry], [%at1, %store]
      %more = icmp ult i64 %at, %count
      br i1 %more, label %begin, label %end
    begin:
      %i = udiv i64 %at, %n
      %j = urem i64 %at, %n
      br label %inner
    inner:
      %l = phi i64 [0, %begin], [%l1, %body]
      %sum = phi float [0.0, %begin], [%sum1, %body]
      %go = icmp ult i64 %l, %k
      br i1 %go, label %body, label %store
    body:
      %row = mul i64 %i, %k
      %a_at = add i64 %row, %l
      %a_p = getelementptr float, ptr %a, i64 %a_at
      %x = load float, ptr %a_p
      %b_row = mul i64 %l, %n
      %b_at = add i64 %b_row, %j
      %b_p = getelementptr float, ptr %b, i64 %b_at
      %y = load float, ptr %b_p
      %xy = fmul float %x, %y
      %sum1 = fadd float %sum, %xy
      %l1 = add i64 %l, 1
      br label %inner
    store:
      %o_p = getelementptr float, ptr %o, i64 %at
      store float %sum, ptr %o_p
      %at1 = add i64 %at, 1
      br label %next
    end:
      ret i32 0
    }
    """
    return LlvmIr(text + llvm_c, function.name)


def on_tensors(function: Claimed) -> Mlir:
    return Mlir(function.text)


def on_buffers(function: Claimed) -> Mlir:
    a, b, out = function.buffers
    return Mlir(
        f"func.func @{function.name}(%a: {a}, %b: {b}, %out: {out}) {{\n"
        "  %zero = arith.constant 0.0 : f32\n"
        f"  linalg.fill ins(%zero : f32) outs(%out : {out})\n"
        f"  linalg.matmul ins(%a, %b : {a}, {b}) outs(%out : {out})\n  return\n}}"
    )


def of_python(function: Claimed) -> PythonCall:
    return PythonCall("toy_matmul")


FORMS = [on_tensors, on_buffers, of_llvm, of_python]
if shutil.which("cc"):
    FORMS += [of_c, of_object]


def compiled(form: object, monkeypatch: pytest.MonkeyPatch, backend: str = "toy") -> devscope.Executable:
    monkeypatch.setattr(toy.Toy, "code", form, raising=False)
    return devscope.compile(toy.MATMUL, backends=[backend], cache=False)


def product(m: int, k: int, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(m)
    a, b = random.standard_normal((m, k), np.float32), random.standard_normal((k, n), np.float32)
    return a, b, np.abs(np.abs(a) @ b)


@pytest.mark.parametrize("form", FORMS)
def test_forms(form: object, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    executable = compiled(form, monkeypatch)
    (taken,) = executable.program.report["backends"]
    assert (taken["backend"], taken["pattern"]) == ("toy", "matmul")
    executable.save(tmp_path / "p.dsx")
    for one in (executable, devscope.load(tmp_path / "p.dsx")):
        for sizes in ((3, 5, 4), (0, 5, 4), (3, 0, 4), (1, 1, 1)):
            a, b, expected = product(*sizes)
            np.testing.assert_allclose(one(a, b), expected, rtol=1e-5, atol=1e-6)
    with pytest.raises(ExecutionError, match="shapes do not agree"):
        executable(np.zeros((3, 5), np.float32), np.zeros((4, 2), np.float32))


def test_status_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    executable = compiled(lambda _: PythonCall("toy_failing"), monkeypatch)
    a, b, _ = product(2, 2, 2)
    with pytest.raises(ExecutionError, match="'toy_failing' raised an exception") as raised:
        executable(a, b)
    assert isinstance(raised.value.__cause__, KeyError)
    if of_c in FORMS:
        with pytest.raises(ExecutionError, match="failed with status 3"):
            compiled(lambda function: of_c(function, 3), monkeypatch)(a, b)


def no_compiler(_: str) -> bytes:
    raise RuntimeError("no cc")


def raising(_: Claimed) -> Mlir:
    raise ValueError("not today")


@pytest.mark.parametrize(
    ("form", "said"),
    [
        (raising, "cannot compile what it claimed: ValueError: not today"),
        (lambda _: "text", "gave str for what it claimed, which is no code"),
        (lambda _: Mlir("func.func @other() { return }"), "gave MLIR without a function 'main_toy_matmul'"),
        (lambda _: Mlir("nonsense"), "gave MLIR that is none"),
        (lambda f: Mlir(f"func.func @{f.name}(%a: memref<3xf32>) {{ return }}"), "gave a function over"),
        (lambda f: ObjectCode(b"no object", f.name), "gave an object that cannot be linked"),
        (lambda f: LlvmIr("define i32 @other() { ret i32 0 }", f.name), "gave an object that does not define"),
        (lambda _: LibraryCall("f", [Argument.size(0, 2)]), "gave a call with a size of value 0"),
        (lambda _: LibraryCall("f", [Argument.pointer(9)]), "gave a call with value 9 of 3"),
        (lambda f: LlvmIr("define nonsense", f.name), "gave LLVM IR that cannot be compiled: LoweringError"),
        (lambda f: CSource("int f(", f.name, no_compiler), "gave C that cannot be compiled: RuntimeError: no cc"),
        (lambda _: DeviceBinary(b"", "main"), "gave a device's binary for a target whose device type is 'cpu'"),
    ],
)
def test_bad_code(form: object, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BackendError, match=said) as raised:
        compiled(form, monkeypatch)
    assert "backend 'toy', pattern 'matmul'" in str(raised.value)
    assert raised.value.location is not None
    assert raised.value.location.line == 11


def test_falls_back_if_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.warns(DevscopeWarning, match="not today; devscope compiles it"):
        executable = compiled(raising, monkeypatch, "toy:fallback=true")
    a, b, expected = product(3, 4, 5)
    np.testing.assert_allclose(executable(a, b), expected, rtol=1e-5)


def test_what_is_missing_at_run_time(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(devscope.DevscopeError, match="backend 'toy' has no function 'nothing'") as raised:
        compiled(lambda _: PythonCall("nothing"), monkeypatch)
    assert "note: buy a toy" in str(raised.value)


def test_options_reach_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[object] = []

    def look(function: Claimed) -> PythonCall:
        seen.append((function.options, function.match["a"] if function.match else None, function.pattern))
        return PythonCall("toy_matmul")

    compiled(look, monkeypatch, "toy:unit=4,text=x,flag=true")
    ((options, operand, pattern),) = seen
    assert options == {"unit": 4, "text": "x", "flag": True}
    assert operand is not None
    assert pattern == "matmul"
