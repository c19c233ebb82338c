"""``devscope plan`` and ``devscope devices``: what they print, and how it fits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_case import SCOPES, TANH, Cli

from devscope import plan
from devscope.cli.command_plan import plan_text
from devscope.cli.tables import Column, table_text


def test_the_plan_is_a_program(cli: Cli, folder: Path) -> None:
    planned = cli("plan", "tanh.mlir")
    assert " = device.device_copy %" in planned.out
    (folder / "planned.mlir").write_text(planned.out)
    assert cli("plan", "planned.mlir").out == planned.out


def test_json(cli: Cli) -> None:
    shown = json.loads(cli("plan", "tanh.mlir", "--json").out)
    assert shown["placements"][0]["location"] == "tanh.mlir:4:8"
    assert [copy["bytes"] for copy in shown["copies"]] == [16, 16]


def test_piped_tables_have_one_line_per_row(cli: Cli) -> None:
    lines = cli("plan", "tanh.mlir", "--table").out.splitlines()
    assert lines[0].split() == ["op", "at", "scope", "why"]
    assert lines[1].startswith("math.tanh  4:8  opencl:0  device.scope on 'math.tanh' (4:8) says opencl:0")
    assert lines[-1] == "2 copies, 32 bytes"
    assert [len(line.split("  ")) > 3 for line in lines[4:6]] == [True, True]
    assert not any(line.endswith(" ") for line in lines)


def test_nothing_to_show(cli: Cli, folder: Path) -> None:
    (folder / "empty.mlir").write_text("func.func @main() {\n  return\n}\n")
    assert cli("plan", "empty.mlir", "--table").out == "no operations\n\nno copies\n"


@pytest.mark.parametrize("width", [80, 120, 200])
def test_tables_keep_the_width(folder: Path, width: int) -> None:
    text = plan_text(plan(Path("tanh.mlir")), "tanh.mlir", width)
    assert max(map(len, text.splitlines())) <= width
    assert "\n%x " in text


def test_dynamic_sizes_are_counted(folder: Path) -> None:
    (folder / "any.mlir").write_text(TANH.replace("4xf32", "?xf32"))
    text = plan_text(plan(Path("any.mlir")), "any.mlir", 200)
    assert text.splitlines()[-1] == "2 copies, 0 bytes and 2 of dynamic size"


def test_cells_are_shown_as_they_are() -> None:
    columns = (Column("a"), Column("b", wraps=True), Column("c", right=True))
    text = table_text(columns, [("[red]x[/red]", "one two three four", "7"), ("y :smile:", "", "10,000")], 35)
    assert text == (
        "a             b                   c\n"
        "[red]x[/red]  one two three       7\n"
        "              four\n"
        "y :smile:                    10,000\n"
    )


def test_remarks_follow_the_tables(cli: Cli, folder: Path) -> None:
    call = '%0 = "foo.bar"(%x) : (tensor<4xf32>) -> tensor<4xf32>'
    head = f"{SCOPES}func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{"
    text = f"{head}\n  {call}\n  return %0 : tensor<4xf32>\n}}\n"
    (folder / "foreign.mlir").write_text(text)
    shown = cli("plan", "foreign.mlir", "--table").out
    assert [line for line in shown.splitlines() if "4:8: remark: no planning rule for 'foo.bar'" in line]


def test_devices(cli: Cli) -> None:
    text = cli("devices").out
    assert text.startswith("cpu:0  ")
    assert "\n  memory " in text
    names = [line.split("  ")[0] for line in text.splitlines() if not line.startswith((" ", "not usable"))]
    shown = json.loads(cli("devices", "--json").out)
    assert [device["name"] for device in shown["devices"]] == names
