"""``--split-input-file``: one file, several modules, each parsed on its own."""

from __future__ import annotations

import re

SEPARATOR = "// -----"

# The whole line, as in MLIR's tools: "// -----// IR Dump After ..." must not split.
_SEPARATOR_LINE = re.compile(r"^[ \t]*// -----[ \t]*$\n?", re.MULTILINE)


def split_text(text: str) -> list[str]:
    """The parts between separator lines, padded so that every line keeps its number in the file."""
    chunks: list[str] = []
    start = line = 0
    for match in _SEPARATOR_LINE.finditer(text):
        chunks.append("\n" * line + text[start : match.start()])
        line += text.count("\n", start, match.end())
        start = match.end()
    chunks.append("\n" * line + text[start:])
    return chunks
