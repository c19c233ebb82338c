"""Kinds of operations, in the order in which generated code fuses less and less: TVM's operator patterns."""

from __future__ import annotations

from enum import IntEnum

from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr
from xdsl.ir import Operation

from devscope.analysis.patterns.elements import elementwise_body, is_identity, repeats
from devscope.dialects.names import op_name
from devscope.dialects.op_facts import facts_of
from devscope.passes.device_plan.min_cost.work import is_contraction


class Kind(IntEnum):
    """A set of operations has the largest kind of one."""

    ELEMENTWISE = 0
    BROADCAST = 1
    INJECTIVE = 2
    """Every element is one of the operand's, at another place."""
    REDUCTION = 3
    FUSABLE = 4
    """What elementwise operations can be fused to: products and convolutions."""
    OPAQUE = 5


_REDUCTIONS = frozenset({"linalg.reduce", "stablehlo.reduce", "linalg.softmax"})


def kind_of(op: Operation) -> Kind:
    """The kind of one operation."""
    name, facts = op_name(op), facts_of(op)
    if facts.elementwise:
        return Kind.ELEMENTWISE
    if name == "linalg.broadcast":
        return Kind.BROADCAST
    if facts.moves or facts.view_of is not None or facts.destination is not None:
        return Kind.INJECTIVE
    if is_contraction(name):
        return Kind.FUSABLE
    if name in _REDUCTIONS:
        return Kind.REDUCTION
    if name == "linalg.generic":
        return _kind_of_generic(op)
    return Kind.ELEMENTWISE if facts.fills else Kind.OPAQUE


def _kind_of_generic(op: Operation) -> Kind:
    body = elementwise_body(op)
    if body is None:
        return Kind.FUSABLE if _multiplies(op) else Kind.REDUCTION
    if all(is_identity(map_) for map_ in body.maps):
        return Kind.ELEMENTWISE
    return Kind.BROADCAST if all(map(repeats, body.maps)) else Kind.INJECTIVE


def _multiplies(op: Operation) -> bool:
    """Whether a generic with a reduction multiplies elements of two operands that are not the result's."""
    maps = op.get_attr_or_prop("indexing_maps")
    if not isinstance(maps, ArrayAttr) or len(maps) < 3:
        return False
    last = maps.data[-1]
    fewer = isinstance(last, AffineMapAttr) and len(last.data.results) < last.data.num_dims
    return fewer and any(op_name(inner) in ("arith.mulf", "arith.muli", "complex.mul") for inner in op.walk())


MAY_FOLLOW = (
    (Kind.FUSABLE, Kind.BROADCAST),
    (Kind.BROADCAST, Kind.REDUCTION),
    (Kind.INJECTIVE, Kind.INJECTIVE),
)
"""Up to which kind may stand before up to which one, in one kernel of generated code."""
