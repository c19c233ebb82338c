"""Reads the symbol table of an ELF object, to say which symbols could not be resolved."""

from __future__ import annotations

import contextlib
import struct
from typing import NamedTuple

_SHT_SYMTAB = 2
_SHN_UNDEF = 0
_STB_LOCAL = 0
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")


class Symbols(NamedTuple):
    """Names that an object defines for others, and names that it uses and does not define."""

    defined: list[str]
    undefined: list[str]


def symbols_of(data: bytes) -> Symbols:
    """The symbols of a 64-bit little-endian relocatable object, none of anything else; of a damaged one, some."""
    found = Symbols([], [])
    if data[:6] == b"\x7fELF\x02\x01":
        with contextlib.suppress(struct.error, ValueError, IndexError):
            _read(data, found)
    return found


def _read(data: bytes, found: Symbols) -> None:
    (table,) = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    sections = [_SECTION.unpack_from(data, table + index * size) for index in range(count)]
    for _, kind, _, _, offset, length, link, _, _, _ in sections:
        if kind != _SHT_SYMTAB:
            continue
        strings = sections[link][4]
        for at in range(offset, offset + length, _SYMBOL.size):
            name, info, _, section, _, _ = _SYMBOL.unpack_from(data, at)
            if name and info >> 4 != _STB_LOCAL:
                start = strings + name
                names = found.undefined if section == _SHN_UNDEF else found.defined
                names.append(data[start : data.index(b"\0", start)].decode())
