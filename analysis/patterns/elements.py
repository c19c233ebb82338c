"""Elementwise operations by kind, in all the ways that they are written, and the bodies of ``linalg.generic``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, TensorType, UnregisteredAttr
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineMap

from devscope.analysis.patterns.python_values import python_value
from devscope.dialects.names import op_name


class Kind(NamedTuple):
    """``scalar``: operations of arith, math and complex; ``tensor``: operations of other dialects on tensors."""

    operands: int
    scalar: str
    tensor: str
    commutative: bool = False


KINDS: dict[str, Kind] = {
    "add": Kind(2, "arith.addf arith.addi complex.add", "linalg.add stablehlo.add tosa.add", True),
    "sub": Kind(2, "arith.subf arith.subi complex.sub", "linalg.sub stablehlo.subtract tosa.sub"),
    "mul": Kind(2, "arith.mulf arith.muli complex.mul", "linalg.mul stablehlo.multiply tosa.mul", True),
    "div": Kind(
        2, "arith.divf arith.divsi arith.divui complex.div", "linalg.div linalg.div_unsigned stablehlo.divide"
    ),
    "max": Kind(2, "arith.maximumf arith.maxsi arith.maxui", "linalg.max stablehlo.maximum tosa.maximum", True),
    "min": Kind(2, "arith.minimumf arith.minsi arith.minui", "linalg.min stablehlo.minimum tosa.minimum", True),
    "pow": Kind(2, "math.powf math.fpowi math.ipowi", "linalg.powf stablehlo.power tosa.pow"),
    "rem": Kind(2, "arith.remf arith.remsi arith.remui", "stablehlo.remainder"),
    "atan2": Kind(2, "math.atan2 complex.atan2", "stablehlo.atan2"),
    "and": Kind(2, "arith.andi", "stablehlo.and tosa.bitwise_and tosa.logical_and", True),
    "or": Kind(2, "arith.ori", "stablehlo.or tosa.bitwise_or tosa.logical_or", True),
    "xor": Kind(2, "arith.xori", "stablehlo.xor tosa.bitwise_xor tosa.logical_xor", True),
    "neg": Kind(1, "arith.negf complex.neg", "linalg.negf stablehlo.negate tosa.negate"),
    "abs": Kind(1, "math.absf math.absi complex.abs", "linalg.abs stablehlo.abs tosa.abs"),
    "exp": Kind(1, "math.exp complex.exp", "linalg.exp stablehlo.exponential tosa.exp"),
    "log": Kind(1, "math.log complex.log", "linalg.log stablehlo.log tosa.log"),
    "expm1": Kind(1, "math.expm1 complex.expm1", "stablehlo.exponential_minus_one"),
    "log1p": Kind(1, "math.log1p complex.log1p", "stablehlo.log_plus_one"),
    "sin": Kind(1, "math.sin complex.sin", "stablehlo.sine tosa.sin"),
    "cos": Kind(1, "math.cos complex.cos", "stablehlo.cosine tosa.cos"),
    "tan": Kind(1, "math.tan complex.tan", "stablehlo.tan"),
    "sqrt": Kind(1, "math.sqrt complex.sqrt", "linalg.sqrt stablehlo.sqrt"),
    "rsqrt": Kind(1, "math.rsqrt complex.rsqrt", "linalg.rsqrt stablehlo.rsqrt tosa.rsqrt"),
    "tanh": Kind(1, "math.tanh complex.tanh", "linalg.tanh stablehlo.tanh tosa.tanh"),
    "cbrt": Kind(1, "math.cbrt", "stablehlo.cbrt"),
    "erf": Kind(1, "math.erf", "linalg.erf chlo.erf tosa.erf"),
    "floor": Kind(1, "math.floor", "linalg.floor stablehlo.floor tosa.floor"),
    "ceil": Kind(1, "math.ceil", "linalg.ceil stablehlo.ceil tosa.ceil"),
    "round": Kind(1, "math.round", "linalg.round stablehlo.round_nearest_afz"),
    "roundeven": Kind(1, "math.roundeven", "stablehlo.round_nearest_even"),
    "logistic": Kind(1, "", "stablehlo.logistic tosa.sigmoid"),
    "select": Kind(3, "arith.select", "linalg.select stablehlo.select tosa.select"),
    "cmp": Kind(2, "arith.cmpf arith.cmpi", "stablehlo.compare"),
}
"""The kinds of elementwise operations that patterns know."""


@cache
def kind_of_scalar(name: str) -> str | None:
    """The kind of an operation of arith, math or complex."""
    return next((kind for kind, row in KINDS.items() if name in row.scalar.split()), None)


@cache
def kind_of_tensor(name: str) -> str | None:
    """The kind of a named operation on tensors."""
    return next((kind for kind, row in KINDS.items() if name in row.tensor.split()), None)


class Body(NamedTuple):
    """What one element of a ``linalg.generic``'s result is computed with, and from which elements."""

    op: Operation
    block: Block
    maps: Sequence[AffineMap]

    def operand_of(self, argument: SSAValue) -> tuple[SSAValue, AffineMap]:
        """The operand that an argument of the body has elements of, and which."""
        index = self.block.args.index(argument)
        return self.op.operands[index], self.maps[index]


def elementwise_body(op: Operation) -> Body | None:
    """The body of a ``linalg.generic`` with one result, every element of which is computed once, at its place."""
    if op_name(op) != "linalg.generic" or len(op.results) != 1:
        return None
    maps, iterators = op.get_attr_or_prop("indexing_maps"), op.get_attr_or_prop("iterator_types")
    if not isinstance(maps, ArrayAttr) or not isinstance(iterators, ArrayAttr):
        return None
    found = [one.data for one in maps if isinstance(one, AffineMapAttr)]
    if len(found) != len(op.operands) or not all(map(is_parallel, iterators)) or not is_identity(found[-1]):
        return None
    block = op.regions[0].first_block
    return None if block is None else Body(op, block, found)


def is_parallel(iterator: Attribute) -> bool:
    """Of an iterator type of a ``linalg.generic``: MLIR's, or xDSL's own, whose text takes longer."""
    return "parallel" in (iterator.value.data if isinstance(iterator, UnregisteredAttr) else str(iterator))


def repetition(op: Operation) -> tuple[SSAValue, tuple[int | None, ...]] | None:
    """What an operation repeats along dimensions, and which one of the result each of its dimensions is, in order;
    None for one of size 1 that is repeated. None for operations that do something else.
    """
    name = op_name(op)
    if name == "linalg.broadcast":
        added = python_value(op.get_attr_or_prop("dimensions"))
        if not isinstance(added, list) or not op.results:
            return None
        return op.operands[0], tuple(d for d in range(len(_shape(op.results[0]))) if d not in added)
    if name == "stablehlo.broadcast_in_dim":
        kept, shape = python_value(op.get_attr_or_prop("broadcast_dimensions")), _shape(op.operands[0])
        if not isinstance(kept, list) or kept != sorted(kept):
            return None
        whole = _shape(op.results[0])
        return op.operands[0], tuple(
            None if size == 1 != whole[d] else d for d, size in zip(kept, shape, strict=True)
        )
    if name == "tensor.expand_shape":
        return _with_ones(op)
    body = elementwise_body(op)
    end = body.block.last_op if body is not None else None
    if body is None or end is None or body.block.first_op is not end:
        return None
    (value,) = end.operands
    if not isinstance(value, BlockArgument) or value.block is not body.block or value.index == len(body.maps) - 1:
        return None
    operand, map_ = body.operand_of(value)
    return (operand, axes_of(map_)) if repeats(map_) else None


def repetition_of(value: SSAValue) -> tuple[SSAValue, tuple[int | None, ...]] | None:
    """The `repetition` that a value is the result of."""
    return repetition(value.owner) if isinstance(value.owner, Operation) else None


def axes_of(map_: AffineMap) -> tuple[int | None, ...]:
    """Of each result of a map that `repeats`, the dimension; None for a constant."""
    return tuple(result.position if isinstance(result, AffineDimExpr) else None for result in map_.results)


def _shape(value: SSAValue) -> tuple[int, ...]:
    return value.type.get_shape() if isinstance(value.type, TensorType) else ()


def _with_ones(op: Operation) -> tuple[SSAValue, tuple[int | None, ...]] | None:
    """Of an operation that adds dimensions of size 1."""
    groups, shape = op.get_attr_or_prop("reassociation"), _shape(op.results[0])
    axes: list[int | None] = []
    for group in groups if isinstance(groups, ArrayAttr) else ():
        numbers = [axis.value.data for axis in group]
        larger = [axis for axis in numbers if shape[axis] != 1] or numbers[:1]
        if len(larger) != 1:
            return None
        axes += larger
    return (op.operands[0], tuple(axes)) if axes else None


def is_identity(map_: AffineMap) -> bool:
    return dimensions_of(map_) == tuple(range(map_.num_dims))


def dimensions_of(map_: AffineMap) -> tuple[int, ...] | None:
    """The dimensions that a map takes, in order; None if it is not made of different ones."""
    found = [result.position for result in map_.results if isinstance(result, AffineDimExpr)]
    whole = len(found) == len(map_.results) and len(set(found)) == len(found)
    return tuple(found) if whole else None


def repeats(map_: AffineMap) -> bool:
    """Whether elements are taken in their order, each along some dimensions again: there the map has a constant,
    or nothing.
    """
    taken = [result.position for result in map_.results if isinstance(result, AffineDimExpr)]
    others = [result for result in map_.results if not isinstance(result, AffineDimExpr)]
    return taken == sorted(set(taken)) and all(isinstance(one, AffineConstantExpr) for one in others)
