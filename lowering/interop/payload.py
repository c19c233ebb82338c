"""What xDSL cannot hold faithfully, or should not hold because it is large, stays in MLIR: these stand for it."""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import DenseResourceAttr, StringAttr
from xdsl.ir import Attribute, BuiltinAttribute, Data, TypeAttribute
from xdsl.parser import AttrParser
from xdsl.printer import Printer

HANDLE_PREFIX = "devscope_payload_"
_MAX_PRINTED_ELEMENTS = 64


class PayloadAttr(Data[Any], BuiltinAttribute):
    """An MLIR attribute without a type (``data`` is an ``ir.Attribute``), printed as MLIR prints it.

    A payload that has a type is a `DenseResourceAttr`, see `PayloadTable`.
    """

    name = "devscope.payload"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Any:
        parser.raise_error("an attribute held by MLIR has no syntax of its own")

    def print_parameter(self, printer: Printer) -> None:
        self.print_builtin(printer)

    def print_builtin(self, printer: Printer) -> None:
        printer.print_string(_text(self.data))


class PayloadType(Data[Any], BuiltinAttribute, TypeAttribute):
    """An MLIR type (``data`` is an ``ir.Type``), printed as MLIR prints it."""

    name = "devscope.payload_type"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Any:
        parser.raise_error("a type held by MLIR has no syntax of its own")

    def print_parameter(self, printer: Printer) -> None:
        self.print_builtin(printer)

    def print_builtin(self, printer: Printer) -> None:
        printer.print_string(str(self.data))


def _text(attribute: Any) -> str:
    """The text of an ``ir.Attribute``; of a long array only its kind and length."""
    try:
        length = len(attribute)
    except TypeError:
        length = 0
    if length > _MAX_PRINTED_ELEMENTS:
        return f"array<__elided__: {length} elements>"
    return str(attribute)


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
