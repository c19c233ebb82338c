"""Exports: order of definitions, what MLIR refuses, and sessions that do not mix."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import UNKNOWN_LOC, IntAttr, StringAttr, UnregisteredOp, f32, i32
from xdsl.utils.test_value import create_ssa_value

from devscope.errors import LoweringError, SourceLocation
from devscope.lowering.interop.session import Session

FUNCTION = "func.func @f(%x: f32) -> f32 {\n  %0 = arith.negf %x : f32\n  return %0 : f32\n}"


def make(operands=(), result_types=()):
    return UnregisteredOp.with_name("test.op").create(operands=operands, result_types=result_types)


def body(imported):
    return next(iter(imported.body.block.ops)).regions[0].block


def export_error(session, imported) -> LoweringError:
    with pytest.raises(LoweringError) as caught:
        session.to_mlir(imported)
    return caught.value


def test_a_module_that_mlir_refuses(session):
    imported = session.to_xdsl(session.parse(FUNCTION, "m.mlir"))
    negf = body(imported).first_op
    refused = type(negf).create(operands=negf.operands, result_types=[i32], location=negf.location)
    negf.parent.insert_op_before(refused, negf)
    error = export_error(session, imported)
    assert error.location == SourceLocation("m.mlir", 2, 8)
    assert "'arith.negf' op" in error.message


def test_an_attribute_of_the_wrong_kind(session):
    imported = session.to_xdsl(session.parse(FUNCTION, "m.mlir"))
    body(imported).first_op.properties["fastmath"] = StringAttr("warp")
    error = export_error(session, imported)
    assert str(error) == "m.mlir:2:8: error: 'arith.negf' cannot have fastmath = \"warp\""


def test_verification_can_be_left_out(session):
    imported = session.to_xdsl(session.parse(FUNCTION))
    body(imported).last_op.detach()
    assert "negf" in str(session.to_mlir(imported, verify=False))
    assert "terminator" in export_error(session, imported).message


def test_an_attribute_that_mlir_has_not(session):
    imported = session.to_xdsl(session.parse(FUNCTION, "m.mlir"))
    body(imported).first_op.attributes["test.count"] = IntAttr(3)
    error = export_error(session, imported)
    assert error.location == SourceLocation("m.mlir", 2, 8)
    assert error.message.startswith("MLIR does not accept #builtin.int")


def test_an_operation_that_the_device_dialect_has_not(session):
    imported = session.to_xdsl(session.parse(FUNCTION, "m.mlir"))
    negf = body(imported).first_op
    unknown = UnregisteredOp.with_name("device.teleport").create(location=negf.location)
    negf.parent.insert_op_before(unknown, negf)
    error = export_error(session, imported)
    assert error.location == SourceLocation("m.mlir", 2, 8)


def test_an_operand_from_elsewhere(session):
    imported = session.to_xdsl(session.parse(FUNCTION, "m.mlir"))
    negf = body(imported).first_op
    negf.operands[0] = create_ssa_value(f32)
    error = export_error(session, imported)
    assert str(error) == "m.mlir:2:8: error: an operand is defined outside of the module"


def test_uses_before_definitions(session):
    imported = session.to_xdsl(session.parse('"test.op"() ({\n}) : () -> ()'))
    first = make(result_types=[i32])
    second = make(operands=[first.results[0]], result_types=[f32])
    imported.body.block.add_ops([second, first])
    second.operands = [first.results[0], second.results[0]]
    text = str(session.to_mlir(imported))
    assert '%0 = "test.op"(%1, %0) : (i32, f32) -> f32' in text
    assert "unrealized_conversion_cast" not in text


@pytest.mark.parametrize("empty", [True, False], ids=["a location", "nothing but the module's location"])
def test_modules_of_another_session_are_refused(session, empty):
    other = Session()
    imported = other.to_xdsl(other.parse("module {\n}" if empty else FUNCTION))
    assert export_error(session, imported).message == "the module was imported by another session"
    with pytest.raises(LoweringError, match="another session"):
        session.to_xdsl(other.parse(FUNCTION))
    with pytest.raises(LoweringError, match="another session"):
        session.run_passes(other.parse(FUNCTION), "builtin.module(cse)")


def test_an_export_can_be_repeated(session, generic_text):
    imported = session.to_xdsl(session.parse(FUNCTION))
    assert generic_text(session.to_mlir(imported)) == generic_text(session.to_mlir(imported))


def elementwise(inputs: str, count: int, lines: str, result: str) -> str:
    types = ", ".join(["tensor<4xf32>"] * count)
    arguments = ", ".join(f"%a{number}: f32" for number in range(count + 1))
    maps = ", ".join(["affine_map<(d0) -> (d0)>"] * (count + 1))
    return f"""
  linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel"]}}
    ins({inputs} : {types}) outs(%y : tensor<4xf32>) {{
  ^bb0({arguments}):
{lines}
    linalg.yield %{result} : f32
  }} -> tensor<4xf32>"""


MATMUL = (
    "  linalg.matmul ins({0}, %m : tensor<2x2xf32>, tensor<2x2xf32>) outs(%m : tensor<2x2xf32>) -> tensor<2x2xf32>"
)
SIMILAR = [
    MATMUL.format("%m"),
    MATMUL.format("%n"),
    elementwise("%x, %y", 2, "    %s = arith.subf %a0, %a1 : f32", "s"),
    elementwise("%y, %x", 2, "    %s = arith.subf %a0, %a1 : f32", "s"),
    elementwise("%x, %y", 2, "    %s = arith.subf %a1, %a0 : f32", "s"),
    elementwise("%x, %y", 2, "    %s = arith.subf %a0, %a1 fastmath<nnan> : f32", "s"),
    elementwise("%x, %y", 2, "    %s = arith.addf %a0, %a1 : f32", "s"),
    elementwise("%x, %y", 2, "    %s = arith.subf %a0, %k : f32", "s"),
    elementwise("%x, %y", 2, "    %s = arith.subf %a0, %l : f32", "s"),
    elementwise("%x, %y", 2, "    %s = arith.subf %a0, %a1 : f32\n    %t = arith.subf %s, %s : f32", "s"),
    elementwise("%x, %y", 2, "    %s = arith.subf %a0, %a1 : f32\n    %t = arith.subf %s, %s : f32", "t"),
    elementwise("%x", 1, "    %s = arith.subf %a0, %a1 : f32", "s"),
    elementwise("%x, %y", 2, "    %s = arith.subf %a0, %a1 : f32", "s"),
]


@pytest.mark.parametrize("with_places", [True, False])
def test_regions_are_those_of_their_operations_where_others_are_alike(session, generic_text, with_places):
    """Regions without places in the source are copied from one operation to others that are the same."""
    arguments = "%x: tensor<4xf32>, %y: tensor<4xf32>, %k: f32, %l: f32, %m: tensor<2x2xf32>, %n: tensor<2x2xf32>"
    module = session.parse("\n".join([f"func.func @f({arguments}) {{", *SIMILAR, "  return\n}"]))
    imported = session.to_xdsl(module)
    if not with_places:
        for op in imported.walk():
            op.location = UNKNOWN_LOC
            for argument in (
                argument for region in op.regions for block in region.blocks for argument in block.args
            ):
                argument.location = UNKNOWN_LOC
    found = session.to_mlir(imported)
    assert str(found) == str(module)
    if with_places:
        assert generic_text(found) == generic_text(module)
