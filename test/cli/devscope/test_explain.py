"""``devscope plan``: --explain, --dot, --json and --remarks, and programs with several errors."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from cli_case import SCOPES, TANH, Cli

from devscope import plan
from devscope.errors import PlanError

LOOP = f"""\
{SCOPES}func.func @main(%x: tensor<4xf32>, %n: index) -> tensor<4xf32> {{
  %a = arith.constant 0 : index
  %b = arith.constant 1 : index
  %r = scf.for %i = %a to %n step %b iter_args(%p = %x) -> tensor<4xf32> {{
    %q = math.exp %p {{device.scope = #dev}} : tensor<4xf32>
    %s = math.log %q : tensor<4xf32>
    scf.yield %s : tensor<4xf32>
  }}
  return %r : tensor<4xf32>
}}
"""

T = "tensor<4xf32>"
WRONG = f"""\
{SCOPES}func.func @main(%x: {T}) -> {T} {{
  %0 = math.exp %x : {T}
  %1 = "device.on_device"(%0) {{scope = #dev}} : ({T}) -> {T}
  %2 = "device.on_device"(%0) {{scope = #host}} : ({T}) -> {T}
  %3 = arith.addf %1, %2 : {T}
  %4 = "device.on_device"(%3) {{scope = #host}} : ({T}) -> {T}
  %5 = "device.on_device"(%3) {{scope = #dev}} : ({T}) -> {T}
  %6 = arith.addf %4, %5 : {T}
  return %6 : {T}
}}
"""


def test_all_errors_of_a_program(cli: Cli, folder: Path) -> None:
    """Each is an error of its own, in the order of the file, and nothing else is printed or written."""
    (folder / "wrong.mlir").write_text(WRONG)
    outcome = cli("plan", "wrong.mlir")
    assert (outcome.status, outcome.out, outcome.files) == (1, "", [])
    lines = outcome.err.splitlines()
    assert [line for line in lines if not line.startswith("  note: ")] == [
        "wrong.mlir:6:8: error: %0 must be on opencl:0 and on cpu:0",
        "wrong.mlir:9:8: error: %3 must be on cpu:0 and on opencl:0",
    ]
    assert lines[1] == "  note: wrong.mlir:5:8: on opencl:0 because 'device.on_device' puts %0 on opencl:0"


def test_all_errors_in_python() -> None:
    """One exception, whose text has every error; values of a text have their names too."""
    with pytest.raises(PlanError) as caught:
        plan(WRONG)
    (other,) = caught.value.others
    assert caught.value.message == "%0 must be on opencl:0 and on cpu:0"
    assert other.message == "%3 must be on cpu:0 and on opencl:0"
    assert str(other) in str(caught.value)
    assert [note.location is not None for note in other.notes] == [True, True, False]


def test_every_command_reports_all_errors(cli: Cli, folder: Path) -> None:
    (folder / "wrong.mlir").write_text(WRONG)
    shown = cli("plan", "wrong.mlir").err
    assert cli("build", "wrong.mlir").err == shown
    assert cli("run", "wrong.mlir", "--random", 0, "--no-cache").err == shown
    assert cli("plan", "wrong.mlir", "--explain", "%0").err == shown


CARRIED = """
#dev = #device.scope<"opencl", 0 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
func.func @main(%x: tensor<4xf32>, %n: index) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> tensor<4xf32> {
    %0 = "device.device_copy"(%a) {src = #host, dst = #dev} : (tensor<4xf32>) -> tensor<4xf32>
    %1 = math.tanh %0 {device.scope = #dev} : tensor<4xf32>
    %2 = "device.device_copy"(%1) {src = #dev, dst = #host} : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %2 : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
"""


def test_copies_that_leave_their_loop_are_no_warnings_of_what_is_built(cli: Cli, folder: Path) -> None:
    (folder / "loop.mlir").write_text(LOOP)
    (folder / "carried.mlir").write_text(CARRIED)
    assert cli("plan", "carried.mlir").err.count("in every iteration") == 2
    assert cli("build", "carried.mlir").err == ""
    assert "in every iteration" in cli("build", "loop.mlir").err


def test_warnings_are_on_stderr(cli: Cli, folder: Path) -> None:
    """What is on stdout stays a program, or whatever was asked for."""
    (folder / "loop.mlir").write_text(LOOP)
    outcome = cli("plan", "loop.mlir")
    assert "warning" not in outcome.out
    first, note, second = outcome.err.splitlines()
    assert first.startswith("loop.mlir:7:10: warning: %p is copied from cpu:0 to opencl:0 in every iteration of")
    assert note == "  note: put 'math.log' (loop.mlir:8:10) on opencl:0 too: then the loop copies nothing"
    assert second.startswith("loop.mlir:8:10: warning: %q is copied")
    assert cli("plan", "loop.mlir", "--explain", "%q").err == ""


def test_remarks_on_request(cli: Cli) -> None:
    assert cli("plan", "tanh.mlir").err == ""
    assert cli("plan", "tanh.mlir", "--remarks").err.splitlines() == [
        "tanh.mlir:4:8: remark: %x is copied from cpu:0 to opencl:0 (16 bytes) for 'math.tanh' (tanh.mlir:4:8)",
        "tanh.mlir:5:3: remark: %0 is copied from opencl:0 to cpu:0 (16 bytes) for 'func.return' (tanh.mlir:5:3)",
    ]


def test_warnings_in_tables_and_json(cli: Cli, folder: Path) -> None:
    (folder / "loop.mlir").write_text(LOOP)
    table = cli("plan", "loop.mlir", "--table")
    assert "7:10: warning: %p is copied" in table.out
    assert table.err == ""
    remarks = json.loads(cli("plan", "loop.mlir", "--json").out)["remarks"]
    assert len(remarks) == 2


def test_json_has_every_step(cli: Cli) -> None:
    shown = json.loads(cli("plan", "tanh.mlir", "--json").out)
    step = {"text": "device.scope on 'math.tanh' says opencl:0", "location": "tanh.mlir:4:8"}
    assert shown["placements"][0]["chain"] == [step]
    there, back = shown["copies"]
    assert there["destination_chain"] == [{"text": "'math.tanh' uses %x", "location": "tanh.mlir:4:8"}, step]
    assert back["source_chain"] == [step]
    assert shown["clones"] == []


def test_json_names_clones(cli: Cli, folder: Path) -> None:
    (folder / "calls.mlir").write_text(
        f"""{SCOPES}func.func private @f(%x: {T}) -> {T} {{
          %0 = math.exp %x : {T}
          return %0 : {T}
        }}
        func.func @main(%x: {T} {{device.scope = #dev}}, %y: {T}) -> ({T}, {T}) {{
          %0 = call @f(%x) : ({T}) -> {T}
          %1 = call @f(%y) : ({T}) -> {T}
          return %0, %1 : {T}, {T}
        }}"""
    )
    (clone,) = json.loads(cli("plan", "calls.mlir", "--json").out)["clones"]
    assert clone["original"] == "f"
    assert clone["asked_by"].startswith("'func.call' (calls.mlir:")
    assert f"in @{clone['name']}, a clone of @f," in cli("plan", "calls.mlir", "--explain", "@f:%0").out
    rows = [line.split() for line in cli("plan", "calls.mlir", "--table").out.splitlines()]
    assert rows[0][:2] == ["in", "op"]
    assert {row[0] for row in rows[1:3]} == {"@f", f"@{clone['name']}"}


def test_dot(cli: Cli) -> None:
    lines = cli("plan", "tanh.mlir", "--dot").out.splitlines()
    assert lines[0] == "digraph plan {"
    assert lines[-1] == "}"
    assert sum("16 bytes" in line for line in lines) == 2


def test_explain_bytecode_by_line(cli: Cli, folder: Path) -> None:
    """Bytecode has positions, but its file has no names."""
    from devscope.lowering.interop.session import Session

    module = Session().parse(TANH, "elsewhere.mlir")
    with (folder / "tanh.mlirbc").open("wb") as stream:
        module.operation.write_bytecode(stream)
    assert "'math.tanh' (elsewhere.mlir:4:8)" in cli("plan", "tanh.mlirbc", "--explain", "4").out
    outcome = cli("plan", "tanh.mlirbc", "--explain", "%0")
    assert outcome.status == 1
    assert "of bytecode, ask for lines" in outcome.err


NAMED = f"""\
{SCOPES}func.func @main(%x: {T}) -> {T} {{
  %0 = math.exp %x {{device.scope = #dev}} : {T} loc("encoder.0"("model.py":3:5))
  %1 = math.tanh %0 : {T} loc("encoder.1")
  return %1 : {T}
}}
"""


def test_parts_of_a_model(cli: Cli, folder: Path) -> None:
    """Names in locations are in tables, and are asked for by the patterns of rules."""
    (folder / "named.mlir").write_text(NAMED)
    table = [line.split() for line in cli("plan", "named.mlir", "--table").out.splitlines()[:3]]
    assert table[0] == ["op", "part", "of", "at", "scope", "why"]
    assert table[1][:4] == ["math.exp", "encoder.0", "model.py:3:5", "opencl:0"]
    assert table[2][:3] == ["math.tanh", "encoder.1", "cpu:0"]
    exp = "the result of 'math.exp' (encoder.0, model.py:3:5) in @main is on opencl:0\n"
    tanh = "the result of 'math.tanh' (encoder.1) in @main is on cpu:0\n"
    assert cli("plan", "named.mlir", "--explain", "encoder.0").out.startswith(exp)
    assert tanh not in cli("plan", "named.mlir", "--explain", "encoder.0").out
    both = cli("plan", "named.mlir", "--explain", "encoder.*").out
    assert exp in both
    assert tanh in both
    outcome = cli("plan", "named.mlir", "--explain", "encoder.2")
    assert outcome.status == 1
    assert "no part of the program is called 'encoder.2'" in outcome.err
    assert "did you mean encoder.1 or encoder.0?" in outcome.err
    placed = json.loads(cli("plan", "named.mlir", "--json").out)["placements"]
    assert [(one["source_name"], one["location"]) for one in placed] == [
        ("encoder.0", "model.py:3:5"),
        ("encoder.1", None),
    ]


def test_nodes_and_inputs_of_a_model(cli: Cli, folder: Path) -> None:
    from onnx import TensorProto, helper, save

    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in ("my input", "y")]
    nodes = [
        helper.make_node("Exp", ["my input"], ["e"], name="first"),
        helper.make_node("Tanh", ["e"], ["y"], name="second"),
    ]
    graph = helper.make_graph(nodes, "graph", ends[:1], ends[1:])
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]), folder / "model.onnx")
    plan = ("plan", "model.onnx", "--place", "Exp=opencl:0")
    table = cli(*plan, "--table").out
    assert "linalg.generic  first (Exp)    opencl:0  rule 1: 'Exp'\n" in table
    assert re.search(r"\nmy input +cpu:0 +opencl:0 +16 +x1  'linalg.generic' \(first\)\n", table)
    answer = cli(*plan, "--explain", "my input").out
    assert re.match(r"my input in @main.* is on cpu:0\n", answer)
    assert "copied to opencl:0 (16 bytes) for 'linalg.generic' (first)\n" in answer
    for what in ("first", "Exp"):
        answer = cli(*plan, "--explain", what).out
        assert re.match(r"the result of .linalg.generic. \(first\) in @main.* is on opencl:0\n", answer)


@pytest.mark.parametrize("what", ["x y", "-1", "7:", "tanh.mlir:"])
def test_names_that_a_program_lacks(cli: Cli, what: str) -> None:
    outcome = cli("plan", "tanh.mlir", f"--explain={what}")
    assert outcome.status == 1
    assert f"no part of the program is called '{what}'" in outcome.err
    assert "write %name, @function:%name, LINE or FILE:LINE" in outcome.err


@pytest.mark.parametrize("what", ["", "%", "@f", "%0 ", "%x#"])
def test_what_to_explain_is_checked_first(cli: Cli, what: str) -> None:
    outcome = cli("plan", "tanh.mlir", f"--explain={what}")
    assert outcome.status == 2
    assert "names neither a value nor a line" in outcome.err
    assert "write %name, @function:%name, LINE or FILE:LINE" in outcome.err


def test_one_form_at_a_time(cli: Cli) -> None:
    assert "not allowed with" in cli("plan", "tanh.mlir", "--dot", "--explain", "%0").err


def test_programs_that_run_warn_too(cli: Cli, folder: Path) -> None:
    """Compiled just now, from the cache, or into a file; not when that file runs."""
    (folder / "loop.mlir").write_text(LOOP)
    warned = cli("plan", "loop.mlir").err
    assert warned.count("warning") == 2
    run = ("--random", "0")
    assert cli("run", "loop.mlir", *run).err == warned
    assert cli("run", "loop.mlir", *run).err == warned
    assert cli("build", "loop.mlir").err == warned
    assert cli("run", "loop.dsx", *run).err == ""
