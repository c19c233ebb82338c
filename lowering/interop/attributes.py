"""Attributes and types across the bridge, both ways; each distinct one is converted and checked once."""

import io
import struct
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from math import isfinite, prod
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import (
    ArrayAttr,
    BytesAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    DenseResourceAttr,
    DictionaryAttr,
    FunctionType,
    IndexType,
    IntegerAttr,
    NoneAttr,
    Signedness,
    StringAttr,
    SymbolRefAttr,
    TensorType,
    UnitAttr,
    i32,
    i64,
)
from xdsl.ir import Attribute, TypeAttribute
from xdsl.parser import Parser
from xdsl.printer import Printer

from devscope.errors import LoweringError
from devscope.lowering.interop.bindings import dictionary_items, ir, with_repaired_casters
from devscope.lowering.interop.payload import HANDLE_PREFIX, PayloadAttr, PayloadTable, PayloadType

MAX_HELD_ELEMENTS = 16
"""Dense constants of more elements, unless they are splats, stay in MLIR: Python never sees their elements."""

_MAX_HELD_ARRAY = 1024
"""The same limit for ``array<i64: ...>``, which ops use for offsets and sizes."""

_MAX_INTEGER_WIDTH = 64

_FORMATS = frozenset("bBhHiIqQefd")
"""Of a buffer, those in which xDSL keeps elements, too: it has other bytes for what is true."""


class _Twins:
    """The MLIR twin of each attribute that was asked for, or fixed; ``build`` makes one."""

    def __init__(self, build: Callable[[Attribute], Any]) -> None:
        self._build = build
        self._known: dict[Attribute, Any] = {}

    def __getitem__(self, attribute: Attribute) -> Any:
        """Raises `LoweringError` when MLIR has none."""
        try:
            found = self._known.get(attribute)
        except TypeError:  # xDSL lets attributes hold lists, which cannot be hashed
            return self._build(attribute)
        if found is None:
            found = self._known[attribute] = self._build(attribute)
        return found

    def remember(self, attribute: Attribute, mlir: Any) -> Attribute:
        """Fix the twin of ``attribute``, which is returned."""
        self._known[attribute] = mlir
        return attribute

    def has(self, attribute: Attribute, mlir: Any) -> bool:
        """Whether ``attribute`` would be exported as ``mlir``."""
        try:
            return self._build(attribute) == mlir
        except LoweringError:
            return False


class AttributeBridge:
    """Converts between one ``ir.Context`` and xDSL, both ways: known kinds through the bindings, the rest as text.

    A converted attribute is kept only if exporting it gives the identical MLIR attribute; otherwise xDSL gets
    a payload that stands for it. ``types`` and ``attributes`` take MLIR objects.

    ``mlir_types`` and ``mlir_attributes`` are indexed by xDSL's. An xDSL type can stand where MLIR has a type and
    where it has an attribute that holds a type; the two have different twins.
    """

    def __init__(self, mlir_context: Any, xdsl_context: Context) -> None:
        self.context = mlir_context
        self._xdsl_context = xdsl_context
        self._unknown = ir.Location.unknown(mlir_context)
        self._payloads = PayloadTable()
        # The bindings hash by identity in the context.
        self.types: Callable[[Any], Any] = cache(self._import_type)
        self.attributes: Callable[[Any], Any] = cache(self._import_attribute)
        self.mlir_types = _Twins(self._build_type)
        self.mlir_attributes = _Twins(self._build_attribute)
        self._readers: dict[type, Callable[[Any], Attribute]] = {
            ir.IntegerAttr: lambda attribute: IntegerAttr(attribute.value, self.types(attribute.type)),
            ir.StringAttr: lambda attribute: StringAttr(attribute.value),
            ir.FlatSymbolRefAttr: lambda attribute: SymbolRefAttr(attribute.value),
            ir.UnitAttr: lambda _: UnitAttr(),
            ir.TypeAttr: lambda attribute: self.types(attribute.value),
            ir.ArrayAttr: lambda attribute: ArrayAttr([self.attributes(item) for item in attribute]),
            ir.DictAttr: lambda attribute: DictionaryAttr(
                {name: self.attributes(item) for name, item in dictionary_items(attribute).items()}
            ),
            ir.DenseI64ArrayAttr: lambda attribute: DenseArrayBase.from_list(i64, list(attribute)),
            ir.DenseI32ArrayAttr: lambda attribute: DenseArrayBase.from_list(i32, list(attribute)),
            ir.DenseIntElementsAttr: self._dense,
            ir.DenseFPElementsAttr: self._dense,
        }
        self._builders: dict[type[Attribute], Callable[[Any], Any]] = {
            PayloadAttr: self._own,
            DenseResourceAttr: self._resource,
            IntegerAttr: self._build_integer,
            StringAttr: lambda a: ir.StringAttr.get(a.data.encode(), mlir_context),
            UnitAttr: lambda _: ir.UnitAttr.get(mlir_context),
            SymbolRefAttr: self._build_symbol,
            DenseArrayBase: self._build_dense_array,
            ArrayAttr: self._build_array,
            DictionaryAttr: lambda a: ir.DictAttr.get(
                {key: self.mlir_attributes[value] for key, value in a.data.items()}, mlir_context
            ),
        }

    # To xDSL

    def _import_type(self, type: Any) -> Attribute:
        result = self._held(self.mlir_types, self._read_type, type)
        return result if result is not None else self.mlir_types.remember(PayloadType(type), type)

    def _read_type(self, type: Any) -> Attribute:
        if isinstance(type, ir.FunctionType):
            inputs, results = ([self.types(t) for t in types] for types in (type.inputs, type.results))
            return FunctionType.from_lists(inputs, results)
        if isinstance(type, ir.RankedTensorType):
            # Also one whose encoding xDSL cannot parse is a tensor to every pass.
            encoding = () if type.encoding is None else (self.attributes(type.encoding),)
            return TensorType(self.types(type.element_type), type.shape, *encoding)
        return Parser(self._xdsl_context, str(type)).parse_type()

    def _import_attribute(self, attribute: Any) -> Attribute:
        twins = self.mlir_attributes
        if not _stays_in_mlir(attribute):
            result = self._held(twins, self._readers.get(type(attribute), self._from_text), attribute)
            if result is not None:
                return result
        return twins.remember(self._payload(attribute), attribute)

    def _held(self, twins: _Twins, read: Callable[[Any], Attribute], mlir: Any) -> Attribute | None:
        """What ``read`` makes of ``mlir``; None if that fails, or is not exported as ``mlir`` again."""
        try:
            result = with_repaired_casters(self.context, read, mlir)
        # xDSL refuses what it does not know with ParseError, VerifyException, ValueError, KeyError, IndexError,
        # AssertionError or NotImplementedError, depending on how far it came; all mean: not held by xDSL.
        except Exception:
            return None
        return twins.remember(result, mlir) if twins.has(result, mlir) else None

    def _payload(self, attribute: Any) -> Attribute:
        type = attribute.type
        if isinstance(type, ir.NoneType):  # what the bindings say of an attribute that has no type
            return PayloadAttr(attribute)
        return self._payloads.wrap(attribute, self.types(type))

    def _from_text(self, attribute: Any) -> Attribute:
        return Parser(self._xdsl_context, str(attribute)).parse_attribute()

    def _dense(self, attribute: Any) -> Attribute:
        """Small constants by their bytes, or as text; a splat as its one element, which xDSL knows as one too."""
        shaped = self.types(attribute.type)
        data = _bytes_of(attribute) if 0 < len(attribute) <= MAX_HELD_ELEMENTS else None
        if data is not None:
            return DenseIntOrFPElementsAttr(shaped, BytesAttr(data))
        if len(attribute) <= MAX_HELD_ELEMENTS:
            return self._from_text(attribute)
        # Whatever is not a tensor or vector of numbers fails here, and then stays in MLIR.
        element = self.attributes(attribute.get_splat_value())
        return DenseIntOrFPElementsAttr(shaped, BytesAttr(shaped.element_type.pack((element.value.data,))))

    # To MLIR

    def _build_type(self, type: Attribute) -> Any:
        if isinstance(type, PayloadType):
            return self._own(type)
        if isinstance(type, FunctionType):
            inputs, results = ([self.mlir_types[t] for t in types] for types in (type.inputs, type.outputs))
            return ir.FunctionType.get(inputs, results, self.context)
        if isinstance(type, TensorType):
            element, shape = self.mlir_types[type.element_type], type.get_shape()
            encoding = () if isinstance(type.encoding, NoneAttr) else (self.mlir_attributes[type.encoding],)
            with suppress(ir.MLIRError):  # as text, MLIR says what is wrong with it
                return ir.RankedTensorType.get(shape, element, *encoding, loc=self._unknown)
        return self._parse(ir.Type, type)

    def _build_attribute(self, attribute: Attribute) -> Any:
        if isinstance(attribute, TypeAttribute):
            return ir.TypeAttr.get(self.mlir_types[attribute], self.context)
        build = self._builders.get(type(attribute))
        return self._parse(ir.Attribute, attribute) if build is None else build(attribute)

    def _own(self, payload: PayloadAttr | PayloadType) -> Any:
        if payload.data.context is not self.context:
            raise LoweringError("the module holds constants or types of another session")
        return payload.data

    def _resource(self, attribute: DenseResourceAttr) -> Any:
        held = self._payloads.find(attribute)
        if held is None:
            raise LoweringError(
                f"the data of constant '{attribute.resource_handle.data}' is unknown",
                notes=["only dense resources of a module that this session imported can be exported"],
            )
        return held

    def _build_integer(self, attribute: IntegerAttr) -> Any:
        type = attribute.type
        if isinstance(type, IndexType) or (
            type.signedness.data is Signedness.SIGNLESS and 1 < type.width.data <= _MAX_INTEGER_WIDTH
        ):
            return ir.IntegerAttr.get(self.mlir_types[type], attribute.value.data)
        return self._parse(ir.Attribute, attribute)

    def _build_array(self, attribute: ArrayAttr[Attribute]) -> Any:
        return ir.ArrayAttr.get([self.mlir_attributes[item] for item in attribute.data], self.context)

    def _build_dense_array(self, attribute: Any) -> Any:
        kinds: dict[Attribute, Any] = {i32: ir.DenseI32ArrayAttr, i64: ir.DenseI64ArrayAttr}
        kind = kinds.get(attribute.elt_type)
        if kind is None:
            return self._parse(ir.Attribute, attribute)
        return kind.get(attribute.get_values(), self.context)

    def _build_symbol(self, attribute: SymbolRefAttr) -> Any:
        if attribute.nested_references.data:
            return self._parse(ir.Attribute, attribute)
        return ir.FlatSymbolRefAttr.get(attribute.root_reference.data, self.context)

    def _parse(self, kind: Any, attribute: Attribute) -> Any:
        """Through text; ``kind`` is ``ir.Type`` or ``ir.Attribute``."""
        stream = io.StringIO()
        try:
            Printer(stream=stream, print_generic_format=True).print_attribute(attribute)
        except Exception as error:  # xDSL cannot print all that it can hold; it says so in several ways
            raise LoweringError(f"xDSL cannot print a {attribute.name}: {error!r}") from None
        text = stream.getvalue()
        if HANDLE_PREFIX in text:
            raise LoweringError(f"a constant held by MLIR inside {attribute.name} cannot be exported")
        try:
            return with_repaired_casters(self.context, kind.parse, text, self.context)
        except ir.MLIRError as error:
            details = [diagnostic.message for diagnostic in error.error_diagnostics]
            raise LoweringError(f"MLIR does not accept {text}", notes=details) from None


def _bytes_of(attribute: Any) -> bytes | None:
    """The elements of a dense constant, or the one of a splat, where xDSL has the same bytes for them."""
    try:
        view = memoryview(attribute)
    except (TypeError, BufferError):  # the bindings do not say those of most types
        return None
    if view.format not in _FORMATS:
        return None
    data = view.tobytes()[: view.itemsize if attribute.is_splat else None]
    # Others than numbers are hexadecimal as text, which xDSL does not take for a float.
    numbers = struct.unpack(f"<{len(data) // view.itemsize}{view.format}", data)
    return data if all(map(isfinite, numbers)) else None


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
