"""What UMA's backends and BYOC's compilers can do, in devscope's terms. The table is in docs/backends.md.

Sources: TVM, tests/python/contrib/test_uma/, tests/python/relay/test_pass_partition_graph.py and its neighbours.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

import devscope
from devscope.backends import Argument, Backend, Claimed, Code, LibraryCall, Mlir, Row
from devscope.backends.registry import get_backend
from devscope.cli.main import main
from devscope.dialects.target import OptionSpec
from devscope.errors import BackendError
from devscope.patterns import constant, elementwise, op, op_name, relu, wildcard
from devscope.runtime.plugins import Runtime, register_runtime

T = "tensor<4x4xf32>"
PROGRAM = f"""func.func @main(%a: {T}, %b: {T}) -> {T} {{
  %z = arith.constant dense<0.0> : {T}
  %0 = linalg.matmul ins(%a, %b : {T}, {T}) outs(%z : {T}) -> {T}
  %1 = arith.addf %0, %b : {T}
  %2 = arith.maximumf %1, %z : {T}
  %3 = linalg.matmul ins(%2, %b : {T}, {T}) outs(%z : {T}) -> {T}
  return %3 : {T}
}}"""

SEEN: list[tuple[str, str]] = []
"""Passes that ran, and the functions of the module that they saw."""


@dataclass(frozen=True)
class Record(ModulePass):
    """Notes that it ran, with the names of functions and what is in ``main``."""

    name = "record"
    label: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        names = [str(one.sym_name.data) for one in op.body.block.ops if one.name == "func.func"]  # type: ignore[attr-defined]
        SEEN.append((self.label, " ".join(names)))


INDIRECT: dict[str, int] = {}
"""How many calls of function values a pass saw."""


@dataclass(frozen=True)
class CountIndirect(ModulePass):
    name = "count-indirect"
    label: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        INDIRECT[self.label] = sum(op_name(one) == "func.call_indirect" for one in op.walk())


MATMUL = op("linalg.matmul", wildcard().named("a"), wildcard().named("b"), constant(0.0))


class Hwa(Backend):
    """An accelerator such as UMA's tests make up."""

    name = "my_hwa"
    options: ClassVar[Mapping[str, OptionSpec]] = {
        "local_memory_size": OptionSpec(int, minimum=1),
        "variant": OptionSpec(str),
        "fast": OptionSpec(bool),
    }
    patterns = (
        Row("dense_add_relu", relu(elementwise("add", MATMUL, wildcard()))),
        Row("dense", MATMUL),
    )
    passes: Mapping[Any, Sequence[Any]] = {
        "after_partitioning_1": [Record("1")],
        "before_codegen": [Record("code, first"), Record("code, second")],
        "before_partitioning": [Record("before, first"), Record("before, second")],
        "after_partitioning_0": [Record("0")],
    }
    lowering = ("builtin.module(func.func(linalg-generalize-named-ops))",)
    texts: ClassVar[list[str]] = []
    options_seen: ClassVar[list[Any]] = []

    def codegen(self, function: Claimed) -> Code:
        self.texts.append(function.text)
        self.options_seen.append(dict(function.options))
        return Mlir(function.text)


CALLED: list[tuple[int, int, float]] = []


@ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 3, ctypes.c_int32, ctypes.c_double)
def dense(a: int, b: int, out: int, size: int, scale: float) -> int:
    """A C function, as far as compiled code can tell."""
    x, y, z = (np.ctypeslib.as_array((ctypes.c_float * 16).from_address(p)).reshape(4, 4) for p in (a, b, out))
    z[:] = x @ y * scale
    CALLED.append((size, len(x), scale))
    return 0


class Linked(Backend):
    """A library's."""

    name = "my_lib"
    patterns = (Row("dense", MATMUL),)

    def codegen(self, function: Claimed) -> Code:
        assert function.match is not None
        a, b = (function.operand(function.match[name]) for name in "ab")
        pointers = [Argument.pointer(number) for number in (a, b, 2)]
        return LibraryCall("my_dense", [*pointers, Argument.size(0, 1, "i32"), Argument.constant(2.0, "f64")])


class LinkedRuntime(Runtime):
    name = "my_lib"

    def function(self, name: str) -> int | None:
        return ctypes.cast(dense, ctypes.c_void_p).value if name == "my_dense" else None


@pytest.fixture(scope="module", autouse=True)
def registered(registries: None) -> None:  # pyright: ignore[reportUnusedParameter]
    devscope.register_backend(Hwa)
    devscope.register_backend(Linked)
    register_runtime(LinkedRuntime)


@pytest.fixture(autouse=True)
def forget() -> None:
    for seen in (SEEN, Hwa.texts, Hwa.options_seen, CALLED):
        seen.clear()


def inputs() -> list[np.ndarray]:
    random = np.random.default_rng(0)
    return [random.standard_normal((4, 4)).astype(np.float32) for _ in range(2)]


def expected(a: np.ndarray, b: np.ndarray, scale: float = 1.0) -> np.ndarray:
    return scale * (np.maximum(scale * (a @ b) + b, 0) @ b)


def compiled(*backends: str) -> devscope.Executable:
    return devscope.compile(PROGRAM, backends=list(backends), cache=False)


def test_uma_pipeline() -> None:
    """Registered, partitioned, lowered, run."""
    values = inputs()
    np.testing.assert_allclose(compiled("my_hwa")(*values), expected(*values), rtol=1e-5)


def test_uma_pass_phases() -> None:
    """Phases in their order, however they are registered; within one in the order of the list; the last ones see a
    module of one claimed function."""
    compiled("my_hwa")
    functions = "main main_my_hwa_dense_add_relu main_my_hwa_dense"
    whole = [("before, first", "main"), ("before, second", "main"), ("0", functions), ("1", functions)]
    assert [(label, " ".join(sorted(names.split()))) for label, names in SEEN[:4]] == [
        (label, " ".join(sorted(names.split()))) for label, names in whole
    ]
    each = [f"main_my_hwa_{name}" for name in ("dense_add_relu", "dense")]
    assert sorted(SEEN[4:]) == sorted((f"code, {n}", name) for name in each for n in ("first", "second"))


def test_uma_defunctionalisation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the two phases after partitioning, calls of function values become calls by name."""
    phases = ("before_partitioning", "after_partitioning_0", "after_partitioning_1")
    monkeypatch.setattr(Hwa, "passes", {phase: [CountIndirect(phase)] for phase in phases})
    text = f"""func.func private @same(%a: {T}) -> {T} {{ return %a : {T} }}
    func.func @main(%a: {T}, %b: {T}) -> {T} {{
      %f = func.constant @same : ({T}) -> {T}
      %0 = func.call_indirect %f(%a) : ({T}) -> {T}
      %z = arith.constant dense<0.0> : {T}
      %1 = linalg.matmul ins(%0, %b : {T}, {T}) outs(%z : {T}) -> {T}
      return %1 : {T}
    }}"""
    devscope.compile(text, backends=["my_hwa"], cache=False)
    assert [INDIRECT[phase] for phase in phases] == [1, 1, 0]


def test_uma_patterns_in_order() -> None:
    """The first row of the table that fits; each pattern is ``TARGET.NAME``."""
    taken = compiled("my_hwa").program.report["backends"]
    assert [row["pattern"] for row in taken] == ["dense_add_relu", "dense"]


def test_uma_lowering() -> None:
    """MLIR's passes ran on what code is made of: instead of operator strategies and TIR passes."""
    compiled("my_hwa")
    assert len(Hwa.texts) == 2
    assert all("linalg.generic" in text and "linalg.matmul" not in text for text in Hwa.texts)


def test_uma_lowering_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the phases of TIR passes: the second makes what the first made what it was."""
    again = "builtin.module(func.func(linalg-specialize-generic-ops))"
    monkeypatch.setattr(Hwa, "lowering", (*Hwa.lowering, again))
    compiled("my_hwa")
    assert all("linalg.matmul" in text and "linalg.generic" not in text for text in Hwa.texts)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("my_hwa", {}),
        ("my_hwa:local_memory_size=128", {"local_memory_size": 128}),
        ("my_hwa:variant=v2,fast=true", {"variant": "v2", "fast": True}),
    ],
)
def test_uma_target_attributes(text: str, options: dict[str, Any]) -> None:
    compiled(text)
    assert Hwa.options_seen == [options, options]


def test_uma_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As tvmc's: the program says who compiles what."""
    (tmp_path / "p.mlir").write_text(PROGRAM)
    assert main(["plan", str(tmp_path / "p.mlir"), "--backend", "my_hwa:variant=v3"]) == 0
    out = capsys.readouterr().out
    assert 'device.compiler = "my_hwa"' in out
    assert 'device.composite = "my_hwa.dense_add_relu"' in out
    assert re.search(r'device\.target = #device\.target<"my_hwa", \{variant = "v3"\}>', out)


@pytest.mark.parametrize("table", ["my_hwa", "my_lib"])
@pytest.mark.parametrize(("merge", "functions"), [(False, 3), (True, 1)])
def test_uma_existing_pattern_tables(
    table: str, merge: bool, functions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of an MLP, each layer is one function, or neighbours are one together, whoever's table it is."""
    body, value = "", "%x"
    for number, (k, n) in enumerate(pairwise((4, 8, 6, 2))):
        c = f"tensor<4x{n}xf32>"
        body += f"""  %z{number} = arith.constant dense<0.0> : {c}
          %m{number} = linalg.matmul ins({value}, %w{number} : tensor<4x{k}xf32>, tensor<{k}x{n}xf32>)
            outs(%z{number} : {c}) -> {c}\n"""
        value = f"%m{number}"
    weights = ", ".join(f"%w{number}: tensor<{k}x{n}xf32>" for number, (k, n) in enumerate(pairwise((4, 8, 6, 2))))
    head = f"func.func @main(%x: tensor<4x4xf32>, {weights}) -> tensor<4x2xf32>"
    text = f"{head} {{\n{body}  return {value} : tensor<4x2xf32>\n}}"
    monkeypatch.setattr(type(get_backend(table)), "merge", merge)
    module = str(devscope.plan(text, backends=[table]).module)
    main, _, others = module.partition("return")
    assert main.count("call @") == functions
    assert others.count("device.composite = ") == 3


def test_uma_several_accelerators_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """An open wish there: two backends share a program; each one's passes see its own functions only."""
    monkeypatch.setattr(Hwa, "patterns", Hwa.patterns[:1])
    (a, b), executable = inputs(), compiled("my_hwa", "my_lib")
    np.testing.assert_allclose(executable(a, b), expected(a, b) * 2, rtol=1e-5)
    taken = [f"{row['backend']}.{row['pattern']}" for row in executable.program.report["backends"]]
    assert taken == ["my_hwa.dense_add_relu", "my_lib.dense"]
    assert {names for label, names in SEEN if label.startswith("code")} == {"main_my_hwa_dense_add_relu"}
    monkeypatch.undo()
    report = compiled("my_lib", "my_hwa").program.report["backends"]
    assert {row["backend"] for row in report} == {"my_lib"}


# ------------------------------------------------------------------------------------------------ BYOC


def test_byoc_external_codegen(tmp_path: Path) -> None:
    """Calls of a library's C function, with what arguments it says, also of a saved program."""
    executable, values = compiled("my_lib"), inputs()
    executable.save(tmp_path / "p.dsx")
    for one in (executable, devscope.load(tmp_path / "p.dsx")):
        np.testing.assert_allclose(one(*values), expected(*values, scale=2.0), rtol=1e-5)
    assert CALLED == [(4, 4, 2.0)] * 4
    assert executable.program.uses == {"my_lib": ["my_dense"]}


def test_byoc_functions_of_compilers_may_stand_in_a_program() -> None:
    """``Compiler`` functions that are there already are compiled, and not partitioned again."""
    text = f"""func.func @main(%a: {T}, %b: {T}) -> {T} {{
      %0 = call @mine(%a, %b) : ({T}, {T}) -> {T}
      return %0 : {T}
    }}
    func.func private @mine(%a: {T}, %b: {T}) -> {T} attributes {{
        device.compiler = "my_lib", device.composite = "my_lib.dense"}} {{
      %z = arith.constant dense<0.0> : {T}
      %0 = linalg.matmul ins(%a, %b : {T}, {T}) outs(%z : {T}) -> {T}
      return %0 : {T}
    }}"""
    a, b = inputs()
    executable = devscope.compile(text, backends=["my_hwa"], cache=False)
    np.testing.assert_allclose(executable(a, b), 2 * (a @ b), rtol=1e-5)


def test_byoc_functions_of_compilers_get_the_target_that_was_chosen() -> None:
    """What says for which compiler it is, and not with which options, is compiled as the program is."""
    text = f"""func.func @main(%a: {T}, %b: {T}) -> {T} {{
      %0 = call @mine(%a, %b) : ({T}, {T}) -> {T}
      return %0 : {T}
    }}
    func.func private @mine(%a: {T}, %b: {T}) -> {T} attributes {{device.compiler = "my_hwa"}} {{
      %0 = arith.addf %a, %b : {T}
      return %0 : {T}
    }}"""
    for chosen, options in (("my_hwa:variant=v3", {"variant": "v3"}), ("my_lib", {})):
        Hwa.options_seen.clear()
        devscope.compile(text, backends=[chosen], cache=False)
        assert Hwa.options_seen == [options]


def test_byoc_names_do_not_clash() -> None:
    """A function is there that is called as a claimed one would be."""
    text = PROGRAM + f"\nfunc.func private @main_my_lib_dense(%x: {T}) -> {T} {{ return %x : {T} }}"
    values = inputs()
    executable = devscope.compile(text, backends=["my_lib"], cache=False)
    np.testing.assert_allclose(executable(*values), expected(*values, scale=2.0), rtol=1e-5)


def test_byoc_compiler_and_target_agree() -> None:
    """A compiler's name is that of its target kind."""
    text = f"""func.func @main(%a: {T}) -> {T} {{
      %0 = call @mine(%a) : ({T}) -> {T}
      return %0 : {T}
    }}
    func.func private @mine(%a: {T}) -> {T} attributes {{
        device.compiler = "my_lib", device.target = #device.target<"my_hwa", {{}}>}} {{
      return %a : {T}
    }}"""
    with pytest.raises(devscope.DevscopeError, match=r"'device\.compiler' is 'my_lib', but 'device\.target' is"):
        devscope.compile(text, cache=False)


def test_byoc_a_function_that_cannot_be_compiled() -> None:
    text = f"""func.func @main(%a: {T}) -> {T} {{
      %0 = call @mine(%a) : ({T}) -> {T}
      return %0 : {T}
    }}
    func.func private @mine(%a: {T}) -> {T} attributes {{device.compiler = "my_lib"}} {{
      %0 = math.absf %a : {T}
      return %0 : {T}
    }}"""
    with pytest.raises(BackendError, match="backend 'my_lib' cannot compile what it claimed"):
        devscope.compile(text, cache=False)
