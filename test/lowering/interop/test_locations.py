"""Locations: the user's file names, lazily decoded, kept through the bridge and made in xDSL."""

from __future__ import annotations

import io

import pytest
from xdsl.dialects.builtin import (
    UNKNOWN_LOC,
    CallSiteLoc,
    FileLineColLoc,
    FusedLoc,
    IntAttr,
    NameLoc,
    NoneAttr,
    StringAttr,
)
from xdsl.printer import Printer

from devscope.dialects.location import source_location, value_location
from devscope.errors import SourceLocation
from devscope.lowering.interop.diagnostics import file_line_col
from devscope.lowering.interop.parsing import parse_file
from devscope.lowering.interop.payload import PayloadLocation

ONE_FUNCTION = "func.func @f(%x: f32) {\n  return\n}\n"


def functions(session, text, filename):
    module = session.parse(text, filename)
    return module, list(session.to_xdsl(module).body.block.ops)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (ONE_FUNCTION, [1]),
        (f"module {{\n{ONE_FUNCTION}}}", [2]),
        (ONE_FUNCTION + ONE_FUNCTION.replace("@f", "@g"), [1, 4]),
        ("#m = affine_map<() -> ()>\n" + ONE_FUNCTION, [2]),
    ],
    ids=["one operation", "a module", "several operations", "an alias"],
)
def test_text_has_the_file_name_given(session, text, lines):
    _, ops = functions(session, text, "dir/model.mlir")
    assert [source_location(op) for op in ops] == [SourceLocation("dir/model.mlir", line, 1) for line in lines]
    (argument,) = ops[0].regions[0].block.args
    assert value_location(argument) == SourceLocation("dir/model.mlir", lines[0], 14)


def test_an_implicit_module_is_where_mlir_puts_it(session, tmp_path, generic_text):
    path = tmp_path / "m.mlir"
    for text in (ONE_FUNCTION, ONE_FUNCTION + ONE_FUNCTION.replace("@f", "@g"), f"module @n {{\n{ONE_FUNCTION}}}"):
        path.write_text(text)
        assert generic_text(session.parse(text, str(path))) == generic_text(parse_file(path, session.context))


def test_a_file_is_named_as_the_caller_wrote_it(session, tmp_path, monkeypatch):
    (tmp_path / "m.mlir").write_text(ONE_FUNCTION)
    monkeypatch.chdir(tmp_path)
    (op,) = session.to_xdsl(parse_file("./m.mlir", session.context)).body.block.ops
    assert source_location(op) == SourceLocation("./m.mlir", 1, 1)


def test_locations_in_the_text_keep_their_files(session, generic_text):
    written = [
        'loc(callsite("n"("a.py":1:2) at fused<"meta">["b.py":3:4 to 5:6]))',
        'loc(fused<"meta">["-":1:2, "c.py":3:4, "-":7:8 to 9:10])',
    ]
    text = "\n".join(f'"a.b"() : () -> () {location}' for location in written)
    printed = generic_text(session.parse(f'{text}\n"c.d"() : () -> ()', "m.mlir"))
    for location in [*written, 'loc("m.mlir":3:1)']:
        assert location.replace('"-"', '"m.mlir"') in printed


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ('loc("f":1:2)', ("f", 1, 2)),
        ('loc("f":1:2 to 3:4)', ("f", 1, 2)),
        ('loc("name"("f":1:2))', ("f", 1, 2)),
        ('loc(callsite("f":1:2 at "g":3:4))', ("f", 1, 2)),
        ('loc(callsite(unknown at "g":3:4))', ("g", 3, 4)),
        ('loc(fused["x", "f":1:2, "g":3:4])', ("f", 1, 2)),
        ('loc("name")', None),
        ("loc(unknown)", None),
    ],
)
def test_the_first_position_of_a_location(session, text, position):
    module = session.parse(f'"a.b"() : () -> () {text}')
    (mlir_op,) = module.body.operations
    assert file_line_col(mlir_op.location) == position
    (op,) = session.to_xdsl(module).body.block.ops
    assert source_location(op) == (position and SourceLocation(*position))
    assert (op.location is UNKNOWN_LOC) == (text == "loc(unknown)")


def test_xdsl_prints_imported_locations(session):
    module = session.parse('"a.b"() : () -> () loc(fused<"m">["x", "f":1:2])')
    stream = io.StringIO()
    Printer(stream=stream, print_debuginfo=True, print_generic_format=True).print_op(session.to_xdsl(module))
    assert '"a.b"() : () -> () loc(fused<"m">["x", "f":1:2])' in stream.getvalue()


def file_location(line: int) -> FileLineColLoc:
    return FileLineColLoc(StringAttr("x.py"), IntAttr(line), IntAttr(9))


@pytest.mark.parametrize(
    ("location", "text"),
    [
        (UNKNOWN_LOC, "loc(unknown)"),
        (file_location(1), 'loc("x.py":1:9)'),
        (NameLoc(StringAttr("n"), file_location(2)), 'loc("n"("x.py":2:9))'),
        (NameLoc(StringAttr("n"), NoneAttr()), 'loc("n")'),
        (CallSiteLoc(file_location(1), file_location(2)), 'loc(callsite("x.py":1:9 at "x.py":2:9))'),
        (
            FusedLoc([file_location(1), file_location(2)], StringAttr("m")),
            'loc(fused<"m">["x.py":1:9, "x.py":2:9])',
        ),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
)
def test_locations_made_in_xdsl_are_exported(session, generic_text, location, text):
    imported = session.to_xdsl(session.parse('"a.b"() : () -> ()'))
    (op,) = imported.body.block.ops
    op.location = location
    assert f'"a.b"() : () -> () {text}' in generic_text(session.to_mlir(imported))


def test_a_clone_shares_its_location(session):
    (op,) = session.to_xdsl(session.parse('"a.b"() : () -> ()', "m.mlir")).body.block.ops
    assert isinstance(op.location, PayloadLocation)
    assert op.clone().location is op.location
