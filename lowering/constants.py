"""Large constants leave the IR before anything is lowered: LLVM never sees their elements.

A constant's data stays in the MLIR attribute (shared with the parsed module, not copied) until the program
is written; compiled code asks the runtime for it by number. Device constants are uploaded once per executable.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from devscope.errors import LoweringError
from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.runtime_calls import CONSTANT_PREFIX


@dataclass
class ConstantTable:
    """The constants of one program; equal attributes share an entry."""

    _numbers: dict[Any, int] = field(default_factory=dict[Any, int])

    def number(self, attribute: Any) -> int:
        return self._numbers.setdefault(attribute, len(self._numbers))

    def attributes(self) -> list[Any]:
        return list(self._numbers)


def extract_constants(module: Any, table: ConstantTable, wanted: Callable[[int], bool]) -> None:
    """Replace tensor constants by reads of external globals named after their number in ``table``.

    Splats stay (they become fills); of the others, those for whose element count ``wanted`` holds go.
    """
    context = module.context
    declared: set[int] = set()
    for op in list(mlir_util.walk(module.operation)):
        if op.name != "arith.constant" or not isinstance(op.results[0].type, ir.RankedTensorType):
            continue
        value = op.attributes["value"]
        if _is_splat(value) or not wanted(_element_count(op.results[0].type)):
            continue
        number = table.number(value)
        type_ = ir.RankedTensorType(op.results[0].type)
        memref = ir.MemRefType.get(type_.shape, type_.element_type, loc=op.location)
        name = f"{CONSTANT_PREFIX}{number}"
        if number not in declared:
            declared.add(number)
            ir.Operation.create(
                "memref.global",
                attributes={
                    "sym_name": ir.StringAttr.get(name, context),
                    "sym_visibility": ir.StringAttr.get("private", context),
                    "type": ir.TypeAttr.get(memref),
                },
                loc=op.location,
                ip=ir.InsertionPoint.at_block_begin(module.body),
            )
        build = mlir_util.Builder(op)
        symbol = ir.FlatSymbolRefAttr.get(name, context)
        buffer = build.value("memref.get_global", [], memref, {"name": symbol})
        tensor = build.value(
            "bufferization.to_tensor", [buffer], op.results[0].type, {"restrict": ir.UnitAttr.get(context)}
        )
        mlir_util.replace_op(op, [tensor])


def _is_splat(value: Any) -> bool:
    return isinstance(value, ir.DenseElementsAttr) and ir.DenseElementsAttr(value).is_splat


def _element_count(type_: Any) -> int:
    count = 1
    for extent in ir.RankedTensorType(type_).shape:
        count *= extent
    return count


def constant_array(attribute: Any) -> np.ndarray[Any, Any]:
    """The elements of a constant, as they stand in memory at run time; i1 takes one byte per element.

    Dense attributes are viewed, not copied. Raises LoweringError for element types without a numpy twin.
    """
    try:
        if isinstance(attribute, ir.DenseElementsAttr):
            return np.ascontiguousarray(np.array(attribute, copy=None))
        return _resource_array(attribute)
    except (TypeError, KeyError) as error:
        raise LoweringError(
            f"constant of type {attribute.type} cannot be read: {error}",
            notes=["element types of constants: f16, f32, f64, i1, i8, i16, i32, i64, index"],
        ) from None


_RESOURCE_DTYPES = {
    "f16": "<f2",
    "f32": "<f4",
    "f64": "<f8",
    "i1": "?",
    "i8": "i1",
    "i16": "<i2",
    "i32": "<i4",
    "i64": "<i8",
    "index": "<i8",
}


def _resource_array(attribute: Any) -> np.ndarray[Any, Any]:
    """The bindings give no access to a resource's blob, so it is read from the printed form of one op."""
    type_ = ir.ShapedType(attribute.type)
    dtype = _RESOURCE_DTYPES[str(type_.element_type)]
    holder = ir.Module.parse(f'"devscope.holder"() {{value = {attribute}}} : () -> ()', attribute.context)
    blob = re.search(r'"0x([0-9A-Fa-f]+)"', holder.operation.get_asm(large_resource_limit=1 << 62))
    if blob is None:
        raise LoweringError(f"the data of {attribute} is missing from the module")
    data = bytes.fromhex(blob[1])[4:]  # the first four bytes hold the blob's alignment
    return np.frombuffer(data, dtype).reshape(list(type_.shape))
