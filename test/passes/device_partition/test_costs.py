"""Where costs come from, which counts first, and files of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from partitioned import Claimer, chain, module_of, partitioned
from partitioned import registered_kinds as registered_kinds

from devscope.analysis.machine import nominal_machine
from devscope.cli.main import main
from devscope.errors import LoweringError, OptionError
from devscope.passes.device_partition.candidates import Candidate, candidates
from devscope.passes.device_partition.claims import Claims
from devscope.passes.device_partition.cost_file import CostRow, costs_json, parse_costs
from devscope.passes.device_partition.costs import Cost, Costs
from devscope.passes.device_partition.graph import Graph
from devscope.passes.device_partition.structure import structure_of
from devscope.patterns import op, wildcard
from devscope.runtime.drivers import driver

BODY = "  %0 = math.tanh %x : !t\n  %r = math.absf %0 : !t\n"
PATTERNS = [("tanh", op("math.tanh", wildcard()), None)]


def offered(backend: Claimer) -> tuple[Graph, dict[str, Candidate]]:
    """The single operations that are offered, by who offers them: ``cpu:0 math.absf``."""
    _, module = module_of(chain(BODY))
    graph = Graph(next(op for op in module.walk() if op.name == "func.func"))  # type: ignore[arg-type]
    found = candidates(Claims(graph), [backend], ["cpu:0"], 1, 1)
    return graph, {f"{one.spec.name} {min(one.nodes)}": one for one in found}


def cost(rows: list[CostRow], which: str, said: float | None = None) -> Cost:
    graph, found = offered(Claimer("byoc", PATTERNS, said=said))
    return Costs(nominal_machine(["cpu:0"], "cpu:0"), rows).of(graph, found[which])


def test_order_of_sources() -> None:
    graph, found = offered(Claimer("byoc", PATTERNS))
    structure = structure_of(graph, found["byoc 0"].nodes)
    measured = CostRow("byoc", 3.0, pattern="byoc.tanh", structure=structure)
    said = CostRow("byoc", 2.0, operation="math.*", source="mine")
    assert cost([measured, said], "byoc 0", 4.0) == (2.0, "mine")
    assert cost([measured], "byoc 0", 4.0) == (3.0, "measured")
    assert cost([], "byoc 0", 4.0) == (4.0, "byoc")
    assert cost([], "byoc 0").source == "machine description"
    assert 0 < cost([], "byoc 0").seconds < 1e-3


@pytest.mark.parametrize(
    ("row", "fits"),
    [
        (CostRow("byoc", 7.0, pattern="byoc.t*"), True),
        (CostRow("byoc", 7.0, pattern="byoc.t*", location="<input>:2"), True),
        (CostRow("byoc", 7.0, pattern="byoc.t*", location="<input>:9"), False),
        (CostRow("b*", 7.0, operation="math.tanh"), True),
        (CostRow("byoc", 7.0, location="<input>:2:*"), True),
        (CostRow("cpu", 7.0, operation="math.tanh"), False),
        (CostRow("byoc", 7.0, operation="math.absf"), False),
        (CostRow("byoc", 7.0, structure="another", pattern="byoc.tanh"), False),
    ],
)
def test_what_a_row_is_for(row: CostRow, fits: bool) -> None:
    assert (cost([row], "byoc 0").seconds == 7.0) == fits
    assert cost([row], "cpu:0 1").seconds != 7.0


def test_devices_go_by_their_type_too() -> None:
    assert cost([CostRow("cpu", 7.0, operation="*")], "cpu:0 1").seconds == 7.0
    assert cost([CostRow("cpu:0", 7.0, operation="*")], "cpu:0 1").seconds == 7.0


def test_structure_is_that_of_the_operations() -> None:
    def structure(text: str) -> str:
        _, module = module_of(text)
        graph = Graph(next(op for op in module.walk() if op.name == "func.func"))  # type: ignore[arg-type]
        return structure_of(graph, [0])

    one = structure(chain("  %r = math.tanh %x : !t\n"))
    assert structure(chain("  %renamed = math.tanh %x : !t\n", "%renamed")) == one
    assert structure(chain("  %r = math.absf %x : !t\n")) != one
    assert structure(chain("  %r = math.tanh %x : !t\n").replace("8x", "9x")) != one


def test_files() -> None:
    text = '[[cost]]\npattern = "blas.*"\nwhere = "blas"\nseconds = 1\n'
    text += '[[cost]]\noperation = "x.y"\nwhere = "cpu"\nseconds = inf\n'
    rows = parse_costs(text, "c.toml")
    assert [(row.pattern, row.operation, row.seconds) for row in rows] == [
        ("blas.*", "", 1.0),
        ("", "x.y", float("inf")),
    ]
    assert [(row.pattern, row.where) for row in parse_costs(costs_json(rows[:1]), "c")] == [("blas.*", "blas")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cost = 1", "no list of tables"),
        ("other = 1", "unknown key 'other'"),
        ("format = 2", "format: 2 is not 1"),
        ('[[cost]]\nwhere = "a"\nseconds = 1', "of nothing"),
        ('[[cost]]\noperation = "a.b"\nseconds = 1', "'where' is missing"),
        ('[[cost]]\noperation = "a.b"\nwhere = "a"\nseconds = -1', "seconds: -1 is no time"),
        ('[[cost]]\noperation = "a.b"\nwhere = "a"\nseconds = nan', "is no time"),
        ('[[cost]]\noperation = "a.b"\nwhere = "a"\nseconds = true', "is no time"),
        ('[[cost]]\noperation = "a.b"\nwhere = "a"\nsecond = 1', "unknown key 'second'"),
        ('[[cost]]\noperation = 1\nwhere = "a"\nseconds = 1', "operation: 1 is no text"),
        ('[[cost]]\noperation = "a.b"\npattern = "a.b"\nwhere = "a"\nseconds = 1', "an operation and a pattern"),
        ("[[cost", "c.toml: "),
        ('{"cost": [', "c.toml: "),
    ],
)
def test_wrong_files(text: str, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        parse_costs(text, "c.toml")


@pytest.mark.parametrize("said", [-1.0, float("nan")])
def test_a_backend_that_says_no_time(said: float) -> None:
    with pytest.raises(LoweringError, match="which is no time"):
        partitioned(chain(BODY), [Claimer("byoc", PATTERNS, said=said)], strategy="search")


def test_predicates_that_fail() -> None:
    def fails(match: Any) -> bool:
        raise ValueError("no")

    with pytest.raises(LoweringError, match=r"the predicate of 'byoc\.tanh' failed: ValueError: no"):
        partitioned(chain(BODY), [Claimer("byoc", [("tanh", op("math.tanh", wildcard()), fails)])])


def test_profile(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Measured once, used by a search."""
    program, costs = tmp_path / "p.mlir", tmp_path / "costs.json"
    program.write_text(chain(BODY))
    assert main(["profile", str(program), "-o", str(costs)]) == 0
    assert "3 candidates, 3 of them measured now" in capsys.readouterr().out
    rows = json.loads(costs.read_text())["cost"]
    assert len(rows) == 3
    assert all(row["where"] == "cpu:0" and row["seconds"] > 0 and row["structure"] for row in rows)
    assert main(["profile", str(program), "-o", str(costs)]) == 0
    assert "3 candidates, 0 of them measured now" in capsys.readouterr().out
    assert main(["plan", str(program), "--partition", "search", "--costs", str(costs), "--table"]) == 0
    assert "measured" in capsys.readouterr().out
    assert main(["plan", str(program), "--partition", "search", "--costs", str(costs), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["partition"]
    assert {one["source"] for one in found["candidates"]} == {"measured"}
    assert main(["plan", str(program), "--costs", str(costs)]) == 2  # nobody would look at them
    assert "give --partition search" in capsys.readouterr().err


def test_profile_on_a_device(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Generated code is timed on each device of the program, and a search goes by that."""
    if not (found := driver("opencl")) or not found.devices():
        pytest.skip("this machine has no OpenCL device")
    program, costs = tmp_path / "p.mlir", tmp_path / "costs.json"
    program.write_text(chain("  %0 = math.tanh %x : !t\n  %r = math.exp %0 : !t\n"))
    assert main(["profile", str(program), "-o", str(costs), "--default", "opencl:0"]) == 0
    printed = capsys.readouterr()
    assert "6 candidates, 6 of them measured now" in printed.out
    assert "opencl:0: math.tanh, math.exp: " in printed.err
    rows = json.loads(costs.read_text())["cost"]
    assert sorted(row["where"] for row in rows) == ["cpu:0"] * 3 + ["opencl:0"] * 3
    assert all(row["seconds"] > 0 for row in rows)
    faster = tmp_path / "faster.json"
    for where in ("cpu:0", "opencl:0"):  # so much that copies do not matter
        edited = [{**row, "seconds": row["seconds"] + (row["where"] != where)} for row in rows]
        faster.write_text(json.dumps({"cost": edited}))
        command = ["plan", str(program), "--default", "opencl:0", "--partition", "search", "--costs", str(faster)]
        assert main([*command, "--json"]) == 0
        found_ = json.loads(capsys.readouterr().out)["partition"]
        assert {one["by"] for one in found_["taken"]} == {where}


def test_profile_of_sizes_that_are_not_known(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They are as large as the machine description says; what asks for a size gets that, too."""
    program, costs = tmp_path / "p.mlir", tmp_path / "costs.json"
    program.write_text("""func.func @main(%x: tensor<?x4xf32>, %n: index) -> tensor<?x4xf32> {
      %0 = math.tanh %x : tensor<?x4xf32>
      %e = tensor.empty(%n) : tensor<?x4xf32>
      %r = linalg.exp ins(%0 : tensor<?x4xf32>) outs(%e : tensor<?x4xf32>) -> tensor<?x4xf32>
      return %r : tensor<?x4xf32>
    }""")
    assert main(["profile", str(program), "-o", str(costs)]) == 0
    printed = capsys.readouterr()
    assert "3 candidates, 3 of them measured now" in printed.out
    assert "not timed" not in printed.err
