"""Positions in files, from and in MLIR's locations. Free of xDSL: parsing needs no more than this."""

from __future__ import annotations

import re
from typing import Any

from devscope.errors import SourceLocation
from devscope.lowering.interop.bindings import ir

_KINDS: dict[Any, Any] = {
    kind.static_typeid: kind for kind in (ir.FileLineColLoc, ir.NameLoc, ir.CallSiteLoc, ir.FusedLoc)
}

_ESCAPE = re.compile(rb"\\([0-9A-F]{2})")


def file_line_col(location: Any) -> tuple[str, int, int] | None:
    """The first position of an ``ir.Location``, depth first; a call site has its callee's position."""
    stack = [location]
    while stack:
        current = stack.pop()
        if isinstance(current, ir.FileLineColLoc):
            return (_file_name(current), current.start_line, current.start_col)
        if isinstance(current, ir.NameLoc):
            stack.append(current.child_loc)
        elif isinstance(current, ir.CallSiteLoc):
            stack += (current.caller, current.callee)
        elif isinstance(current, ir.FusedLoc):
            stack += reversed(list(current.locations))
    return None


def decode(location: Any) -> SourceLocation | None:
    """`file_line_col` in the form that errors carry; takes what diagnostics give, a bare ``ir.Location``, too."""
    kind = _KINDS.get(location.typeid)
    position = file_line_col(location if kind is None else kind(location))
    return None if position is None else SourceLocation(*position)


def rename_file(module: Any, old: str, new: str) -> None:
    """Replace the file name ``old`` by ``new`` in the locations of all operations and block arguments."""
    renamed = _RenamedFiles(old, new)

    def visit(op: Any) -> Any:
        op.location = renamed[op.location]
        for region in op.regions:
            for block in region.blocks:
                for argument in block.arguments:
                    argument.set_location(renamed[argument.location])
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)


class _RenamedFiles(dict[Any, Any]):
    """Locations and what they become, each worked out once."""

    def __init__(self, old: str, new: str) -> None:
        super().__init__()
        self._old = old
        self._new = new

    def __missing__(self, location: Any) -> Any:
        result = self[location] = self._rename(location)
        return result

    def _rename(self, location: Any) -> Any:
        context = location.context
        if isinstance(location, ir.FileLineColLoc):
            if _file_name(location) != self._old:
                return location
            start, end = (location.start_line, location.start_col), (location.end_line, location.end_col)
            if start == end:
                return ir.Location.file(self._new, *start, context=context)
            return ir.Location.file(self._new, *start, *end, context=context)
        if isinstance(location, ir.NameLoc):
            return ir.Location.name(location.name_str, self[location.child_loc], context=context)
        if isinstance(location, ir.CallSiteLoc):
            return ir.Location.callsite(self[location.callee], [self[location.caller]], context=context)
        if isinstance(location, ir.FusedLoc):
            old_parts = list(location.locations)
            parts = [self[part] for part in old_parts]
            # Not when nothing changes: to fuse is to drop unknown and repeated parts.
            return location if parts == old_parts else ir.Location.fused(parts, location.metadata, context=context)
        return location


def _file_name(location: Any) -> str:
    """The file of an ``ir.FileLineColLoc``."""
    text = str(location).encode()
    if _ESCAPE.search(text) is None:
        return location.filename
    # To ask the bindings for a name that is not UTF-8 ends the process; the text has it with escapes.
    name = text[text.index(b'"') + 1 : text.rindex(b'":')]
    return _ESCAPE.sub(lambda match: bytes.fromhex(match[1].decode()), name).decode(errors="replace")
