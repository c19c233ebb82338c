"""Sums of what is made of two factors: upstream takes it for a contraction, whatever is done to each of them."""

from typing import Any

import numpy as np
import pytest

import devscope

Array = np.ndarray[Any, Any]

PROGRAM = """
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @main(%a: tensor<32x32xIN>, %b: tensor<32x32xIN>, %c: tensor<32x32xOUT>) -> tensor<32x32xOUT> {
  %0 = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%a, %b : tensor<32x32xIN>, tensor<32x32xIN>) outs(%c : tensor<32x32xOUT>) {
  ^bb0(%x: IN, %y: IN, %z: OUT):
    BODY
    linalg.yield %r : OUT
  } -> tensor<32x32xOUT>
  return %0 : tensor<32x32xOUT>
}
"""

DTYPES: dict[str, Any] = {"i8": np.int8, "i32": np.int32, "f16": np.float16, "f32": np.float32, "f64": np.float64}


def _of_factors(how: str, of: str, to: str) -> str:
    kind = "f" if to.startswith("f") else "i"
    return f"""%p = {how} %x : {of} to {to}
    %q = {how} %y : {of} to {to}
    %s = arith.mul{kind} %p, %q : {to}
    %r = arith.add{kind} %z, %s : {to}"""


CASES: dict[str, tuple[str, str, str]] = {
    "absolute factor": (
        "f32",
        "f32",
        "%p = math.absf %x : f32\n%q = arith.mulf %p, %y : f32\n%r = arith.addf %z, %q : f32",
    ),
    "absolute product": (
        "f32",
        "f32",
        "%p = arith.mulf %x, %y : f32\n%q = math.absf %p : f32\n%r = arith.addf %z, %q : f32",
    ),
    "product of bytes": (
        "i8",
        "i32",
        "%p = arith.muli %x, %y : i8\n%q = arith.extsi %p : i8 to i32\n%r = arith.addi %z, %q : i32",
    ),
    "integers as f32": ("i8", "f32", _of_factors("arith.sitofp", "i8", "f32")),
    "integers as f16": ("i8", "f16", _of_factors("arith.sitofp", "i8", "f16")),
    "f64 as f32": ("f64", "f32", _of_factors("arith.truncf", "f64", "f32")),
    "f32 as integers": ("f32", "i32", _of_factors("arith.fptosi", "f32", "i32")),
    "low bytes": ("i32", "i8", _of_factors("arith.trunci", "i32", "i8")),
}


def _expected(name: str, a: Array, b: Array) -> Array:
    if name == "absolute factor":
        return np.abs(a) @ b
    if name == "absolute product":
        return np.abs(a) @ np.abs(b)
    if name == "product of bytes":
        return (a[:, :, None] * b[None]).astype(np.int8).astype(np.int32).sum(axis=1)
    return a @ b


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("target", ["cpu:0", "opencl:0"])
def test_bodies(name: str, target: str) -> None:
    of, to, body = CASES[name]
    text = PROGRAM.replace("BODY", body).replace("IN", of).replace("OUT", to)
    scale = 30 if name == "product of bytes" else 1
    a, b = (scale * part for part in np.random.default_rng(0).integers(-4, 5, (2, 32, 32)))
    with devscope.compile(text, default=target, cache=False) as program:
        found = program(a.astype(DTYPES[of]), b.astype(DTYPES[of]), np.zeros((32, 32), DTYPES[to]))
    np.testing.assert_array_equal(found, _expected(name, a, b).astype(DTYPES[to]))


@pytest.mark.parametrize("target", ["cpu:0", "opencl:0"])
def test_loops_that_sum_one_operand_only(target: str) -> None:
    text = """func.func @main(%a: tensor<7x40xf32>, %b: tensor<40x33xf32>, %c: tensor<7xf32>) -> tensor<7xf32> {
      %0 = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
          affine_map<(m, n, k) -> (m)>], iterator_types = ["parallel", "reduction", "reduction"]}
        ins(%a, %b : tensor<7x40xf32>, tensor<40x33xf32>) outs(%c : tensor<7xf32>) {
      ^bb0(%x: f32, %y: f32, %z: f32):
        %p = arith.mulf %x, %y : f32
        %r = arith.addf %z, %p : f32
        linalg.yield %r : f32
      } -> tensor<7xf32>
      return %0 : tensor<7xf32>
    }"""
    rng = np.random.default_rng(0)
    a, b, c = (rng.integers(-4, 5, shape).astype(np.float32) for shape in ((7, 40), (40, 33), (7,)))
    with devscope.compile(text, default=target, cache=False) as program:
        np.testing.assert_array_equal(program.run("main", a, b, c), c + (a @ b).sum(1))
