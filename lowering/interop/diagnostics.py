"""MLIR's locations and diagnostics as devscope's positions and errors. Free of xDSL."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from devscope.errors import DevscopeError, SourceLocation
from devscope.lowering.interop.bindings import ir
from devscope.lowering.interop.mixed_types import in_message

_KINDS: dict[Any, Any] = {
    kind.static_typeid: kind for kind in (ir.FileLineColLoc, ir.NameLoc, ir.CallSiteLoc, ir.FusedLoc)
}

_ESCAPE = re.compile(rb"\\([0-9A-F]{2})")
_ESCAPES = re.compile(rb"\\(\\|[0-9A-F]{2})")
_LEAF = re.compile(r'"([^"\\]*(?:\\.[^"\\]*)*)"(?::(\d+):(\d+))?', re.DOTALL)
_NAME = re.compile(r'loc\("((?:[^"\\]|\\.)*)"[()]', re.DOTALL)


def file_line_col(location: Any) -> tuple[str, int, int] | None:
    """The first position of an ``ir.Location``, depth first; a call site has its callee's position."""
    for part in _parts(location):
        if isinstance(part, ir.FileLineColLoc):
            return (_file_name(part), part.start_line, part.start_col)
    return None


def location_parts(location: Any) -> list[str | tuple[str, int, int]]:
    """The names and positions of an ``ir.Location``, in the order of `file_line_col`."""
    text = str(location)
    if "fused<" in text:  # what metadata is may have texts, too
        return [part for leaf in _parts(location) for part in _leaf_parts(leaf)]
    # They stand in the text in this order. JAX's have twenty parts, which to ask for takes as much as to plan.
    return [
        (_text(name), int(line), int(column)) if line else _text(name)
        for name, line, column in _LEAF.findall(text)
    ]


def _leaf_parts(leaf: Any) -> list[str | tuple[str, int, int]]:
    if isinstance(leaf, ir.FileLineColLoc):
        return [(_file_name(leaf), leaf.start_line, leaf.start_col)]
    match = _NAME.match(str(leaf))  # the bindings end the process over what is not UTF-8
    return [] if match is None else [_text(match[1])]


def _text(escaped: str) -> str:
    return _ESCAPES.sub(_unescaped, escaped.encode()).decode(errors="replace") if "\\" in escaped else escaped


def _unescaped(match: re.Match[bytes]) -> bytes:
    return match[1] if match[1] == b"\\" else bytes.fromhex(match[1].decode())


def _parts(location: Any) -> Iterator[Any]:
    """Names and positions: a name before what it names, a callee before its caller."""
    stack = [location]
    while stack:
        current = stack.pop()
        if isinstance(current, ir.FileLineColLoc):
            yield current
        elif isinstance(current, ir.NameLoc):
            yield current
            stack.append(current.child_loc)
        elif isinstance(current, ir.CallSiteLoc):
            stack += (current.caller, current.callee)
        elif isinstance(current, ir.FusedLoc):
            stack += reversed(list(current.locations))


def decode_location(location: Any) -> SourceLocation | None:
    """`file_line_col` in the form that errors carry; takes what diagnostics give, a bare ``ir.Location``, too."""
    kind = _KINDS.get(location.typeid)
    position = file_line_col(location if kind is None else kind(location))
    return None if position is None else SourceLocation(*position)


def _file_name(location: Any) -> str:
    """The file of an ``ir.FileLineColLoc``."""
    text = str(location).encode()
    if _ESCAPE.search(text) is None:
        return location.filename
    # To ask the bindings for a name that is not UTF-8 ends the process; the text has it with escapes.
    name = text[text.index(b'"') + 1 : text.rindex(b'":')]
    return _ESCAPE.sub(lambda match: bytes.fromhex(match[1].decode()), name).decode(errors="replace")


def rename_file(module: Any, old: str, new: str) -> None:
    """Replace the file name ``old`` by ``new`` in the locations of all operations and block arguments."""

    @cache
    def renamed(location: Any) -> Any:
        context = location.context
        if isinstance(location, ir.FileLineColLoc):
            if _file_name(location) != old:
                return location
            start, end = (location.start_line, location.start_col), (location.end_line, location.end_col)
            return ir.Location.file(new, *start, *(end if end != start else ()), context=context)
        if isinstance(location, ir.NameLoc):
            if _ESCAPE.search(str(location).encode()):  # to ask for such a name ends the process, too
                return location
            return ir.Location.name(location.name_str, renamed(location.child_loc), context=context)
        if isinstance(location, ir.CallSiteLoc):
            return ir.Location.callsite(renamed(location.callee), [renamed(location.caller)], context=context)
        if isinstance(location, ir.FusedLoc):
            old_parts = list(location.locations)
            parts = [renamed(part) for part in old_parts]
            # Not when nothing changes: to fuse is to drop unknown and repeated parts.
            return location if parts == old_parts else ir.Location.fused(parts, location.metadata, context=context)
        return location

    def visit(op: Any) -> Any:
        op.location = renamed(op.location)
        for region in op.regions:
            for block in region.blocks:
                for argument in block.arguments:
                    argument.set_location(renamed(argument.location))
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)


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
    message, more, _ = in_message(first.message).partition("\n")
    return kind(message + (" ..." if more else ""), _position(first, names), [line for line in lines if line])


def _position(diagnostic: Any, names: Mapping[str, str]) -> SourceLocation | None:
    position = decode_location(diagnostic.location)
    return position and replace(position, file=names.get(position.file, position.file))


def _line(diagnostic: Any, names: Mapping[str, str]) -> str:
    """The diagnostic in one line; empty if there is nothing to say."""
    # "see current operation:" shows the operation with its bodies, which can be a whole function.
    message, more, _ = in_message(diagnostic.message).partition("\n")
    if more and message.rstrip().endswith(":"):
        return ""
    position = _position(diagnostic, names)
    return f"{'' if position is None else f'{position}: '}{message}{' ...' if more else ''}"
