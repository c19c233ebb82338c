"""``devscope plan --explain``: names and lines of a program, and what is said about them."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_case import Cli

PROGRAM = """\
// Lines with comments define nothing.
#dev = #device.scope<"opencl", 0 : i64, "", "">

func.func private @layer(%in: tensor<4xf32>) -> tensor<4xf32> {
  %out = math.tanh %in : tensor<4xf32>
  return %out : tensor<4xf32>
}

func.func @main(
    %x: tensor<4xf32>, %count: index) -> (tensor<4xf32>, tensor<4xf32>) {
  %one = arith.constant dense<1.0> : tensor<4xf32>
  %start = arith.constant 0 : index
  %step = arith.constant 1 : index
  %sum = arith.addf %x, %one : tensor<4xf32>
  %there = "device.on_device"(%sum) {scope = #dev} : (tensor<4xf32>) -> tensor<4xf32>
  %a = call @layer(%sum) : (tensor<4xf32>) -> tensor<4xf32>
  %b = call @layer(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %plus = arith.addf %b, %one : tensor<4xf32>
  %pair:2 = scf.for %i = %start to %count step %step
      iter_args(%left = %a, %right = %plus) -> (tensor<4xf32>, tensor<4xf32>) {
    %next = math.exp %left {device.scope = #dev} : tensor<4xf32>
    scf.yield %next, %right : tensor<4xf32>, tensor<4xf32>
  }
  %w,
  %z:2
    = "my.split"(%pair#1) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  %last = arith.addf %w, %z#1 : tensor<4xf32>
  return %pair#0, %last : tensor<4xf32>, tensor<4xf32>
}
"""

NO_DEMAND = "  no demand reaches it: default scope, cpu:0"
PLACED = "  p.mlir:21:13: device.scope on 'math.exp' says opencl:0"

SUM = [
    "%sum in @main (p.mlir:14:10) is on opencl:0",
    "  p.mlir:15:12: 'device.on_device' puts %sum on opencl:0",
]
PAIR_1 = ["%pair#1 in @main (p.mlir:19:13) is on cpu:0", NO_DEMAND]

ANSWERS: dict[str, list[str]] = {
    "%sum": SUM,
    "14": SUM,
    "p.mlir:14": SUM,
    # An annotation that planning consumes.
    "%there": [
        "%there in @main (p.mlir:15:12) is on opencl:0",
        "  p.mlir:15:12: 'device.on_device' puts %sum on opencl:0",
    ],
    # A function's argument, not on the first line of the function.
    "@main:%x": [
        "%x in @main (p.mlir:10:5) is on cpu:0",
        "  p.mlir:9:1: argument #0 of the public @main is pinned to the host (cpu:0)",
        "  copied to opencl:0 (16 bytes) for 'arith.addf' (p.mlir:14:10)",
        "    p.mlir:15:12: 'device.on_device' puts %sum on opencl:0",
    ],
    # Several results under one name, and one of them.
    "%pair": [
        "%pair#0 in @main (p.mlir:19:13) is on opencl:0",
        "  p.mlir:21:13: nothing else places it, and 'math.exp' uses %left on opencl:0",
        PLACED,
        "  copied to cpu:0 (16 bytes) for 'func.return' (p.mlir:28:3)",
        "    p.mlir:9:1: result #0 of the public @main is pinned to the host (cpu:0)",
        "",
        *PAIR_1,
    ],
    "%pair#1": PAIR_1,
    # A value that a loop carries.
    "%left": [
        "%left in @main (p.mlir:20:17) is on opencl:0",
        "  p.mlir:19:13: result #0 of 'scf.for' is the value that it carries",
        "  p.mlir:21:13: nothing else places it, and 'math.exp' uses %left on opencl:0",
        PLACED,
    ],
    # A constant on two scopes.
    "11": [
        "%one in @main (p.mlir:11:10) is made again on every scope that needs it",
        "  on opencl:0 for 'arith.addf' (p.mlir:14:10)",
        "    p.mlir:15:12: 'device.on_device' puts %sum on opencl:0",
        "  on cpu:0 for 'arith.addf' (p.mlir:18:11)",
        "  " + NO_DEMAND,
    ],
    # A function on two scopes, one a clone; @f means the clones of f too.
    "@layer:%in": [
        "%in in @layer (p.mlir:4:26) is on opencl:0",
        "  p.mlir:16:8: 'func.call' uses @layer with its argument #0 on opencl:0",
        "  p.mlir:16:8: 'func.call' passes %sum as argument #0 of @layer",
        "  p.mlir:15:12: 'device.on_device' puts %sum on opencl:0",
        "",
        "%in in @layer_cpu_0, a clone of @layer, (p.mlir:4:26) is on cpu:0",
        "  p.mlir:17:8: 'func.call' uses @layer with its argument #0 on cpu:0",
        NO_DEMAND,
    ],
    "@layer_cpu_0:%in": [
        "%in in @layer_cpu_0, a clone of @layer, (p.mlir:4:26) is on cpu:0",
        "  p.mlir:17:8: 'func.call' uses @layer with its argument #0 on cpu:0",
        NO_DEMAND,
    ],
    # An operation without results: where what it uses has to be.
    "28": [
        "'func.return' (p.mlir:28:3) returns %pair#0 as result #0, on cpu:0",
        "  p.mlir:9:1: result #0 of the public @main is pinned to the host (cpu:0)",
        "",
        "'func.return' (p.mlir:28:3) returns %last as result #1, on cpu:0",
        "  p.mlir:9:1: result #1 of the public @main is pinned to the host (cpu:0)",
    ],
    "%start": ["%start in @main (p.mlir:12:12) is on the host: scalars always are"],
    # Results over several lines.
    "%w": ["%w in @main (p.mlir:26:7) is on cpu:0", NO_DEMAND],
    "%z#1": ["%z#1 in @main (p.mlir:26:7) is on cpu:0", NO_DEMAND],
}

REFUSED: dict[str, list[str]] = {
    "%sun": ["error: no value is called %sun", "  note: did you mean %sum or %count?"],
    "@main:%in": ["error: no value is called %in in @main"],
    "@lay:%in": ["error: no value is called %in in @lay", "  note: the functions are: @layer, @main"],
    "1": [
        "error: nothing that planning places stands in line 1",
        "  note: give a line on which an operation or argument begins",
    ],
    "other.mlir:14": [
        "error: nothing that planning places stands in line 14 of 'other.mlir'",
        "  note: give a line on which an operation or argument begins",
    ],
}


@pytest.mark.parametrize("what", ANSWERS)
def test_answers(cli: Cli, folder: Path, what: str) -> None:
    (folder / "p.mlir").write_text(PROGRAM)
    outcome = cli("plan", "p.mlir", "--explain", what)
    assert outcome.status == 0, outcome.err
    assert outcome.out.splitlines() == ANSWERS[what]


@pytest.mark.parametrize("what", REFUSED)
def test_refusals(cli: Cli, folder: Path, what: str) -> None:
    (folder / "p.mlir").write_text(PROGRAM)
    outcome = cli("plan", "p.mlir", "--explain", what)
    assert outcome.status == 1
    assert outcome.out == ""
    assert outcome.err.splitlines()[: len(REFUSED[what])] == REFUSED[what]


def test_results_of_frames_know_their_function(cli: Cli, folder: Path) -> None:
    (folder / "frame.mlir").write_text(
        """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = "device.region"() ({
    %0 = math.tanh %x : tensor<4xf32>
    "device.yield"(%0) : (tensor<4xf32>) -> ()
  }) {scope = #device.scope<"opencl", 0 : i64, "", "">} : () -> tensor<4xf32>
  return %r : tensor<4xf32>
}
"""
    )
    answer = cli("plan", "frame.mlir", "--explain", "@main:%r").out
    assert answer.startswith("%r in @main (frame.mlir:2:8) is on opencl:0\n")
