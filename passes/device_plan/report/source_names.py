"""The names that values have in the source: ``%5``, ``%arg0``, ``%r#1``.

MLIR's parser forgets names, but not positions: an operation stands where its name does, right after
``%r:2 =``, and a block argument where its own name does. So a name is read again, from the text at the
position of the value, when a message wants it. That the operation stands there is checked first: after a file
was edited, or for operations that a pass made, a result has no name rather than a wrong one.
"""

import re
from collections.abc import Mapping
from functools import cache
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
        self._files = cache(self._read)

    def name(self, value: SSAValue) -> str | None:
        """The name of a value in the source, with its ``%``; None when the source does not say."""
        found = self._argument(value) if isinstance(value, BlockArgument) else self._result(value)
        if found is None and value.name_hint is not None:
            return f"%{value.name_hint}"
        return found

    def _argument(self, value: BlockArgument) -> str | None:
        where = decode_location(value.location)
        match = _ARGUMENT.match(*self._position(where)) if where is not None else None
        return match.group().decode() if match is not None else None

    def _result(self, value: SSAValue) -> str | None:
        op = value.owner
        where = source_location(op) if isinstance(op, Operation) else None
        if where is None or not isinstance(op, Operation):
            return None
        text, start, end = self._position(where)
        name = op_name(op)
        # A region can make its dialect the default one: `call` is `func.call` in a function.
        for spelling in filter(None, (name, f'"{name}"', name.partition(".")[2])):
            if re.compile(rb"%s(?![\w.$])" % re.escape(spelling.encode())).match(text, start, end):
                match = _RESULTS.search(text, max(0, start - _LOOK_BACK), start)
                return _pick(match[1].decode(), op.results.index(value)) if match is not None else None
        return None

    def _position(self, where: SourceLocation) -> tuple[bytes, int, int]:
        """The text of a file, a position in it and where that line ends; MLIR counts columns in bytes."""
        text, lines = self._files(where.file)
        if not 0 < where.line < len(lines):
            return b"", 0, 0
        return text, lines[where.line - 1] + where.column - 1, lines[where.line] - 1

    def _read(self, file: str) -> tuple[bytes, list[int]]:
        """The text of a file, and where its lines begin; the last number is after the end."""
        known = self._texts.get(file)
        text = _read(file) if known is None else known.encode(errors="replace")
        return text, [0, *(end.end() for end in re.finditer(b"\n", text)), len(text) + 1]


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
