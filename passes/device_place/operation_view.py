"""What rules may ask of an operation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, FloatAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.type import get_element_type_or_self

from devscope.analysis.machine import DYNAMIC_SIZE, TRIP_COUNT
from devscope.analysis.symbols import function_of
from devscope.analysis.value_kinds import HOST, kind_of
from devscope.dialects.location import source_kinds, source_parts
from devscope.dialects.names import op_name
from devscope.errors import SourceLocation
from devscope.passes.device_plan.min_cost.sizes import Sizes
from devscope.passes.device_plan.min_cost.work import Estimator, Work

_ESTIMATOR = Estimator(DYNAMIC_SIZE, TRIP_COUNT)
_SIZES = Sizes(DYNAMIC_SIZE)


class OperationView:
    """An operation, as rules see it; everything is worked out when it is asked for."""

    def __init__(self, op: Operation) -> None:
        self._op = op
        self.name = op_name(op)
        """Such as ``"linalg.matmul"``."""

    def __repr__(self) -> str:
        return f"<{self.name} {self.shapes} at {', '.join(map(str, self.locations)) or 'no location'}>"

    @cached_property
    def kinds(self) -> Sequence[str]:
        """Its name, and the names of what it was made of: ``["linalg.matmul", "stablehlo.dot_general"]``."""
        return list(dict.fromkeys([self.name, *source_kinds(self._op)]))

    @cached_property
    def locations(self) -> Sequence[str | SourceLocation]:
        """The names and positions in its location; what is called comes before its callers."""
        return source_parts(self._op)

    @cached_property
    def names(self) -> Sequence[str]:
        """The names in its location."""
        return [part for part in self.locations if isinstance(part, str)]

    @property
    def function(self) -> str:
        """The name of the function that it stands in."""
        function = function_of(self._op)
        return function.sym_name.data if function is not None else ""

    @property
    def shapes(self) -> list[tuple[int | None, ...]]:
        """Of its results; None for what is known at run time only."""
        return [_shape(value) for value in self._op.results]

    @property
    def operand_shapes(self) -> list[tuple[int | None, ...]]:
        return [_shape(value) for value in self._op.operands]

    @property
    def dtypes(self) -> list[str]:
        """Element types of its results, as MLIR writes them: ``"f32"``."""
        return [str(get_element_type_or_self(value.type)) for value in self._op.results]

    @property
    def operand_dtypes(self) -> list[str]:
        return [str(get_element_type_or_self(value.type)) for value in self._op.operands]

    @property
    def attributes(self) -> Mapping[str, Any]:
        """By name; numbers, texts and lists of them as Python has them, other attributes as MLIR writes them."""
        return {name: _plain(value) for name, value in {**self._op.attributes, **self._op.properties}.items()}

    @cached_property
    def elements(self) -> int:
        """Of its largest result, or of its largest operand if it has none; unknown dimensions count as 1,024."""
        values = [v for v in self._op.results if kind_of(v.type) != HOST] or list(self._op.operands)
        return max((math.prod(_SIZES.shape(value.type)) for value in values), default=1)

    @property
    def bytes(self) -> float:
        """That it reads and writes."""
        return self._work.bytes

    @property
    def flops(self) -> float:
        """That it computes."""
        return self._work.flops

    @cached_property
    def _work(self) -> Work:
        return _ESTIMATOR.work(self._op)


def _shape(value: SSAValue) -> tuple[int | None, ...]:
    dimensions: Sequence[int] = getattr(value.type, "get_shape", tuple[int, ...])()
    return tuple(None if size < 0 else size for size in dimensions)


def _plain(value: Attribute) -> Any:
    match value:
        case IntegerAttr() | FloatAttr():
            return value.value.data
        case StringAttr():
            return value.data
        case ArrayAttr():
            return [_plain(entry) for entry in value]
        case DenseArrayBase():
            values: Any = value  # of integers, or of floats
            return list(values.get_values())
        case _:
            return str(value)
