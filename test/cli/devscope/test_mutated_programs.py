"""Programs with random damage compile, or give one `DevscopeError`: nothing else, and no dead process.

They are not run: damage can make a loop endless or an index too large. ``make fuzz`` draws new damage; a failure
prints the program, ``DEVSCOPE_TEST_SEED=<seed>`` repeats it.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_case import TANH

PROGRAMS = 60
TIMEOUT = 120.0
SEED = int(os.environ["DEVSCOPE_TEST_SEED"])

BIG = """\
#dev = #device.scope<"opencl", 0 : i64, "", "">
#map = affine_map<(i, j) -> (i, j)>
func.func @main(%x: tensor<4x3xf32>, %w: tensor<3x5xf32>, %n: index) -> (tensor<4x5xf32>, f32) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %empty = tensor.empty() : tensor<4x5xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x5xf32>) -> tensor<4x5xf32>
  %0 = linalg.matmul {device.scope = #dev} ins(%x, %w : tensor<4x3xf32>, tensor<3x5xf32>)
                                           outs(%init : tensor<4x5xf32>) -> tensor<4x5xf32>
  %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%0 : tensor<4x5xf32>) outs(%empty : tensor<4x5xf32>) {
  ^bb0(%a: f32, %b: f32):
    %t = math.tanh %a : f32
    %m = arith.maximumf %t, %zero : f32
    linalg.yield %m : f32
  } -> tensor<4x5xf32>
  %2 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %1) -> (tensor<4x5xf32>) {
    %s = arith.addf %acc, %1 {device.scope = #dev} : tensor<4x5xf32>
    scf.yield %s : tensor<4x5xf32>
  }
  %3 = call @first(%2) : (tensor<4x5xf32>) -> f32
  return %2, %3 : tensor<4x5xf32>, f32
}
func.func private @first(%x: tensor<4x5xf32>) -> f32 {
  %c0 = arith.constant 0 : index
  %0 = tensor.extract %x[%c0, %c0] : tensor<4x5xf32>
  return %0 : f32
}
"""

ELEMENTS = ["f32", "f64", "f16", "bf16", "i1", "i8", "i32", "index", "i4", "i128", "f80", "complex<f32>", "none"]
SIZES = ["?", "0", "1", "2", "5", "1000"]
OPERATIONS = [
    "math.tanh",
    "math.exp",
    "math.ctlz",
    "arith.addf",
    "arith.mulf",
    "arith.divsi",
    "foo.bar",
    "math.sincos",
]
SCOPES = [
    '#device.scope<"cpu", 0 : i64, "", "">',
    '#device.scope<"cpu", 1 : i64, "", "">',
    '#device.scope<"opencl", 0 : i64, "", "shared">',
    '#device.scope<"opencl", -1 : i64, "", "">',
    '#device.scope<"", -1 : i64, "", "">',
    '#device.scope<"opencl", 0 : i64, #device.target<"opencl", {fp64 = false, workgroup = 7 : i64}>, "">',
    '#device.scope<"cuda", 0 : i64, "", "">',
]
TOKEN = re.compile(r'"[^"]*"|[%@#!^]?[A-Za-z_][\w.]*|\d+(?:\.\d+)?|->|\s+|.', re.DOTALL)


def _replace_one(pattern: str, news: list[str]) -> Callable[[random.Random, str], str]:
    def damage(rng: random.Random, text: str) -> str:
        found = list(re.finditer(pattern, text))
        if not found:
            return text
        place = rng.choice(found)
        return text[: place.start()] + rng.choice(news) + text[place.end() :]

    return damage


def _replace_all(pattern: str, news: list[str]) -> Callable[[random.Random, str], str]:
    """All places with the same text get the same new text: more of the programs are well typed."""

    def damage(rng: random.Random, text: str) -> str:
        found = sorted(set(re.findall(pattern, text)))
        old, new = rng.choice(found) if found else "", rng.choice(news)
        return re.sub(pattern, lambda match: new if match[0] == old else match[0], text)

    return damage


def _drop_line(rng: random.Random, text: str) -> str:
    lines = text.splitlines()
    del lines[rng.randrange(len(lines))]
    return "\n".join(lines) + "\n"


def _repeat_line(rng: random.Random, text: str) -> str:
    lines = text.splitlines()
    lines.insert(rng.randrange(len(lines)), rng.choice(lines))
    return "\n".join(lines) + "\n"


def _tokens(rng: random.Random, text: str) -> str:
    tokens = TOKEN.findall(text)
    first, second = rng.randrange(len(tokens)), rng.randrange(len(tokens))
    tokens[first] = rng.choice(["", tokens[first] * 2, tokens[second]])
    return "".join(tokens)


DAMAGES: list[Callable[[random.Random, str], str]] = [
    _replace_all(r"(?<=x)f32\b|(?<=: )f32\b", ELEMENTS),
    _replace_all(r"(?<=[<x])[345](?=x)", SIZES),
    _replace_one(r"(?<=constant )\d+(?= )", ["1", "2", "100", "-1"]),
    _replace_one(r"(?<=constant )\d+\.\d+", ["1.0e30", "-0.5"]),
    _replace_one(r"(?:math|arith)\.(?!constant)\w+", OPERATIONS),
    _replace_one(r"(?<=device\.scope = )#dev", SCOPES),
    _drop_line,
    _repeat_line,
    _tokens,
]

#: One process tries all programs: it says which one it begins, so that one that kills it is known.
WORKER = """
import sys, traceback
from pathlib import Path

import devscope.cli.main

for number, path in enumerate(sorted(Path(sys.argv[1]).glob("*.mlir"))):
    print("begin", path.name, flush=True)
    try:
        status = devscope.cli.main.main(["build", str(path)])
    except BaseException:
        traceback.print_exc()
        status = 99
    print("end", path.name, status, flush=True)
    sys.stderr.write(f"end {path.name}\\n")
    if status not in (0, 1):
        break
"""


@pytest.mark.fuzz
def test_mutated_programs(tmp_path: Path) -> None:
    rng = random.Random(SEED)
    programs: dict[str, str] = {}
    for number in range(PROGRAMS):
        text = rng.choice([TANH, BIG, BIG])
        for _ in range(rng.choice([1, 1, 2, 3])):
            text = rng.choice(DAMAGES)(rng, text)
        name = f"p{number:03}.mlir"
        programs[name] = text
        (tmp_path / name).write_text(text)
    command = [sys.executable, "-P", "-c", WORKER, str(tmp_path)]
    process = subprocess.run(command, capture_output=True, text=True, check=False, timeout=TIMEOUT)
    begun = [line.split()[1] for line in process.stdout.splitlines() if line.startswith("begin p")]
    last = (
        f"seed {SEED}, {begun[-1]}: status {process.returncode}\n{process.stderr[-2000:]}\n{programs[begun[-1]]}"
    )
    assert process.returncode == 0, last
    assert begun == list(programs), last
    reports = re.split(r"^end p\d+\.mlir\n", process.stderr, flags=re.MULTILINE)
    for name, errors in zip(begun, reports, strict=False):
        details = f"seed {SEED}, {name}:\n{errors}\n{programs[name]}"
        heads = [line for line in errors.splitlines() if not line.startswith("  note: ")]
        assert len(heads) <= 1, details
        assert not heads or "error: " in heads[0], details
        assert "internal error" not in errors, details
        assert (tmp_path / name).with_suffix(".dsx").exists() == (not heads), details
    assert not list(tmp_path.glob(".*"))
