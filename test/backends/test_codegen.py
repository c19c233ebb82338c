"""Every form of code that a backend may give, run on the host; what is wrong with code, and how that is said."""

import json
import math
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import ml_dtypes
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
    Row,
)
from devscope.cli.main import main
from devscope.compile_options import CompileOptions
from devscope.errors import BackendError, DevscopeWarning, ExecutionError, LoweringError
from devscope.passes.device_partition.cost_file import costs_json, read_costs
from devscope.patterns import Match, broadcast, constant, elementwise, op, op_name, relu, wildcard
from devscope.profile import Profiler

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
    assert main(["inspect", str(tmp_path / "p.dsx")]) == 0
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


def named(name: str, body: str = "ret i32 0") -> Callable[[Claimed], LlvmIr]:
    return lambda _: LlvmIr(f"declare i32 @absent()\ndefine i32 @{name}() {{ {body} }}", name)


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
        (lambda _: PythonCall(""), "gave PythonCall whose name is '', which is no name of a function"),
        (lambda _: PythonCall("a b"), "whose name is 'a b', which is no name"),
        (lambda _: LibraryCall("f", 5), "gave LibraryCall whose arguments are 5, no list"),
        (lambda _: LibraryCall("f", [3]), "whose arguments have 3, which is no Argument"),
        (lambda _: LibraryCall("f", [Argument("x")]), "have a 'x'; legal: pointer, scalar, size, constant"),  # type: ignore[arg-type]
        (lambda _: LibraryCall("f", [Argument.size(0, 0, "u8")]), "a size of type 'u8'; legal: i8, "),
        (lambda _: LibraryCall("f", [Argument.constant(256, "i8")]), "the constant 256, which is no i8"),
        (lambda _: LibraryCall("f", [Argument.constant(1.5)]), "the constant 1.5, which is no i64"),
        (lambda _: LibraryCall("expf"), "calls 'expf', which is a function of C or of devscope"),
        (lambda _: Mlir(5), "gave Mlir whose text is 5, no text"),  # type: ignore[arg-type]
        (lambda f: ObjectCode("o", f.name), "gave ObjectCode whose data is str, not bytes"),  # type: ignore[arg-type]
        (lambda f: CSource("", f.name, None), "gave CSource whose toolchain is None, no function"),  # type: ignore[arg-type]
        (lambda f: CSource("", f.name, lambda _: "o"), "the toolchain gave str, not bytes"),  # type: ignore[arg-type]
        (named("tanhf"), "gave an object that defines 'tanhf', a function of C or of devscope"),
        (named("malloc"), "gave an object that defines 'malloc', a function of C or of devscope"),
        (named("devscope_entry_main"), "uses 'devscope_entry_main', which is a function of the program"),
        (
            named("here", "%s = call i32 @absent() ret i32 %s"),
            "gave an object that calls what is neither of C's functions .* nor among its 'calls': absent",
        ),
        (
            lambda f: f.operand(f.match.root.operands[2]),
            "a value of 'main_toy_matmul' is no operand of its code: it is 0 everywhere",
        ),
        (lambda _: DeviceBinary(b"", "main"), "gave a device's binary for a target whose device type is 'cpu'"),
    ],
)
def test_bad_code(form: object, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BackendError, match=said) as raised:
        compiled(form, monkeypatch)
    assert "backend 'toy', pattern 'matmul'" in str(raised.value)
    assert "the function that it should compile is 'main_toy_matmul': linalg.matmul" in str(raised.value)
    assert raised.value.location is not None
    assert raised.value.location.line == 11


def test_code_is_for_the_match_that_was_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not for a part of it that matches first, nor for another one that the predicate is against."""
    x, y = wildcard().named("x"), wildcard().named("y")
    pattern = op("arith.addf", x, y, commutative=True)
    pattern |= op("arith.addf", op("math.absf", x), y, commutative=True)

    def larger(match: Match) -> bool:
        return len(match.ops) == 2 and str(match["y"].type) == "tensor<3xf32>" and match.options["unit"] == 3

    seen: list[tuple[list[str], int, object]] = []

    def code(function: Claimed) -> PythonCall:
        match = function.match
        assert match is not None
        ops = [op_name(one) for one in match.ops]
        seen.append((ops, function.operand(match["y"]), match.options))
        return PythonCall("sum")

    text = """func.func @main(%a: tensor<3xf32>, %b: tensor<3xf32>) -> tensor<3xf32> {
      %0 = math.absf %b : tensor<3xf32>
      %1 = arith.addf %a, %0 : tensor<3xf32>
      return %1 : tensor<3xf32>
    }"""
    monkeypatch.setattr(toy.Toy, "patterns", [Row("sum", pattern, larger)])
    monkeypatch.setattr(toy.Toy, "code", code, raising=False)
    monkeypatch.setattr(toy.ToyRuntime, "function", lambda _, __: lambda a, b, out: np.add(a, abs(b), out=out))
    devscope.compile(text, backends=["toy:unit=3"], cache=False)
    ((ops, operand, options),) = seen
    assert ops == ["math.absf", "arith.addf"]
    assert operand in (0, 1)
    assert options == {"unit": 3}


def test_constants_of_a_match_are_operands(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also by the name that the pattern gives them."""
    seen: list[int] = []

    def code(function: Claimed) -> PythonCall:
        assert function.match is not None
        seen.extend(function.operand(function.match[name]) for name in "xc")
        return PythonCall("sum")

    text = """func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
      %c = arith.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
      %0 = arith.addf %x, %c : tensor<3xf32>
      return %0 : tensor<3xf32>
    }"""
    pattern = op("arith.addf", wildcard().named("x"), constant().named("c"))
    monkeypatch.setattr(toy.Toy, "patterns", [Row("sum", pattern)])
    monkeypatch.setattr(toy.Toy, "code", code, raising=False)
    monkeypatch.setattr(toy.ToyRuntime, "function", lambda _, __: lambda x, c, out: np.add(x, c, out=out))
    executable = devscope.compile(text, backends=["toy"], cache=False)
    assert seen == [0, 1]
    np.testing.assert_array_equal(executable(np.ones(3, np.float32)), [2, 3, 4])


def test_falls_back_if_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.warns(DevscopeWarning, match="not today; devscope compiles it"):
        executable = compiled(raising, monkeypatch, "toy:fallback=true")
    a, b, expected = product(3, 4, 5)
    np.testing.assert_allclose(executable(a, b), expected, rtol=1e-5)


def test_falls_back_where_matches_are_merged(monkeypatch: pytest.MonkeyPatch) -> None:
    """All patterns of what failed as a whole are left to devscope."""
    monkeypatch.setattr(toy.Toy, "merge", True)
    rows = [Row("matmul", *toy.Toy.patterns[0][1:]), Row("abs", op("math.absf", wildcard()))]
    monkeypatch.setattr(toy.Toy, "patterns", rows)
    with pytest.warns(DevscopeWarning, match="not today; devscope compiles it"):
        executable = compiled(raising, monkeypatch, "toy:fallback=true")
    a, b, expected = product(3, 4, 5)
    np.testing.assert_allclose(executable(a, b), expected, rtol=1e-5)


def test_code_for_matches_that_are_merged(monkeypatch: pytest.MonkeyPatch) -> None:
    """It need not be MLIR."""
    monkeypatch.setattr(toy.Toy, "merge", True)
    rows = [Row("matmul", *toy.Toy.patterns[0][1:]), Row("abs", op("math.absf", wildcard()))]
    monkeypatch.setattr(toy.Toy, "patterns", rows)
    monkeypatch.setattr(toy.ToyRuntime, "function", lambda _, __: lambda a, b, out: np.abs(np.abs(a) @ b, out=out))
    a, b, expected = product(3, 4, 5)
    executable = compiled(lambda _: PythonCall("all"), monkeypatch)
    assert [row["function"] for row in executable.program.report["backends"]] == ["main_toy_region"] * 2
    np.testing.assert_allclose(executable(a, b), expected, rtol=1e-5)


@pytest.mark.parametrize("form", ["python", "llvm", "tensors"])
def test_constants_of_matches_that_are_merged(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are the last operands, those that are equal once."""
    number = "tensor<3xf32>"
    text = f"""func.func @main(%x: {number}) -> {number} {{
      %c = arith.constant dense<[1.0, 2.0, 3.0]> : {number}
      %d = arith.constant dense<[4.0, 8.0, 16.0]> : {number}
      %0 = arith.addf %x, %c : {number}
      %1 = arith.mulf %0, %d : {number}
      %2 = arith.addf %1, %c : {number}
      return %2 : {number}
    }}"""
    monkeypatch.setattr(toy.Toy, "merge", True)
    monkeypatch.setattr(toy.Toy, "patterns", [Row("op", op(["arith.addf", "arith.mulf"], wildcard(), constant()))])

    def compute(*given: np.ndarray) -> None:
        x, *constants, out = given
        first, second = sorted(constants, key=lambda one: float(one[0]))
        out[:] = (x + first) * second + first

    monkeypatch.setattr(toy.ToyRuntime, "function", lambda _, __: compute)

    def code(function: Claimed) -> Mlir | PythonCall | LlvmIr:
        assert list(function.constants) == [1, 2]
        assert len(function.inputs) == 3
        assert function.function.body.block.first_op is not None
        if (
            form == "llvm"
        ):  # the sum of the first elements of all operands, to see that they are where they should be
            parts = "".join(
                f"%p{n} = load float, ptr %a{n}\n%s{n} = fadd float %s{n - 1}, %p{n}\n" for n in (1, 2)
            )
            body = f"%s0 = load float, ptr %a0\n{parts}store float %s2, ptr %out\nret i32 0"
            head = f"define i32 @{function.name}(ptr %a0, ptr %a1, ptr %a2, ptr %out)"
            arguments = [Argument.pointer(n) for n in range(4)]
            return LlvmIr(f"{head} {{ {body} }}", function.name, arguments)
        return PythonCall("all") if form == "python" else Mlir(function.text)

    monkeypatch.setattr(toy.Toy, "code", code, raising=False)
    executable = devscope.compile(text, backends=["toy"], cache=False)
    found = executable(np.array([1, 2, 3], np.float32))
    if form == "llvm":
        assert found[0] == 1 + 1 + 4
    else:
        np.testing.assert_array_equal(found, [9, 34, 99])


@pytest.mark.parametrize(("number", "value"), [("0x7FC00000", math.nan), ("1.5", 1.5)])
def test_constants_that_are_not_a_number(number: str, value: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """NaNs are operands: code and its caller agree about it."""
    text = f"""func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {{
      %c = arith.constant dense<{number}> : tensor<2xf32>
      %0 = arith.addf %x, %c : tensor<2xf32>
      return %0 : tensor<2xf32>
    }}"""
    constants: list[int] = []

    def code(function: Claimed) -> PythonCall:
        constants.extend(function.constants)
        return PythonCall("sum")

    def compute(x: np.ndarray, *others: np.ndarray) -> None:
        *given, out = others
        assert len(given) == len(constants)
        out[:] = x + (given[0] if given else value)

    monkeypatch.setattr(toy.Toy, "patterns", [Row("sum", op("arith.addf", wildcard(), constant()))])
    monkeypatch.setattr(toy.Toy, "code", code, raising=False)
    monkeypatch.setattr(toy.ToyRuntime, "function", lambda _, __: compute)
    found = devscope.compile(text, backends=["toy"], cache=False)(np.ones(2, np.float32))
    assert len(constants) == math.isnan(value)
    np.testing.assert_array_equal(found, [1 + value, 1 + value])


@pytest.mark.parametrize("merge", [False, True])
def test_constants_without_elements(merge: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    text = """func.func @main(%x: tensor<0xf32>) -> tensor<0xf32> {
      %c = arith.constant dense<> : tensor<0xf32>
      %0 = arith.addf %x, %c : tensor<0xf32>
      %1 = arith.addf %0, %c : tensor<0xf32>
      return %1 : tensor<0xf32>
    }"""
    monkeypatch.setattr(toy.Toy, "merge", merge)
    monkeypatch.setattr(toy.Toy, "patterns", [Row("op", op("arith.addf", wildcard(), wildcard()))])
    monkeypatch.setattr(toy.ToyRuntime, "function", lambda _, __: lambda x, c, out: np.add(x, c, out=out))
    monkeypatch.setattr(toy.Toy, "code", lambda *_: PythonCall("sum"), raising=False)
    executable = devscope.compile(text, backends=["toy"], cache=False)
    assert executable(np.zeros(0, np.float32)).shape == (0,)


def test_a_check_is_against_what_devscope_compiles(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``devscope run --check`` does not compare a backend with itself."""
    monkeypatch.setattr(toy.ToyRuntime, "function", lambda _, __: lambda a, b, out: out.fill(7))
    monkeypatch.setattr(toy.Toy, "code", lambda *_: PythonCall("wrong"), raising=False)
    (tmp_path / "p.mlir").write_text(toy.MATMUL)
    monkeypatch.setattr(toy.Toy, "cost", lambda *_: 0.0)
    given = ["run", str(tmp_path / "p.mlir"), "--random", "0", "--check", "--no-cache", "--backend", "toy"]
    for partition in ("eager", "search"):
        assert main([*given, "--partition", partition]) == 1
        printed = capsys.readouterr()
        assert "check: result0 DIFFERS from the host" in printed.out
        assert "nothing runs on a device" not in printed.out


def test_profile_of_what_cannot_be_compiled(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It takes forever, so that a search gives it to others, until it can be compiled."""
    options = CompileOptions(backends=["toy"], partition="search")
    text = """func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
      %z = arith.constant dense<0.0> : tensor<4x4xf32>
      %0 = linalg.matmul ins(%a, %a : tensor<4x4xf32>, tensor<4x4xf32>)
                         outs(%z : tensor<4x4xf32>) -> tensor<4x4xf32>
      return %0 : tensor<4x4xf32>
    }"""
    (program := tmp_path / "p.mlir").write_text(text)
    monkeypatch.setattr(toy.Toy, "cost", lambda *_: 0.0)
    times, costs = iter([2.0, 1.0]), tmp_path / "costs.json"
    costs.write_text(costs_json([]))
    for code, seconds, taken in ((raising, math.inf, "cpu:0"), (of_python, 1.0, "toy.matmul")):
        monkeypatch.setattr(toy.Toy, "code", code, raising=False)
        profiler = Profiler(text, options, lambda call: next(times))
        rows = [row for _, row, _ in profiler.measured(read_costs(costs)) if row is not None]
        assert {row.where: row.seconds for row in rows} == {"cpu:0": 2.0, "toy": seconds}
        costs.write_text(costs_json(rows))
        main(["plan", str(program), "--backend", "toy", "--partition", "search", "--costs", str(costs), "--json"])
        assert [one["by"] for one in json.loads(capsys.readouterr().out)["partition"]["taken"]] == [taken]


def test_what_is_missing_at_run_time(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(devscope.DevscopeError, match="backend 'toy' has no function 'nothing'") as raised:
        compiled(lambda _: PythonCall("nothing"), monkeypatch)
    assert "note: buy a toy" in str(raised.value)


@pytest.mark.parametrize(
    ("code", "name", "function", "said"),
    [
        (LibraryCall, "toy_matmul", toy.matmul, "not the address of a C function"),
        (LibraryCall, "toy_number", 0, "'toy_number' is 0, not the address of a C function"),
        (LibraryCall, "toy_number", True, "'toy_number' is True, not the address of a C function"),
        (PythonCall, "toy_number", 5, "'toy_number' is 5, no Python function"),
        (PythonCall, "toy_number", "text", "'toy_number' is 'text', no Python function"),
    ],
)
def test_functions_that_are_of_another_kind(
    code: type[LibraryCall | PythonCall], name: str, function: object, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are refused as a program is loaded: called, they would crash the process."""
    monkeypatch.setattr(toy.ToyRuntime, "function", lambda _, asked: function if asked == name else None)
    with pytest.raises(devscope.DevscopeError, match=said):
        compiled(lambda _: code(name), monkeypatch)


@pytest.mark.parametrize("name", ["tanh", "memcpy", "main", "devscope_alloc"])
def test_python_functions_have_names_of_their_own(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One is not taken for a function of C, of devscope or of the program that is called the same."""
    monkeypatch.setattr(toy.ToyRuntime, "function", lambda _, asked: toy.matmul if asked == name else None)
    a, b, expected = product(3, 4, 5)
    executable = compiled(lambda _: PythonCall(name), monkeypatch)
    np.testing.assert_allclose(executable(a, b), expected, rtol=1e-5)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_what_is_no_error_reaches_the_caller(kind: type[BaseException], monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object) -> None:
        raise kind

    monkeypatch.setattr(toy.ToyRuntime, "function", lambda _, __: stopped)
    a, b, _ = product(3, 4, 5)
    executable = compiled(lambda _: PythonCall("stopped"), monkeypatch)
    with pytest.raises(kind):
        executable(a, b)


@pytest.mark.parametrize(
    ("number", "type_", "llvm", "as_float"),
    [
        (1e-7, "f32", "float", "fadd float %n, -0.0"),
        (float("inf"), "f32", "float", "fadd float %n, -0.0"),
        (float("-inf"), "f64", "double", "fptrunc double %n to float"),
        (float("nan"), "f64", "double", "fptrunc double %n to float"),
        (1e22, "f64", "double", "fptrunc double %n to float"),
        (-2.5, "f16", "half", "fpext half %n to float"),
        (255, "i8", "i8", "uitofp i8 %n to float"),
        (True, "i1", "i1", "uitofp i1 %n to float"),
        (2**63, "i64", "i64", "uitofp i64 %n to float"),
        (-3, "i32", "i32", "sitofp i32 %n to float"),
    ],
)
def test_constants_as_arguments(
    number: float, type_: str, llvm: str, as_float: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def code(function: Claimed) -> LlvmIr:
        body = f"%f = {as_float}\nstore float %f, ptr %o\nret i32 0"
        text = f"define i32 @{function.name}({llvm} %n, ptr %o) {{ {body} }}"
        return LlvmIr(text, function.name, [Argument.constant(number, type_), Argument.pointer(2)])

    a, b, _ = product(1, 4, 1)
    found = compiled(code, monkeypatch)(a, b)
    np.testing.assert_array_equal(found, np.full((1, 1), abs(number), np.float32))


def test_constants_of_a_match_in_code_on_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are parameters of what code is made from; those of the function that is replaced have no place."""
    type_ = "tensor<2x3xf32>"
    text = f"""func.func @main(%x: {type_}) -> {type_} {{
      %c = arith.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : {type_}
      %d = arith.constant dense<[[1.0, 2.0, 4.0], [8.0, 16.0, 32.0]]> : {type_}
      %0 = arith.mulf %x, %d : {type_}
      %1 = arith.addf %0, %c : {type_}
      return %1 : {type_}
    }}"""
    scaled = Row("scaled", op("arith.addf", op("arith.mulf", wildcard(), wildcard()), wildcard()))
    monkeypatch.setattr(toy.Toy, "patterns", [scaled])
    monkeypatch.setattr(toy.Toy, "code", on_tensors, raising=False)
    executable = devscope.compile(text, backends=["toy"], cache=False)
    found = executable(np.full((2, 3), 2, np.float32))
    np.testing.assert_array_equal(found, [[3, 6, 11], [20, 37, 70]])


def with_a_number(element: str, operation: str) -> str:
    """A tensor plus a number, as one operation that takes both."""
    vector = f"tensor<2x{element}>"
    return f"""func.func @main(%x: {vector}, %s: {element}) -> {vector} {{
      %e = tensor.empty() : {vector}
      %r = linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
        iterator_types = ["parallel"]}} ins(%x : {vector}) outs(%e : {vector}) {{
      ^bb0(%a: {element}, %o: {element}):
        %v = {operation} %a, %s : {element}
        linalg.yield %v : {element}
      }} -> {vector}
      return %r : {vector}
    }}"""


def test_layers_of_stablehlo(monkeypatch: pytest.MonkeyPatch) -> None:
    """As JAX writes them: biases are repeated in two steps, and layers share a zero."""
    layer = """
      %pN = stablehlo.dot_general %xN, %w, contracting_dims = [1] x [0] : (!t, !t) -> !t
      %bN = stablehlo.broadcast_in_dim %vN, dims = [1] : (tensor<4xf32>) -> tensor<1x4xf32>
      %cN = stablehlo.broadcast_in_dim %bN, dims = [0, 1] : (tensor<1x4xf32>) -> !t
      %sN = stablehlo.add %pN, %cN : !t
      %xM = stablehlo.maximum %sN, %z : !t"""
    text = f"""func.func @main(%x0: !t, %w: !t, %v0: tensor<4xf32>, %v1: tensor<4xf32>) -> !t {{
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %z = stablehlo.broadcast_in_dim %zero, dims = [] : (tensor<f32>) -> !t
      {layer.replace("N", "0").replace("M", "1")}
      {layer.replace("N", "1").replace("M", "2")}
      return %x2 : !t
    }}""".replace("!t", "tensor<4x4xf32>")
    x, w, b = (wildcard().named(name) for name in "xwb")
    product = op("linalg.matmul", x, w, constant(0.0))
    monkeypatch.setattr(toy.Toy, "patterns", [Row("layer", relu(elementwise("add", product, broadcast(b, [-1]))))])

    def code(function: Claimed) -> PythonCall:
        assert function.match is not None
        assert [function.operand(function.match[name]) for name in "xwb"] == [0, 1, 2]
        assert [str(type_) for type_ in function.inputs][2] == "tensor<4xf32>"
        return PythonCall("layer")

    monkeypatch.setattr(toy.Toy, "code", code, raising=False)
    computed = lambda x, w, b, out: np.maximum(x @ w + b, 0, out=out)  # noqa: E731
    monkeypatch.setattr(toy.ToyRuntime, "function", lambda _, __: computed)
    executable = devscope.compile(text, backends=["toy"], cache=False)
    assert str(devscope.plan(text, backends=["toy"]).module).count("call @main_toy_layer(") == 2
    random = np.random.default_rng(0)
    x, w, b, c = (random.standard_normal(shape, np.float32) for shape in ((4, 4), (4, 4), (4,), (4,)))
    expected = np.maximum(np.maximum(x @ w + b, 0) @ w + c, 0)
    np.testing.assert_allclose(executable(x, w, b, c), expected, rtol=1e-5)


@pytest.mark.parametrize(("effect", "partition"), [(False, "eager"), (False, "search"), (True, "eager")])
def test_what_stablehlo_calls(effect: bool, partition: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A backend may take what devscope cannot compile, if it only computes; a search lets nobody else have it."""
    text = f"""func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {{
      %0 = stablehlo.custom_call @acme.twice(%x) {{has_side_effect = {str(effect).lower()}}}
        : (tensor<3xf32>) -> tensor<3xf32>
      %1 = stablehlo.add %0, %x : tensor<3xf32>
      return %1 : tensor<3xf32>
    }}"""
    twice = op("stablehlo.custom_call", wildcard(), attributes={"call_target_name": "acme.twice"})
    monkeypatch.setattr(toy.Toy, "patterns", [Row("twice", twice)])
    monkeypatch.setattr(toy.Toy, "code", lambda *_: PythonCall("twice"), raising=False)
    monkeypatch.setattr(toy.ToyRuntime, "function", lambda _, __: lambda x, out: np.add(x, x, out=out))
    if effect:
        with pytest.raises(LoweringError, match=r"cannot lower operation 'stablehlo\.custom_call @acme\.twice'"):
            devscope.compile(text, backends=["toy"], cache=False)
        return
    monkeypatch.setattr(toy.Toy, "cost", lambda *_: 1.0)
    executable = devscope.compile(text, backends=["toy"], cache=False, partition=partition)
    np.testing.assert_array_equal(executable(np.arange(3, dtype=np.float32)), [0, 3, 6])


def test_types_that_numpy_lacks_in_python_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toy.Toy, "patterns", [Row("generic", op("linalg.generic"))])
    monkeypatch.setattr(toy.Toy, "code", lambda *_: PythonCall("sum"), raising=False)
    monkeypatch.setattr(toy.ToyRuntime, "function", lambda _, __: lambda x, s, out: np.add(x, s, out=out))
    executable = devscope.compile(with_a_number("bf16", "arith.addf"), backends=["toy"], cache=False)
    found = executable(np.ones(2, ml_dtypes.bfloat16), ml_dtypes.bfloat16(1.5))
    np.testing.assert_array_equal(found.astype(np.float32), [2.5, 2.5])


def test_complex_numbers_are_not_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    text = with_a_number("complex<f32>", "complex.add")
    monkeypatch.setattr(toy.Toy, "patterns", [Row("generic", op("linalg.generic"))])
    monkeypatch.setattr(toy.Toy, "code", lambda *_: PythonCall("sum"), raising=False)
    with pytest.raises(BackendError, match="takes a number of type complex<f32>: only Mlir may"):
        devscope.compile(text, backends=["toy"], cache=False)
    monkeypatch.setattr(toy.Toy, "code", on_tensors)
    found = devscope.compile(text, backends=["toy"], cache=False)(np.ones(2, np.complex64), np.complex64(2j))
    np.testing.assert_array_equal(found, [1 + 2j, 1 + 2j])


@pytest.mark.parametrize("claimed", [True, False])
def test_programs_of_backends_of_this_process_are_not_kept(
    claimed: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Nothing tells when their code changes: neither where they are asked for, nor where a program names one."""
    monkeypatch.setenv("DEVSCOPE_CACHE_DIR", str(tmp_path))
    program, backends = toy.MATMUL, ["toy"]
    if not claimed:
        function = program.partition("{")[2].rpartition("}")[0]
        type_ = "tensor<?x?xf32>"
        program = (
            f"func.func private @own(%a: {type_}, %b: {type_}) -> {type_} "
            f'attributes {{device.compiler = "toy"}} {{ {function} }}\n'
            f"func.func @main(%a: {type_}, %b: {type_}) -> {type_} {{\n"
            f"  %0 = call @own(%a, %b) : ({type_}, {type_}) -> {type_}\n  return %0 : {type_}\n}}"
        )
        backends = []
    a, b, _ = product(3, 4, 5)
    for expected in (1.0, 2.0):
        fill = lambda a, b, out, value=expected: out.fill(value)  # noqa: E731
        monkeypatch.setattr(toy.ToyRuntime, "function", lambda _, __, fill=fill: fill)
        monkeypatch.setattr(
            toy.Toy, "code", lambda _, value=expected: PythonCall(f"fill{value:.0f}"), raising=False
        )
        assert (devscope.compile(program, backends=backends)(a, b) == expected).all()


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
