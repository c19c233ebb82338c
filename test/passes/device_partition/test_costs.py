"""Where costs come from, which counts first, and files of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from partitioned import Claimer, chain, module_of, partitioned
from partitioned import registered_kinds as registered_kinds
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from devscope.analysis.machine import Device, Machine, nominal_machine
from devscope.analysis.patterns import Match
from devscope.cli.main import main
from devscope.compile_options import CompileOptions
from devscope.dialects.names import op_name
from devscope.errors import LoweringError, OptionError
from devscope.frontends import ImportedSource
from devscope.passes.device_partition import PartitionOptions, searched
from devscope.passes.device_partition.candidates import Candidate, candidates
from devscope.passes.device_partition.claims import Claims
from devscope.passes.device_partition.cost_file import CostRow, costs_json, parse_costs
from devscope.passes.device_partition.costs import Cost, Costs
from devscope.passes.device_partition.graph import Graph
from devscope.passes.device_partition.placement import Placed
from devscope.passes.device_partition.structure import structure_of
from devscope.passes.device_partition.wholes import key_of
from devscope.patterns import Custom, op, wildcard
from devscope.profile import Profiler
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


class Counting(Claimer):
    """Notes what it is asked about."""

    asked: ClassVar[list[str]] = []

    def cost(self, match: Match) -> float | None:
        self.asked.append(op_name(match.root))
        return 1.0


def test_backends_are_asked_once_of_what_is_the_same() -> None:
    body = "  %0 = math.tanh %x : !t\n"
    body += "".join(f"  %{n + 1} = math.tanh %{n} : !t\n" for n in range(5)) + "  %r = math.absf %5 : !t\n"
    backend = Counting("byoc", [*PATTERNS, ("abs", op("math.absf", wildcard()), None)])
    _, found = partitioned(chain(body), [backend], strategy="search")
    assert any(len(candidate.claims) > 1 for candidate in found.placed[0].candidates)
    assert sorted(Counting.asked) == ["math.absf", "math.tanh"]


def test_one_launch_per_candidate() -> None:
    """However many operations it has."""
    _, module = module_of(chain(BODY))
    graph = Graph(next(op for op in module.walk() if op.name == "func.func"))  # type: ignore[arg-type]
    found = candidates(Claims(graph), [], ["cpu:0"], 2, 1)
    machine = Machine({"cpu:0": Device("cpu:0", 1e9, 1e9, launch=1.0)}, {})
    seconds = {len(one.nodes): Costs(machine).of(graph, one).seconds for one in found}
    assert seconds == {1: pytest.approx(1, abs=1e-3), 2: pytest.approx(1, abs=1e-3)}


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
        ("[[cost", "c.toml:1:7: error: "),
        ('{"cost": [', "c.toml:1:11: error: "),
        ('{"cost": ' + "[" * 100_000, "c.toml:1:1: error: brackets are nested"),
        ('{"cost": ' + "9" * 5000, "c.toml:1:1: error: exceeds the limit"),
    ],
)
def test_wrong_files(text: str, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        parse_costs(text, "c.toml")


def test_files_that_cannot_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One error, as of any other file that an option names, and no more of it read than costs can be."""
    program = tmp_path / "p.mlir"
    program.write_text(chain(BODY).replace("!t", "tensor<8xf32>"))
    (tmp_path / "latin.toml").write_bytes(b"\xe9 = 1")
    (tmp_path / "wrong.toml").write_text("[[cost]]\nseconds = 'x'\n")
    for name, said in (
        ("/dev/zero", "error: the costs '/dev/zero' are longer than 16 MiB"),
        (str(tmp_path), f"error: cannot read the costs '{tmp_path}': Is a directory"),
        (str(tmp_path / "latin.toml"), "latin.toml:1:1: error: the costs are not UTF-8 text"),
        (str(tmp_path / "wrong.toml"), "wrong.toml: cost 1: seconds: 'x' is no time"),
    ):
        assert main(["plan", str(program), "--partition", "search", "--costs", name]) == 1
        assert said in capsys.readouterr().err


def test_an_integer_that_no_float_is() -> None:
    (row,) = parse_costs(
        '{"cost": [{"where": "cpu", "operation": "a.b", "seconds": 1' + "0" * 400 + "}]}", "c.json"
    )
    assert row.seconds == float("inf")


@pytest.mark.parametrize("said", [-1.0, float("nan")])
def test_a_backend_that_says_no_time(said: float) -> None:
    with pytest.raises(LoweringError, match="which is no time"):
        partitioned(chain(BODY), [Claimer("byoc", PATTERNS, said=said)], strategy="search")


@pytest.mark.parametrize("said", ["1e-3", [], 10**400])
def test_a_backend_that_says_no_number(said: Any) -> None:
    with pytest.raises(LoweringError, match=r"the cost of 'byoc\.tanh' failed: (Type|Overflow)Error"):
        partitioned(chain(BODY), [Claimer("byoc", PATTERNS, said=said)], strategy="search")


def test_patterns_that_fail() -> None:
    """Checks of values, and patterns that are functions, are code of a backend, too."""

    def fails(_: Any) -> bool:
        raise ValueError("no")

    for pattern in (op("math.tanh", wildcard().where(fails)), Custom(fails)):
        with pytest.raises(LoweringError, match=r"the pattern 'byoc\.tanh' failed: ValueError: no"):
            partitioned(chain(BODY), [Claimer("byoc", [("tanh", pattern, None)])])


def test_predicates_that_fail() -> None:
    def fails(match: Any) -> bool:
        raise ValueError("no")

    with pytest.raises(LoweringError, match=r"the predicate of 'byoc\.tanh' failed: ValueError: no"):
        partitioned(chain(BODY), [Claimer("byoc", [("tanh", op("math.tanh", wildcard()), fails)])])
    odd: Any = lambda match: 3  # noqa: E731
    with pytest.raises(LoweringError, match=r"the predicate of 'byoc\.tanh' failed: TypeError: it answers 3"):
        partitioned(chain(BODY), [Claimer("byoc", [("tanh", op("math.tanh", wildcard()), odd)])])


def measured_parts(graph: Graph) -> list[CostRow]:
    """Of every candidate: byoc takes 1 second for an operation, generated code 2."""
    rows: list[CostRow] = []
    for one in candidates(Claims(graph), [Claimer("byoc", PATTERNS)], ["cpu:0"], 4, 4):
        pattern, seconds = (one.name, 1.0) if one.spec.backend else ("", 2.0)
        structure = structure_of(graph, one.nodes)
        rows.append(CostRow(one.spec.name, seconds * len(one.nodes), pattern=pattern, structure=structure))
    return rows


def decided(rows: list[CostRow], module: ModuleOp) -> Placed:
    options = PartitionOptions("search", costs=Costs(nominal_machine(["cpu:0"], "cpu:0"), rows))
    (placed,) = searched(module, [Claimer("byoc", PATTERNS)], options)
    return placed


@pytest.mark.parametrize(
    ("seconds", "taken", "total"),
    [
        ({"search": 3.5, "cpu:0 alone": 5.0}, "byoc", 3.5),
        ({"search": 5.0, "cpu:0 alone": 3.5}, "cpu:0", 3.5),
        ({"search": 4.5, "cpu:0 alone": 4.5}, "byoc", 4.5),  # of equal ones what the search found
        ({"search": 5.0}, "byoc", 3.0),  # of the other nothing is known: the sum of parts
        ({"cpu:0 alone": 0.5}, "byoc", 3.0),
    ],
)
def test_partitions_that_were_measured_as_a_whole(seconds: dict[str, float], taken: str, total: float) -> None:
    _, module = module_of(chain(BODY))
    graph = Graph(next(op for op in module.walk() if op.name == "func.func"))  # type: ignore[arg-type]
    parts = measured_parts(graph)
    by_parts = decided(parts, module)
    assert by_parts.found.seconds == 3.0
    keys = {name: key_of(graph, chosen) for name, chosen in by_parts.covers.items()}
    assert keys["search"] == keys["byoc alone"] == keys["table order"] != keys["cpu:0 alone"]
    wholes = [
        CostRow(key[2], seconds[name], pattern=key[1], structure=key[0])
        for name, key in keys.items()
        if name in seconds and key is not None
    ]
    placed = decided([*parts, *wholes], module)
    assert {one.spec.name for one in placed.chosen if min(one.nodes) == 0} == {taken}
    assert placed.found.seconds == total
    assert placed.found.bound <= total
    assert all(total <= other for other in placed.known.values())
    # What the user says of one of the parts counts more.
    mine = CostRow("byoc", 9.0, operation="math.tanh", source="mine")
    assert decided([mine, *parts, *wholes], module).found.seconds == 4.0


def test_functions_that_call_others_are_not_known_by_themselves() -> None:
    text = chain("  %r = func.call @g(%x) : (!t) -> !t\n") + "\n" + chain(BODY).replace("@f", "private @g")
    _, module = module_of(text)
    caller, called = (Graph(op) for op in module.walk() if isinstance(op, FuncOp))
    assert key_of(caller, []) is None
    assert key_of(called, []) is not None


def test_generated_code_is_offered_what_backends_match() -> None:
    """Of any depth: so that the same is compared with the same."""
    pattern = op("math.absf", op("math.exp", op("math.tanh", wildcard())))
    _, module = module_of(chain("  %0 = math.tanh %x : !t\n  %1 = math.exp %0 : !t\n  %r = math.absf %1 : !t\n"))
    graph = Graph(next(op for op in module.walk() if op.name == "func.func"))  # type: ignore[arg-type]
    found = candidates(Claims(graph), [Claimer("byoc", [("all", pattern, None)])], ["cpu:0"], 1, 1)
    assert {one.spec.name for one in found if len(one.nodes) == 3} == {"byoc", "cpu:0"}


@pytest.mark.parametrize("shape", ["4", "4x1x1"])
def test_a_bias_is_fused_to_its_convolution(shape: str) -> None:
    """Also one that has the spatial dimensions, of size one, as frontends write it."""
    bias = "(d0, d1, d2, d3) -> (d1)" if shape == "4" else "(d0, d1, d2, d3) -> (d1, 0, 0)"
    whole = "affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>"
    _, module = module_of(f"""
func.func @f(%x: tensor<1x2x6x6xf32>, %w: tensor<4x2x3x3xf32>, %b: tensor<{shape}xf32>) -> tensor<1x4x4x4xf32> {{
  %e = tensor.empty() : tensor<1x4x4x4xf32>
  %0 = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x2x6x6xf32>, tensor<4x2x3x3xf32>)
                                outs(%e : tensor<1x4x4x4xf32>) -> tensor<1x4x4x4xf32>
  %r = linalg.generic {{indexing_maps = [{whole}, affine_map<{bias}>, {whole}],
                       iterator_types = ["parallel", "parallel", "parallel", "parallel"]}}
      ins(%0, %b : tensor<1x4x4x4xf32>, tensor<{shape}xf32>) outs(%e : tensor<1x4x4x4xf32>) {{
  ^bb0(%a: f32, %c: f32, %o: f32):
    %s = arith.addf %a, %c : f32
    linalg.yield %s : f32
  }} -> tensor<1x4x4x4xf32>
  return %r : tensor<1x4x4x4xf32>
}}""")
    graph = Graph(next(op for op in module.walk() if op.name == "func.func"))  # type: ignore[arg-type]
    found = candidates(Claims(graph), [], ["cpu:0"], 4, 4)
    assert frozenset((0, 1)) in {one.nodes for one in found}


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


def test_profile_of_what_is_the_same() -> None:
    """As in `EstimateCost_Cached`: structurally equal candidates are timed once, wherever they stand."""
    text = chain("  %0 = math.tanh %x : !t\n  %1 = math.tanh %0 : !t\n  %r = math.tanh %1 : !t\n")
    profiler = Profiler(text + text.replace("@f", "@g"), CompileOptions(partition="search"), lambda call: 1.0)
    assert [len(one.candidate.nodes) for one in profiler.subjects] == [1, 2, 3]


def test_profile_of_weights_that_mlir_does_not_have() -> None:
    text = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %w = arith.constant dense_resource<w> : tensor<4xf32>
      %0 = arith.addf %x, %w : tensor<4xf32>
      return %0 : tensor<4xf32>
    }"""
    source = ImportedSource("model", text.encode(), literals={"w": memoryview(np.ones(4, np.float32)).cast("B")})
    profiler = Profiler(source, CompileOptions(partition="search"), lambda call: (call(), 1.0)[1])
    assert [row.seconds for _, row, _ in profiler.measured([]) if row is not None] == [1.0]
    assert profiler.left_out == []


def test_profile_of_partitions_as_a_whole() -> None:
    """What a search compares is timed in turn, once, and decides."""
    pytest.importorskip("scipy_openblas32")
    text = """func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
      %z = arith.constant dense<0.0> : tensor<4x4xf32>
      %0 = linalg.matmul ins(%a, %a : tensor<4x4xf32>, tensor<4x4xf32>)
                         outs(%z : tensor<4x4xf32>) -> tensor<4x4xf32>
      %r = math.tanh %0 : tensor<4x4xf32>
      return %r : tensor<4x4xf32>
    }"""
    parts_then_turns = iter([4.0, 1.0, 2.0, 3.0, 6.0, 5.0, 5.0, 9.0, 7.0, 5.0])
    options = CompileOptions(backends=["blas"], partition="search")
    profiler = Profiler(text, options, lambda call: (call(), next(parts_then_turns))[1])
    parts = [row for _, row, _ in profiler.measured([]) if row is not None]
    assert len(parts) == 4
    wholes = {name: row for name, row, _ in profiler.wholes(parts) if row is not None}
    assert profiler.left_out == []
    assert {name: row.seconds for name, row in wholes.items()} == {"main: blas alone": 6.0, "main: search": 5.0}
    again = list(profiler.wholes([*parts, *wholes.values()]))
    assert [known for _, _, known in again] == [True, True]


@pytest.mark.long
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
    assert all(row["seconds"] > 0 for row in rows)
    # As a whole each device alone was timed, and the search's choice if that is another.
    assert 2 <= sum(row["where"] == "function" for row in rows) <= 3
    rows = [row for row in rows if row["where"] != "function"]
    assert sorted(row["where"] for row in rows) == ["cpu:0"] * 3 + ["opencl:0"] * 3
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
