"""Passes of both sides over the same program."""

from __future__ import annotations

import struct

import pytest
from xdsl.transforms.canonicalize import CanonicalizePass
from xdsl.transforms.common_subexpression_elimination import CommonSubexpressionElimination
from xdsl.transforms.dead_code_elimination import DeadCodeElimination

from devscope.dialects.names import op_name
from devscope.errors import LoweringError, OptionError, SourceLocation

PROGRAM = """
#id = affine_map<(d0, d1) -> (d0, d1)>
func.func @main(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>, %n: index) -> tensor<4x8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %same = arith.constant 0.0 : f32
  %large = arith.constant dense<"0xHEX"> : tensor<4x8xf32>
  %e = tensor.empty() : tensor<4x8xf32>
  %f = linalg.fill ins(%same : f32) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  %unused = math.exp %x : tensor<4x8xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %x) -> (tensor<4x8xf32>) {
    %m = linalg.matmul ins(%acc, %w : tensor<4x8xf32>, tensor<8x8xf32>) outs(%f : tensor<4x8xf32>)
        -> tensor<4x8xf32>
    %a = arith.addf %m, %large : tensor<4x8xf32>
    %b = arith.addf %m, %large : tensor<4x8xf32>
    %g = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%a, %b : tensor<4x8xf32>, tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
    ^bb0(%p: f32, %q: f32, %o: f32):
      %s = arith.mulf %p, %q : f32
      %t = arith.addf %s, %zero : f32
      linalg.yield %t : f32
    } -> tensor<4x8xf32>
    scf.yield %g : tensor<4x8xf32>
  }
  return %r : tensor<4x8xf32>
}
""".replace("HEX", struct.pack("<32f", *range(32)).hex())


def names(module):
    return [op_name(op) for op in module.walk()]


@pytest.mark.parametrize("pass_type", [CanonicalizePass, CommonSubexpressionElimination, DeadCodeElimination])
def test_xdsl_passes_run_and_what_they_leave_verifies(session, pass_type):
    imported = session.to_xdsl(session.parse(PROGRAM))
    pass_type().apply(session.xdsl_context, imported)
    imported.verify()
    session.to_mlir(imported)


def test_xdsl_passes_see_through_the_bridge(session):
    imported = session.to_xdsl(session.parse(PROGRAM))
    CommonSubexpressionElimination().apply(session.xdsl_context, imported)
    DeadCodeElimination().apply(session.xdsl_context, imported)
    left = names(imported)
    assert "math.exp" not in left, "dead"
    assert left.count("arith.addf") == 3, "matmul's, generic's, and one of two equal ones"
    text = str(session.to_mlir(imported))
    assert text.count("arith.constant 0.000000e+00") == 1
    assert "3.000000e+01, 3.100000e+01]" in text, "the large constant"


def test_operations_that_xdsl_does_not_know_stay_where_they_are(session, generic_text):
    """xDSL's canonicalisation moves what looks like a constant out of loops."""
    text = """func.func @f(%a: tensor<4x4xf32>, %x: tensor<4xf32>, %n: index) -> tensor<4xf32> {
      %r = scf.for %i = %n to %n step %n iter_args(%v = %x) -> (tensor<4xf32>) {
        %0 = linalg.matvec ins(%a, %v : tensor<4x4xf32>, tensor<4xf32>) outs(%x : tensor<4xf32>) -> tensor<4xf32>
        "foo.effect"() : () -> ()
        %unused = "foo.other"() : () -> i8
        scf.yield %0 : tensor<4xf32>
      }
      return %r : tensor<4xf32>
    }"""
    module = session.parse(text)
    imported = session.to_xdsl(module)
    for pass_type in (CanonicalizePass, CommonSubexpressionElimination, DeadCodeElimination):
        pass_type().apply(session.xdsl_context, imported)
        assert generic_text(session.to_mlir(imported)) == generic_text(module)


def test_new_operations_are_exported(session):
    imported = session.to_xdsl(
        session.parse("func.func @f() -> i32 {\n%0 = arith.constant 20 : i32\nreturn %0 : i32\n}")
    )
    (constant, _) = imported.body.block.first_op.body.block.ops
    twice = type(constant).from_int_and_width(22, 32)
    constant.parent.insert_op_before(twice, constant)
    constant.results[0].replace_all_uses_with(twice.results[0])
    assert "arith.constant 22 : i32" in str(session.to_mlir(imported))


def test_mlir_passes(session):
    module = session.parse(PROGRAM)
    session.run_passes(module, "builtin.module(canonicalize,cse)")
    assert "math.exp" not in str(module)
    session.to_xdsl(module).verify()


@pytest.mark.parametrize(
    ("pipeline", "cause"),
    [
        ("builtin.module(no-such-pass)", "'no-such-pass' does not refer to a registered pass or pass pipeline"),
        ("builtin.module(canonicalize{zeal=1})", "no such option zeal"),
        ("canonicalize(", "expected pass pipeline to be wrapped"),
    ],
)
def test_a_bad_pipeline_is_an_option_error(session, pipeline, cause):
    with pytest.raises(OptionError) as caught:
        session.run_passes(session.parse(""), pipeline)
    assert caught.value.message.startswith(f"invalid pass pipeline '{pipeline}': ")
    assert cause in caught.value.message


def test_a_failing_pass_says_where(session):
    text = 'func.func @f() {\n  %0 = "foo.bar"() : () -> tensor<4xf32>\n  return\n}'
    with pytest.raises(LoweringError) as caught:
        session.run_passes(session.parse(text, "m.mlir"), "builtin.module(one-shot-bufferize)")
    assert caught.value.location == SourceLocation("m.mlir", 2, 8)
    assert caught.value.message == "op was not bufferized"


def test_a_pass_on_the_wrong_operation(session):
    with pytest.raises(LoweringError, match=r"can't run 'func.func' pass manager on 'builtin.module' op"):
        session.run_passes(session.parse(""), "func.func(canonicalize)")
