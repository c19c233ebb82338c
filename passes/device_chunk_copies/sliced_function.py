"""Slicing along the outer dimension: device functions whose results can be had some rows at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    TensorType,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Operation, SSAValue, Use
from xdsl.rewriter import Rewriter
from xdsl.utils.disjoint_set import DisjointSet

from devscope.analysis.captured_values import users_in
from devscope.analysis.classify import is_rematerialised, is_scalar_code, is_tensor
from devscope.analysis.effects import has_side_effects
from devscope.analysis.loops import constant_index
from devscope.dialects.device import SCOPE_ATTR
from devscope.dialects.names import op_name
from devscope.dialects.signature import ARGUMENTS, RESULTS
from devscope.passes.device_chunk_copies.outer_dimension import row_operands
from devscope.passes.device_sccp.facts import element_of, splat
from devscope.rewriting.functions import clone_function

_VALUE = "value"


@dataclass(frozen=True)
class SlicedFunction:
    """A function that goes by rows.

    ``rows``: how many there are, or `DYNAMIC_INDEX`; ``arguments``: which arguments are needed row by row. All
    results are made so. ``counts``: which arguments are no more than the number of rows. ``shared``: what is
    computed from the other arguments alone, and needed for every row.
    """

    function: FuncOp
    rows: int
    arguments: tuple[bool, ...]
    counts: tuple[bool, ...]
    shared: tuple[SSAValue, ...]
    _by_rows: frozenset[SSAValue]

    @classmethod
    def of(cls, function: FuncOp) -> SlicedFunction | None:
        """None where some result takes more of an argument than the same rows, or all of what is computed."""
        block = function.body.first_block
        if block is None or block is not function.body.last_block or not isinstance(block.last_op, ReturnOp):
            return None
        needs = _Needs(_values(function))
        needs.by_rows.update(block.last_op.operands)
        for op in reversed(list(block.ops)):
            if op is not block.last_op and not needs.follow(op):
                return None
        extents = {_extent(value) for value in needs.by_rows}
        rows = extents.pop() if extents else None
        if rows is None or extents or needs.by_rows & needs.whole or not needs.count_rows_only():
            return None
        if rows == DYNAMIC_INDEX and not needs.are_of_one_number():
            return None
        arguments = tuple(argument in needs.by_rows for argument in block.args)
        counts = tuple(argument in needs.counts for argument in block.args)
        work = set(needs.work)
        left = [op for op in reversed(needs.work) if any(user not in work for user in users_in(block, op))]
        shared = tuple(value for op in left for value in op.results)
        return cls(function, rows, arguments, counts, shared, frozenset(needs.by_rows))

    def of_rows(self, rows: int, name: str) -> FuncOp:
        """A new function for so many rows; what it shares with other rows are further arguments."""
        clone = clone_function(self.function, name)
        block = clone.body.block
        shared: list[SSAValue] = []
        for old, new in list(zip(_values(self.function), _values(clone), strict=True)):
            if old in self.shared:
                shared.append(new)
            if old not in self._by_rows:
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


class _Needs:
    """What the results need of a function's values, found backwards."""

    def __init__(self, values: Sequence[SSAValue]) -> None:
        self.by_rows: set[SSAValue] = set()
        self.whole: set[SSAValue] = set()
        self.work: list[Operation] = []
        """What makes values that are needed as a whole, and is too much to be done again for each chunk."""
        self.counts: set[SSAValue] = set()
        """Numbers that empty tensors take for the number of rows."""
        self._together = DisjointSet(values)
        """Values that have the same number of rows, or are it."""
        self._dims: list[Operation] = []
        """Questions for the outermost extent of something."""

    def follow(self, op: Operation) -> bool:
        """Add what ``op`` needs. False if it cannot be done by rows, nor apart from what is."""
        if is_scalar_code(op):
            return not any(is_tensor(value) for value in op.operands) or self._follow_dim(op)
        if any(result in self.by_rows for result in op.results):
            return self._follow_rows(op)
        self.whole.update(value for inner in op.walk() for value in inner.operands if is_tensor(value))
        if not is_rematerialised(op) and op_name(op) != "linalg.fill":
            self.work.append(op)
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
        needs = row_operands(op)
        if needs is None:
            return False
        for value in op.results:
            self._together.union(op.results[0], value)
        for value, by_rows in zip(op.operands, needs, strict=True):
            if by_rows:
                self.by_rows.add(value)
                self._together.union(op.results[0], value)
            elif is_tensor(value):
                self.whole.add(value)
        # Tensors that a body reads elements of, wherever they are.
        bodies = (inner for inner in op.walk() if inner is not op)
        self.whole.update(value for inner in bodies for value in inner.operands if is_tensor(value))
        return True

    def _follow_dim(self, op: Operation) -> bool:
        axis = constant_index(op.operands[1]) if op_name(op) == "tensor.dim" else None
        if axis == 0:
            self._dims.append(op)
            self._together.union(op.results[0], op.operands[0])
        return axis is not None

    def count_rows_only(self) -> bool:
        """Whether a chunk can say how many rows it has wherever it is asked: nothing computes with the answer."""
        for value in {*self.counts, *(op.results[0] for op in self._dims if op.operands[0] in self.by_rows)}:
            if not all(self._is_count(use) for use in value.uses):
                return False
            owner = value.owner
            if isinstance(owner, Operation) and (owner not in self._dims or owner.operands[0] not in self.by_rows):
                return False
        return True

    def are_of_one_number(self) -> bool:
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
