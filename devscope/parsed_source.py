"""The first stage of a compilation: an MLIR module from whatever a user gives."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from devscope.errors import InputError
from devscope.lowering.interop.literals import detach_literals
from devscope.lowering.interop.parsing import bytecode, make_mlir_context, parse_file, parse_text
from devscope.source import encoded, is_executable_file, source_path

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


def parse_source(source: Any, detach: bool = False) -> ParsedSource:
    """The module of a path, text, bytecode, or a module of the bindings.

    With ``detach``, large constants of a text file stay out of MLIR: the module can be compiled, but not printed
    faithfully. Raises ParseError, or InputError for what is none of these.
    """
    path = source_path(source)
    if path is not None and is_executable_file(path):
        raise InputError(
            f"'{path}' is a compiled program, or called like one", notes=["load it: devscope.load(path)"]
        )
    context = make_mlir_context()
    if path is not None:
        detached = detach_literals(path) if detach else None
        if detached is not None:
            return ParsedSource(context, parse_text(detached.text, str(path), context), detached.data)
        return ParsedSource(context, parse_file(path, context))
    if isinstance(source, str):
        encoded(source)
    data = source if isinstance(source, str | bytes) else bytecode(source)
    texts = {_UNNAMED: source} if isinstance(source, str) else {}
    return ParsedSource(context, parse_text(data, _UNNAMED, context), texts=texts)
