"""How deep brackets are inside each other: MLIR's parser recurses, and ends the process where its stack ends.

That is at some 5,000 brackets, with a stack of 8 MiB. Clang has a limit for the same reason (``-fbracket-depth``).
"""

import re

import numpy as np

from devscope.errors import ParseError, SourceLocation

MOST = 1024
"""Open brackets of any kind. A region in the generic form has two."""

_OPEN, _CLOSE = b"([{<", b")]}>"
_BRACKETS = [bytes([bracket]) for bracket in _OPEN + _CLOSE]
_STEPS = bytes.maketrans(_OPEN + _CLOSE, bytes([1] * len(_OPEN) + [255] * len(_CLOSE)))
_OTHERS = bytes(set(range(256)).difference(_OPEN + _CLOSE))
_TOKEN = re.compile(rb'"(?:[^"\\\n]|\\.)*"|//[^\n]*|->|[<>]=|([(\[{<])|([)\]}>])')


class Nesting:
    """The depth in a text that comes in pieces."""

    def __init__(self, filename: str) -> None:
        self._filename = filename
        self._depth = 0

    def goes_on(self, piece: bytes) -> bool:
        """Whether the next piece may go too deep; what stands in strings and comments is counted as well."""
        if not any(bracket in piece for bracket in _BRACKETS):
            return False  # data
        steps = np.frombuffer(piece.replace(b"->", b"").translate(_STEPS, _OTHERS), np.int8)
        if not steps.size:
            return False
        levels = self._depth + steps.cumsum(dtype=np.int32)
        levels -= np.minimum(np.minimum.accumulate(levels), 0)  # what closes nothing
        self._depth = int(levels[-1])
        return bool(levels.max() > MOST)

    def check(self, text: bytes) -> None:
        """Raises `ParseError` if the whole text, up to now, goes too deep."""
        depth = 0
        for token in _TOKEN.finditer(text):
            depth = depth + 1 if token[1] else max(depth - 1, 0) if token[2] else depth
            if depth > MOST:
                where = SourceLocation.of_byte(self._filename, text, token.start())
                raise ParseError(f"more than {MOST:,} brackets are open inside each other", where)
