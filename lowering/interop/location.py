"""MLIR's source locations in xDSL: wrapped on import, decoded on demand."""

from __future__ import annotations

from typing import Any

from xdsl.ir import BuiltinAttribute, Data
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from devscope.dialects.location import source_location
from devscope.lowering.interop.positions import file_line_col

__all__ = ["PayloadLocation", "source_location"]


class PayloadLocation(Data[Any], BuiltinAttribute):
    """An MLIR location (``ir.Location``) as an xDSL attribute; nothing of it is decoded before it is asked for."""

    name = "devscope.location"

    @classmethod
    def wrap(cls, location: Any) -> PayloadLocation:
        """As the constructor, without its checks: one of these is made per imported operation."""
        self = cls.__new__(cls)
        object.__setattr__(self, "data", location)
        return self

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Any:
        parser.raise_error("a location held by MLIR has no syntax of its own")

    def print_parameter(self, printer: Printer) -> None:
        self.print_builtin(printer)

    def print_builtin(self, printer: Printer) -> None:
        with printer.in_location():
            printer.print_string(str(self.data)[len("loc(") : -1])

    def file_line_col(self) -> tuple[str, int, int] | None:
        """The first position in a file that this location holds, line and column counted from 1, or None."""
        return file_line_col(self.data)
