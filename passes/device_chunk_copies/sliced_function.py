"""Slicing along the outer dimension: device functions whose results can be had some rows at a time.

An operation goes *by rows* if row i of each result takes row i of some operands and all of the others: elementwise
ones, reductions and products along other dimensions, and whatever has a batch for its outermost dimension.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AffineMapAttr,
    ArrayAttr,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    TensorType,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue, Use
from xdsl.ir.affine import AffineDimExpr, AffineMap
from xdsl.rewriter import Rewriter
from xdsl.utils.disjoint_set import DisjointSet

from devscope.analysis.captured_values import users_in
from devscope.analysis.classify import is_rematerialised, is_scalar_code, is_tensor
from devscope.analysis.effects import has_side_effects
from devscope.analysis.loops import constant_index, static_integers
from devscope.dialects.device import SCOPE_ATTR
from devscope.dialects.names import op_name
from devscope.dialects.op_facts import facts_of
from devscope.dialects.scope_attribute import ARGUMENTS, RESULTS
from devscope.passes.device_sccp.facts import element_of, splat
from devscope.rewriting.functions import clone_function

_VALUE = "value"

#: Convolutions and poolings whose images and results have the batch outermost; the second operand is the window.
_WINDOWED = re.compile(r"linalg\.(conv|depthwise_conv|pooling)(_[123]d)?_n[a-z]+(_|$)")


class SlicedFunction:
    """A function that goes by rows, all of whose results are made so: what they need of its values."""

    def __init__(self, function: FuncOp, results: Sequence[SSAValue]) -> None:
        self.function = function
        self.by_rows = set(results)
        """What is needed row by row; the others of the arguments as a whole."""
        self.counts: set[SSAValue] = set()
        """Numbers that empty tensors take for the number of rows."""
        self.rows = 0
        """How many rows there are, or `DYNAMIC_INDEX`."""
        self.shared: list[SSAValue] = []
        """What is computed from the other arguments alone, and needed for every row."""
        self._whole: set[SSAValue] = set()
        self._work: list[Operation] = []
        """What makes values that are needed as a whole, and is too much to be done again for each chunk."""
        self._together = DisjointSet(_values(function))
        """Values that have the same number of rows, or are it."""
        self._dims: list[Operation] = []
        """Questions for the outermost extent of something."""

    @classmethod
    def of(cls, function: FuncOp) -> SlicedFunction | None:
        """None where some result takes more of an argument than the same rows, or all of what is computed."""
        block = function.body.first_block
        if block is None or block is not function.body.last_block or not isinstance(block.last_op, ReturnOp):
            return None
        found = cls(function, block.last_op.operands)
        if not all(found._follow(op) for op in reversed(list(block.ops)) if op is not block.last_op):
            return None
        extents = {_extent(value) for value in found.by_rows}
        rows = extents.pop() if extents else None
        if rows is None or extents or found.by_rows & found._whole or not found._counts_rows_only():
            return None
        if rows == DYNAMIC_INDEX and not found._are_of_one_number():
            return None
        found.rows = rows
        work = set(found._work)
        left = (op for op in reversed(found._work) if any(user not in work for user in users_in(block, op)))
        found.shared += (value for op in left for value in op.results)
        return found

    def of_rows(self, rows: int, name: str) -> FuncOp:
        """A new function for so many rows; what it shares with other rows are further arguments."""
        clone = clone_function(self.function, name)
        block = clone.body.block
        shared: list[SSAValue] = []
        for old, new in list(zip(_values(self.function), _values(clone), strict=True)):
            if old in self.shared:
                shared.append(new)
            if old not in self.by_rows:
                continue
            made = new.owner
            if isinstance(made, Operation) and (resized := _resized(made, rows)) is not None:
                (made.properties if _VALUE in made.properties else made.attributes)[_VALUE] = resized
            Rewriter.replace_value_with_new_type(new, of_rows(old.type, rows))
        for value in shared:
            value.replace_all_uses_with(block.insert_arg(value.type, len(block.args)))
        known = clone.properties.get(ARGUMENTS)
        assert isinstance(known, ArrayAttr)
        clone.properties[ARGUMENTS] = ArrayAttr([*known, *self._scopes_of_shared()])
        clone.update_function_type()
        return clone

    def of_shared(self, name: str) -> FuncOp:
        """A new function that makes what all rows share, of the same arguments."""
        clone = clone_function(self.function, name)
        end = clone.body.block.last_op
        assert end is not None
        made = dict(zip(_values(self.function), _values(clone), strict=True))
        end.operands = [made[value] for value in self.shared]
        clone.properties[RESULTS] = ArrayAttr(self._scopes_of_shared())
        clone.update_function_type()
        return clone

    def _scopes_of_shared(self) -> list[DictionaryAttr]:
        return [DictionaryAttr({SCOPE_ATTR: self.function.attributes[SCOPE_ATTR]})] * len(self.shared)

    def _follow(self, op: Operation) -> bool:
        """Add what ``op`` needs. False if it cannot be done by rows, nor apart from what is."""
        if is_scalar_code(op):
            return not any(is_tensor(value) for value in op.operands) or self._follow_dim(op)
        if any(result in self.by_rows for result in op.results):
            return self._follow_rows(op)
        self._whole.update(value for inner in op.walk() for value in inner.operands if is_tensor(value))
        if not is_rematerialised(op) and op_name(op) != "linalg.fill":
            self._work.append(op)
        return all(is_tensor(result) for result in op.results) and not has_side_effects(op)

    def _follow_rows(self, op: Operation) -> bool:
        self.by_rows.update(op.results)
        if is_rematerialised(op):
            if op_name(op) == "arith.constant":
                return _resized(op, 1) is not None
            if _extent(op.results[0]) == DYNAMIC_INDEX:
                self.counts.add(op.operands[_leading(op)])
                self._together.union(op.results[0], op.operands[_leading(op)])
            return True
        needs = _row_operands(op)
        if needs is None:
            return False
        for value in op.results:
            self._together.union(op.results[0], value)
        for value, by_rows in zip(op.operands, needs, strict=True):
            if by_rows:
                self.by_rows.add(value)
                self._together.union(op.results[0], value)
            elif is_tensor(value):
                self._whole.add(value)
        # Tensors that a body reads elements of, wherever they are.
        bodies = (inner for inner in op.walk() if inner is not op)
        self._whole.update(value for inner in bodies for value in inner.operands if is_tensor(value))
        return True

    def _follow_dim(self, op: Operation) -> bool:
        axis = constant_index(op.operands[1]) if op_name(op) == "tensor.dim" else None
        if axis == 0:
            self._dims.append(op)
            self._together.union(op.results[0], op.operands[0])
        return axis is not None

    def _counts_rows_only(self) -> bool:
        """Whether a chunk can say how many rows it has wherever it is asked: nothing computes with the answer."""
        asked = {op.results[0] for op in self._dims if op.operands[0] in self.by_rows}
        said = all(value in asked or isinstance(value, BlockArgument) for value in self.counts)
        return said and all(self._is_count(use) for value in self.counts | asked for use in value.uses)

    def _are_of_one_number(self) -> bool:
        """Whether all that is needed by rows has the same number of them, whatever it is."""
        first, *others = self.by_rows
        return all(self._together.connected(first, other) for other in others)

    def _is_count(self, use: Use) -> bool:
        op = use.operation
        made = is_rematerialised(op) and op.results[0] in self.by_rows
        return made and use.index == _leading(op) and _extent(op.results[0]) == DYNAMIC_INDEX


def _leading(op: Operation) -> int:
    """The operand that is the outermost extent of a ``tensor.empty`` or ``tensor.splat``, if that is dynamic."""
    return 1 if op_name(op) == "tensor.splat" else 0


def of_rows(type_: Attribute, rows: int) -> TensorType:
    """The type of so many rows of a tensor."""
    assert isinstance(type_, TensorType)
    return TensorType(type_.get_element_type(), [rows, *type_.get_shape()[1:]], type_.encoding)


def _extent(value: SSAValue) -> int | None:
    """How many rows a tensor has, or `DYNAMIC_INDEX`; None if none, or no rows at all."""
    shape = value.type.get_shape() if isinstance(value.type, TensorType) else ()
    return shape[0] if shape and shape[0] != 0 else None


def _resized(op: Operation, rows: int) -> DenseIntOrFPElementsAttr | None:
    """The value of a constant that has another number of rows; None if they differ, as far as is known."""
    element = element_of(op.get_attr_or_prop(_VALUE)) if op_name(op) == "arith.constant" else None
    return None if element is None else splat(element, of_rows(op.results[0].type, rows))


def _values(function: FuncOp) -> list[SSAValue]:
    """The arguments of a function, and the results of the operations in its block."""
    block = function.body.block
    return [*block.args, *(result for op in block.ops for result in op.results)]


def _row_operands(op: Operation) -> list[bool] | None:
    """Per operand, whether it is needed row by row; None if ``op`` does not go by rows.

    Of those that are not, all is needed. Scalars count as such.
    """
    name = op_name(op)
    if name.startswith(("arith.", "math.")):
        return None if _chooses_by_scalar(op) else _tensors(op)
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


def _chooses_by_scalar(op: Operation) -> bool:
    """Whether a scalar chooses between tensors, which may differ in size."""
    first = facts_of(op).chooses_from
    return first is not None and is_tensor(op.operands[first]) and not is_tensor(op.operands[0])


def _tensors(op: Operation) -> list[bool]:
    return [is_tensor(value) for value in op.operands]


def _along_dimensions(op: Operation, name: str) -> list[bool] | None:
    """Operations that say in an attribute which dimensions they are about."""
    if name == "linalg.transpose":
        return _tensors(op) if static_integers(op, "permutation")[:1] == [0] else None
    if name == "linalg.reduce":
        return None if 0 in static_integers(op, "dimensions") else _tensors(op)
    if name == "linalg.broadcast":
        return [0 not in static_integers(op, "dimensions"), True]
    if name == "linalg.softmax":
        return None if static_integers(op, "dimension") in ([], [0]) else _tensors(op)
    return None


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
    indices = (inner for inner in op.walk() if op_name(inner) == "linalg.index")
    return any(static_integers(index, "dim") in ([], [loop]) for index in indices)
