"""Patterns that name StableHLO's operations: what they match is taken before the rest becomes linalg."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import toy
from toy import registered_toy as registered_toy

import devscope
from devscope.backends import Claimed, LlvmIr, Mlir, PythonCall, Row
from devscope.cli.main import main
from devscope.compile_options import CompileOptions
from devscope.errors import DevscopeWarning
from devscope.patterns import constant, elementwise, op, pdl_pattern, wildcard
from devscope.profile import Profiler

X = wildcard().named("x")
DENSE = op("stablehlo.add", op("stablehlo.dot_general", X, wildcard().named("w")), wildcard(), commutative=True)
TANH = op("stablehlo.tanh", X)

# As JAX writes them: functions that call others, loops with constants.
PROGRAM = """
func.func private @gate(%x: tensor<?x2xf32>) -> tensor<?x2xf32> {
  %0 = stablehlo.tanh %x : tensor<?x2xf32>
  %1 = stablehlo.multiply %0, %0 : tensor<?x2xf32>
  return %1 : tensor<?x2xf32>
}
func.func @main(%x: tensor<?x2xf32>, %b: tensor<?x2xf32>, %n: tensor<i32>) -> tensor<?x2xf32> {
  %w = stablehlo.constant dense<[[1.0, 2.0], [-3.0, 0.5]]> : tensor<2x2xf32>
  %i0 = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %r:2 = stablehlo.while(%i = %i0, %a = %x) : tensor<i32>, tensor<?x2xf32>
    cond {
      %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %j = stablehlo.add %i, %one : tensor<i32>
      %p = stablehlo.dot_general %a, %w, contracting_dims = [1] x [0]
        : (tensor<?x2xf32>, tensor<2x2xf32>) -> tensor<?x2xf32>
      %s = stablehlo.add %p, %b : tensor<?x2xf32>
      %g = func.call @gate(%s) : (tensor<?x2xf32>) -> tensor<?x2xf32>
      stablehlo.return %j, %g : tensor<i32>, tensor<?x2xf32>
    }
  return %r#1 : tensor<?x2xf32>
}
"""


def expected(x: np.ndarray, b: np.ndarray, n: int) -> np.ndarray:
    for _ in range(n):
        x = np.tanh(x @ np.array([[1, 2], [-3, 0.5]], np.float32) + b) ** 2
    return x


def of_mlir(function: Claimed) -> Mlir:
    return Mlir(function.text)


def of_python(function: Claimed) -> PythonCall:
    return PythonCall(function.pattern)


def of_llvm(function: Claimed) -> LlvmIr | PythonCall:
    """What is first in the second row of the constant, from where that is passed."""
    if function.pattern != "dense":
        return PythonCall(function.pattern)
    assert function.match is not None
    assert [function.operand(function.match[name]) for name in "xw"] == [0, 2]
    assert list(function.constants) == [2]
    pointers = "ptr %x, i64 %m, i64 %k, ptr %b, i64 %m1, i64 %k1, ptr %w, i64 %k2, i64 %n"
    return LlvmIr(
        f"""define i32 @{function.name}({pointers}, ptr %out, i64 %m2, i64 %n2) {{
          %at = getelementptr float, ptr %w, i64 2
          %value = load float, ptr %at
          store float %value, ptr %out
          ret i32 0
        }}""",
        function.name,
    )


FUNCTIONS = {
    "dense": lambda x, b, w, out: np.add(x @ w, b, out=out),
    "tanh": lambda x, out: np.tanh(x, out=out),
}


@pytest.fixture(autouse=True)
def patterns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toy.Toy, "patterns", [Row("dense", DENSE), Row("tanh", TANH)])
    monkeypatch.setattr(toy.Toy, "code", staticmethod(of_python), raising=False)
    monkeypatch.setattr(toy.Toy, "cost", lambda *_: 0.0)
    monkeypatch.setattr(toy.ToyRuntime, "function", lambda _, name: FUNCTIONS.get(name))


def compiled(program: str, backend: str = "toy", **options: object) -> tuple[devscope.Executable, list[str]]:
    """The program, and the patterns that were taken of it."""
    executable = devscope.compile(program, backends=[backend], cache=False, **options)
    return executable, sorted(row["pattern"] for row in executable.program.report.get("backends", []))


@pytest.mark.parametrize("partition", ["eager", "search"])
@pytest.mark.parametrize("form", [of_mlir, of_python])
def test_programs(
    form: Callable[[Claimed], object], partition: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen: list[tuple[str, bool, bool]] = []

    def code(function: Claimed) -> object:
        seen.append((function.pattern, function.match is not None, "stablehlo." in function.text))
        return form(function)

    monkeypatch.setattr(toy.Toy, "code", code)
    executable, taken = compiled(PROGRAM, partition=partition)
    assert taken == ["dense", "tanh"]
    assert sorted(seen) == [("dense", True, True), ("tanh", True, True)]
    executable.save(tmp_path / "p.dsx")
    random = np.random.default_rng(0)
    for one in (executable, devscope.load(tmp_path / "p.dsx")):
        for rows in (3, 0):
            x, b = (random.standard_normal((rows, 2), np.float32) for _ in range(2))
            np.testing.assert_allclose(one(x, b, np.int32(2)), expected(x, b, 2), rtol=1e-5)
    with pytest.raises(devscope.DevscopeError):
        executable(np.zeros((3, 2), np.float32), np.zeros((2, 2), np.float32), np.int32(1))


def test_constants_are_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toy.Toy, "code", staticmethod(of_llvm))
    executable, _ = compiled(PROGRAM)
    found = executable(np.ones((1, 2), np.float32), np.ones((1, 2), np.float32), np.int32(1))
    np.testing.assert_allclose(found[0, 0], np.tanh(-3) ** 2, rtol=1e-5)


def test_matches_that_are_merged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of StableHLO with each other, and not with those of linalg, which are taken later."""
    monkeypatch.setattr(toy.Toy, "merge", True)
    late = Row("square", elementwise("mul", X, X))
    monkeypatch.setattr(toy.Toy, "patterns", [Row("dense", DENSE), Row("tanh", TANH), late])
    monkeypatch.setattr(toy.Toy, "code", staticmethod(of_mlir))
    text = """func.func @main(%x: !t) -> !t {
      %w = stablehlo.constant dense<[[1.0, 2.0], [-3.0, 0.5]]> : !t
      %p = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (!t, !t) -> !t
      %s = stablehlo.add %p, %x : !t
      %0 = stablehlo.tanh %s : !t
      %1 = stablehlo.multiply %0, %0 : !t
      return %1 : !t
    }""".replace("!t", "tensor<2x2xf32>")
    executable, taken = compiled(text)
    assert taken == ["dense", "square", "tanh"]
    functions = {row["function"] for row in executable.program.report["backends"]}
    assert functions == {"main_toy_region", "main_toy_square"}
    x = np.random.default_rng(0).standard_normal((2, 2), np.float32)
    np.testing.assert_allclose(executable(x), expected(x, x, 1), rtol=1e-5)


PDL = """pdl.pattern : benefit(1) {
  %x = pdl.operand
  %type = pdl.type
  %root = pdl.operation "stablehlo.tanh" (%x : !pdl.value) -> (%type : !pdl.type)
  pdl.rewrite %root with "none"
}"""


@pytest.mark.parametrize(
    ("pattern", "taken"),
    [
        (pdl_pattern(PDL), ["tanh"]),
        (op(["stablehlo.tanh", "math.tanh"], X), ["tanh"]),
        (op("stablehlo.sine", X), []),
        (op("stablehlo.tanh", constant()), []),
    ],
)
def test_patterns(pattern: object, taken: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toy.Toy, "patterns", [Row("tanh", pattern)])
    executable, found = compiled(PROGRAM)
    assert found == taken
    x = np.ones((3, 2), np.float32)
    np.testing.assert_allclose(executable(x, x, np.int32(1)), expected(x, x, 1), rtol=1e-5)


def test_types_that_become_others() -> None:
    text = """func.func @main(%x: !t) -> !t {
      %0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] : (!t, !t) -> !t
      %1 = stablehlo.add %0, %0 : !t
      return %1 : !t
    }""".replace("!t", "tensor<4x4xui8>")
    executable, taken = compiled(text)
    assert taken == []
    (refusal,) = executable.program.report["partition"]["refusals"]
    assert refusal["reason"].startswith("tensor<4x4xui8> is stored as another type")
    assert executable(np.full((4, 4), 7, np.uint8)).dtype == np.uint8


def test_rules_come_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (program := tmp_path / "p.mlir").write_text(PROGRAM)
    for device, takers in (("cpu:0", {"toy.dense", "toy.tanh"}), ("opencl:0", {"toy.dense"})):
        place = ["--place", f"stablehlo.tanh={device}"]
        assert main(["plan", str(program), "--backend", "toy", "--json", *place]) == 0
        printed = capsys.readouterr().out
        assert {row["by"] for row in json.loads(printed)["partition"]["taken"]} == takers
        assert "fits nothing" not in printed


def test_it_falls_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def code(function: Claimed) -> PythonCall:
        if function.pattern == "tanh":
            raise ValueError("not today")
        return of_python(function)

    monkeypatch.setattr(toy.Toy, "code", code)
    with pytest.warns(DevscopeWarning, match="not today; devscope compiles it"):
        executable, taken = compiled(PROGRAM, "toy:fallback=true")
    assert taken == ["dense"]
    x = np.ones((3, 2), np.float32)
    np.testing.assert_allclose(executable(x, x, np.int32(1)), expected(x, x, 1), rtol=1e-5)


def test_a_plan_is_a_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What a program says that a backend takes by such a pattern stays StableHLO, too."""
    (program := tmp_path / "p.mlir").write_text(PROGRAM)
    assert main(["plan", str(program), "--backend", "toy"]) == 0
    planned = capsys.readouterr().out
    assert "stablehlo.tanh" in planned
    executable = devscope.compile(planned, cache=False)
    assert {row["pattern"] for row in executable.program.report["backends"]} == {"dense", "tanh"}
    x = np.ones((3, 2), np.float32)
    np.testing.assert_allclose(executable(x, x, np.int32(1)), expected(x, x, 1), rtol=1e-5)


def test_candidates_are_measured() -> None:
    text = """func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = stablehlo.tanh %x : tensor<2xf32>
      return %0 : tensor<2xf32>
    }"""
    profiler = Profiler(text, CompileOptions(backends=["toy"], partition="search"), lambda call: np.sum(call()))
    rows = [row for _, row, _ in profiler.measured([])]
    assert [row.pattern for row in rows if row is not None and np.isfinite(row.seconds)] == ["", "toy.tanh", ""]
