"""Large constants leave the IR before anything is lowered: LLVM never sees their elements.

A constant's data stays in the MLIR attribute (shared with the parsed module, not copied) until the program
is written; compiled code asks the runtime for it by number. Device constants are uploaded once per executable.
"""

import math
import re
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from devscope.errors import LoweringError
from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir, passmanager, with_repaired_casters
from devscope.lowering.interop.diagnostics import decode_location
from devscope.runtime.dtypes import DTYPES
from devscope.runtime.program import ConstantSpec

CONSTANT_PREFIX = "devscope_constant_"


def constant_number(symbol: str) -> int:
    """The entry of the constant table that a symbol stands for; one entry may have several symbols."""
    return int(symbol.removeprefix(CONSTANT_PREFIX).partition("_")[0])


class ConstantTable:
    """The constants of one program; equal attributes share an entry.

    ``literals`` is the data of dense resources that MLIR does not have, by name.
    """

    def __init__(self, literals: Mapping[str, memoryview]) -> None:
        self._literals = literals
        self._numbers: dict[Any, int] = {}
        self._elements: list[str] = []
        self.arrays: list[np.ndarray[Any, Any]] = []

    def number(self, attribute: Any) -> int:
        """The number of a constant. Raises LoweringError, without a location, when its data cannot be read."""
        if attribute not in self._numbers:
            type_ = ir.ShapedType(attribute.type)
            array = constant_array(attribute, self._literals).reshape(type_.shape)
            self._numbers[attribute] = self.add(array, str(type_.element_type))
        return self._numbers[attribute]

    def add(self, array: np.ndarray[Any, Any], element: str) -> int:
        """The number of a new constant, of elements of a type."""
        self.arrays.append(array)
        self._elements.append(element)
        return len(self.arrays) - 1

    def keep(self, numbers: Collection[int]) -> dict[int, int]:
        """Remove all constants but those of ``numbers``; returns which numbers these have then."""
        new = {old: number for number, old in enumerate(sorted(numbers))}
        self.arrays = [self.arrays[old] for old in new]
        self._elements = [self._elements[old] for old in new]
        self._numbers = {attribute: new[old] for attribute, old in self._numbers.items() if old in new}
        return new

    def specs(self) -> list[ConstantSpec]:
        pairs = zip(self.arrays, self._elements, strict=True)
        return [ConstantSpec(element, list(array.shape)) for array, element in pairs]


def extract_constants(module: Any, table: ConstantTable, most_inline: int) -> None:
    """Replace tensor constants by reads of external globals named after their number in ``table``.

    Splats stay (they become fills), and so do constants of up to ``most_inline`` elements. Complex splats become
    fills here: fusion would make invalid scalars of them. Raises LoweringError for a constant whose data cannot be
    read.
    """
    declared: set[int] = set()
    first = mlir_util.first_child(module)
    for op in mlir_util.walk(module.operation):
        if op.name != "arith.constant" or not isinstance(op.results[0].type, ir.RankedTensorType):
            continue
        type_ = ir.RankedTensorType(op.results[0].type)
        if 0 in type_.shape:  # on a device, immediate data would be an address of the host
            mlir_util.replace_op(op, [mlir_util.Builder(op).value("tensor.empty", [], type_)])
            continue
        value = constant_value(op)
        is_dense = isinstance(value, ir.DenseElementsAttr)
        if is_dense and value.is_splat and isinstance(type_.element_type, ir.ComplexType):
            fill_instead(op, value)
            continue
        if is_dense and (value.is_splat or math.prod(type_.shape) <= most_inline):
            continue
        try:
            number = table.number(value)
        except LoweringError as error:
            error.location = decode_location(op.location)
            raise
        memref = mlir_util.buffer_type(type_.shape, type_.element_type)
        name = f"{CONSTANT_PREFIX}{number}"
        if number not in declared:
            declared.add(number)
            (first,) = mlir_util.insert(first, f'memref.global "private" @{name} : {memref}')
        mlir_util.replace_op(op, [_read(mlir_util.Builder(op), name, memref, type_)])


def constant_symbol(tensor: Any) -> str:
    """The name of the constant in a table that ``tensor`` reads, reshaped maybe; empty if it is none."""
    op = mlir_util.maker(tensor)
    while op is not None and op.name in ("tensor.collapse_shape", "tensor.expand_shape"):
        op = mlir_util.maker(op.operands[0])
    read = mlir_util.maker(op.operands[0]) if op is not None and op.name == "bufferization.to_tensor" else None
    if read is None or read.name != "memref.get_global":
        return ""
    name = ir.FlatSymbolRefAttr(read.attributes["name"]).value
    return name if name.startswith(CONSTANT_PREFIX) else ""


def tensor_elements(tensor: Any, table: ConstantTable) -> np.ndarray[Any, Any] | None:
    """The elements of a tensor that is a constant, in the table or not; None if it is none."""
    if name := constant_symbol(tensor):
        return table.arrays[constant_number(name)].reshape(ir.RankedTensorType(tensor.type).shape)
    op = mlir_util.maker(tensor)
    return None if op is None or op.name != "arith.constant" else constant_array(constant_value(op), {})


def constant_tensor(op: Any, array: np.ndarray[Any, Any], element: Any, table: ConstantTable) -> Any:
    """A tensor in front of ``op`` that is a new constant of the table; ``element``: its type."""
    module = op
    while module.name != "builtin.module":
        module = module.parent
    name = f"{CONSTANT_PREFIX}{table.add(array, str(element))}"
    memref = mlir_util.buffer_type(array.shape, element)
    mlir_util.insert(mlir_util.first_child(module), f'memref.global "private" @{name} : {memref}')
    type_ = ir.RankedTensorType.get(array.shape, element, loc=op.location)
    return _read(mlir_util.Builder(op), name, memref, type_)


def _read(build: mlir_util.Builder, name: str, memref: Any, type_: Any) -> Any:
    context = memref.context
    symbol = ir.FlatSymbolRefAttr.get(name, context)
    buffer = build.value("memref.get_global", [], memref, {"name": symbol})
    restrict = {"restrict": ir.UnitAttr.get(context)}
    return build.value("bufferization.to_tensor", [buffer], type_, restrict)


def constant_value(constant: Any) -> Any:
    """What an ``arith.constant`` or ``stablehlo.constant`` is."""
    return with_repaired_casters(constant.context, lambda: constant.attributes["value"])


def fill_instead(constant: Any, splat: Any) -> None:
    """Replace an ``arith.constant`` that is ``splat`` by a ``linalg.fill``."""
    type_ = constant.results[0].type
    element = type_.element_type
    number = f"arith.constant {splat.get_splat_value()}"
    if isinstance(element, ir.ComplexType):
        number = f"complex.constant {splat.get_splat_value()} : {element}"
    text = f"""
        %value = {number}
        %empty = tensor.empty() : {type_}
        %fill = linalg.fill ins(%value : {element}) outs(%empty : {type_}) -> {type_}
    """
    mlir_util.replace_op(constant, mlir_util.insert(constant, text)[-1].results)


def constant_array(attribute: Any, literals: Mapping[str, memoryview]) -> np.ndarray[Any, Any]:
    """The elements of a constant, as they stand in memory at run time; i1 takes one byte per element.

    Literals are viewed, and dense attributes where numpy has their element type. Raises LoweringError, without a
    location.
    """
    element = str(ir.ShapedType(attribute.type).element_type)
    dtype = DTYPES.get(element)
    if dtype is None:
        raise LoweringError(
            f"a constant of type {attribute.type} cannot be compiled",
            notes=[f"element types of constants: {', '.join(DTYPES)}"],
        )
    if not isinstance(attribute, ir.DenseElementsAttr):
        return _resource_array(attribute, dtype, literals)
    if element == "bf16":
        return _bf16_array(attribute)
    if dtype.kind == "c":
        return _complex_array(attribute, dtype)
    return np.ascontiguousarray(np.array(attribute, copy=None))


def _bf16_array(attribute: Any) -> np.ndarray[Any, Any]:
    """bf16 elements, which the bindings do not show, are cast to integers by MLIR."""
    integers = str(attribute.type).replace("bf16", "i16")
    text = f"""
        func.func @bits() -> {integers} {{
          %elements = arith.constant dense<0.0> : {attribute.type}
          %bits = arith.bitcast %elements : {attribute.type} to {integers}
          func.return %bits : {integers}
        }}
    """
    module = ir.Module.parse(text, attribute.context)
    elements = next(op for op in mlir_util.walk(module.operation) if op.name == "arith.constant")
    elements.attributes["value"] = attribute  # not in the text: it may be large
    passmanager.PassManager.parse("builtin.module(canonicalize)", attribute.context).run(module.operation)
    bits = next(op for op in mlir_util.walk(module.operation) if op.name == "arith.constant")
    return np.array(bits.attributes["value"], copy=None).view(DTYPES["bf16"])


_COMPLEX = re.compile(r"\(([^,()]+),([^,()]+)\)")


def _complex_array(attribute: Any, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Complex elements, which the bindings do not show, are read as MLIR prints them: many in hexadecimal."""
    text = str(attribute)
    if text.startswith('dense<"0x'):
        elements = np.frombuffer(bytes.fromhex(text[len('dense<"0x') : text.index('"', len('dense<"'))]), dtype)
    else:
        part = dtype.type().real.dtype
        elements = np.array([[_number(n, part) for n in pair] for pair in _COMPLEX.findall(text)]).view(dtype)
    return elements.reshape(ir.ShapedType(attribute.type).shape)


def _number(text: str, dtype: np.dtype[Any]) -> Any:
    """A decimal number, or the bits of one that has no decimals (NaN, infinity)."""
    if text.startswith("0x"):
        return np.array(int(text, 16), f"u{dtype.itemsize}").view(dtype)
    return dtype.type(text)


def _resource_array(
    attribute: Any, dtype: np.dtype[Any], literals: Mapping[str, memoryview]
) -> np.ndarray[Any, Any]:
    name = re.match(r'dense_resource<"?([^">]*)"?>', str(attribute))
    if name is None:
        raise LoweringError(
            "a sparse constant cannot be compiled", notes=["write all of its elements: dense<[...]>"]
        )
    shape = ir.ShapedType(attribute.type).shape
    data = literals.get(name[1])
    if data is None:
        data = _blob(attribute)
    needed = math.prod(shape) * dtype.itemsize
    if len(data) != needed:
        raise LoweringError(f"the data of {attribute} has {len(data)} bytes, its type needs {needed}")
    return np.frombuffer(data, dtype).reshape(shape)


def _blob(attribute: Any) -> bytes:
    """The bindings give no access to a resource's blob, so it is read from the printed form of one op."""
    holder = ir.Module.create(ir.Location.unknown(attribute.context)).operation
    holder.attributes["device.value"] = attribute
    blob = re.search(r'"0x([0-9A-Fa-f]+)"', holder.get_asm(large_resource_limit=1 << 62))
    if blob is None:
        raise LoweringError(
            f"the data of {attribute} is missing from the module",
            notes=["it belongs between '{-#' and '#-}' at the end of the file"],
        )
    return bytes.fromhex(blob[1])[4:]  # the first four bytes hold the blob's alignment
