"""What xDSL cannot hold faithfully, or should not hold because it is large, stays in MLIR: these stand for it."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from xdsl.dialects.builtin import DenseResourceAttr, StringAttr
from xdsl.ir import Attribute, BuiltinAttribute, Data, TypeAttribute
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from devscope.lowering.interop.diagnostics import location_parts

HANDLE_PREFIX = "devscope_payload_"
_MAX_PRINTED_ELEMENTS = 64


class _Payload(Data[Any], BuiltinAttribute):
    """``data`` is an object of the bindings, printed as MLIR prints it."""

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Any:
        parser.raise_error("what is held by MLIR has no syntax of its own")

    def print_parameter(self, printer: Printer) -> None:
        self.print_builtin(printer)

    def print_builtin(self, printer: Printer) -> None:
        printer.print_string(str(self.data))


class PayloadAttr(_Payload):
    """An MLIR attribute without a type (an ``ir.Attribute``); of a long array only kind and length are printed.

    A payload that has a type is a `DenseResourceAttr`, see `PayloadTable`.
    """

    name = "devscope.payload"

    def print_builtin(self, printer: Printer) -> None:
        length = len(self.data) if hasattr(self.data, "__len__") else 0
        if length > _MAX_PRINTED_ELEMENTS:
            printer.print_string(f"array<__elided__: {length} elements>")
        else:
            super().print_builtin(printer)


class PayloadType(_Payload, TypeAttribute):
    """An MLIR type (an ``ir.Type``)."""

    name = "devscope.payload_type"


class PayloadLocation(_Payload):
    """An MLIR location (an ``ir.Location``); nothing of it is decoded before it is asked for."""

    name = "devscope.location"

    @classmethod
    def wrap(cls, location: Any) -> PayloadLocation:
        """As the constructor, without its checks."""
        self = cls.__new__(cls)
        object.__setattr__(self, "data", location)
        return self

    def print_builtin(self, printer: Printer) -> None:
        with printer.in_location():
            printer.print_string(str(self.data)[len("loc(") : -1])

    def file_line_col(self) -> tuple[str, int, int] | None:
        """The first position in a file that this location holds, line and column counted from 1, or None."""
        return next((part for part in self._parts if not isinstance(part, str)), None)

    def parts(self) -> tuple[str | tuple[str, int, int], ...]:
        """All names and positions that it holds, what is called before its callers; asked more than once."""
        return self._parts

    @cached_property
    def _parts(self) -> tuple[str | tuple[str, int, int], ...]:
        return tuple(location_parts(self.data))


class PayloadTable:
    """Typed payloads: xDSL sees a `DenseResourceAttr` of the right type, the table knows what it stands for.

    xDSL's definitions accept a closed list of final classes as constants (``arith.constant`` dispatches on the
    exact class), so that a class of our own would not verify; a dense resource is the one of them that means
    "the data is elsewhere".
    """

    def __init__(self) -> None:
        self._held: dict[str, Any] = {}

    def wrap(self, attribute: Any, type: Attribute) -> DenseResourceAttr:
        """A new stand-in of type ``type`` for ``attribute``, an ``ir.Attribute``."""
        handle = f"{HANDLE_PREFIX}{len(self._held)}"
        self._held[handle] = attribute
        # Not through the constructor, which wants a shaped type: NaN payloads are scalars.
        stand_in = DenseResourceAttr.__new__(DenseResourceAttr)
        object.__setattr__(stand_in, "resource_handle", StringAttr(handle))
        object.__setattr__(stand_in, "type", type)
        return stand_in

    def find(self, attribute: DenseResourceAttr) -> Any | None:
        """The ``ir.Attribute`` that ``attribute`` stands for, or None when this table did not make it."""
        return self._held.get(attribute.resource_handle.data)
