"""What can be wrong with a backend, and how it is named."""

import ctypes
import os
import re
import subprocess
import sys
from typing import Any

import pytest
import toy
from toy import registered_toy as registered_toy
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.passes import ModulePass

import devscope
from devscope.backends import Backend, PythonCall, Row, registry
from devscope.cli.main import main
from devscope.dialects import target as targets
from devscope.dialects.target import OptionSpec
from devscope.errors import DeviceNotFoundError, LoweringError, OptionError
from devscope.patterns import Pattern, constant, dominated, op, pdl_pattern, wildcard
from devscope.runtime.drivers import cuda
from devscope.runtime.plugins import LibraryRuntime, Runtime, register_runtime


def make(name: str = "made_up", **fields: Any) -> type[Backend]:
    return type("MadeUp", (Backend,), {"name": name, **fields})


def failing(*_: object) -> None:
    raise ValueError("boom")


@pytest.mark.parametrize(
    ("backend", "said"),
    [
        (make("cpu"), "target 'cpu' exists already"),
        (make("opencl"), "target 'opencl' exists already"),
        (make("toy"), "target 'toy' exists already"),
        (make("Not-A-Name"), "cannot be the name of a backend"),
        (make(options={"device": OptionSpec(str)}), "an option cannot be called 'device'"),
        (make(options={"x": OptionSpec(float)}), "option 'x' has type float"),
        (make(options={"x": None}), "option 'x' has type None"),
        (make(passes={"whenever": []}), "unknown phase 'whenever'"),
        (make(passes={"before_codegen": [3]}), "3 is no xdsl.passes.ModulePass"),
        (make(patterns=(Row("a", None), Row("a", None))), "two patterns 'a'"),
        (make(patterns=(Row("a", None),)), "pattern 'a' is None, not of devscope.patterns"),
        (make(patterns=(wildcard(),)), "is no row of patterns"),
        (make(patterns=(Row("a", wildcard()),)), "pattern 'a' cannot match: it takes no operation"),
        (
            make(patterns=(Row("a", constant(1.0) | wildcard()),)),
            "pattern 'a' cannot match: it takes no operation",
        ),
        (
            make(patterns=(Row("a", dominated(op("a.b"), op("a.b"), wildcard())),)),
            "pattern 'a' cannot match: it takes no operation",
        ),
        (make(options=None), "'options' is None"),
        (make(options={"a b": OptionSpec(str)}), "'a b' cannot be the name of an option"),
        (make(options={5: OptionSpec(str)}), "5 cannot be the name of an option"),
        (make(patterns=5), "'patterns' is 5"),
        (make(patterns=(Row("", op("a.b")),)), "'' cannot be the name of a pattern"),
        (make(patterns=(Row("a b", op("a.b")),)), "'a b' cannot be the name of a pattern"),
        (make(patterns=(Row("a", op("a.b"), 7),)), "the predicate of pattern 'a' is 7, no function"),
        (make(passes=[]), "'passes' is []"),
        (make(passes={"before_codegen": None}), "'passes['before_codegen']' is None"),
        (make(lowering="canonicalize"), "'lowering' is 'canonicalize'"),
        (make(lowering=[5]), "'lowering[...]' is 5"),
        (make(programs=5), "'programs' is 5"),
        (make(merge="yes"), "'merge' is 'yes'"),
        (make(__init__=failing), "backend 'made_up' cannot be made: ValueError: boom"),
        (make(patterns=property(failing)), "backend 'made_up' cannot be looked at: ValueError: boom"),
        (make("onednn"), "backend 'onednn' exists already: an installed package offers it"),
        (make(device_type="made_down"), "has devices of type 'made_down'"),
    ],
)
def test_refused(backend: type[Backend], said: str) -> None:
    with pytest.raises(OptionError, match=re.escape(said)):
        devscope.register_backend(backend)


PDL = """pdl.pattern : benefit(1) {
  %type = pdl.type
  %root = pdl.operation "NAME" -> (%type : !pdl.type)
  pdl.rewrite %root with "none"
}"""


@pytest.mark.parametrize(
    ("pattern", "missing"),
    [
        (op("linalg.nothing"), "linalg.nothing"),
        (op("linalg.matmul", op("arith.nothing")), "arith.nothing"),
        (op(["linalg.nothing", "linalg.exp"]), None),
        (op("linalg.nothing").optional(lambda x: op("linalg.matmul", x)), "linalg.nothing"),
        (op("linalg.nothing") | op("other.operation"), None),
        (op("stablehlo.dot_general"), None),
        (op("stablehlo.dot_genera"), "stablehlo.dot_genera"),
        (op(["stablehlo.*", "linalg.exp"]), None),
        (op("stablehlo.custom_call"), None),
        (pdl_pattern(PDL.replace("NAME", "linalg.nothing")), "linalg.nothing"),
        (pdl_pattern(PDL.replace("NAME", "linalg.exp")), None),
    ],
)
def test_operations_that_do_not_exist(pattern: Pattern, missing: str | None) -> None:
    """Dialects may have other names in other versions; of those that nobody knows, any operation may exist."""
    devscope.register_backend(make(patterns=(Row("a", pattern),)))
    try:
        if missing is None:
            devscope.compile(toy.MATMUL, backends=["made_up"], cache=False)
            return
        with pytest.raises(OptionError, match=f"pattern 'a' cannot match: there is no operation '{missing}'"):
            devscope.compile(toy.MATMUL, backends=["made_up"], cache=False)
    finally:
        registry._registered.pop("made_up")
        targets._KINDS.pop("made_up")


def test_the_same_twice() -> None:
    assert registry.get_backend("toy") is devscope.register_backend(toy.Toy)


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        (["nothing"], "unknown backend 'nothing'"),
        (["toy", "toy"], "backend 'toy' is named twice"),
        (["toy:unit"], "'unit' is not an option of a backend"),
        (["toy:unit=x"], "option 'unit' of target kind 'toy' must be an i64"),
        (["toy:unit=0"], "from 1 on, not 0"),
        (["toy:flag=1"], "must be true or false"),
        (["toy:nothing=1"], "unknown option 'nothing'"),
        (["toy:device=opencl:0"], "runs on devices such as cpu:0"),
        (["toy:unit=1,unit=2"], "option 'unit' of backend 'toy' is given twice"),
        (5, "'backends' is 5, which is no list of names"),
        (None, "'backends' is None, which is no list of names"),
        (["toy:fallback=maybe"], "'fallback' of backend 'toy' is true or false"),
        ("toy", "which is no list of names\n  note: such as backends=['blas']"),
    ],
)
def test_bad_choices(chosen: Any, said: str) -> None:
    with pytest.raises(OptionError, match=re.escape(said)):
        devscope.compile(toy.MATMUL, backends=chosen, cache=False)


class Raising(ModulePass):
    name = "raising"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        raise ValueError("boom")


class Breaking(ModulePass):
    """Leaves calls of functions that are not there."""

    name = "breaking"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for one in op.body.block.ops:
            one.properties["sym_name"] = StringAttr("other")


class Emptying(ModulePass):
    name = "emptying"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for one in list(op.body.block.ops):
            one.detach()


@pytest.mark.parametrize(
    ("phase", "one", "said"),
    [
        ("before_partitioning", Raising, "its pass 'raising' failed before_partitioning: ValueError: boom"),
        ("after_partitioning_0", Raising, "its pass 'raising' failed after_partitioning_0: ValueError: boom"),
        ("after_partitioning_1", Raising, "its pass 'raising' failed after_partitioning_1: ValueError: boom"),
        ("after_partitioning_0", Breaking, "its pass 'breaking' failed after_partitioning_0: VerifyException"),
        ("after_partitioning_1", Emptying, "its pass 'emptying' changes what the program offers"),
    ],
)
def test_passes_that_fail(phase: str, one: type, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toy.Toy, "passes", {phase: [one]})
    with pytest.raises(LoweringError, match=said):
        devscope.compile(toy.MATMUL, backends=["toy"], cache=False)


def test_options_that_cannot_be_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toy.Toy, "check_options", failing)
    with pytest.raises(OptionError, match="backend 'toy' cannot check its options: ValueError: boom"):
        devscope.compile(toy.MATMUL, backends=["toy"], cache=False)


def test_runtimes_that_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DeviceNotFoundError, match="the runtime of backend 'bad' cannot be made: ValueError: boom"):
        register_runtime(type("Bad", (Runtime,), {"name": "bad", "__init__": failing}))
    monkeypatch.setattr(toy.Toy, "code", lambda _: PythonCall("toy_matmul"), raising=False)
    monkeypatch.setattr(toy.ToyRuntime, "use_threads", failing)
    with pytest.raises(DeviceNotFoundError, match="of backend 'toy' cannot use threads: ValueError: boom"):
        devscope.compile(toy.MATMUL, backends=["toy"], cache=False)


def test_nothing_is_imported_before_it_is_named() -> None:
    code = """
import sys, devscope
devscope.compile("func.func @main(%x: f32) -> f32 { return %x : f32 }", cache=False)
print([name for name in sys.modules if "backends" in name])
"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


def test_no_device_to_check_it_on(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Said once, and not of each program of the suite."""
    monkeypatch.setattr(cuda.CudaDriver, "devices", lambda _: [])
    assert main(["check-backend", "cublas"]) == 1
    printed = capsys.readouterr()
    assert "FAILED" not in printed.out
    assert "error: backend 'cublas' computes on cuda:0, which this machine does not have" in printed.err


def test_variables_that_a_library_reads_as_it_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are there then and only then, and those of the user count."""
    seen: dict[str, str | None] = {}

    class Quiet(LibraryRuntime):
        name = "quiet"
        environment = ("TOY_SPIN=0", "TOY_WAIT=a=b")

        def open(self) -> ctypes.CDLL:
            seen.update({name: os.environ.get(name) for name in ("TOY_SPIN", "TOY_WAIT")})
            return ctypes.CDLL(None)

    monkeypatch.setenv("TOY_SPIN", "7")
    assert Quiet().function("malloc")
    assert seen == {"TOY_SPIN": "7", "TOY_WAIT": "a=b"}
    assert os.environ["TOY_SPIN"] == "7"
    assert "TOY_WAIT" not in os.environ
