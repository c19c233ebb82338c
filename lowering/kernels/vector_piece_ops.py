"""Operations on pieces of vectors, which are vectors of one axis or, of one element, numbers."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from devscope.lowering.interop.bindings import ir
from devscope.lowering.mlir_util import Builder

SIGNED_GREATER, UNSIGNED_LESS = 4, 6
"""Numbers that ``arith.cmpi`` has for its predicates."""


def is_vector(value: Any) -> bool:
    return isinstance(value.type, ir.VectorType)


def vector_type(size: int, element: Any) -> Any:
    """Of a piece: one element is a number."""
    return element if size == 1 else ir.VectorType.get_unchecked([size], element, context=element.context)


def compare(build: Builder, predicate: int, one: Any, other: Any) -> Any:
    integer = partial(ir.IntegerType.get_signless, context=one.type.context)
    attributes = {"predicate": ir.IntegerAttr.get(integer(64), predicate)}
    return build.value("arith.cmpi", [one, other], integer(1), attributes)


def one_element(element: Any) -> Any:
    return ir.VectorType.get_unchecked([1], element, context=element.context)


def as_vector(build: Builder, piece: Any) -> Any:
    return piece if is_vector(piece) else build.value("vector.broadcast", [piece], one_element(piece.type))


def spread(build: Builder, number: Any, type_: Any) -> Any:
    return build.value("vector.broadcast", [number], type_) if isinstance(type_, ir.VectorType) else number


def extract_element(build: Builder, vector: Any, position: int) -> Any:
    at = {"static_position": ir.DenseI64ArrayAttr.get([position], vector.type.context)}
    return build.value("vector.extract", [vector], ir.VectorType(vector.type).element_type, at)


def shuffle_lanes(build: Builder, one: Any, other: Any, lanes: Sequence[int]) -> Any:
    """A piece of these lanes of two vectors of one type."""
    if len(lanes) == 1:
        (size,) = ir.VectorType(one.type).shape
        return extract_element(build, one if lanes[0] < size else other, lanes[0] % size)
    order = {"mask": ir.DenseI64ArrayAttr.get(list(lanes), one.type.context)}
    return build.value(
        "vector.shuffle", [one, other], vector_type(len(lanes), ir.VectorType(one.type).element_type), order
    )
