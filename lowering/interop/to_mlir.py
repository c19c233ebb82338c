"""xDSL attributes and types as MLIR's: known ones through the bindings, the rest through their text."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DenseResourceAttr,
    DictionaryAttr,
    FunctionType,
    IndexType,
    IntegerAttr,
    Signedness,
    StringAttr,
    SymbolRefAttr,
    UnitAttr,
    UnregisteredAttr,
    i32,
    i64,
)
from xdsl.ir import Attribute, TypeAttribute
from xdsl.printer import Printer

from devscope.errors import LoweringError
from devscope.lowering.interop.bindings import HEAVY_DIALECT, ir, repair_casters
from devscope.lowering.interop.payload import HANDLE_PREFIX, PayloadAttr, PayloadTable, PayloadType

_MAX_INTEGER_WIDTH = 64


class MLIRAttributes:
    """The MLIR twin of every xDSL attribute and type of one context.

    An xDSL type can stand where MLIR has a type and where it has an attribute that holds a type; the two have
    different twins.
    """

    def __init__(self, context: Any, payloads: PayloadTable) -> None:
        self.context = context
        self._payloads = payloads
        self._types: dict[Attribute, Any] = {}
        self._attributes: dict[Attribute, Any] = {}
        self._builders: dict[type[Attribute], Callable[[Any], Any]] = {
            PayloadAttr: self._own,
            DenseResourceAttr: self._resource,
            IntegerAttr: self._integer,
            StringAttr: lambda a: ir.StringAttr.get(a.data.encode(), context),
            UnitAttr: lambda _: ir.UnitAttr.get(context),
            SymbolRefAttr: self._symbol,
            DenseArrayBase: self._dense_array,
            ArrayAttr: self._array,
            DictionaryAttr: lambda a: ir.DictAttr.get(
                {key: self.attribute(value) for key, value in a.data.items()}, context
            ),
        }

    def type(self, type: Attribute) -> Any:
        """The ``ir.Type`` of an xDSL type. Raises `LoweringError` when MLIR has none."""
        try:
            found = self._types.get(type)
        except TypeError:  # xDSL lets attributes hold lists, which cannot be hashed
            return self._build_type(type)
        if found is None:
            found = self._types[type] = self._build_type(type)
        return found

    def attribute(self, attribute: Attribute) -> Any:
        """The ``ir.Attribute`` of an xDSL attribute. Raises `LoweringError` when MLIR has none."""
        try:
            found = self._attributes.get(attribute)
        except TypeError:
            return self._build(attribute)
        if found is None:
            found = self._attributes[attribute] = self._build(attribute)
        return found

    def remember_type(self, type: Attribute, mlir: Any) -> Attribute:
        """Fix the twin of ``type``, which is returned."""
        self._types[type] = mlir
        return type

    def remember(self, attribute: Attribute, mlir: Any) -> Attribute:
        """Fix the twin of ``attribute``, which is returned."""
        self._attributes[attribute] = mlir
        return attribute

    def is_type(self, type: Attribute, mlir: Any) -> bool:
        """Whether ``type`` is exported as ``mlir``."""
        return self._gives(self._build_type, type, mlir)

    def is_attribute(self, attribute: Attribute, mlir: Any) -> bool:
        """Whether ``attribute`` is exported as ``mlir``."""
        return self._gives(self._build, attribute, mlir)

    @staticmethod
    def _gives(build: Callable[[Attribute], Any], attribute: Attribute, mlir: Any) -> bool:
        try:
            return build(attribute) == mlir
        except LoweringError:
            return False

    # Types

    def _build_type(self, type: Attribute) -> Any:
        if isinstance(type, PayloadType):
            return self._own(type)
        if isinstance(type, FunctionType):
            inputs, results = ([self.type(t) for t in types] for types in (type.inputs, type.outputs))
            return ir.FunctionType.get(inputs, results, self.context)
        return self._parse(ir.Type, type)

    # Attributes

    def _build(self, attribute: Attribute) -> Any:
        if isinstance(attribute, TypeAttribute):
            return ir.TypeAttr.get(self.type(attribute), self.context)
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

    def _integer(self, attribute: IntegerAttr) -> Any:
        type = attribute.type
        if isinstance(type, IndexType) or (
            type.signedness.data is Signedness.SIGNLESS and 1 < type.width.data <= _MAX_INTEGER_WIDTH
        ):
            return ir.IntegerAttr.get(self.type(type), attribute.value.data)
        return self._parse(ir.Attribute, attribute)

    def _array(self, attribute: ArrayAttr[Attribute]) -> Any:
        """As text where an item of its own would have the bindings import ``HEAVY_DIALECT``."""
        if any(_dialect(item) == HEAVY_DIALECT for item in attribute.data):
            return self._parse(ir.Attribute, attribute)
        return ir.ArrayAttr.get([self.attribute(item) for item in attribute.data], self.context)

    def _dense_array(self, attribute: Any) -> Any:
        kinds: dict[Attribute, Any] = {i32: ir.DenseI32ArrayAttr, i64: ir.DenseI64ArrayAttr}
        kind = kinds.get(attribute.elt_type)
        if kind is None:
            return self._parse(ir.Attribute, attribute)
        return kind.get(attribute.get_values(), self.context)

    def _symbol(self, attribute: SymbolRefAttr) -> Any:
        path = [attribute.root_reference.data, *(name.data for name in attribute.nested_references.data)]
        if len(path) == 1:
            return ir.FlatSymbolRefAttr.get(path[0], self.context)
        with self.context:  # the bindings use the current context for the nested names
            return ir.SymbolRefAttr.get(path)

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
            try:
                return kind.parse(text, self.context)
            except TypeError:
                repair_casters(self.context)
                return kind.parse(text, self.context)
        except ir.MLIRError as error:
            details = [diagnostic.message for diagnostic in error.error_diagnostics]
            raise LoweringError(f"MLIR does not accept {text}", notes=details) from None


def _dialect(attribute: Attribute) -> str:
    name = attribute.attr_name.data if isinstance(attribute, UnregisteredAttr) else attribute.name
    return name.partition(".")[0]
