"""Reads the symbol table of an ELF object, to say which symbols could not be resolved."""

from __future__ import annotations

import struct

_SHT_SYMTAB = 2
_SHN_UNDEF = 0
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")


def undefined_symbols(data: bytes) -> list[str]:
    """Names that a 64-bit little-endian relocatable object uses and does not define.

    Gives an empty list for anything that is not such an object.
    """
    try:
        return _read(data)
    except (struct.error, ValueError, IndexError):
        return []


def _read(data: bytes) -> list[str]:
    if data[:6] != b"\x7fELF\x02\x01":
        return []
    (table,) = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    sections = [_SECTION.unpack_from(data, table + index * size) for index in range(count)]
    names: list[str] = []
    for _, kind, _, _, offset, length, link, _, _, _ in sections:
        if kind == _SHT_SYMTAB:
            strings = sections[link][4]
            for at in range(offset, offset + length, _SYMBOL.size):
                name, _, _, section, _, _ = _SYMBOL.unpack_from(data, at)
                if section == _SHN_UNDEF and name:
                    start = strings + name
                    names.append(data[start : data.index(b"\0", start)].decode())
    return names
