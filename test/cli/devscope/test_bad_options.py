"""Bad options, inputs and files: one message each, and nothing left behind."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_case import SCOPES, TANH, Cli, assert_one_error, assert_usage_error

import devscope
from devscope.cli import opt
from devscope.errors import DeviceNotFoundError
from devscope.runtime.file_format import read_program, save_program
from devscope.runtime.program import Entry
from devscope.runtime.seal import seal

RUN = ("run", "tanh.mlir", "--random", "0")
SCOPE_FORM = "a scope is TYPE, TYPE:ID or TYPE:ID@MEMORY"
HELP = "options are listed by: devscope"
COMMANDS = "run, build, plan, lower, inspect, devices, tune, profile, backends, new-backend, check-backend, cache"


@pytest.mark.parametrize(
    ("arguments", "message", "note"),
    [
        ([], f"error: a command is missing: {COMMANDS}", HELP),
        (["compile"], "error: argument COMMAND: invalid choice: 'compile'", HELP),
        (["--fast"], "error: unrecognized arguments: --fast", f"{HELP} --help"),
        (["run"], "error: the following arguments are required: FILE", f"{HELP} run --help"),
        (["run", "tanh.mlir", "--rand", "0"], "error: unrecognized arguments: --rand 0", f"{HELP} run --help"),
        (["run", "tanh.mlir", "--random", "x"], "error: argument --random: 'x' is not a whole number", ""),
        (["run", "tanh.mlir", "--random", "-1"], "error: argument --random: '-1' is not a whole number", ""),
        ([*RUN, "--size", "1.5"], "error: argument --size: '1.5' is not a whole number of 0 or more", ""),
        ([*RUN, "--chunks", "few"], "error: argument --chunks: 'few' is not a whole number of 0 or more", ""),
        ([*RUN, "--chunks", "0"], "error: 0 is not a number of chunks", "legal: 1 (as a whole) and more"),
        ([*RUN, "--threads", "0"], "error: 0 is not a number of threads", "legal: 1 to 1024"),
        ([*RUN, "--input", "x.npy"], "error: argument --input: not allowed with argument --random", ""),
        ([*RUN, "--arguments", "device"], "error: argument --arguments: invalid choice: 'device'", ""),
        ([*RUN, "--default", "tpu:0"], "error: unknown device type 'tpu'", "legal device types are: cpu, cuda"),
        ([*RUN, "--default", ""], "error: '' is not a scope", SCOPE_FORM),
        ([*RUN, "--default", "opencl:-1"], "error: 'opencl:-1' is not a scope", SCOPE_FORM),
        ([*RUN, "--devices", "opencl:0="], "error: 'opencl:0=' does not map a device", "write VIRTUAL=PHYSICAL"),
        ([*RUN, "--devices", "=cpu:0"], "error: '=cpu:0' does not map a device", "write VIRTUAL=PHYSICAL"),
        ([*RUN, "--devices", "opencl=cpu"], "error: 'opencl' is not a device", "write TYPE:NUMBER"),
        ([*RUN, "--devices", "opencl:0=tpu:0"], "error: unknown device type 'tpu'", "cpu, cuda, opencl, rocm"),
        (
            [*RUN, "--devices", "opencl:0=opencl:0,opencl:0=cpu:0"],
            "error: 'opencl:0' is mapped to both 'opencl:0' and 'cpu:0'",
            "",
        ),
        (
            [*RUN, "--devices", "opencl:5=cpu:0"],
            "error: the device mapping names 'opencl:5', which the program does not use",
            "the program uses: cpu:0, opencl:0",
        ),
        (
            [*RUN, "--devices", "opencl:5=opencl:0"],
            "error: the device mapping names 'opencl:5', which the program does not use",
            "the program uses: cpu:0, opencl:0",
        ),
        ([*RUN, "--devices", "cpu:0=opencl:0"], "error: 'cpu:0' is the host and cannot be mapped", ""),
        ([*RUN, "--devices", "opencl:0=cpu:1"], "error: no machine has a device 'cpu:1'", "the host is 'cpu:0'"),
        (["plan", "tanh.mlir", "--table", "--json"], "error: argument --json: not allowed with", ""),
        (["lower", "tanh.mlir", "--stage", "x"], "error: argument --stage: invalid choice: 'x'", "lower --help"),
        (["devices", "--fast"], "error: unrecognized arguments: --fast", f"{HELP} devices --help"),
    ],
)
def test_usage(cli: Cli, arguments: list[str], message: str, note: str) -> None:
    assert_usage_error(cli(*arguments), message, note)


@pytest.mark.parametrize(
    ("arguments", "message", "note"),
    [
        (
            [*RUN, "--devices", "opencl:0=opencl:77"],
            "error: the program needs device 'opencl:0' (mapped to 'opencl:77')",
            "this machine has: cpu:0",
        ),
        (
            [*RUN, "--devices", "opencl:0=rocm:0"],
            "tanh.mlir:4:8: error: no code generator for target 'rocm', which 'opencl:0' asks for",
            "",
        ),
        ([*RUN, "--entry", "f"], "error: the program has no entry 'f'", "its entries are: 'main'"),
        (["run", "tanh.mlir"], "error: 'main' takes arguments: (x: 4xf32)", "or --random SEED"),
    ],
)
def test_options(cli: Cli, arguments: list[str], message: str, note: str) -> None:
    assert_one_error(cli(*arguments), message, note)


def test_several_functions_and_none_called_main(cli: Cli, folder: Path) -> None:
    text = TANH.replace("@main", "@a") + TANH.replace(SCOPES, "").replace("@main", "@b")
    (folder / "two.mlir").write_text(text)
    outcome = cli("run", "two.mlir", "--random", "0")
    assert_one_error(outcome, "error: the program has several public functions", "note: they are: a, b")
    assert "--entry a" in outcome.err


def test_a_device_that_is_not_there(cli: Cli, folder: Path) -> None:
    (folder / "far.mlir").write_text(TANH.replace('"opencl", 0', '"opencl", 77'))
    outcome = cli("run", "far.mlir", "--random", "0")
    assert_one_error(outcome, "error: the program needs device 'opencl:77'", "this machine has: cpu:0")


# ---------------------------------------------------------------------------------------------------- files


@pytest.mark.parametrize("command", [["run"], ["build"], ["plan"], ["lower", "--stage", "plan"]])
@pytest.mark.parametrize(
    ("name", "reason"), [("none.mlir", "No such file"), (".", "Is a directory"), ("", "No such file")]
)
def test_unreadable_file(cli: Cli, command: list[str], name: str, reason: str) -> None:
    assert_one_error(cli(*command, name), f"error: cannot read '{name}': {reason}")


@pytest.mark.parametrize("command", [["build"], ["plan"], ["lower", "--stage", "plan"]])
def test_a_compiled_program_instead_of_a_source(cli: Cli, folder: Path, command: list[str]) -> None:
    (folder / "x.dsx").write_bytes(b"")
    assert_one_error(cli(*command, "x.dsx"), "error: 'x.dsx' is a compiled program, or called like one")


@pytest.mark.parametrize(
    "command",
    [
        *(["run", "--random", "0", "--output"], ["build", "-o"], ["build", "--shared", "-o"]),
        ["lower", "--stage", "plan", "-o"],
    ],
)
@pytest.mark.parametrize(
    ("output", "reason"),
    [
        ("none/out", "folder 'none' does not exist"),
        (".", "it is a folder"),
        ("none/", "it is a folder"),
        ("none/.", "it is a folder"),
        ("tanh.mlir/out", "folder 'tanh.mlir' does not exist"),
        ("a" * 300, "File name too long"),
        ("a\0b", "embedded null"),
    ],
)
def test_unwritable_output(cli: Cli, command: list[str], output: str, reason: str) -> None:
    assert_one_error(cli(*command, output, "tanh.mlir"), f"error: cannot write '{output}': {reason}")


def test_forbidden_output(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)  # nothing is forbidden to root
    outcome = cli("build", "tanh.mlir", "-o", "out.dsx")
    assert_one_error(outcome, "error: cannot write 'out.dsx': permission denied")


@pytest.mark.parametrize("shared", [[], ["--shared"]])
def test_a_pipe_is_not_replaced_by_a_program(cli: Cli, folder: Path, shared: list[str]) -> None:
    os.mkfifo(folder / "pipe")
    outcome = cli("build", "tanh.mlir", "-o", "pipe", *shared)
    assert_one_error(outcome, "error: 'pipe' cannot be written: it is not a regular file")
    assert (folder / "pipe").is_fifo()


def test_a_library_is_written_with_its_header_or_not_at_all(cli: Cli, folder: Path) -> None:
    (folder / "t.h").mkdir()
    outcome = cli("build", "tanh.mlir", "--shared", "-o", "libt.so")
    assert_one_error(outcome, "error: 't.h' cannot be written: it is not a regular file")


# --------------------------------------------------------------------------------------------------- inputs


def header(shape: str) -> Callable[[bytes], bytes]:
    """The file with another shape in its header, which has spaces to spare."""
    return lambda data: data.replace(b"(4,), }" + b" " * len(shape), f"{shape}, }}".ljust(7 + len(shape)).encode())


GOOD_ARRAY = np.arange(4, dtype=np.float32)


@pytest.mark.parametrize(
    ("value", "damage", "message"),
    [
        (GOOD_ARRAY.astype(np.float64), None, "argument 0 'x': expected dtype float32, got float64"),
        (GOOD_ARRAY.astype(np.complex64), None, "argument 0 'x': expected dtype float32, got complex64"),
        (np.zeros(5, np.float32), None, "argument 0 'x': expected shape [4], got [5]"),
        (np.zeros((2, 2), np.float32), None, "argument 0 'x': expected shape [4], got [2, 2]"),
        (np.float32(1), None, "argument 0 'x': expected shape [4], got []"),
        (np.array("text"), None, "argument 0 'x': expected dtype float32, got str"),
        (np.array([1, "a", None], dtype=object), None, "cannot read the array 'x.npy': Object arrays"),
        (GOOD_ARRAY, lambda data: b"", "'x.npy' is not a .npy file"),
        (GOOD_ARRAY, lambda data: b"PK\3\4", "'x.npy' is not a .npy file"),
        (GOOD_ARRAY, lambda data: data[:20], "cannot read the array 'x.npy': "),
        (GOOD_ARRAY, lambda data: data[:-2], "cannot read the array 'x.npy': "),
        (GOOD_ARRAY, header("(4x)"), "cannot read the array 'x.npy': Cannot parse header"),
        (GOOD_ARRAY, header("[" * 9), "cannot read the array 'x.npy': "),
        (GOOD_ARRAY, header("(-4,)"), "cannot read the array 'x.npy': "),
        (GOOD_ARRAY, header("(99999999999999,)"), "cannot read the array 'x.npy': "),
    ],
)
def test_inputs(cli: Cli, folder: Path, value: Any, damage: Callable[[bytes], bytes] | None, message: str) -> None:
    file = folder / "x.npy"
    np.save(file, value, allow_pickle=True)
    if damage is not None:
        changed = damage(file.read_bytes())
        assert changed != file.read_bytes()
        file.write_bytes(changed)
    assert_one_error(cli("run", "tanh.mlir", "--input", "x.npy"), f"error: {message}")


def test_wrong_number_of_inputs(cli: Cli, folder: Path) -> None:
    np.save(folder / "x.npy", GOOD_ARRAY)
    outcome = cli("run", "tanh.mlir", "--input", "x.npy", "--input", "x.npy")
    assert_one_error(outcome, "error: 'main' takes 1 argument", "(x: 4xf32)")


@pytest.mark.parametrize(("name", "reason"), [("none.npy", "No such file"), (".", "Is a directory")])
def test_unreadable_inputs(cli: Cli, name: str, reason: str) -> None:
    assert_one_error(cli("run", "tanh.mlir", "--input", name), f"error: cannot read the array '{name}': {reason}")


@pytest.mark.parametrize("size", [10**12, 10**30])
def test_random_arrays_without_room(cli: Cli, folder: Path, size: int) -> None:
    (folder / "any.mlir").write_text("func.func @main(%x: tensor<?x1024xf32>) {\n  return\n}\n")
    outcome = cli("run", "any.mlir", "--random", "0", "--size", size)
    assert_one_error(outcome, f"error: cannot make a random array of shape [{size}, 1024]: ")


# --------------------------------------------------------------------------------------------- at run time


SIZED = f"""\
{SCOPES}func.func @main(%n: index) -> tensor<?xf32> {{
  %c = arith.constant 1.0 : f32
  %zero = arith.constant 0 : index
  %enough = arith.cmpi ne, %n, %zero : index
  cf.assert %enough, "it has no elements"
  %e = tensor.empty(%n) : tensor<?xf32>
  %0 = linalg.fill ins(%c : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %1 = math.exp %0 {{device.scope = #dev}} : tensor<?xf32>
  return %1 : tensor<?xf32>
}}
"""


@pytest.mark.parametrize("devices", ["opencl:0=opencl:0", "opencl:0=cpu:0"])
@pytest.mark.parametrize(
    ("size", "message"),
    [
        (10**12, "allocating 3.6 TiB failed"),
        (-5, "a tensor would have a dimension of size -5"),
        (0, "assertion failed: it has no elements"),
    ],
)
def test_errors_of_running_programs(cli: Cli, folder: Path, devices: str, size: int, message: str) -> None:
    (folder / "bad.mlir").write_text(SIZED)
    np.save(folder / "n.npy", np.int64(size))
    outcome = cli("run", "bad.mlir", "--input", "n.npy", "--devices", devices)
    assert_one_error(outcome, "bad.mlir:7:3: error: " if size == 0 else "error: ")
    assert message in outcome.err


# --------------------------------------------------------------------------------------- compiled programs


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    import devscope

    path = tmp_path_factory.mktemp("compiled") / "tanh.dsx"
    devscope.compile(TANH).save(path)
    return path.read_bytes()


@pytest.mark.parametrize(
    "option",
    [
        *(["--default", "opencl:0"], ["--arguments", "open"], ["--check"], ["--chunks", "2"]),
        *(["--storage", "dynamic"], ["--memory-limit", "opencl:0=1MiB"]),
    ],
)
def test_options_that_need_the_source(cli: Cli, folder: Path, compiled: bytes, option: list[str]) -> None:
    (folder / "tanh.dsx").write_bytes(compiled)
    outcome = cli("run", "tanh.dsx", "--random", "0", *option)
    assert_usage_error(outcome, f"error: {option[0]} does not go with a compiled program")


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ("opencl:0=cpu:0", "error: 'opencl:0' cannot run on 'cpu:0'"),
        ("opencl:0=opencl:77", "error: the program needs device 'opencl:0' (mapped to 'opencl:77')"),
        ("opencl:1=opencl:0", "error: the device mapping names 'opencl:1', which the program does not use"),
    ],
)
def test_mappings_of_compiled_programs(
    cli: Cli, folder: Path, compiled: bytes, mapping: str, message: str
) -> None:
    (folder / "tanh.dsx").write_bytes(compiled)
    outcome = cli("run", "tanh.dsx", "--random", "0", "--devices", mapping)
    assert_one_error(outcome, message, status=1 if "needs device" in message else 2)


@pytest.mark.parametrize("fraction", [0.0, 0.0001, 0.01, 0.5, 0.99, 0.9999])
def test_truncated(cli: Cli, folder: Path, compiled: bytes, fraction: float) -> None:
    (folder / "cut.dsx").write_bytes(compiled[: int(len(compiled) * fraction)])
    outcome = cli("run", "cut.dsx", "--random", "0")
    assert_one_error(outcome, "error: 'cut.dsx' is not a devscope executable, or it is damaged")


def test_flipped_bits(cli: Cli, folder: Path, compiled: bytes) -> None:
    whole = cli("run", "tanh.mlir", "--random", "0").out
    for position in range(17, len(compiled), len(compiled) // 60):
        data = bytearray(compiled)
        data[position] ^= 1 << position % 8
        (folder / "flip.dsx").write_bytes(data)
        outcome = cli("run", "flip.dsx", "--random", "0")
        if outcome.status == 0:  # padding, or a date
            assert (outcome.out, outcome.err) == (whole, "")
        else:
            assert_one_error(outcome, "error: 'flip.dsx' is")


def _change(path: Path, data: bytes, change: Callable[[dict[str, Any]], None]) -> None:
    """Write the archive ``data`` with another manifest."""
    original = path.with_suffix(".original")
    original.write_bytes(data)
    with zipfile.ZipFile(original) as source, zipfile.ZipFile(path, "w") as target:
        for name in source.namelist():
            content = source.read(name)
            if name == "manifest.json":
                manifest = json.loads(content)
                change(manifest)
                content = json.dumps(manifest).encode()
            target.writestr(name, content)
    original.unlink()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m.update(format="other"), "error: 'x.dsx' is a zip archive but not a devscope executable"),
        (lambda m: m.update(format_version=99), "error: 'x.dsx' was written by devscope"),
        (lambda m: m.update(native_abi=99), "error: 'x.dsx' was written by devscope"),
        (
            lambda m: m["host"].update(triple="riscv64-unknown-linux-gnu"),
            "error: the program's parts do not belong together",
        ),
        (lambda m: m.update(entries={}), "error: the arena of slot 1 is wrong"),
        (lambda m: m["entries"]["main"].update(inputs=3), "error: 'x.dsx' is damaged"),
        (lambda m: m["entries"]["main"].update(symbol="absent"), "error: entry 'main' has the symbol 'absent'"),
    ],
)
def test_foreign(
    cli: Cli, folder: Path, compiled: bytes, change: Callable[[dict[str, Any]], None], message: str
) -> None:
    _change(folder / "x.dsx", compiled, change)
    assert_one_error(cli("run", "x.dsx", "--random", "0"), message)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"host_triple": "riscv64-unknown-linux-gnu"},
            "error: the program was compiled for 'riscv64-unknown-linux-gnu', this machine is ",
        ),
        ({"entries": {}, "arenas": []}, "error: the program has no public function"),
        (
            {"entries": {"main": Entry("devscope_call_gone", [], [])}},
            "error: the host code does not define: devscope_call_gone",
        ),
    ],
)
def test_a_program_for_another_loader(
    cli: Cli, folder: Path, compiled: bytes, changed: dict[str, Any], message: str
) -> None:
    path = folder / "x.dsx"
    path.write_bytes(compiled)
    save_program(seal(replace(read_program(path), **changed)), path)
    assert_one_error(cli("run", "x.dsx", "--random", "0"), message)


def test_a_foreign_zip_archive(cli: Cli, folder: Path) -> None:
    with zipfile.ZipFile(folder / "x.zip", "w") as archive:
        archive.writestr("readme.txt", "hello")
    assert_one_error(cli("run", "x.zip"), "error: 'x.zip' is a zip archive but not a devscope executable")


# ------------------------------------------------------------------------------------------------- defects


def test_a_defect_says_what_it_is(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object) -> None:
        raise KeyError("wrong\nand more")

    monkeypatch.setattr("devscope.planning.plan_source", fail)
    outcome = cli("plan", "tanh.mlir")
    assert (outcome.status, outcome.out) == (1, "")
    assert outcome.err.startswith("error: internal error: KeyError: ")
    assert "  note: this is a defect of devscope: please report it" in outcome.err
    assert "Traceback" not in outcome.err
    assert "Traceback" in cli("plan", "tanh.mlir", "--traceback").err


@pytest.mark.parametrize("device", ["cuda:0", "opencl:1=opencl:0", "cuda:0=opencl:0"])
def test_a_build_for_a_device_that_the_program_does_not_use(cli: Cli, device: str) -> None:
    """A device alone is mapped to itself."""
    message = f"error: the device mapping names '{device.partition('=')[0]}', which the program does not use"
    assert_usage_error(
        cli("build", "tanh.mlir", "-o", "out.dsx", "--devices", device), message, "the program uses: "
    )


# ------------------------------------------------------------------------------------ options without effect


@pytest.mark.parametrize(
    ("arguments", "message", "note"),
    [
        (
            ["plan", "--memory-limit", "opencl:0=1MiB"],
            "unrecognized arguments: --memory-limit",
            "no effect on 'devscope plan'",
        ),
        (
            ["plan", "--storage=dynamic"],
            "unrecognized arguments: --storage=dynamic",
            "of: devscope run, devscope build",
        ),
        (["plan", "--chunks", "2"], "unrecognized arguments: --chunks 2", "no effect on 'devscope plan'"),
        (
            ["plan", "--devices", "opencl:0=cpu:0"],
            "unrecognized arguments: --devices",
            "no effect on 'devscope plan'",
        ),
        (["plan", "--entry", "main"], "unrecognized arguments: --entry main", "it is an option of: devscope run"),
        (
            ["plan", "--machine", "m.toml"],
            "a machine description has no effect on a plan",
            "--completion min-cost",
        ),
        (
            ["lower", "--stage", "plan", "--devices", "opencl:0=cpu:0"],
            "--devices has no effect on --stage plan",
            "'split'",
        ),
        (["lower", "--stage", "plan", "--chunks", "2"], "--chunks has no effect on --stage plan", "'split'"),
        (["lower", "--stage", "kernels", "--storage", "dynamic"], "--storage has no effect", "'memory'"),
        (["lower", "--stage", "split", "--memory-limit", "cpu:0=1"], "--memory-limit has no effect", "'memory'"),
        (["run", "--size", "4"], "--size has no effect without --random", ""),
        (["run", "--random", "0", "--output", "y.npy"], "--output writes all results to one .npz", "OUT.npz"),
        (["run", "--random", "0", "--output", "-"], "--output would write among the results", "name a file"),
        (["build", "--output", "-"], "a compiled program is not written to standard output", "name a file"),
        (["run", "--random", "0", "--random", "1"], "argument --random: it is given twice", ""),
        (["run", "--random", "0", "--devices", ""], "'' does not map a device", "write VIRTUAL=PHYSICAL"),
        (["build", "--output", "libx.so"], "--output libx.so does not go without --shared", "libNAME.so"),
        (["build", "--shared", "--output", "x.dsx"], "--output x.dsx does not go with --shared", "libNAME.so"),
        (["build", "--devices", "opencl:0=opencl:1"], "--devices opencl:0=opencl:1 has no effect", "tanh.dsx"),
        (["build", "--chunks", "2", "--chunks=2"], "argument --chunks: it is given twice", ""),
        (["run", "--randm", "0"], "unrecognized arguments: --randm 0", "did you mean '--random'?"),
    ],
)
def test_options_without_effect(cli: Cli, arguments: list[str], message: str, note: str) -> None:
    command, *options = arguments
    assert_usage_error(cli(command, "tanh.mlir", *options), f"error: {message}", note)


@pytest.mark.parametrize("command", [["build"], ["run", "--random", "0"], ["lower", "--stage", "plan"]])
def test_what_is_read_is_not_overwritten(cli: Cli, folder: Path, command: list[str]) -> None:
    (folder / "link.mlir").symlink_to("tanh.mlir")
    for name in ("tanh.mlir", "./tanh.mlir", "link.mlir"):
        assert_usage_error(
            cli(*command, "tanh.mlir", "--output", name), "error: --output would overwrite 'tanh.mlir'"
        )
    (folder / "file").write_text('[[rule]]\nop = "math.tanh"\ndevice = "cpu:0"')
    for option in ("--sign-with" if command == ["build"] else "--machine", "--place"):
        outcome = cli(*command, "tanh.mlir", "--completion", "min-cost", option, "file", "--output", "file")
        assert_usage_error(outcome, "error: --output would overwrite 'file'")
    assert (folder / "tanh.mlir").read_text() == TANH


def test_a_file_called_like_a_command(cli: Cli, folder: Path) -> None:
    (folder / "plan").touch()
    assert cli("plan", "tanh.mlir").status == 0


def test_a_file_is_no_command(cli: Cli) -> None:
    assert_usage_error(
        cli("tanh.mlir"), "error: 'tanh.mlir' is no command", "did you mean: devscope run tanh.mlir"
    )


def test_lists_may_be_given_in_parts(cli: Cli) -> None:
    limits = ("--memory-limit", "opencl:0=1MiB", "--memory-limit", "cpu:0=1MiB")
    assert cli(*RUN, "--devices", "opencl:0=opencl:0", "--devices", "cpu:0=cpu:0", *limits).status == 0


def test_options_of_devscope_opt_without_effect(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for options, message in (
        (["--emit-bytecode", "--print-op-generic"], "--print-op-generic has no effect on bytecode"),
        (["--print-ir-after-all"], "--print-ir-after-all has no effect without passes"),
    ):
        assert opt.main(["tanh.mlir", *options]) == 2
        assert capsys.readouterr().err.startswith(f"error: {message}")


# --------------------------------------------------------------------------- before anything is compiled


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (["none.npy"], "error: cannot read the array 'none.npy': No such file"),
        (["tanh.mlir"], "error: 'tanh.mlir' is not a .npy file"),
        (["f8.npy"], "error: argument 0 'x': expected dtype float32, got float64"),
        (["5.npy"], "error: argument 0 'x': expected shape [4], got [5]"),
        (["5.npy", "5.npy"], "error: 'main' takes 1 argument, got 2"),
    ],
)
def test_wrong_inputs(
    cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch, inputs: list[str], message: str
) -> None:
    np.save(folder / "f8.npy", np.zeros(4))
    np.save(folder / "5.npy", np.zeros(5, np.float32))
    monkeypatch.setattr("devscope.pipeline.compile_split_module", lambda *_: pytest.fail("it was compiled"))
    options = [word for name in inputs for word in ("--input", name)]
    assert_one_error(cli("run", "tanh.mlir", "--no-cache", *options), message)


def test_all_missing_devices_at_once(cli: Cli, folder: Path) -> None:
    value, lines = "%0", ""
    for name, device in (("%a", '"cuda", 0'), ("%b", '"rocm", 1'), ("%c", '"opencl", 7')):
        scope = f'#device.scope<{device} : i64, "", "">'
        lines += f"  {name} = math.exp {value} {{device.scope = {scope}}} : tensor<4xf32>\n"
        value = name
    text = TANH.replace("  return %0", f"{lines}  return {value}")
    (folder / "far.mlir").write_text(text)
    outcome = cli("run", "far.mlir", "--random", "0", "--no-cache")
    assert_one_error(outcome, "error: the program needs devices 'cuda:0', 'opencl:7' and 'rocm:1', which this")
    assert "--devices cuda:0=opencl:0,opencl:7=opencl:0,rocm:1=opencl:0" in outcome.err
    with pytest.raises(DeviceNotFoundError, match=r"devices=\{'cuda:0': 'opencl:0', 'opencl:7': "):
        devscope.compile("far.mlir", cache=False)
