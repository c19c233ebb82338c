"""Large constants of MLIR text, taken out before MLIR sees it.

MLIR needs ten times as long to read their digits as Python does. It maps a file, decodes its constants into the
context, and has both in memory at once: three bytes for one in hexadecimal text. Here the data of each large
constant goes straight into an array, piece by piece, and its pages of the file are given back; the text that is
left, in which a dense resource without data stands for it, is small. Bytecode is compact already and goes to MLIR
as it is.
"""

import binascii
import math
import mmap
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

MIN_BYTES = 1 << 20
"""Smaller sources are not worth the trouble."""

_MIN_DIGITS = 1 << 16
_CHUNK = 1 << 20
"""Digits that are decoded at a time: an even number, and a multiple of the size of a page."""
_TAIL = 512
_NAME = "devscope_literal_"
_ITEM_BYTES = {
    **{"i8": 1, "i16": 2, "i32": 4, "i64": 8, "f16": 2, "f32": 4, "f64": 8},
    **{"complex<f32>": 8, "complex<f64>": 16},
}

# What stands before the value of ``arith.constant``, in custom or in generic form. Elsewhere (initial values of
# globals, attributes of unknown meaning) the data has to stay.
_CONSTANT = re.compile(rb"(?:\bconstant\s+(?:\{[^{}]*\}\s*)?|[\s{<]value\s*=\s*)$")
_USE = re.compile(rb'dense_resource<"?([^">]*)"?>')
_TYPE = re.compile(rb">\s*:\s*tensor<((?:\d+x)+)(\w+(?:<\w+>)?)>")
_RESOURCE = re.compile(rb"([A-Za-z_][\w$.]*)\s*:\s*$")
_SECTION = re.compile(rb"(\w+)\s*:\s*\{")


@dataclass
class DetachedText:
    """MLIR text without its large constants, and their data by the names of the resources that stand for them."""

    text: str
    data: dict[str, memoryview] = field(default_factory=dict[str, memoryview])


def detach_literals(source: bytes | Path) -> DetachedText | None:
    """Read MLIR text, or a file of it; None if it has no large constants, or one that has to stay where it is.

    Data that is not well-formed is also left to MLIR, which has the better message. Raises OSError.
    """
    size = len(source) if isinstance(source, bytes) else source.stat().st_size
    if sys.byteorder != "little" or size <= MIN_BYTES:
        return None
    if isinstance(source, bytes):
        return _detached(source)
    with source.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return _detached(content)


def _detached(content: bytes | mmap.mmap) -> DetachedText | None:
    try:
        return _Detacher(content).run()
    except (_Unsuitable, UnicodeDecodeError, binascii.Error):
        return None


class _Unsuitable(Exception):
    """The source has to be read by MLIR as it is."""


class _Detacher:
    def __init__(self, content: bytes | mmap.mmap) -> None:
        self._content = content
        self._text = bytearray()
        self._data: dict[str, memoryview] = {}

    def run(self) -> DetachedText | None:
        copied = position = 0
        while (start := self._content.find(b'"0x', position)) >= 0:
            end = self._content.find(b'"', start + len('"0x'), start + _MIN_DIGITS)
            position = end + 1
            if end < 0:
                self._text += self._content[copied:start]
                copied = position = self._detach(start)
        if not self._data:
            return None
        self._text += self._content[copied:]
        self._check_uses()
        return DetachedText(self._text.decode(), self._data)

    def _detach(self, start: int) -> int:
        """Take out the literal that begins at ``start``; returns where the text goes on."""
        tail = bytes(self._text[-_TAIL:])
        if tail.endswith(b"dense<") and _CONSTANT.search(tail[: -len(b"dense<")]):
            data, behind = self._decode(start)
            self._check_size(behind, len(data))
            equal = (name for name, known in self._data.items() if known == data)
            name = next(equal, f"{_NAME}{len(self._data)}")  # equal ones share memory, as in MLIR
            del self._text[-len(b"dense<") :]
            self._text += b"dense_resource<" + name.encode()
            self._data.setdefault(name, data)
        elif (found := _RESOURCE.search(tail)) and self._section() == b"builtin":
            data, behind = self._decode(start)
            name = found[1].decode()
            self._text += b'"0x' + bytes(data[:4]).hex().encode() + b'"'
            if name in self._data:
                raise _Unsuitable
            self._data[name] = data[4:]  # the first four bytes hold the alignment
        else:
            raise _Unsuitable
        return behind

    def _decode(self, start: int) -> tuple[memoryview, int]:
        """The bytes of the literal that begins at ``start``, and where its text ends."""
        data = bytearray()
        position = start + len('"0x')
        while piece := self._content[position : position + _CHUNK]:
            digits, quote, _ = piece.partition(b'"')
            data += binascii.unhexlify(digits)
            if isinstance(self._content, mmap.mmap):
                self._content.madvise(mmap.MADV_DONTNEED, position // _CHUNK * _CHUNK, _CHUNK)
            position += len(digits)
            if quote:
                return memoryview(data), position + 1
        raise _Unsuitable

    def _check_size(self, behind: int, size: int) -> None:
        """The type behind a dense literal must say what the literal's length says."""
        found = _TYPE.match(self._content[behind : behind + _TAIL])
        if found is None:
            raise _Unsuitable
        shape = [int(extent) for extent in found[1].split(b"x")[:-1]]
        if math.prod(shape) * _ITEM_BYTES.get(found[2].decode(), 0) != size:
            raise _Unsuitable

    def _check_uses(self) -> None:
        """Resources whose data is gone must be constants wherever they occur."""
        for use in _USE.finditer(self._text):
            tail = bytes(self._text[max(0, use.start() - _TAIL) : use.start()])
            if use[1].decode() in self._data and not _CONSTANT.search(tail):
                raise _Unsuitable

    def _section(self) -> bytes | None:
        """The section of the resources at the end of the file that is open here."""
        start = self._text.rfind(b"{-#")
        headers = _SECTION.findall(self._text, start) if start >= 0 else []
        return headers[-1] if headers else None
