"""The names that values have in the source: ``%5``, ``%arg0``, ``%r#1``.

MLIR's parser forgets names, but not positions: an operation stands where its name does, right after
``%r:2 =``, and a block argument where its own name does. So a name is read again, from the text at the
position of the value, when a message wants it. That the operation stands there is checked first: after a file
was edited, or for operations that a pass made, a result has no name rather than a wrong one.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, BinaryIO

from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from devscope.dialects.location import decode_location, location_parts, source_location
from devscope.dialects.names import op_name
from devscope.errors import SourceLocation

_LOOK_BACK = 4096
"""The results' names end just before their operation's; they begin at most this many bytes earlier."""

_LOOK_AHEAD = 1024
"""Longer names are not found."""

_CHUNK = 16 << 20
"""Bytes; larger files are not kept in memory."""

_ARGUMENT = re.compile(rb"%[A-Za-z0-9$._-]+")
_BACKWARDS = re.compile(rb"\s*=\s*({0}(?:\s*,\s*{0})*)".replace(b"{0}", rb"(?:[0-9]+:)?[A-Za-z0-9$._-]+%"))
"""``%a, %r:2 =``, read from its end: to search for its beginning takes as long as all that stands before it."""

_LOWERED = r'"?(?:stablehlo|chlo)\.\w+"?'
"""Operations that have become others before planning, most of them one with as many results."""


class SourceNames:
    """Reads names from ``texts``, by file name, else from the files themselves. Never raises.

    ``arguments``: by function, the names that a model has for its arguments, which no text of MLIR says.
    """

    def __init__(
        self, texts: Mapping[str, str] | None = None, arguments: Mapping[str, Sequence[str]] | None = None
    ) -> None:
        self._texts = dict(texts or {})
        self._arguments = arguments or {}
        self._files = cache(self._read)

    def name(self, value: SSAValue) -> str | None:
        """The name of a value in the source, with its ``%``; None when the source does not say."""
        found = self._argument(value) if isinstance(value, BlockArgument) else self._result(value)
        if found is None and value.name_hint is not None:
            return f"%{value.name_hint}"
        return found

    def of_argument(self, value: SSAValue) -> str | None:
        """What a model calls an argument; None for other values."""
        function = value.owner.parent_op() if isinstance(value, BlockArgument) else None
        if not isinstance(function, FuncOp) or not isinstance(value, BlockArgument):
            return None
        names = self._arguments.get(function.sym_name.data, ())
        return names[value.index] if value.index < len(names) else None

    def _argument(self, value: BlockArgument) -> str | None:
        where = decode_location(value.location)
        match = _ARGUMENT.match(*self._around(where)) if where is not None else None
        function = value.owner.parent_op()
        if match is None and isinstance(function, FuncOp) and function.sym_name.data not in self._arguments:
            # JAX says it so, also in bytecode. Of blocks inside, names are those of operations.
            named = next(location_parts(value.location), None)
            return f"%{named}" if isinstance(named, str) else None
        return match.group().decode() if match is not None else None

    def _result(self, value: SSAValue) -> str | None:
        op = value.owner
        where = source_location(op) if isinstance(op, Operation) else None
        if where is None or not isinstance(op, Operation):
            return None
        text, start = self._around(where)
        name = op_name(op)
        # A region can make its dialect the default one: `call` is `func.call` in a function.
        spellings = [re.escape(s) for s in (name, f'"{name}"', name.partition(".")[2]) if s]
        for spelling in (*spellings, _LOWERED):
            if re.compile(rb"%s(?![\w.$])" % spelling.encode()).match(text, start):
                match = _BACKWARDS.match(text[:start][::-1])
                return _pick(match[1][::-1].decode(), op.results.index(value)) if match is not None else None
        return None

    def _around(self, where: SourceLocation) -> tuple[bytes, int]:
        """The text around a position, to the end of its line, and where in it the position is.

        MLIR counts columns in bytes.
        """
        file = self._files(where.file)
        if file is None or not 0 < where.line < len(file.lines):
            return b"", 0
        position = file.lines[where.line - 1] + where.column - 1
        start = max(0, position - _LOOK_BACK)
        return file.part(start, min(file.lines[where.line] - 1, position + _LOOK_AHEAD)), position - start

    def _read(self, name: str) -> _Text | None:
        known = self._texts.get(name)
        if known is not None:
            return _Text(io.BytesIO, known.encode(errors="replace"))
        try:
            # A pipe can be read once only, and its reader was MLIR.
            return _Text(Path.open, Path(name), "rb") if os.path.isfile(name) else None
        except (OSError, ValueError):
            return None


class _Text:
    """Text of a file, or as good as one. If it is large, it stays there.

    ``lines``: where lines begin, and the position after the end.
    """

    def __init__(self, open_: Callable[..., BinaryIO], *arguments: Any) -> None:
        self._open = partial(open_, *arguments)
        self._kept: bytes | None = None
        self.lines = [0]
        position = 0
        with self._open() as file:
            while chunk := file.read(_CHUNK):
                self.lines += (position + end.end() for end in re.finditer(b"\n", chunk))
                self._kept = chunk if position == 0 else None
                position += len(chunk)
        self.lines.append(position + 1)

    def part(self, start: int, end: int) -> bytes:
        if self._kept is not None:
            return self._kept[start:end]
        try:
            with self._open() as file:
                file.seek(start)
                return file.read(max(0, end - start))
        except OSError:
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
