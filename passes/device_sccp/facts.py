"""What constant propagation knows of a value: the lattice.

A value without a fact has not been reached. Facts only ever lose content (`meet`), so propagation ends.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

from xdsl.dialects.builtin import (
    AnyFloat,
    BytesAttr,
    DenseIntOrFPElementsAttr,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    TensorType,
)
from xdsl.ir import Attribute
from xdsl.utils.comparisons import to_signed

Scalar: TypeAlias = "IntegerAttr[IntegerType] | IntegerAttr[IndexType] | FloatAttr[AnyFloat]"
"""A known scalar. Integers are in the form of `integer`; floats compare by their bits."""

INDEX_BITS = 64


class Fact(NamedTuple):
    """A scalar's value, or a tensor's extents and what all of its elements are; None where that is not known."""

    element: Scalar | None = None
    shape: tuple[int | None, ...] | None = None

    def meet(self, other: Fact) -> Fact:
        """What holds whichever of two facts does."""
        if self == other:
            return self
        return Fact(self.element if self.element == other.element else None, _common(self.shape, other.shape))

    def within(self, type_: Attribute) -> Fact:
        """This fact of a value of type ``type_``, whose static extents are facts, too.

        An element of another type is none of its elements: ``linalg.fill`` and ``linalg.copy`` convert.
        """
        element = self.element if self.element is not None and self.element.type == element_type(type_) else None
        static = shape_of_type(type_)
        if static is None:
            return Fact(element)
        if self.shape is None or len(self.shape) != len(static):
            return Fact(element, static)
        shape = tuple(s if s is not None else known for s, known in zip(static, self.shape, strict=True))
        return Fact(element, shape)


VARIES = Fact()


def _common(
    one: tuple[int | None, ...] | None, other: tuple[int | None, ...] | None
) -> tuple[int | None, ...] | None:
    if one is None or other is None or len(one) != len(other):
        return None
    return tuple(a if a == b else None for a, b in zip(one, other, strict=True))


def shape_of_type(type_: Attribute) -> tuple[int | None, ...] | None:
    """The extents of a ranked tensor, None for dynamic ones; None for all other types."""
    if not isinstance(type_, TensorType):
        return None
    return tuple(extent if extent >= 0 else None for extent in type_.get_shape())


def element_type(type_: Attribute) -> Attribute:
    """The type of a tensor's elements; other types stand for themselves."""
    return type_.get_element_type() if isinstance(type_, TensorType) else type_


def bits_of(type_: Attribute) -> int:
    """The width of an integer type; ``index`` is as wide as a pointer."""
    return type_.width.data if isinstance(type_, IntegerType) else INDEX_BITS


def integer(value: int, type_: Attribute) -> Scalar | None:
    """``value`` modulo 2 to the width of ``type_``, in the one form that all facts use; None if no integer type.

    Only signless integers have arithmetic, in MLIR as here.
    """
    if isinstance(type_, IndexType):
        return IntegerAttr(to_signed(value, INDEX_BITS), type_)
    if isinstance(type_, IntegerType) and type_.signedness.data.name == "SIGNLESS":
        return IntegerAttr(to_signed(value, type_.width.data), type_)
    return None


def splat(element: Scalar, type_: TensorType[Attribute]) -> DenseIntOrFPElementsAttr | None:
    """``element`` everywhere in a tensor, held as that one element; None if the type is not static."""
    packed = type_.get_element_type()
    if not _is_packed(packed) or packed != element.type or not type_.has_static_shape():
        return None
    data: Any = element.value.data
    number: Any = packed
    shaped: Any = type_
    return DenseIntOrFPElementsAttr(shaped, BytesAttr(number.pack((data,))))


def _is_packed(type_: Attribute) -> bool:
    """Whether xDSL holds dense constants of these elements."""
    if isinstance(type_, IntegerType):
        return type_.width.data in (1, 8, 16, 32, 64)
    return isinstance(type_, IndexType | Float16Type | Float32Type | Float64Type)


def element_of(attribute: Attribute | None) -> Scalar | None:
    """The scalar that a constant is, or has in every position. Data that stays in MLIR is not looked at."""
    if isinstance(attribute, DenseIntOrFPElementsAttr):
        if not _is_packed(attribute.get_element_type()) or len(attribute) == 0 or not attribute.is_splat():
            return None
        attribute = next(iter(attribute.iter_attrs()))
    if isinstance(attribute, IntegerAttr):
        return integer(attribute.value.data, attribute.type)
    return attribute if isinstance(attribute, FloatAttr) else None
