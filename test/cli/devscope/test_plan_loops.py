"""``devscope plan`` of a program with loops: how often data is copied and read back, and what bodies do; what the
reports of long programs cost."""

from __future__ import annotations

import cProfile
import json
import re
from pathlib import Path

import pytest
from cli_case import Cli

HEAT = """\
#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
func.func @main(%x: tensor<64xf32>, %w: tensor<64xf32>) -> (tensor<64xf32>, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c100 = arith.constant 100 : index
  %z = arith.constant 0.0 : f32
  %r, %s = scf.for %i = %c0 to %c100 step %c1 iter_args(%u = %x, %a = %z) -> (tensor<64xf32>, f32) {
    %v = math.tanh %u {device.scope = #dev} : tensor<64xf32>
    %h = math.exp %w {device.scope = #host} : tensor<64xf32>
    %k = arith.addf %h, %v {device.scope = #dev} : tensor<64xf32>
    %k2 = arith.mulf %h, %k {device.scope = #dev} : tensor<64xf32>
    %e = tensor.extract %k2[%c0] : tensor<64xf32>
    %b = arith.addf %a, %e : f32
    scf.yield %k2, %b : tensor<64xf32>, f32
  }
  %q = scf.while (%u = %r) : (tensor<64xf32>) -> tensor<64xf32> {
    %d = tensor.extract %u[%c1] : tensor<64xf32>
    %c = arith.cmpf olt, %d, %z : f32
    scf.condition(%c) %u : tensor<64xf32>
  } do {
  ^bb0(%u: tensor<64xf32>):
    %g = linalg.map ins(%u : tensor<64xf32>) outs(%u : tensor<64xf32>) (%in: f32, %o: f32) {
      %m = math.exp %in : f32
      linalg.yield %m : f32
    }
    %st = math.absf %g {device.scope = #dev} : tensor<64xf32>
    scf.yield %st : tensor<64xf32>
  }
  return %q, %s : tensor<64xf32>, f32
}
"""


@pytest.fixture(autouse=True)
def _heat(folder: Path) -> None:
    (folder / "heat.mlir").write_text(HEAT)


def test_the_table_counts_what_loops_repeat(cli: Cli) -> None:
    lines = [re.sub(" {2,}", "|", line) for line in cli("plan", "heat.mlir", "--table").out.splitlines()]
    copies = lines.index("copy of|from|to|bytes|times|asked by")
    assert lines[copies + 1 : copies + 6] == [
        "%x|cpu:0|opencl:0|256|x1|'scf.for' (8:12)",
        "%h|cpu:0|opencl:0|256|x100|'arith.addf' (11:10)",
        "%u|opencl:0|cpu:0|256|per iteration|'scf.condition' (20:5)",
        "%g|cpu:0|opencl:0|256|per iteration|'math.absf' (27:11)",
        "",
    ]
    assert lines[copies + 6] == (
        "4 copies: 2 run 101 times in all, 25,856 bytes; 2 in loops of unknown length, 512 bytes per iteration"
    )
    reads = lines.index("read back of|from|bytes|times|by|at")
    assert lines[reads + 1 : reads + 3] == [
        "%k2|opencl:0|4|x100|tensor.extract|13:10",
        "%u|opencl:0|4|per iteration|tensor.extract|18:10",
    ]
    assert lines[reads + 4].startswith("2 read-backs: 1 run 100 times in all, 400 bytes; 1 in loops")


def test_the_table_counts_what_calls_repeat(cli: Cli, folder: Path) -> None:
    """Every call of a private function, one in a loop as often as that runs; recursion has no count."""
    (folder / "calls.mlir").write_text("""\
func.func private @g(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = math.tanh %x {device.scope = #device.scope<"opencl", 0 : i64, "", "">} : tensor<8xf32>
  %1 = math.exp %0 : tensor<8xf32>
  return %1 : tensor<8xf32>
}
func.func private @again(%x: tensor<8xf32>, %c: i1) -> tensor<8xf32> {
  %0 = math.tanh %x {device.scope = #device.scope<"opencl", 0 : i64, "", "">} : tensor<8xf32>
  %1 = math.exp %0 : tensor<8xf32>
  %2 = func.call @again(%1, %c) : (tensor<8xf32>, i1) -> tensor<8xf32>
  return %2 : tensor<8xf32>
}
func.func private @h(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = func.call @g(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = func.call @g(%0) : (tensor<8xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}
func.func @main(%x: tensor<8xf32>, %c: i1) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %0 = func.call @h(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = scf.for %i = %c0 to %c5 step %c1 iter_args(%a = %0) -> tensor<8xf32> {
    %2 = func.call @h(%a) : (tensor<8xf32>) -> tensor<8xf32>
    scf.yield %2 : tensor<8xf32>
  }
  %2 = func.call @again(%1, %c) : (tensor<8xf32>, i1) -> tensor<8xf32>
  return %2 : tensor<8xf32>
}
""")
    shown = json.loads(cli("plan", "calls.mlir", "--json").out)
    assert {copy["location"].partition(":")[2]: copy["times"] for copy in shown["copies"]} == {
        "21:8": 1,
        "23:10": 5,
        "14:8": 6,
        "3:8": 12,
        "7:8": None,
        "8:8": None,
    }


def test_so_do_json_and_remarks(cli: Cli) -> None:
    shown = json.loads(cli("plan", "heat.mlir", "--json").out)
    assert [copy["times"] for copy in shown["copies"]] == [1, 100, None, None]
    assert [(read["value"], read["times"]) for read in shown["read_backs"]] == [("%k2", 100), ("%u", None)]
    remarks = cli("plan", "heat.mlir", "--remarks").err
    assert "%h is copied from cpu:0 to opencl:0 (256 bytes) for 'arith.addf' (heat.mlir:11:10), x100" in remarks
    assert "'tensor.extract' reads %u back from opencl:0 (per iteration)" in remarks


def test_scalars_are_where_they_are_computed(cli: Cli) -> None:
    def about(name: str) -> str:
        return cli("plan", "heat.mlir", "--explain", name).out

    assert "is computed in the body of 'linalg.map' (heat.mlir:23:10), which runs on cpu:0\n" in about("%m")
    assert "is computed in the body of 'linalg.map'" in about("%in")
    assert "is read back from opencl:0 to the host, x100\n" in about("%e")
    assert "is read back from opencl:0 to the host, per iteration\n" in about("%d")
    assert "is on the host: scalars always are\n" in about("%b")
    assert "copied to opencl:0 (256 bytes, x100) for 'arith.mulf'" in about("%h")


def test_every_copy_is_one_edge(cli: Cli) -> None:
    edges = [line for line in cli("plan", "heat.mlir", "--dot").out.splitlines() if "->" in line]
    labels = [match[1] for line in edges if (match := re.search(r'label="(.*?)"', line))]
    assert labels == [
        r"cpu:0 -> opencl:0\n256 bytes",
        r"cpu:0 -> opencl:0, x100\n256 bytes",
        r"opencl:0 -> cpu:0, per iteration\n256 bytes",
        r"cpu:0 -> opencl:0, per iteration\n256 bytes",
    ]


def test_reports_cost_little_beside_planning(cli: Cli, folder: Path) -> None:
    """Calls of functions for 20 more operations, which no load of the machine changes."""

    def calls(size: int, *report: str) -> int:
        lines = [
            f"  %{n + 1} = math.tanh %{n} {'{device.scope = #dev}' if n % 3 else ''} : tensor<4xf32>\n"
            for n in range(size)
        ]
        head = "func.func @main(%0: tensor<4xf32>) -> tensor<4xf32> {\n"
        (folder / "long.mlir").write_text(
            f"{HEAT.splitlines()[0]}\n{head}{''.join(lines)}  return %{size} : tensor<4xf32>\n}}\n"
        )
        with cProfile.Profile() as profile:
            assert cli("plan", "long.mlir", *report).status == 0
        return sum(entry.callcount for entry in profile.getstats())

    calls(10)  # imports
    plan = calls(30) - calls(10)
    for report in (["--table"], ["--dot"], ["--explain", "%10"]):
        calls(10, *report)
        assert calls(30, *report) - calls(10, *report) <= 1.6 * plan, report
