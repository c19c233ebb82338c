"""The advice that MLIR does not give: operations that are defined by IRDL have no custom form."""

from __future__ import annotations

import re

from devscope.errors import DevscopeError, ParseError, SourceLocation

_OPERATION = re.compile(
    r"^[ \t]*(?:%[^=\n]*=\s*)?(device\.(?:on_device|device_copy|region|yield))\b", re.MULTILINE
)


def explained(error: DevscopeError, text: str, filename: str) -> DevscopeError:
    """``error``, or a better one when it says nothing, and ``text`` has a device operation in custom form."""
    match = _OPERATION.search(text) if error.location is None and not error.notes else None
    if match is None:
        return error
    start = match.start(1)
    line, column = text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start)
    return ParseError(
        f"'{match[1]}' is written in generic form only",
        SourceLocation(filename, line, column),
        [f'with the name in quotes: "{match[1]}"(%x) {{...}} : (tensor<4xf32>) -> tensor<4xf32>'],
    )
