"""Control flow, variables and scatters of TOSA, and its products with a transposed side."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import devscope
from devscope.cli.main import main

SCOPE = '{device.scope = #device.scope<"opencl", 0 : i64, "", "">}'
TEXT = """
tosa.variable @calls = dense<0> : tensor<i32>
func.func @main(%adds: tensor<i1>, %times: tensor<i32>, %x: tensor<4xf32>) -> (tensor<4xf32>, tensor<i32>) {
  %one = "tosa.const"() <{values = dense<1> : tensor<i32>}> : () -> tensor<i32>
  %n, %y = tosa.while_loop (%i = %one, %a = %x) : (tensor<i32>, tensor<4xf32>) -> (tensor<i32>, tensor<4xf32>) {
    %goes = tosa.greater_equal %times, %i : (tensor<i32>, tensor<i32>) -> tensor<i1>
    tosa.yield %goes : tensor<i1>
  } do {
  ^bb0(%i: tensor<i32>, %a: tensor<4xf32>):
    %b = tosa.add %a, %x SCOPE : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %next = tosa.add %i, %one : (tensor<i32>, tensor<i32>) -> tensor<i32>
    tosa.yield %next, %b : tensor<i32>, tensor<4xf32>
  }
  %z = tosa.cond_if %adds (%a = %y) : tensor<i1> (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    %old = tosa.variable_read @calls : tensor<i32>
    %new = tosa.add %old, %one : (tensor<i32>, tensor<i32>) -> tensor<i32>
    tosa.variable_write @calls, %new : tensor<i32>
    tosa.yield %a : tensor<4xf32>
  } else {
  ^bb0(%a: tensor<4xf32>):
    %b = tosa.abs %a : (tensor<4xf32>) -> tensor<4xf32>
    tosa.yield %b : tensor<4xf32>
  }
  %calls = tosa.variable_read @calls : tensor<i32>
  return %z, %calls : tensor<4xf32>, tensor<i32>
}
"""


@pytest.mark.parametrize(("default", "scope"), [("cpu:0", ""), ("cpu:0", SCOPE), ("opencl:0", "")])
def test_control_flow_and_variables(default: str, scope: str) -> None:
    made = devscope.compile(TEXT.replace("SCOPE", scope), default=default)
    x = np.array([1, -2, np.nan, -0.0], np.float32)
    for adds, times, calls in ((True, 3, 1), (False, 0, 1), (True, 1, 2)):
        z, counted = made(np.array(adds), np.array(times, np.int32), x)
        wanted = x * np.float32(times + 1)
        np.testing.assert_array_equal(z, wanted if adds else np.abs(wanted))
        assert counted == calls


@pytest.mark.parametrize("default", ["cpu:0", "opencl:0"])
@pytest.mark.parametrize(("of", "static"), [("f32", True), ("i8", True), ("f32", False)])
def test_scatter(of: str, static: bool, default: str) -> None:
    n, k, w = ("2", "5", "4") if static else "???"
    types = f"tensor<{n}x{k}x3x{of}>", f"tensor<{n}x{w}xi32>", f"tensor<{n}x{w}x3x{of}>"
    made = devscope.compile(
        f"func.func @main(%x: {types[0]}, %i: {types[1]}, %v: {types[2]}) -> {types[0]} {{\n"
        f"  %0 = tosa.scatter %x, %i, %v : ({', '.join(types)}) -> {types[0]}\n  return %0 : {types[0]}\n}}",
        default=default,
    )
    rng = np.random.default_rng(0)
    dtype = np.float32 if of == "f32" else np.int8
    x, v = (rng.integers(-99, 99, (2, rows, 3)).astype(dtype) for rows in (5, 4))
    i = np.array([[0, 1, 4, 2], [3, 0, 2, 1]], np.int32)
    wanted = x.copy()
    np.put_along_axis(wanted, np.broadcast_to(i[..., None], v.shape), v, 1)
    np.testing.assert_array_equal(made(x, i, v), wanted)


@pytest.mark.parametrize("default", ["cpu:0", "opencl:0"])
def test_product_with_a_transposed_side(default: str) -> None:
    made = devscope.compile(
        """
func.func @main(%a: tensor<2x?x6xi8>, %b: tensor<2x3x6xi8>) -> tensor<2x?x3xi32> {
  %p = "tosa.const"() <{values = dense<7> : tensor<1xi8>}> : () -> tensor<1xi8>
  %q = "tosa.const"() <{values = dense<-3> : tensor<1xi8>}> : () -> tensor<1xi8>
  %0 = tosa.matmul_t %a, %b, %p, %q
    : (tensor<2x?x6xi8>, tensor<2x3x6xi8>, tensor<1xi8>, tensor<1xi8>) -> tensor<2x?x3xi32>
  return %0 : tensor<2x?x3xi32>
}
""",
        default=default,
    )
    a, b = (np.random.default_rng(n).integers(-128, 128, (2, n, 6)).astype(np.int8) for n in (4, 3))
    wanted = (a.astype(np.int32) - 7) @ (b.astype(np.int32) + 3).transpose(0, 2, 1)
    np.testing.assert_array_equal(made(a, b), wanted)


def test_rules_see_what_the_program_has(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    type_ = "tensor<2x5x3xf32>"
    types = f"{type_}, tensor<2x4xi32>, tensor<2x4x3xf32>"
    model = tmp_path / "model.mlir"
    model.write_text(
        f"func.func @main(%x: {type_}, %i: tensor<2x4xi32>, %v: tensor<2x4x3xf32>) -> {type_} {{\n"
        f"  %0 = tosa.scatter %x, %i, %v : ({types}) -> {type_}\n  return %0 : {type_}\n}}"
    )
    assert main(["plan", str(model), "--json", "--place", "tosa.scatter=opencl:0"]) == 0
    placements = json.loads(capsys.readouterr().out)["placements"]
    assert "opencl:0" in {placement["scope"] for placement in placements}
