"""From MLIR's diagnostics to devscope's errors: one message, its location, the rest as notes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from devscope.errors import DevscopeError, SourceLocation
from devscope.lowering.interop.positions import decode


def translate(
    error: Any, kind: type[DevscopeError], fallback: str, files: Mapping[str, str] | None = None
) -> DevscopeError:
    """The error of type ``kind`` that says what ``error``, an ``ir.MLIRError``, says.

    The first diagnostic gives message and location; its notes and all further diagnostics become notes.
    ``fallback`` is the message for an error without diagnostics; ``files`` renames files in locations.
    """
    names = files or {}
    diagnostics: list[Any] = list(error.error_diagnostics)
    if not diagnostics:
        return kind(fallback)
    first, *rest = diagnostics
    notes = list(first.notes)
    for diagnostic in rest:
        notes += [diagnostic, *diagnostic.notes]
    lines = [_line(note, names) for note in notes]
    message, more, _ = first.message.partition("\n")
    return kind(message + (" ..." if more else ""), _position(first, names), [line for line in lines if line])


def _position(diagnostic: Any, names: Mapping[str, str]) -> SourceLocation | None:
    position = decode(diagnostic.location)
    return position and replace(position, file=names.get(position.file, position.file))


def _line(diagnostic: Any, names: Mapping[str, str]) -> str:
    """The diagnostic in one line; empty if there is nothing to say."""
    # "see current operation:" shows the operation with its bodies, which can be a whole function.
    message, more, _ = diagnostic.message.partition("\n")
    if more and message.rstrip().endswith(":"):
        return ""
    position = _position(diagnostic, names)
    return f"{'' if position is None else f'{position}: '}{message}{' ...' if more else ''}"
