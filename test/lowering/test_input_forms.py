"""What is rewritten before planning, and what is left to the error of whoever meets it."""

from __future__ import annotations

from devscope.lowering.entries import declared_dtypes, entry_names
from devscope.lowering.input_forms import bring_into_form, is_in_form
from devscope.lowering.interop.session import Session
from devscope.passes.device_plan.report.source_names import SourceNames

GLOBALS = """
ml_program.global private @read(dense<1.0> : tensor<4xf32>) : tensor<4xf32>
ml_program.global private @ordered(dense<2.0> : tensor<4xf32>) : tensor<4xf32>
ml_program.global private @unread(dense<3.0> : tensor<4xf32>) : tensor<4xf32>
func.func @main() -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = ml_program.global_load_const @read : tensor<4xf32>
  %1, %token = ml_program.global_load_graph @ordered ordering (() -> !ml_program.token) : tensor<4xf32>
  "unknown.operation"() {global = 1 : i32} : () -> ()
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}
"""
AFFINE = """
#d = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%x: f32) -> f32 {
  %0 = affine.for %i = 0 to 0 iter_args(%v = %x) -> f32 { affine.yield %x : f32 }
  %1 = affine.for %i = 0 to 7 iter_args(%v = %0) -> f32 {
    %2 = arith.addf %v, %x : f32
    affine.yield %2 : f32
  } {device.scope = #d} loc("here")
  return %1 : f32
}
"""


def in_form(source: str) -> str:
    session = Session()
    module = session.parse(source)
    with session.context:
        bring_into_form(module, session.run_passes)
    assert module.operation.verify()
    return module.operation.get_asm(enable_debug_info=True, use_local_scope=True)


ENDS = """
func.func @main(%x: tensor<2xui8>, %flag: i1) -> (tensor<2xf32>, tensor<2xui8>, tensor<2xf32>) {
  cf.cond_br %flag, ^one, ^two
^one:
  %unused = stablehlo.add %x, %x : tensor<2xui8>
  cf.br ^two
^two:
  %a:2 = "unknown.first"(%x) ({
    "unknown.end"() : () -> ()
  }) : (tensor<2xui8>) -> (tensor<2xf32>, tensor<2xf32>)
  %b = "unknown.second"(%a#1) : (tensor<2xf32>) -> tensor<2xf32>
  return %b, %x, %a#1 : tensor<2xf32>, tensor<2xui8>, tensor<2xf32>
}
func.func private @other(tensor<2xf32>) -> tensor<2xf32>
"""


def test_ends_of_functions_are_enough_to_know_entries() -> None:
    session = Session()
    module = session.parse(ENDS)
    assert not is_in_form(module)
    ends, whole = session.ends_to_xdsl(module), session.to_xdsl(module)
    assert "stablehlo" not in str(ends)
    assert declared_dtypes(ends) == declared_dtypes(whole)
    name_of = SourceNames({"<input>": ENDS}).name
    expected = {"main": (["x", "flag"], ["b", "x", "result2"])}
    assert entry_names(ends, name_of) == entry_names(whole, name_of) == expected


def test_globals_that_are_read_as_values_are_inlined() -> None:
    text = in_form(GLOBALS)
    assert "arith.constant dense<1.0" in text
    assert "@ordered(dense<2.0" in text
    assert "@read" not in text
    assert "@unread" not in text


def test_scopes_of_affine_loops_stay_with_them() -> None:
    text = in_form(AFFINE)
    assert text.count("scf.for") == 1
    assert '} {device.scope = #device.scope<"opencl", 0 : i64, "", "">} loc("here"' in text
    assert "devscope." not in text
