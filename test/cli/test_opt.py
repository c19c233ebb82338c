"""devscope-opt called in process: the command line and pipeline errors, one clear message each."""

import io
from pathlib import Path

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from devscope.cli.opt import main

MODULE = "func.func @f(%a: i32) -> i32 {\n  return %a : i32\n}\n"


@pytest.fixture
def source(tmp_path: Path) -> str:
    path = tmp_path / "in.mlir"
    path.write_text(MODULE)
    return str(path)


@pytest.mark.parametrize(
    ("pipeline", "message", "note"),
    [
        (
            "device-pln",
            "1:1: error: no pass of devscope, xDSL or MLIR is called 'device-pln'",
            "'device-plan'",
        ),
        ("cse,canonicalise", "1:5: error: no pass of devscope, xDSL or MLIR is called", "'canonicalize'"),
        ("css", "1:1: error: no pass of devscope, xDSL or MLIR is called 'css'", "did you mean 'cse'?"),
        ("xdsl.one-shot-bufferize", "no pass of xdsl is called 'one-shot-bufferize'", "--list-passes"),
        ("devscope.cse", "no pass of devscope is called 'cse'", "--list-passes"),
        ("mlir.device-plan", "no pass of MLIR is called 'device-plan'", "--list-passes"),
        ("mlir(cse,csse)", "1:10: error: no pass of MLIR is called 'csse'", "did you mean 'cse'"),
        ("device-plan(cse)", "1:1: error: 'device-plan' is no operation", "in braces"),
        ("func.func(csse)", "MLIR refuses the pipeline 'func.func(csse)'", "'csse' does not refer"),
        (
            "device-plan{defalt=cpu:0}",
            "1:13: error: pass 'device-plan' has no option 'defalt'",
            "mean 'default'",
        ),
        ("device-plan{x=1}", "pass 'device-plan' has no option 'x'", "arguments: text = "),
        ("cse{x=1}", "1:5: error: pass 'cse' has no option 'x'", "'cse' has no options"),
        ("cse{x=1}", "pass 'cse' has no option 'x'", "MLIR has a pass of this name too: mlir.cse"),
        ("mlir.canonicalize{x=1}", "MLIR pass 'canonicalize' has no option 'x'", "max-iterations=10"),
        (
            "mlir.canonicalize{max-iterations=x}",
            "refuses the options 'max-iterations=x'",
            "'x' value invalid",
        ),
        ("mlir.cse{", "1:9: error: '{' is never closed", ""),
        ("cse,", "1:5: error: expected a pass name, found the end", ""),
    ],
)
def test_pipeline_errors(
    source: str, pipeline: str, message: str, note: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main([source, "-p", pipeline]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith("<pipeline>:1:")
    assert message in err.splitlines()[0]
    assert note in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--nonsense"], "error: unrecognized arguments: --nonsense"),
        (["a", "b"], "error: unrecognized arguments: b"),
        (["-p"], "error: argument -p/--pass-pipeline: expected one argument"),
    ],
)
def test_command_line_errors(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert capsys.readouterr().err.startswith(message)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"func.func @f(", "in.mlir:1:"),
        (b"func.func @f() {\n\n  caf\xe9", "in.mlir:3:6: error: neither MLIR bytecode nor UTF-8 text"),
        (b"ML\xefRgarbage", "in.mlir:1:1: error: bytecode version"),
        (b"ML\xefRgarbage", "note: the bytecode is damaged, or of a newer version of MLIR"),
        (b"\xef\xbb\xbffunc.func @f() { return }", "the file begins with a byte order mark"),
        (b"ELF\0\0", "in.mlir:1:4: error: neither"),
    ],
)
def test_damaged_input(source: str, data: bytes, message: str, capfd: pytest.CaptureFixture[str]) -> None:
    Path(source).write_bytes(data)
    assert main([source]) == 1
    out, err = capfd.readouterr()
    assert out == ""
    assert message in err
    assert "error: " in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--split-input-file"], "--split-input-file and --verify-diagnostics need text"),
        (["--verify-diagnostics"], "--split-input-file and --verify-diagnostics need text"),
    ],
)
def test_bytecode_has_no_lines(
    source: str, options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    bytecode = f"{source}bc"
    assert main([source, "--emit-bytecode", "-o", bytecode]) == 0
    assert main([bytecode]) == 0
    assert "func.func @f" in capsys.readouterr().out
    assert main([bytecode, *options]) == 2
    assert message in capsys.readouterr().err


def test_one_bytecode_file_holds_one_module(source: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([source, "--emit-bytecode", "--split-input-file"]) == 2
    assert "--emit-bytecode writes one module" in capsys.readouterr().err


def test_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    class Stdin:
        buffer = io.BytesIO(MODULE.replace("%a :", "%b :").encode())

    monkeypatch.setattr("sys.stdin", Stdin)
    assert main([]) == 1
    assert capsys.readouterr().err.startswith("<stdin>:2:10: error: use of undeclared SSA value name")


def test_a_pass_that_breaks_the_module_is_named(
    source: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class BreakPass(ModulePass):
        name = "break"

        def apply(self, ctx: Context, op: ModuleOp) -> None:
            for inner in op.walk():
                if inner.name == "func.return":
                    inner.operands = ()

    class CrashPass(ModulePass):
        name = "crash"

        def apply(self, ctx: Context, op: ModuleOp) -> None:
            raise NotImplementedError("not for this type\nsecond line")

    table = {"break": lambda: BreakPass, "crash": lambda: CrashPass}
    monkeypatch.setattr("devscope.passes.get_all_passes", lambda: table)
    assert main([source, "-p", "break"]) == 1
    error = capsys.readouterr().err
    assert f"{source}:2:3: error: 'func.return' op has 0 operands" in error
    assert "the module was valid before the passes: 'break'" in error

    assert main([source, "-p", "crash"]) == 1
    assert capsys.readouterr().err == (
        "error: pass 'crash' failed: NotImplementedError: not for this type\n  note: second line\n"
    )


@pytest.mark.parametrize("pipeline", ["device-plan", "canonicalize"])
def test_too_many_regions_inside_each_other(source: str, pipeline: str, capfd: pytest.CaptureFixture[str]) -> None:
    depth = 900
    Path(source).write_text(f"func.func @f(%c: i1) {{ {'scf.if %c {' * depth} {'}' * depth} return }}")
    assert main([source, "-p", pipeline]) == 1
    message = "error: the program has too many regions inside each other\n  note: some hundreds are possible\n"
    assert capfd.readouterr() == ("", message)


def test_traceback_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["/absent/file", "--traceback"]) == 1
    assert "Traceback" in capsys.readouterr().err
