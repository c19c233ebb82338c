"""Programs and arrays from pipes, and output that cannot be written: what a shell makes of the commands."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from cli_case import TANH, Cli, Outcome, assert_one_error, assert_usage_error

import devscope
from devscope.cli import arrays, command_line, opt
from devscope.cli.main import main

pytestmark = pytest.mark.sampled(2)

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def forms(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The same program as text, as bytecode and compiled."""
    folder = tmp_path_factory.mktemp("forms")
    (folder / "tanh.mlir").write_text(TANH)
    assert opt.main([str(folder / "tanh.mlir"), "--emit-bytecode", "-o", str(folder / "tanh.mlirbc")]) == 0
    assert main(["build", str(folder / "tanh.mlir")]) == 0
    return {name: (folder / f"tanh.{name}").read_bytes() for name in ("mlir", "mlirbc", "dsx")}


def feed(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


def from_pipe(cli: Cli, folder: Path, data: bytes, *arguments: str) -> Outcome:
    """The command on a pipe that can be read once."""
    pipe = folder / "pipe"
    if not pipe.exists():
        os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=[data], daemon=True)
    writer.start()
    outcome = cli(*arguments)
    writer.join(60)
    return outcome


@pytest.mark.parametrize("form", ["mlir", "mlirbc", "dsx"])
def test_run(cli: Cli, folder: Path, forms: dict[str, bytes], form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    np.save(folder / "x.npy", np.ones(4, np.float32))
    expected = cli("run", "tanh.mlir", "--input", "x.npy")
    assert "0.761594" in expected.out
    feed(monkeypatch, forms[form])
    assert cli("run", "-", "--input", "x.npy") == expected
    assert from_pipe(cli, folder, forms[form], "run", "pipe", "--input", "x.npy") == expected


@pytest.mark.parametrize("form", ["mlir", "mlirbc"])
@pytest.mark.parametrize(
    "command", [["plan"], ["plan", "--table"], ["lower", "--stage", "split"], ["build", "-o", "out.dsx"]]
)
def test_the_other_commands(
    cli: Cli, folder: Path, forms: dict[str, bytes], form: str, command: list[str]
) -> None:
    outcome = from_pipe(cli, folder, forms[form], *command, "pipe")
    assert (outcome.status, outcome.err) == (0, "")
    assert ("math.tanh" in outcome.out) == (command[0] != "build")


def test_inspect(cli: Cli, folder: Path, forms: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    feed(monkeypatch, forms["dsx"])
    assert "opencl:0" in cli("inspect", "-").out
    assert "opencl:0" in from_pipe(cli, folder, forms["dsx"], "inspect", "pipe").out
    assert_one_error(
        from_pipe(cli, folder, b"PK\3\4", "inspect", "pipe"), "error: 'pipe' is not a devscope executable"
    )


def test_names_and_positions(cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    feed(monkeypatch, TANH.encode())
    assert cli("plan", "-", "--explain", "%0").out.startswith("%0 in @main (<stdin>:4:8) is on opencl:0\n")
    assert from_pipe(cli, folder, TANH.encode(), "plan", "pipe", "--explain", "%0").out.startswith(
        "%0 in @main (pipe"
    )
    feed(monkeypatch, TANH.replace("tanh", "tan_h").encode())
    assert_one_error(cli("run", "-"), "<stdin>:4:8: error: custom op 'math.tan_h' is unknown")
    feed(monkeypatch, b"PK\3\4")
    assert_one_error(cli("run", "-"), "error: '<stdin>' is not a devscope executable")
    feed(monkeypatch, b"")
    assert_one_error(cli("run", "-"), "error: '<stdin>' is an empty program")
    feed(monkeypatch, TANH.encode())
    assert_usage_error(cli("build", "-"), "error: '<stdin>' has no name", "give --output")
    assert_usage_error(cli("run", "-", "--input", "-"), "error: standard input can be read once only")


def test_arrays(cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    buffer = io.BytesIO()
    np.save(buffer, np.ones(4, np.float32))
    feed(monkeypatch, buffer.getvalue())
    assert "0.761594" in cli("run", "tanh.mlir", "--input", "-").out
    assert "0.761594" in from_pipe(cli, folder, buffer.getvalue(), "run", "tanh.mlir", "--input", "pipe").out
    feed(monkeypatch, b"no array")
    assert_one_error(cli("run", "tanh.mlir", "--input", "-"), "error: '<stdin>' is not a .npy file")


def test_endless_input(cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("devscope.source._MOST_PIPED", 1 << 22)
    for command in (["plan", "/dev/zero"], ["run", "/dev/zero"]):
        assert_one_error(cli(*command), "error: cannot read '/dev/zero': it is no file", "write it to one")
    feed(monkeypatch, b" " * (1 << 23))
    assert_one_error(cli("run", "-"), "error: cannot read '<stdin>': it is no file")
    machine = cli("plan", "tanh.mlir", "--completion", "min-cost", "--machine", "/dev/zero")
    assert_one_error(machine, "error: the machine description '/dev/zero' is longer than 16 MiB")


def test_the_api_reads_a_pipe_once(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    threading.Thread(target=(folder / "pipe").write_bytes, args=[TANH.encode()], daemon=True).start()
    assert devscope.compile("pipe")(np.zeros(4, np.float32)).tolist() == [0.0] * 4


def shell(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-c", command],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**os.environ, "PATH": path},
    )


def test_output_that_cannot_be_written(folder: Path) -> None:
    """One process each, in one shell: statuses and messages."""
    done = shell(
        """
        devscope plan tanh.mlir > /dev/full; echo $?
        devscope --help > /dev/full; echo $?
        devscope-opt tanh.mlir > /dev/full; echo $?
        devscope plan tanh.mlir >&-; echo $?
        devscope plan none.mlir 2> /dev/full; echo $?
        devscope plan - <&-; echo $?
        devscope plan tanh.mlir --table | true; echo ${PIPESTATUS[0]}
        (trap '' XFSZ; ulimit -f 0; devscope-opt tanh.mlir -o a.txt; echo $? | cat)
        """,
        folder,
    )
    assert done.stdout.split() == ["1", "1", "1", "1", "1", "1", "0", "1"]
    full = "error: cannot write to standard output: No space left on device"
    closed = "error: cannot write to standard output: it is closed"
    assert done.stderr.splitlines() == [
        full,
        full,
        full,
        closed,
        "error: cannot read standard input: it is closed",
        "error: cannot write 'a.txt': File too large",
    ]


def test_no_place_for_a_piped_program(folder: Path, forms: dict[str, bytes]) -> None:
    (folder / "tanh.dsx").write_bytes(forms["dsx"])
    done = shell(f"export TMPDIR={folder}; ulimit -f 1; cat tanh.dsx | devscope inspect -", folder)
    assert done.returncode == 1
    assert done.stderr.startswith("error: cannot keep '<stdin>' in '")
    assert done.stderr.endswith(": File too large\n")


@pytest.mark.parametrize(
    ("statement", "status", "said"),
    [
        ("print('x' * 100_000)", 1, "error: cannot write to standard output: No space left on device"),
        ("open('/dev/full', 'w').write('x' * 100_000)", 1, "error: internal error: OSError: [Errno 28] No space"),
    ],
)
def test_a_full_disk_is_told_from_a_full_standard_output(statement: str, status: int, said: str) -> None:
    """More than fits into the buffer, which then knows nothing of the failure."""
    text = f"""
from devscope.cli.command_line import run_tool, watch_output
watch_output()
raise SystemExit(run_tool(lambda: {statement}, False))
"""
    with open("/dev/full", "w") as stdout:
        done = subprocess.run(
            [sys.executable, "-c", text], stdout=stdout, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (done.returncode, done.stderr[: len(said)]) == (status, said)


def test_what_nobody_reads_is_compared_and_saved(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """``devscope run --check -o r.npz | head -1`` of a program with long results."""

    def broken(*_: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(arrays, "print_results", broken)
    monkeypatch.setattr(command_line, "_forget_output", lambda: None)  # it would take pytest's file away
    command = ("run", "tanh.mlir", "--random", "0", "--check", "-o", "r.npz")
    assert cli(*command) == Outcome(0, "", "", ["r.npz"])
    monkeypatch.setattr(arrays, "reference_results", lambda *_: [np.zeros(4, np.float32)])
    assert cli(*command).err == "error: result0: not what the host computes\n"


def test_an_error_after_output_that_nobody_reads(folder: Path) -> None:
    """As of ``devscope run --check ... | head``, whose results are printed before they are compared."""
    text = """
from devscope.cli.command_line import run_tool
from devscope.errors import DevscopeError

def command():
    print("results")
    raise DevscopeError("they differ")

raise SystemExit(run_tool(command, False))
"""
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as stdout:
        command = [sys.executable, "-c", text]
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
        done = subprocess.run(
            command, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False, env=environment
        )
    assert (done.returncode, done.stderr) == (1, "error: they differ\n")
