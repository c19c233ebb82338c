"""MLIR -> xDSL -> MLIR gives the identical module: one small program per trap."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from devscope.lowering.interop import importer
from devscope.lowering.interop.parsing import parse_file

PROGRAMS = sorted((Path(__file__).parent / "programs").glob("*.mlir"))


@pytest.fixture(params=PROGRAMS, ids=lambda path: path.stem)
def program(request):
    return request.param


def test_text_round_trips(program, session, generic_text):
    module = parse_file(program, session.context)
    before = generic_text(module)
    imported = session.to_xdsl(module)
    imported.verify()
    assert generic_text(session.to_mlir(imported)) == before
    assert generic_text(module) == before, "the import changed its source"


def test_bytecode_round_trips(program, session, generic_text):
    source = parse_file(program, session.context)
    stream = io.BytesIO()
    source.operation.write_bytecode(stream)
    module = session.parse(stream.getvalue(), program.name)
    assert generic_text(session.to_mlir(session.to_xdsl(module))) == generic_text(module)


def test_clones_and_second_imports_round_trip(program, session, generic_text):
    module = parse_file(program, session.context)
    first = session.to_xdsl(module)
    second = session.to_xdsl(module)
    assert generic_text(session.to_mlir(first.clone())) == generic_text(module)
    assert generic_text(session.to_mlir(second)) == generic_text(module)


@pytest.mark.parametrize("hashed", [lambda value: 7, lambda value: hash(value) % 3], ids=["one", "three"])
def test_values_and_places_of_one_hash(hashed, program, session, generic_text, monkeypatch):
    monkeypatch.setattr(importer, "hash", hashed, raising=False)
    module = parse_file(program, session.context)
    text = module.operation.get_asm(enable_debug_info=True)
    exported = session.to_mlir(session.to_xdsl(module))
    assert exported.operation.get_asm(enable_debug_info=True) == text


def test_every_program_is_there():
    assert len(PROGRAMS) > 40
