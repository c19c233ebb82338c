"""Attributes and types across the bridge; each distinct one is converted once, and checked when it is."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import (
    ArrayAttr,
    BytesAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    FunctionType,
    IntegerAttr,
    StringAttr,
    SymbolRefAttr,
    TensorType,
    UnitAttr,
    i32,
    i64,
)
from xdsl.ir import Attribute
from xdsl.parser import Parser

from devscope.lowering.interop.bindings import dictionary_items, ir, repair_casters
from devscope.lowering.interop.payload import PayloadAttr, PayloadTable, PayloadType
from devscope.lowering.interop.to_mlir import MLIRAttributes

__all__ = ["AttributeBridge", "PayloadAttr", "PayloadTable", "PayloadType"]

MAX_HELD_ELEMENTS = 16
"""Dense constants of more elements, unless they are splats, stay in MLIR: Python never sees their elements."""

_MAX_HELD_ARRAY = 1024
"""The same limit for ``array<i64: ...>``, which ops use for offsets and sizes."""


class _Memo(dict[Any, Attribute]):
    """What each MLIR object became, keyed by the object (the bindings hash by identity in the context)."""

    def __init__(self, convert: Callable[[Any], Attribute]) -> None:
        super().__init__()
        self._convert = convert

    def __missing__(self, key: Any) -> Attribute:
        value = self[key] = self._convert(key)
        return value


class AttributeBridge:
    """Converts between one ``ir.Context`` and xDSL, both ways.

    A converted attribute is kept only if exporting it gives the identical MLIR attribute; otherwise xDSL gets
    a payload that stands for it. ``types`` and ``attributes`` are indexed by MLIR objects; so is ``enumerators``,
    which is ``attributes`` for arrays of a dialect's enumerators, such as linalg's iterator types.
    """

    def __init__(self, mlir_context: Any, xdsl_context: Context) -> None:
        self._xdsl_context = xdsl_context
        self.payloads = PayloadTable()
        self.exported = MLIRAttributes(mlir_context, self.payloads)
        self.types = _Memo(self._import_type)
        self.attributes = _Memo(self._import_attribute)
        self.enumerators = _Memo(self._import_enumerators)
        self._readers: dict[type, Callable[[Any], Attribute]] = {
            ir.IntegerAttr: self._integer,
            ir.StringAttr: self._string,
            ir.FlatSymbolRefAttr: self._flat_symbol,
            ir.UnitAttr: lambda _: UnitAttr(),
            ir.TypeAttr: lambda attribute: self.types[attribute.value],
            ir.ArrayAttr: lambda attribute: ArrayAttr([self.attributes[item] for item in attribute]),
            ir.DictAttr: lambda attribute: DictionaryAttr(
                {name: self.attributes[item] for name, item in dictionary_items(attribute).items()}
            ),
            ir.DenseI64ArrayAttr: lambda attribute: DenseArrayBase.from_list(i64, list(attribute)),
            ir.DenseI32ArrayAttr: lambda attribute: DenseArrayBase.from_list(i32, list(attribute)),
            ir.DenseIntElementsAttr: self._dense,
            ir.DenseFPElementsAttr: self._dense,
        }

    # Types

    def _import_type(self, type: Any) -> Attribute:
        for read in (self._read_type, self._tensor_with_encoding):
            result = self._attempt(read, type)
            if result is not None and self.exported.is_type(result, type):
                return self.exported.remember_type(result, type)
        return self.exported.remember_type(PayloadType(type), type)

    def _read_type(self, type: Any) -> Attribute:
        if isinstance(type, ir.FunctionType):
            inputs, results = ([self.types[t] for t in types] for types in (type.inputs, type.results))
            return FunctionType.from_lists(inputs, results)
        return Parser(self._xdsl_context, str(type)).parse_type()

    def _tensor_with_encoding(self, type: Any) -> Attribute:
        """A tensor whose encoding xDSL cannot parse is still a tensor to every pass."""
        shape = [type.get_dim_size(i) if type.is_static_dim(i) else -1 for i in range(type.rank)]
        return TensorType(self.types[type.element_type], shape, self.attributes[type.encoding])

    # Attributes

    def _import_attribute(self, attribute: Any) -> Attribute:
        if not _stays_in_mlir(attribute):
            result = self._attempt(self._readers.get(type(attribute), self._from_text), attribute)
            if result is not None and self.exported.is_attribute(result, attribute):
                return self.exported.remember(result, attribute)
        return self.exported.remember(self._payload(attribute), attribute)

    def _import_enumerators(self, array: Any) -> Attribute:
        """As text: a look at an item would have the bindings import the dialect's module (``HEAVY_DIALECT``)."""
        result = self._attempt(self._from_text, array)
        if result is not None and self.exported.is_attribute(result, array):
            return self.exported.remember(result, array)
        return self.attributes[array]

    def _attempt(self, read: Callable[[Any], Attribute], mlir: Any) -> Attribute | None:
        """What ``read`` makes of ``mlir``, or None when it fails."""
        try:
            return read(mlir)
        except TypeError:  # perhaps from the bindings
            repair_casters(self.exported.context)
        # xDSL refuses what it does not know with ParseError, VerifyException, ValueError, KeyError, IndexError,
        # AssertionError or NotImplementedError, depending on how far it came; all mean: not held by xDSL.
        except Exception:
            return None
        try:
            return read(mlir)
        except Exception:
            return None

    def _payload(self, attribute: Any) -> Attribute:
        type = attribute.type
        if isinstance(type, ir.NoneType):  # what the bindings say of an attribute that has no type
            return PayloadAttr(attribute)
        return self.payloads.wrap(attribute, self.types[type])

    def _from_text(self, attribute: Any) -> Attribute:
        return Parser(self._xdsl_context, str(attribute)).parse_attribute()

    def _integer(self, attribute: Any) -> Attribute:
        type: Any = self.types[attribute.type]
        return IntegerAttr(attribute.value, type)

    def _string(self, attribute: Any) -> Attribute:
        return StringAttr(attribute.value)

    def _flat_symbol(self, attribute: Any) -> Attribute:
        return SymbolRefAttr(attribute.value)

    def _dense(self, attribute: Any) -> Attribute:
        """Small constants through text; a large splat as its one element, which xDSL knows as a splat too."""
        if len(attribute) <= MAX_HELD_ELEMENTS:
            return self._from_text(attribute)
        # Any: whatever is not a tensor or vector of numbers fails here, and then stays in MLIR.
        shaped: Any = self.types[attribute.type]
        element: Any = self.attributes[attribute.get_splat_value()]
        return DenseIntOrFPElementsAttr(shaped, BytesAttr(shaped.element_type.pack((element.value.data,))))


def _stays_in_mlir(attribute: Any) -> bool:
    """Whether ``attribute`` is too large for Python. Looks at types and lengths only, never at elements."""
    if isinstance(attribute, ir.DenseElementsAttr):
        return not attribute.is_splat and len(attribute) > MAX_HELD_ELEMENTS
    if isinstance(attribute, ir.DenseResourceElementsAttr):
        return True
    if isinstance(attribute, _ARRAYS):
        return len(attribute) > _MAX_HELD_ARRAY
    # Of sparse constants, and dense ones of strings, only the type is visible.
    return isinstance(attribute.type, ir.ShapedType) and prod(attribute.type.shape) > MAX_HELD_ELEMENTS


_ARRAYS = (
    ir.DenseBoolArrayAttr,
    ir.DenseI8ArrayAttr,
    ir.DenseI16ArrayAttr,
    ir.DenseI32ArrayAttr,
    ir.DenseI64ArrayAttr,
    ir.DenseF32ArrayAttr,
    ir.DenseF64ArrayAttr,
)
