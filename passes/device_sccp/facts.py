"""What constant propagation knows of a value, and what operations that are no control flow say of their results.

A value without a fact has not been reached. Facts only ever lose content (`meet`), so propagation ends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
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
from xdsl.ir import Attribute, Operation

from devscope.dialects.names import op_name
from devscope.dialects.op_facts import facts_of
from devscope.passes.device_sccp.arithmetic import Scalar, fold, integer, is_folded


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


# Operations


def transfer(op: Operation, operands: Sequence[Fact]) -> list[Fact]:
    """A fact for each result; `VARIES` for what this module does not know."""
    name = op_name(op)
    if not op.results:  # it writes to a buffer
        return []
    if name == "arith.constant":
        return [Fact(element_of(op.get_attr_or_prop("value")))]
    if name == "arith.select" and operands[0].shape is None and operands[1].shape != operands[2].shape:
        return [Fact(_elementwise(name, op, operands).element)]  # of tensors that may differ in size
    if is_folded(name):
        return [_elementwise(name, op, operands)]
    rule = _RULES.get(name)
    if rule is not None:
        return [rule(op, operands)]
    known = facts_of(op)
    if known.elements_of is not None:
        shape = operands[-1].shape if name.startswith("linalg.") else None
        source = operands[known.elements_of]
        element = source.element if isinstance(op.results[0].type, TensorType) else None  # buffers are written to
        return [Fact(element, source.shape if known.same_shape else shape)]
    if known.destination is not None:
        value, destination = operands[0], operands[known.destination]
        return [Fact(value.element if value.element == destination.element else None, destination.shape)]
    if name.startswith("linalg.") and _writes_last_operands(op):
        return [Fact(None, fact.shape) for fact in operands[len(operands) - len(op.results) :]]
    return [VARIES] * len(op.results)


def _elementwise(name: str, op: Operation, operands: Sequence[Fact]) -> Fact:
    """Of scalars, or of tensors of one shape, of which any tells the extents."""
    shape = None
    for fact in operands:
        if fact.shape is not None:
            shape = fact.shape if shape is None else tuple(a or b for a, b in zip(shape, fact.shape, strict=True))
    elements = [fact.element for fact in operands if fact.element is not None]
    if len(elements) != len(operands) or op.get_attr_or_prop("roundingmode") is not None:
        return Fact(None, shape)
    predicate = op.get_attr_or_prop("predicate")
    number = predicate.value.data if isinstance(predicate, IntegerAttr) else None
    return Fact(fold(name, elements, element_type(op.results[0].type), number), shape)


def _writes_last_operands(op: Operation) -> bool:
    """Whether the last operands are initial values of the results, as of all ``linalg`` operations on tensors."""
    count = len(op.results)
    types = [operand.type for operand in op.operands[len(op.operands) - count :]]
    return 0 < count <= len(op.operands) and types == [result.type for result in op.results]


def known_index(fact: Fact) -> int | None:
    return fact.element.value.data if isinstance(fact.element, IntegerAttr) else None


def _dim(op: Operation, operands: Sequence[Fact]) -> Fact:
    axis = known_index(operands[1])
    shape = operands[0].shape
    if axis is None or shape is None or not 0 <= axis < len(shape) or (extent := shape[axis]) is None:
        return VARIES
    return Fact(integer(extent, op.results[0].type))


def _extract(op: Operation, operands: Sequence[Fact]) -> Fact:
    """An element of a tensor that has one value, if it is inside: an index that may not be is to be checked."""
    shape = operands[0].shape
    indices = [known_index(fact) for fact in operands[1:]]
    if indices and shape is None:
        return VARIES
    for index, extent in zip(indices, shape or (), strict=True):
        if index is None or extent is None or not 0 <= index < extent:
            return VARIES
    return Fact(operands[0].element)


def _rank(op: Operation, operands: Sequence[Fact]) -> Fact:
    shape = operands[0].shape
    return VARIES if shape is None else Fact(integer(len(shape), op.results[0].type))


def _sized(op: Operation, extents: Sequence[Fact], element: Scalar | None) -> Fact:
    """A tensor whose dynamic extents are operands, in order."""
    type_ = op.results[0].type
    if not isinstance(type_, TensorType):
        return VARIES
    given = map(known_index, extents)
    shape = [extent if extent >= 0 else next(given, None) for extent in type_.get_shape()]
    return Fact(element, tuple(None if extent is None or extent < 0 else extent for extent in shape))


def _fill(op: Operation, operands: Sequence[Fact]) -> Fact:
    return Fact(operands[0].element, operands[-1].shape) if len(operands) == 2 else VARIES


def _from_elements(op: Operation, operands: Sequence[Fact]) -> Fact:
    elements = {fact.element for fact in operands}
    return Fact(elements.pop() if len(elements) == 1 else None)


def overwritten_result(op: Operation) -> bool:
    """Whether a ``linalg.generic`` has one result whose every element its body yields once.

    So it is where all loops are parallel and the result is indexed by a permutation of them.
    """
    maps = op.get_attr_or_prop("indexing_maps")
    kinds = op.get_attr_or_prop("iterator_types")
    if not isinstance(maps, ArrayAttr) or not isinstance(kinds, ArrayAttr) or len(op.results) != 1:
        return False
    last = maps.data[-1] if maps.data else None
    if not isinstance(last, AffineMapAttr) or any("parallel" not in str(kind) for kind in kinds.data):
        return False
    return last.data.num_dims == len(last.data.results) and last.data.is_projected_permutation()


_RULES: dict[str, Callable[[Operation, Sequence[Fact]], Fact]] = {
    "tensor.dim": _dim,
    "tensor.rank": _rank,
    "tensor.empty": lambda op, operands: _sized(op, operands, None),
    "tensor.splat": lambda op, operands: _sized(op, operands[1:], operands[0].element),
    "tensor.generate": lambda op, operands: _sized(op, operands, None),
    "tensor.extract": _extract,
    "tensor.from_elements": _from_elements,
    "linalg.fill": _fill,
}
