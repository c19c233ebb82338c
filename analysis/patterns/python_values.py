"""Attributes as Python values."""

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
from xdsl.ir import Attribute

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
