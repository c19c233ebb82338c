"""What a session parses, and the one error per module that it does not."""

from __future__ import annotations

import os

import pytest

from devscope.dialects.location import source_location
from devscope.errors import ParseError, SourceLocation
from devscope.lowering.interop.parsing import parse_file


def parse_error(session, text, filename="m.mlir") -> ParseError:
    with pytest.raises(ParseError) as caught:
        session.parse(text, filename)
    return caught.value


def test_a_syntax_error_has_a_position(session):
    error = parse_error(session, "func.func @f() {\n  retur\n}\n")
    assert error.location == SourceLocation("m.mlir", 2, 3)
    assert str(error) == "m.mlir:2:3: error: custom op 'retur' is unknown (tried 'func.retur' as well)"


@pytest.mark.parametrize("second", ["", "func.func private @g()"], ids=["one operation", "several"])
def test_the_verifier_s_error_has_position_and_note(session, second):
    error = parse_error(
        session, f"func.func @f(%x: f32) {{\n  %0 = arith.addi %x, %x : f32\n  return\n}}\n{second}"
    )
    assert error.location == SourceLocation("m.mlir", 2, 8)
    assert "operand #0 must be signless-non-zero-bitwidth-integer-like, but got 'f32'" in error.message
    (note,) = error.notes
    assert note.startswith('m.mlir:2:8: see current operation: %0 = "arith.addi"(%arg0, %arg0)')


def test_errors_do_not_print_whole_functions(session):
    body = "  %0 = arith.constant 1 : i32\n" * 1
    error = parse_error(session, f"func.func @f() -> f32 {{\n{body}}}\n")
    assert len(str(error)) < 500


def test_the_empty_text_is_an_empty_module(session):
    assert str(session.parse("")) == "module {\n}\n"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\xff\xfe", "neither MLIR bytecode nor UTF-8 text"),
        (b"ML\xefRnothing", "bytecode version"),
        (b"ML\xefR", "attempting to"),
    ],
)
def test_bad_bytes(session, data, message):
    assert message in parse_error(session, data).message


def test_text_may_be_bytes(session):
    assert str(session.parse(b"func.func private @f()")) == str(session.parse("func.func private @f()"))


def test_a_missing_file(session, tmp_path):
    with pytest.raises(ParseError, match=r"cannot read .*nowhere.mlir: No such file or directory"):
        parse_file(tmp_path / "nowhere.mlir", session.context)


def test_a_directory(session, tmp_path):
    with pytest.raises(ParseError, match=r"cannot read .*: Is a directory"):
        parse_file(tmp_path, session.context)


def test_a_bad_file(session, tmp_path):
    path = tmp_path / "m.mlir"
    path.write_text("\n  nonsense")
    with pytest.raises(ParseError) as caught:
        parse_file(path, session.context)
    assert caught.value.location == SourceLocation(str(path), 2, 3)


@pytest.mark.parametrize("path", ["bad\0path", "/no/such\udcff"])
def test_a_path_that_cannot_be(session, path):
    with pytest.raises(ParseError, match="cannot read"):
        parse_file(path, session.context)


def test_a_path_that_is_not_utf8(session, tmp_path):
    path = tmp_path / os.fsdecode(b"\xff.mlir")
    path.write_text("nonsense")
    with pytest.raises(ParseError) as caught:
        parse_file(path, session.context)
    assert caught.value.location == SourceLocation(str(tmp_path / "?.mlir"), 1, 1)


def test_text_that_is_not_unicode(session):
    error = parse_error(session, "// \udcff", "m\udcff.mlir")
    assert str(error) == "error: m?.mlir has characters that are not Unicode"


def test_a_file_name_in_the_text_that_is_not_utf8(session):
    imported = session.to_xdsl(session.parse(r'"a.b"() : () -> () loc("a\FF":1:2)'))
    assert source_location(imported.body.block.first_op) == SourceLocation("a\N{REPLACEMENT CHARACTER}", 1, 2)


def test_a_name_that_is_not_utf8(session):
    module = session.parse(r'"a.b"() {"\FF" = 1 : i8} : () -> ()', "m.mlir")
    with pytest.raises(ParseError, match=r"m.mlir:1:1: error: an attribute of 'a.b' cannot be read"):
        session.to_xdsl(module)


def test_device_operations_are_verified(session):
    scope = '#device.scope<"cpu", 0 : i64, "", "">'
    text = f'func.func @f(%x: f32) {{\n  "device.device_copy"(%x) {{src = {scope}}} : (f32) -> f32\n  return\n}}'
    error = parse_error(session, text)
    assert error.location == SourceLocation("m.mlir", 2, 3)
    assert "dst" in error.message


def test_a_device_region_ends_in_a_yield(session):
    scope = '#device.scope<"cpu", 0 : i64, "", "">'
    text = f'"device.region"() ({{\n  "device.yield"() : () -> ()\n}}) {{scope = {scope}}} : () -> ()'
    session.parse(text)
    error = parse_error(session, text.replace('"device.yield"() : () -> ()', "%0 = arith.constant 1 : i8"))
    assert "terminator" in error.message


@pytest.mark.parametrize("around", ["{}", "module {{ module {{ {} }} }}"], ids=["at the top", "in a module"])
def test_empty_lists_of_attributes_of_results(session, around):
    """MLIR takes them, and crashes where it prints them."""
    function = """"func.func"() <{sym_name = "f", sym_visibility = "private", function_type = (f32) -> f32,
        res_attrs = []}> ({}) : () -> ()"""
    other = '"other.func"() {res_attrs = 1 : i32} : () -> ()'
    assert "@f(f32) -> f32" in str(session.parse(around.format(function + other)))
