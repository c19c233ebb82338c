"""Properties that the bindings do not show, on operations that xDSL makes or that nobody knows."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import IntegerAttr, StringAttr, UnregisteredOp

from devscope.errors import LoweringError, ParseError, SourceLocation

GEP = """llvm.func @f(%p: !llvm.ptr, %i: i64) {
  %0 = llvm.getelementptr inbounds|nuw %p[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
  %1 = llvm.add %i, %i overflow<nsw> : i64
  llvm.return
}"""


def function_body(imported):
    return next(iter(imported.body.block.ops)).regions[0].block


def test_hidden_properties_can_be_changed(session):
    imported = session.to_xdsl(session.parse(GEP))
    gep, add, _ = function_body(imported).ops
    for op, name, value in ((gep, "noWrapFlags", 3), (add, "overflowFlags", 2)):
        holder = op.properties if name in op.properties else op.attributes
        holder[name] = IntegerAttr(value, 32)
    text = str(session.to_mlir(imported))
    assert "llvm.getelementptr inbounds %" in text
    assert "llvm.add %arg1, %arg1 overflow<nuw>" in text


def test_hidden_properties_can_be_left_out(session):
    imported = session.to_xdsl(session.parse(GEP))
    gep, add, _ = function_body(imported).ops
    for op, name in ((gep, "noWrapFlags"), (add, "overflowFlags")):
        op.properties.pop(name, None)
        op.attributes.pop(name, None)
    text = str(session.to_mlir(imported))
    assert "llvm.getelementptr %" in text
    assert "llvm.add %arg1, %arg1 :" in text


def test_a_hidden_property_of_the_wrong_kind(session):
    imported = session.to_xdsl(session.parse(GEP, "m.mlir"))
    _, add, _ = function_body(imported).ops
    (add.properties if "overflowFlags" in add.properties else add.attributes)["overflowFlags"] = StringAttr("much")
    with pytest.raises(LoweringError) as caught:
        session.to_mlir(imported)
    assert caught.value.location == SourceLocation("m.mlir", 3, 8)


def test_properties_of_an_unknown_operation_made_in_xdsl(session):
    imported = session.to_xdsl(session.parse(""))
    op = UnregisteredOp.with_name('odd."name"').create(properties={"p": IntegerAttr(1, 8)})
    imported.body.block.add_op(op)
    assert r'"odd.\22name\22"() <{p = 1 : i8}> : () -> ()' in str(session.to_mlir(imported))


def test_large_elements_in_properties_of_an_unknown_operation(session):
    values = ", ".join(map(str, range(100)))
    small, large = (f"dense<[{values}]> : tensor<100x{type}>" for type in ("i8", "i64"))
    module = session.parse(f'"foo.bar"() <{{p = {small}}}> {{a = {large}}} : () -> ()')
    assert str(session.to_mlir(session.to_xdsl(module))) == str(module)


def test_a_resource_in_a_property_of_an_unknown_operation_is_refused(session):
    module = session.parse('"foo.bar"() <{p = dense_resource<blob> : tensor<4xi32>}> : () -> ()', "m.mlir")
    with pytest.raises(ParseError) as caught:
        session.to_xdsl(module)
    assert str(caught.value).startswith("m.mlir:1:1: error: a property of 'foo.bar' holds a dense resource")


def test_successors_and_properties_of_an_unknown_operation_are_refused(session):
    jump = '"foo.jump"()[^next] <{p = 1 : i8}> : () -> ()'
    text = f'"foo.func"() ({{\n  {jump}\n^next:\n  "foo.end"() : () -> ()\n}}) : () -> ()'
    imported = session.to_xdsl(session.parse(text, "m.mlir"))
    with pytest.raises(LoweringError) as caught:
        session.to_mlir(imported)
    assert caught.value.location == SourceLocation("m.mlir", 2, 3)
    assert "'foo.jump' has successors and properties" in caught.value.message
