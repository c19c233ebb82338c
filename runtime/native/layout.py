"""The structs of the native runtime as ctypes sees them, made from the tables that the C sources have of them.

The enumerations and constants below are those of ``abi.h``; a test compares them with the tables.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import Any

ABI_VERSION = 5
"""Changes whenever compiled code or a loader of another version would misunderstand the native runtime. Stored in
saved executables."""

RETURNED_BLOCKS = 64
"""Most blocks of results that can be given back at the start of one call."""


class Origin(IntEnum):
    """Who refused a request."""

    NONE = 0
    RUNTIME = 1
    DRIVER = 2


class Operation(IntEnum):
    """What failed."""

    ALLOC = 1
    FREE = 2
    COPY = 3
    CONSTANT = 4
    LAUNCH = 5
    ASSERT = 6


class Code(IntEnum):
    """Error codes of :attr:`Origin.RUNTIME`."""

    BAD_SLOT = 1
    BAD_KERNEL = 2
    BAD_ARGUMENT_COUNT = 3
    BAD_CONSTANT = 4
    NEGATIVE_SIZE = 5
    OUT_OF_HOST_MEMORY = 6
    ASSERTION_FAILED = 7
    TOO_MUCH_LOCAL_MEMORY = 8
    TOO_MANY_WORK_ITEMS = 9
    BAD_LAUNCH_SIZE = 10


class Layout:
    """The structs of the runtime, as attributes: ``layout.Context`` is a subclass of ``ctypes.Structure``.

    It has the fields that the tables have: integers (also for pointers, 0 is null), arrays of them, and structs.
    """

    def __init__(self, table: int, drivers: Iterable[int]) -> None:
        """Of the table ``devscope_layout`` and of drivers, which have structs of their own, given by addresses."""
        self.constants: dict[str, dict[str, int]] = {}
        self._structs: dict[str, type[ctypes.Structure]] = {}
        self._add(table)
        for driver in drivers:
            self._add(self.Driver.from_address(driver).layout)

    def _add(self, table: int) -> None:
        fields: list[tuple[str, int, Any]] = []
        for type_, name, value, size, field_type in _rows(table):
            if name is None:
                self._structs[type_] = _structure(type_, fields, value)
                fields = []
            elif size:
                fields.append((name, value, self._structs[field_type] if field_type else _integers(size)))
            else:
                self.constants.setdefault(type_, {})[name] = value

    def __getattr__(self, name: str) -> Any:
        try:
            return self._structs[name]
        except KeyError:
            raise AttributeError(f"the native runtime has no struct '{name}'") from None


_ROW = struct.Struct("PPqqP")


def _rows(table: int) -> Iterator[tuple[str, str | None, int, int, str | None]]:
    while table:
        type_, name, value, size, field_type = _ROW.unpack(ctypes.string_at(table, _ROW.size))
        if not type_:
            return
        yield _text(type_) or "", _text(name), value, size, _text(field_type)
        table += _ROW.size


def _text(address: int) -> str | None:
    return ctypes.string_at(address).decode() if address else None


def _integers(size: int) -> Any:
    plain = {4: ctypes.c_int32, 8: ctypes.c_int64}
    return plain[size] if size in plain else ctypes.c_int64 * (size // 8)


def _structure(name: str, fields: list[tuple[str, int, Any]], size: int) -> type[ctypes.Structure]:
    """A struct of this size with fields (name, offset, type) in any order; what is between them is left alone."""
    members: list[tuple[str, Any]] = []
    at = 0
    for field, offset, type_ in [*sorted(fields, key=lambda item: item[1]), ("", size, None)]:
        if offset > at:
            members.append((f"_{at}", ctypes.c_char * (offset - at)))
        if type_ is not None:
            members.append((field, type_))
            at = offset + ctypes.sizeof(type_)
    return type(name, (ctypes.Structure,), {"_fields_": members})
