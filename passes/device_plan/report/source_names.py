"""The names that values have in the source: ``%5``, ``%arg0``, ``%r#1``.

MLIR's parser forgets names, but not positions: an operation stands where its name does, right after
``%r:2 =``, and a block argument where its own name does. So a name is read again, from the text at the
position of the value, when a message wants it. That the operation stands there is checked first: after a file
was edited, or for operations that a pass made, a result has no name rather than a wrong one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from xdsl.ir import BlockArgument, Operation, SSAValue

from devscope.dialects.location import decode_location, source_location
from devscope.dialects.names import op_name
from devscope.errors import SourceLocation

_LARGEST_FILE = 256 << 20
"""Bytes; of larger files, nobody wants names as much as memory."""

_LOOK_BACK = 4096
"""The results' names end just before their operation's; they begin at most this many bytes earlier."""

_NAME = rb"%[A-Za-z0-9$._-]+"
_ARGUMENT = re.compile(_NAME)
_RESULTS = re.compile(rb"((?:%s(?::[0-9]+)?\s*,\s*)*%s(?::[0-9]+)?)\s*=\s*$" % (_NAME, _NAME))


class SourceNames:
    """Reads names from ``texts``, by file name, else from the files themselves. Never raises."""

    def __init__(self, texts: Mapping[str, str] | None = None) -> None:
        self._texts = dict(texts or {})
        self._lines: dict[str, list[bytes]] = {}

    def name(self, value: SSAValue) -> str | None:
        """The name of a value in the source, with its ``%``; None when the source does not say."""
        found = self._argument(value) if isinstance(value, BlockArgument) else self._result(value)
        if found is None and value.name_hint is not None:
            return f"%{value.name_hint}"
        return found

    def _argument(self, value: BlockArgument) -> str | None:
        where = decode_location(value.location)
        match = _ARGUMENT.match(self._text_at(where)) if where is not None else None
        return match.group().decode() if match is not None else None

    def _result(self, value: SSAValue) -> str | None:
        op = value.owner
        where = source_location(op) if isinstance(op, Operation) else None
        if where is None or not isinstance(op, Operation) or not self._stands_at(op, where):
            return None
        match = _RESULTS.search(self._text_before(where))
        return _pick(match[1].decode(), op.results.index(value)) if match is not None else None

    def _stands_at(self, op: Operation, where: SourceLocation) -> bool:
        name = op_name(op)
        # A region can make its dialect the default one: `call` is `func.call` in a function.
        spellings = (name, f'"{name}"', name.partition(".")[2])
        text = self._text_at(where)
        return any(
            spelling and re.match(rb"%s(?![\w.$])" % re.escape(spelling.encode()), text) for spelling in spellings
        )

    def _text_at(self, where: SourceLocation) -> bytes:
        """The rest of a line; MLIR counts columns in bytes."""
        lines = self._lines_of(where.file)
        return lines[where.line - 1][where.column - 1 :] if 0 < where.line <= len(lines) else b""

    def _text_before(self, where: SourceLocation) -> bytes:
        lines = self._lines_of(where.file)
        row = where.line - 1
        text = lines[row][: where.column - 1]
        while row > 0 and len(text) < _LOOK_BACK:
            row -= 1
            text = lines[row] + b"\n" + text
        return text[-_LOOK_BACK:]

    def _lines_of(self, file: str) -> list[bytes]:
        lines = self._lines.get(file)
        if lines is None:
            text = self._texts.get(file)
            lines = self._lines[file] = (_read(file) if text is None else text.encode(errors="replace")).split(
                b"\n"
            )
        return lines


def _read(file: str) -> bytes:
    try:
        path = Path(file)
        # A pipe can be read once only, and its reader was MLIR.
        return path.read_bytes() if path.is_file() and path.stat().st_size <= _LARGEST_FILE else b""
    except (OSError, ValueError):
        return b""


def _pick(results: str, index: int) -> str | None:
    """Of ``%a, %r:2``, the name of result ``index``: ``%a``, ``%r#0`` or ``%r#1``."""
    for group in results.split(","):
        name, pack, size = group.strip().partition(":")
        count = int(size) if pack else 1
        if index < count:
            return f"{name}#{index}" if count > 1 else name
        index -= count
    return None
