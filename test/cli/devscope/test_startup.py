"""What the installed command costs and how it behaves as a process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ("mlir", "torch_mlir", "xdsl", "rich")


def devscope(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-X", "importtime", "-m", "devscope.cli.main", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload]


def imported(process: subprocess.CompletedProcess[str]) -> set[str]:
    """The packages at the top that the process imported."""
    lines = [line for line in process.stderr.splitlines() if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip().partition(".")[0] for line in lines}


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["run", "--help"], ["run"]])
def test_help_imports_nothing_heavy(folder: Path, arguments: list[str]) -> None:
    packages = imported(devscope(*arguments))
    assert "argparse" in packages
    assert packages.isdisjoint({*HEAVY, "numpy", "llvmlite"})


def test_compiled_and_cached_programs_run_without_a_compiler(folder: Path) -> None:
    assert devscope("build", "tanh.mlir").returncode == 0
    (folder / "tanh.mlir").write_text(f"// {folder}\n{(folder / 'tanh.mlir').read_text()}")  # not in the cache
    first = devscope("run", "tanh.mlir", "--random", "0")
    assert not imported(first).isdisjoint(HEAVY)
    for arguments in (("run", "tanh.mlir", "--random", "0"), ("run", "tanh.dsx", "--random", "0")):
        process = devscope(*arguments)
        assert process.stdout == first.stdout
        assert imported(process).isdisjoint(HEAVY)


def test_devices_need_no_compiler() -> None:
    assert imported(devscope("devices")).isdisjoint(HEAVY)


def test_a_reader_that_goes_away_is_no_error(folder: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as stdout:
        command = [sys.executable, "-P", "-m", "devscope.cli.main", "plan", "tanh.mlir"]
        process = subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, check=False)
    assert (process.returncode, process.stderr) == (0, b"")


def test_names_that_the_terminal_cannot_show(folder: Path) -> None:
    text = (folder / "tanh.mlir").read_text().replace("@main", '@"größe"')
    (folder / "tanh.mlir").write_text(text, encoding="utf-8")
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    process = devscope("plan", "tanh.mlir", env=environment)
    assert process.returncode == 0
    assert '@"gr\\C3\\B6\\C3\\9Fe"' in process.stdout
    process = devscope("run", "tanh.mlir", "--entry", "main", env=environment)
    assert process.returncode == 1
    assert "note: its entries are: 'gr\\xf6\\xdfe" in process.stderr
