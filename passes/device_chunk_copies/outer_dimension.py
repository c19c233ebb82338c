"""Slicing along the outer dimension: which rows of its operands an operation needs for some rows of its results.

An operation goes *by rows* if row i of each result takes row i of some operands and all of the others: elementwise
ones, reductions and products along other dimensions, and whatever has a batch for its outermost dimension.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, DenseArrayBase, IntegerAttr
from xdsl.ir import Operation
from xdsl.ir.affine import AffineDimExpr, AffineMap

from devscope.analysis.classify import is_tensor
from devscope.dialects.names import op_name
from devscope.dialects.op_facts import facts_of

#: Convolutions and poolings whose images and results have the batch outermost; the second operand is the window.
_WINDOWED = re.compile(r"linalg\.(conv|depthwise_conv|pooling)(_[123]d)?_n[a-z]+(_|$)")


def row_operands(op: Operation) -> list[bool] | None:
    """Per operand, whether it is needed row by row; None if ``op`` does not go by rows.

    Of those that are not, all is needed. Scalars count as such.
    """
    name = op_name(op)
    if name.startswith(("arith.", "math.")):
        return _tensors(op)
    if not name.startswith("linalg.") or not op.results:
        return None
    maps = op.get_attr_or_prop("indexing_maps")
    if isinstance(maps, ArrayAttr):
        return _by_maps(op, [one.data for one in maps.data if isinstance(one, AffineMapAttr)])
    if _asks_for_index(op, 0):
        return None
    if facts_of(op).elementwise:
        return _tensors(op)
    if name == "linalg.matvec" or _WINDOWED.match(name):
        return [is_tensor(value) and number != 1 for number, value in enumerate(op.operands)]
    return _along_dimensions(op, name)


def _tensors(op: Operation) -> list[bool]:
    return [is_tensor(value) for value in op.operands]


def _along_dimensions(op: Operation, name: str) -> list[bool] | None:
    """Operations that say in an attribute which dimensions they are about."""
    if name == "linalg.transpose":
        return _tensors(op) if _integers(op, "permutation")[:1] == [0] else None
    if name == "linalg.reduce":
        return None if 0 in _integers(op, "dimensions") else _tensors(op)
    if name == "linalg.broadcast":
        return [0 not in _integers(op, "dimensions"), True]
    if name == "linalg.softmax":
        dimension = op.get_attr_or_prop("dimension")
        return _tensors(op) if isinstance(dimension, IntegerAttr) and dimension.value.data != 0 else None
    return None


def _integers(op: Operation, key: str) -> list[int]:
    attribute = op.get_attr_or_prop(key)
    return [int(value) for value in attribute.get_values()] if isinstance(attribute, DenseArrayBase) else []


def _by_maps(op: Operation, maps: Sequence[AffineMap]) -> list[bool] | None:
    if len(maps) != len(op.operands):
        return None
    outermost = {_outermost(map_) for map_ in maps[len(maps) - len(op.results) :]}
    loop = outermost.pop()
    if outermost or loop is None or _asks_for_index(op, loop):
        return None
    kinds = op.get_attr_or_prop("iterator_types")  # of named operations: what indexes a result is parallel
    if isinstance(kinds, ArrayAttr) and "parallel" not in str(kinds.data[loop]):
        return None
    needs = [_outermost(map_) == loop for map_ in maps]
    others = (map_.results[1:] if need else map_.results for map_, need in zip(maps, needs, strict=True))
    used_otherwise = any(loop in result.used_dims() for results in others for result in results)
    return None if used_otherwise else needs


def _outermost(map_: AffineMap) -> int | None:
    """The loop that runs over the outermost dimension of an operand."""
    first = map_.results[0] if map_.results else None
    return first.position if isinstance(first, AffineDimExpr) else None


def _asks_for_index(op: Operation, loop: int) -> bool:
    """Whether the body of a ``linalg`` operation asks which iteration of a loop it is."""
    for inner in op.walk():
        if op_name(inner) == "linalg.index":
            dimension = inner.get_attr_or_prop("dim")
            if not isinstance(dimension, IntegerAttr) or dimension.value.data == loop:
                return True
    return False
