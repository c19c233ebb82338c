"""`device.region` and `device.launch` with results of several types: in text, in MLIR, in bytecode, and run."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from torch_mlir import ir

import devscope
from devscope.cli.printing import module_text
from devscope.errors import DevscopeError, VerifyError
from devscope.lowering.interop.session import Session

SCOPE = '#device.scope<"opencl", 0 : i64, "", "">'
TYPES = "tensor<?xf32>, tensor<8xi32>, tensor<2x2xf64>, f32"
REGION = f"""
func.func @main(%x: tensor<?xf32>, %n: tensor<8xi32>, %k: f32) -> ({TYPES}) {{
  %c = arith.constant dense<2.0> : tensor<2x2xf64>
  %r:4 = "device.region"() ({{
    %0 = math.tanh %x : tensor<?xf32>
    %1 = arith.addi %n, %n : tensor<8xi32>
    %2, %3 = "device.region"() ({{
      %4 = arith.mulf %c, %c : tensor<2x2xf64>
      %5 = arith.addf %k, %k : f32
      "device.yield"(%4, %5) : (tensor<2x2xf64>, f32) -> ()
    }}) {{scope = {SCOPE}}} : () -> (tensor<2x2xf64>, f32)
    "device.yield"(%0, %1, %2, %3) : ({TYPES}) -> ()
  }}) {{scope = {SCOPE}}} : () -> ({TYPES})
  return %r#0, %r#1, %r#2, %r#3 : {TYPES}
}}
"""
SIZES = ", ".join(["index"] * 6)
LAUNCH = f"""
func.func private @three(%x: memref<?xf32>, %a: memref<?xf32>, %b: memref<?xi32>, %c: memref<?xf64>)
    attributes {{device.kernel}} {{
  %i = gpu.block_id x
  %v = memref.load %x[%i] : memref<?xf32>
  %n = arith.fptosi %v : f32 to i32
  %w = arith.extf %v : f32 to f64
  memref.store %v, %a[%i] : memref<?xf32>
  memref.store %n, %b[%i] : memref<?xi32>
  memref.store %w, %c[%i] : memref<?xf64>
  return
}}
func.func @main(%x: tensor<?xf32>, %a: tensor<?xf32>, %b: tensor<?xi32>, %c: tensor<?xf64>)
    -> (tensor<?xf32>, tensor<?xi32>, tensor<?xf64>) {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = tensor.dim %x, %zero : tensor<?xf32>
  %r:3 = "device.launch"(%n, %one, %one, %one, %one, %one) ({{
    "device.in"(%x) : (tensor<?xf32>) -> ()
    "device.out"(%a) : (tensor<?xf32>) -> ()
    "device.out"(%b) : (tensor<?xi32>) -> ()
    "device.out"(%c) : (tensor<?xf64>) -> ()
  }}) {{kernel = @three, device.scope = {SCOPE}}} : ({SIZES}) -> (tensor<?xf32>, tensor<?xi32>, tensor<?xf64>)
  return %r#0, %r#1, %r#2 : tensor<?xf32>, tensor<?xi32>, tensor<?xf64>
}}
"""
SYMBOLS = f"""
memref.global "private" constant @table : memref<2xf32> = dense<[1.0, 3.0]>
ml_program.global private @state(dense<3.0> : tensor<4xf32>) : tensor<4xf32>
func.func private @twice(%x: tensor<4xf32>) -> tensor<4xf32> {{
  %0 = arith.addf %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}}
func.func private @negated(%x: f32) -> f32 {{
  %0 = arith.negf %x : f32
  return %0 : f32
}}
func.func @main(%x: tensor<4xf32>, %p: i1, %n: index) -> (tensor<4xf32>, tensor<4xf32>, f32) {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r:3 = "device.region"() ({{
    %f = func.constant @twice : (tensor<4xf32>) -> tensor<4xf32>
    %0 = func.call_indirect %f(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %1 = ml_program.global_load_const @state : tensor<4xf32>
    %2, %3 = "device.region"() ({{
      %4 = scf.if %p -> tensor<4xf32> {{
        %5 = scf.for %i = %zero to %n step %one iter_args(%6 = %0) -> tensor<4xf32> {{
          %7 = func.call @twice(%6) : (tensor<4xf32>) -> tensor<4xf32>
          scf.yield %7 : tensor<4xf32>
        }}
        scf.yield %5 : tensor<4xf32>
      }} else {{
        scf.yield %0 : tensor<4xf32>
      }}
      %8, %9 = "device.region"() ({{
        %10 = memref.get_global @table : memref<2xf32>
        %11 = memref.load %10[%one] : memref<2xf32>
        %12 = func.call @negated(%11) : (f32) -> f32
        "device.yield"(%12, %n) : (f32, index) -> ()
      }}) {{scope = {SCOPE.replace("opencl", "cpu")}}} : () -> (f32, index)
      "device.yield"(%4, %8) : (tensor<4xf32>, f32) -> ()
    }}) {{scope = {SCOPE}}} : () -> (tensor<4xf32>, f32)
    "device.yield"(%2, %1, %3) : (tensor<4xf32>, tensor<4xf32>, f32) -> ()
  }}) {{scope = {SCOPE}}} : () -> (tensor<4xf32>, tensor<4xf32>, f32)
  return %r#0, %r#1, %r#2 : tensor<4xf32>, tensor<4xf32>, f32
}}
"""


def unregistered(text: str) -> Any:
    """A module of the bindings, in a context that does not know the dialect."""
    context = ir.Context()
    context.allow_unregistered_dialects = True
    return ir.Module.parse(text, context)


def bytecode_of(module: Any) -> bytes:
    stream = io.BytesIO()
    module.operation.write_bytecode(stream)
    return stream.getvalue()


@pytest.mark.parametrize("physical", ["cpu:0", "opencl:0"])
@pytest.mark.parametrize("source", [REGION, bytecode_of(unregistered(REGION)), unregistered(REGION)])
def test_a_region_runs(source: Any, physical: str) -> None:
    devices = {"opencl:0": physical} if physical == "cpu:0" else None
    x, n = np.linspace(-1, 1, 5, dtype=np.float32), np.arange(8, dtype=np.int32)
    tensor, integers, constant, scalar = devscope.compile(source, devices=devices)(x, n, 1.5)
    np.testing.assert_allclose(tensor, np.tanh(x), rtol=1e-6)
    np.testing.assert_array_equal(integers, 2 * n)
    np.testing.assert_array_equal(constant, np.full((2, 2), 4.0))
    assert scalar == 3


def test_a_launch_runs() -> None:
    x = np.array([1.5, -2.5, 3], np.float32)
    empty = [np.zeros(3, dtype) for dtype in (np.float32, np.int32, np.float64)]
    for got, dtype in zip(devscope.compile(LAUNCH)(x, *empty), (np.float32, np.int32, np.float64), strict=True):
        np.testing.assert_array_equal(got, x.astype(dtype))


def test_symbols_are_found_in_regions() -> None:
    session = Session()
    module = session.parse(SYMBOLS)
    session.run_passes(module, "builtin.module(symbol-dce, inline)")
    assert all(name in str(module) for name in ("memref.global", "ml_program.global", "@table", "@state"))
    x = np.array([1, -2, 3, 0.5], np.float32)
    compiled = devscope.compile(bytecode_of(session.parse(SYMBOLS)))
    for n in (0, 2):
        tensor, state, scalar = compiled(x, n > 0, n)
        np.testing.assert_array_equal(tensor, x * 2 ** (n + 1))
        np.testing.assert_array_equal(state, np.full(4, 3.0))
        assert scalar == -3


def test_a_symbol_that_is_missing_is_named() -> None:
    with pytest.raises(DevscopeError, match="'nowhere' does not reference a valid function"):
        Session().parse(SYMBOLS.replace("call @twice", "call @nowhere"))


def test_errors_have_the_names_that_were_written() -> None:
    session = Session()
    module = session.parse(f"""
        func.func @main(%x: tensor<4xf32>, %k: f32) -> (tensor<4xf32>, f32) {{
          %0, %1 = "device.region"() ({{
            "device.yield"(%x, %k) : (tensor<4xf32>, f32) -> ()
          }}) {{scope = {SCOPE}}} : () -> (tensor<4xf32>, f32)
          return %0, %1 : tensor<4xf32>, f32
        }}
    """)
    with pytest.raises(DevscopeError) as error:
        session.run_passes(module, "builtin.module(one-shot-bufferize)")
    assert "not bufferized" in str(error.value)
    assert '"device.' in str(error.value)
    assert "rocdl" not in str(error.value)


@pytest.mark.parametrize("text", [REGION, LAUNCH, SYMBOLS])
def test_text_and_bytecode_round_trip(text: str) -> None:
    session = Session()
    module = session.parse(text, "m.mlir")
    printed = module_text(module)
    assert "rocdl" not in printed
    assert '"device.region"() ({' in printed or '"device.launch"(' in printed
    assert module_text(session.parse(printed)) == printed
    assert module_text(session.parse(bytecode_of(module))) == printed
    imported = session.to_xdsl(module)
    names = {op.name for op in imported.walk() if op.name.startswith("device.")}
    assert names in ({"device.region", "device.yield"}, {"device.launch", "device.in", "device.out"})
    imported.verify()
    assert module_text(session.to_mlir(imported)) == printed


def test_positions_stay() -> None:
    text = REGION.replace("math.tanh %x : tensor<?xf32>\n", 'math.tanh %x : tensor<?xf32> "x"\n')
    with pytest.raises(DevscopeError) as error:
        Session().parse(text, "m.mlir")
    assert str(error.value).startswith("m.mlir:5:42: error:")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            '"device.yield"(%4, %5) : (tensor<2x2xf64>, f32)',
            '"device.yield"(%5, %4) : (f32, tensor<2x2xf64>)',
            "yields",
        ),
        (
            "%5 = arith.addf %k, %k : f32",
            "%5 = arith.addf %6, %k : f32\n%6 = arith.addf %k, %k : f32",
            "made behind",
        ),
        ('"device.yield"(%4, %5) : (tensor<2x2xf64>, f32) -> ()', '"foo.end"() : () -> ()', "terminates with"),
    ],
)
def test_what_is_wrong_in_a_region_is_refused(old: str, new: str, message: str) -> None:
    assert old in REGION
    with pytest.raises(VerifyError, match=message):
        devscope.compile(REGION.replace(old, new))
