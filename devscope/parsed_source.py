"""The first stage of a compilation: an MLIR module from whatever a user gives."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any

from devscope.errors import InputError, Note, ParseError
from devscope.frontends import DeferredSource, ImportedSource, imported
from devscope.lowering.interop.artifacts import is_portable_artifact, read_artifact
from devscope.lowering.interop.bindings import children, not_text, without_dialect_modules
from devscope.lowering.interop.literals import detach_literals
from devscope.lowering.interop.parse_apart import parsed_apart
from devscope.lowering.interop.parsing import (
    BYTECODE_MAGIC,
    make_mlir_context,
    parse_file,
    parse_once,
    parse_text,
)
from devscope.lowering.placement_hints import MARKS
from devscope.source import PipedSource, encoded, is_executable_file, read_once, reading, source_path

_PRAGMA = b"devscope.on("
_UNNAMED = "<input>"
"""The name of a source that is not a file."""


@dataclass
class ParsedSource:
    """A verified ``ir.Module`` and the ``ir.Context`` that it is in."""

    context: Any
    module: Any
    literals: Mapping[str, memoryview] = field(default_factory=dict[str, memoryview])
    """Data of the module's dense resources that MLIR does not have, by name."""
    texts: Mapping[str, str] = field(default_factory=dict[str, str])
    """Text that is in no file, by the name that locations have for it."""
    imported: ImportedSource | None = None
    """What the module was made of, if a way in made it."""
    has_pragmas: bool = False
    """Whether its locations may tell of ``with devscope.on(...)``."""
    has_hints: bool = False
    """Whether it may say something of places in the words of XLA or MLIR."""


@without_dialect_modules()
def parse_source(source: Any, detach: bool = False) -> ParsedSource:
    """The module of a path, text, bytecode, or a module of the bindings.

    With ``detach``, large constants of text stay out of MLIR: the module can be compiled, but not printed
    faithfully. Raises ParseError, or InputError for what is none of these, and for a program without functions.
    """
    source = read_once(imported(source))
    if isinstance(source, DeferredSource):
        source = source.read()
    path = source_path(source)
    has_name = isinstance(source, PipedSource | ImportedSource)
    name = source.name if has_name else _UNNAMED if path is None else str(path)
    if source.is_executable if isinstance(source, PipedSource) else path is not None and is_executable_file(path):
        load = Note("load it: devscope.load(path)", flags="run it: devscope run FILE.dsx")
        raise InputError(f"'{name}' is a compiled program, or called like one", notes=[load])
    outside: Path | bytes = path or (source.data if has_name else source)
    if isinstance(outside, str):
        outside = encoded(outside)
    parsed = _parse_artifact(source) if isinstance(source, ImportedSource) else None
    if parsed is None and detach:
        parsed = _parse_detached(outside, name)
    if parsed is None:
        parsed = _parse(outside, name)
    if isinstance(source, ImportedSource):
        parsed.imported = source
        parsed.literals = {**parsed.literals, **source.literals}
    marks = _held(outside, (_PRAGMA, *MARKS))
    parsed.has_pragmas, parsed.has_hints = _PRAGMA in marks, not marks <= {_PRAGMA}
    _require_functions(parsed.module, name)
    return parsed


def _held(source: bytes | Path, texts: Iterable[bytes]) -> set[bytes]:
    """Those of ``texts`` that a source has somewhere."""
    if not isinstance(source, Path):
        return {text for text in texts if text in source}
    if not source.stat().st_size:  # nothing to map
        return set()
    with reading(source), source.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as data:
        return {text for text in texts if data.find(text) >= 0}


def _parse_artifact(source: ImportedSource) -> ParsedSource | None:
    """None for what is no portable artifact of StableHLO. Others can be damaged: `_parse` reads them."""
    if not is_portable_artifact(source.data):
        return None
    context = make_mlir_context()
    return ParsedSource(context, read_artifact(source.data, source.name, context))


def _parse_detached(source: bytes | Path, name: str) -> ParsedSource | None:
    """None where there is nothing to detach, and where MLIR finds errors: in the whole text, it says where."""
    with reading(name):
        detached = detach_literals(source)
    if detached is None or parsed_apart(detached.text.encode(), name) is not None:
        return None
    context = make_mlir_context()
    try:
        module = parse_once(detached.text, name, context)
    except ParseError:
        return None
    return ParsedSource(context, module, detached.data, {name: detached.text})


def _parse(source: bytes | Path, name: str) -> ParsedSource:
    with reading(name):
        written_anew = parsed_apart(source, name)
    source = source if written_anew is None else written_anew
    context = make_mlir_context()
    if isinstance(source, Path):
        return ParsedSource(context, parse_file(source, context))
    texts = {} if source.startswith(BYTECODE_MAGIC) else {name: source.decode(errors="replace")}
    return ParsedSource(context, parse_text(source, name, context), texts=texts)


def _require_functions(module: Any, name: str) -> None:
    """Raise InputError for a program in which there is nothing to plan or to run."""
    try:
        operations = {op.name for op in children(module.operation)}
    except RuntimeError as error:
        if not not_text(error):
            raise
        return  # the import says which name it is
    if "func.func" in operations or "builtin.module" in operations:  # the planner has more to say of the latter
        return
    what = "has no function" if operations else "is an empty program"
    raise InputError(f"'{name}' {what}", notes=["a program is one public function or more: func.func @main(...)"])
