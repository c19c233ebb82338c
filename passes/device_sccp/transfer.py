"""What an operation that is no control flow says about its results, given what is known of its operands."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, IntegerAttr, TensorType
from xdsl.ir import Operation

from devscope.dialects.names import op_name
from devscope.dialects.op_facts import facts_of
from devscope.passes.device_sccp.arithmetic import fold, is_folded
from devscope.passes.device_sccp.facts import VARIES, Fact, Scalar, element_of, element_type, integer


def transfer(op: Operation, operands: Sequence[Fact]) -> list[Fact]:
    """A fact for each result; `VARIES` for what this module does not know."""
    name = op_name(op)
    if name == "arith.constant":
        return [Fact(element_of(op.get_attr_or_prop("value")))]
    if is_folded(name):
        return [_elementwise(name, op, operands)]
    rule = _RULES.get(name)
    if rule is not None:
        return [rule(op, operands)]
    known = facts_of(op)
    if known.elements_of is not None:
        shape = operands[-1].shape if name.startswith("linalg.") else None
        source = operands[known.elements_of]
        return [source if known.same_shape else Fact(source.element, shape)]
    if known.destination is not None and op.results:
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
    "tensor.extract": lambda op, operands: Fact(operands[0].element),
    "tensor.from_elements": _from_elements,
    "linalg.fill": _fill,
}
