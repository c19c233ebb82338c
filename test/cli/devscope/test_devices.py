"""``devscope devices --measure``, and machine descriptions as options."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_case import Cli, assert_one_error

from devscope import measure
from devscope.analysis.machine import nominal_machine
from devscope.analysis.machine_file import machine_toml, read_machine

MACHINE = nominal_machine(["opencl:0"], "cpu:0")


@pytest.fixture(autouse=True)
def _no_measuring(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes seconds; test/e2e/test_min_cost.py measures."""
    monkeypatch.setattr(measure, "measure_machine", lambda: MACHINE)


def test_writes_a_description(cli: Cli, folder: Path) -> None:
    outcome = cli("devices", "--measure", "--output", "machine.toml")
    assert (outcome.status, outcome.out, outcome.err, outcome.files) == (0, "", "", ["machine.toml"])
    assert (folder / "machine.toml").read_text().startswith("# Measured by: devscope devices --measure\n")
    assert read_machine(folder / "machine.toml").devices == MACHINE.devices
    assert cli("devices", "--measure", "--output", "machine.json").status == 0
    assert read_machine(folder / "machine.json").links == MACHINE.links


def test_prints_a_description(cli: Cli) -> None:
    assert cli("devices", "--measure").out == machine_toml(
        MACHINE, "Measured by: devscope devices --measure\nflop/s, bytes/s and seconds, for f32"
    )
    assert set(json.loads(cli("devices", "--measure", "--json").out)["devices"]) == {"cpu:0", "opencl:0"}


def test_where_nothing_can_be_kept(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "measure_machine", None)  # it takes long
    monkeypatch.setenv("DEVSCOPE_CACHE_DIR", "/proc/none")
    assert_one_error(cli("devices", "--measure", "--keep"), "error: cannot write '/proc/none/v2'")
    monkeypatch.setenv("DEVSCOPE_CACHE_DIR", "off")
    assert_one_error(cli("devices", "--measure", "--keep"), "error: there is no cache to keep it in")


@pytest.mark.parametrize("command", ["run", "build", "plan"])
def test_plans_with_a_description(cli: Cli, folder: Path, command: str) -> None:
    (folder / "machine.toml").write_text(machine_toml(MACHINE))
    more = {"run": ["--random", "0"], "build": [], "plan": ["--table"]}[command]
    outcome = cli(command, "tanh.mlir", *more, "--completion", "min-cost", "--machine", "machine.toml")
    assert (outcome.status, outcome.err) == (0, "")
    if command == "plan":
        assert "min-cost: @main: predicted time" in outcome.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["devices", "--output", "x.toml"], "error: --output goes with --measure"),
        (["devices", "--measure", "--output", "none/x"], "error: cannot write 'none/x': folder 'none'"),
        (["plan", "tanh.mlir", "--completion", "best"], "error: argument --completion: invalid choice: 'best'"),
        (
            ["build", "tanh.mlir", "--machine", "m.toml"],
            "error: cannot read the machine description 'm.toml': No such file",
        ),
        (
            ["plan", "tanh.mlir", "--completion", "min-cost", "--machine", "m.toml"],
            "error: cannot read the machine description 'm.toml': No such file",
        ),
        (
            ["plan", "tanh.mlir", "--completion", "min-cost", "--machine", "tanh.mlir"],
            "tanh.mlir:3:11: error: ",
        ),
    ],
)
def test_bad_options(cli: Cli, arguments: list[str], message: str) -> None:
    assert_one_error(cli(*arguments), message, status=2 if "--" in message else 1)


def test_a_compiled_program_was_planned(cli: Cli) -> None:
    assert cli("build", "tanh.mlir").status == 0
    outcome = cli("run", "tanh.dsx", "--random", "0", "--completion", "min-cost")
    assert outcome.status == 2
    assert outcome.err.startswith("error: --completion does not go with a compiled program")
