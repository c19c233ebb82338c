"""Attributes as Python values, and the one value that all elements of a constant have."""

from __future__ import annotations

import re
from math import prod
from typing import Any

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IntegerAttr,
    StringAttr,
    SymbolRefAttr,
    UnitAttr,
    i1,
)
from xdsl.ir import Attribute, Operation, SSAValue

from devscope.dialects.names import op_name
from devscope.dialects.op_facts import facts_of

_ENUM = re.compile(r"#\w+(?:\.\w+)?<(?:\w+ )?(\w+)>")


def python_value(attribute: Attribute | None) -> Any:
    """Numbers, texts, and lists of these; True for a unit; text as MLIR writes it for anything else."""
    match attribute:
        case None:
            return None
        case IntegerAttr():
            return bool(attribute.value.data) if attribute.type == i1 else attribute.value.data
        case FloatAttr():
            return attribute.value.data
        case StringAttr():
            return attribute.data
        case SymbolRefAttr():
            return attribute.string_value()
        case UnitAttr():
            return True
        case ArrayAttr():
            return [python_value(item) for item in attribute]
        case DenseArrayBase():
            return _numbers(attribute)
        case DenseIntOrFPElementsAttr():
            values = list(attribute.get_values())
            return values * prod(attribute.get_shape()) if len(values) == 1 else values  # of a splat there is one
        case _:
            text = str(attribute)
            enum = _ENUM.fullmatch(text)
            return enum[1].lower() if enum is not None else text


def _numbers(array: Any) -> list[float]:
    return list(array.get_values())


def splat_value(value: SSAValue) -> float | None:
    """What a scalar constant is, or every element of a tensor that is made from one; None if that is not known."""
    owner = value.owner
    while isinstance(owner, Operation):
        facts = facts_of(owner)
        if facts.fills or op_name(owner) == "linalg.broadcast":
            value = owner.operands[0]
        elif facts.rematerialised and not owner.operands:
            number = owner.get_attr_or_prop("value")  # an integer's attribute is false if the number is 0
            return _splat(owner.get_attr_or_prop("values") if number is None else number)
        else:
            return None
        owner = value.owner
    return None


def _splat(attribute: Attribute | None) -> float | None:
    if isinstance(attribute, DenseIntOrFPElementsAttr):
        if len(attribute) == 0 or not attribute.is_splat():
            return None
        try:
            attribute = next(iter(attribute.iter_attrs()))
        except (NotImplementedError, StopIteration):  # elements that xDSL does not unpack
            return None
    if isinstance(attribute, IntegerAttr | FloatAttr):
        return float(attribute.value.data)
    return None


def transposes(product: Operation) -> tuple[bool, bool] | None:
    """Which factors a product of matrices itself reads transposed; None where its indexing maps are others."""
    maps = product.get_attr_or_prop("indexing_maps")
    if maps is None:
        return False, False
    found = [str(one.data) for one in getattr(maps, "data", ())]
    batch = 1 if op_name(product) == "linalg.batch_matmul" else 0
    dims = [f"d{number}" for number in range(batch + 3)]
    lead, (m, n, k) = dims[:batch], dims[batch:]

    def written(*results: str) -> str:
        return f"({', '.join(dims)}) -> ({', '.join([*lead, *results])})"

    if len(found) != 3 or found[2] != written(m, n):
        return None
    a = {written(m, k): False, written(k, m): True}.get(found[0])
    b = {written(k, n): False, written(n, k): True}.get(found[1])
    return None if a is None or b is None else (a, b)
