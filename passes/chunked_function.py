"""A device function whose results can be had some rows at a time, and the function that does."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FunctionType, TensorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import Rewriter

from devscope.dialects.names import op_name
from devscope.passes.border.facts import element_of, splat
from devscope.passes.rows import row_operands
from devscope.passes.split.classify import is_rematerialised, is_scalar_code, is_tensor
from devscope.passes.split.symbols import clone_function

_VALUE = "value"


@dataclass(frozen=True)
class RowFunction:
    """A function that goes by rows.

    ``rows``: how many there are; ``arguments``: which arguments are needed row by row. All results are made so.
    """

    function: FuncOp
    rows: int
    arguments: tuple[bool, ...]
    _by_rows: frozenset[SSAValue]

    @classmethod
    def of(cls, function: FuncOp) -> RowFunction | None:
        """None where some result takes more of an argument than the same rows, or all of what is computed."""
        block = function.body.first_block
        if block is None or block is not function.body.last_block or not isinstance(block.last_op, ReturnOp):
            return None
        needs = _Needs()
        needs.by_rows.update(block.last_op.operands)
        for op in reversed(list(block.ops)):
            if op is not block.last_op and not needs.follow(op):
                return None
        extents = {_extent(value) for value in needs.by_rows}
        rows = extents.pop() if extents else None
        if rows is None or extents or needs.by_rows & needs.whole:
            return None
        arguments = tuple(argument in needs.by_rows for argument in block.args)
        return cls(function, rows, arguments, frozenset(needs.by_rows))

    def of_rows(self, rows: int, name: str) -> FuncOp:
        """A new function for so many rows, right behind this one."""
        clone = clone_function(self.function, name)
        for old, new in list(zip(_values(self.function), _values(clone), strict=True)):
            if old not in self._by_rows:
                continue
            if isinstance(new.owner, Operation) and op_name(new.owner) == "arith.constant":
                _resize_constant(new.owner, rows)
            Rewriter.replace_value_with_new_type(new, of_rows(old.type, rows))
        block = clone.body.block
        assert block.last_op is not None
        outputs = [value.type for value in block.last_op.operands]
        clone.properties["function_type"] = FunctionType.from_lists(list(block.arg_types), outputs)
        return clone


class _Needs:
    """What the results need of a function's values, found backwards."""

    def __init__(self) -> None:
        self.by_rows: set[SSAValue] = set()
        self.whole: set[SSAValue] = set()

    def follow(self, op: Operation) -> bool:
        """Add what ``op`` needs. False if there is no way to do without the rest of its results."""
        if is_scalar_code(op):
            return not any(is_tensor(value) for value in op.operands)  # extents change
        if any(result in self.by_rows for result in op.results):
            return self._follow_rows(op)
        # What is needed as a whole would be computed again for each chunk.
        self.whole.update(value for inner in op.walk() for value in inner.operands if is_tensor(value))
        return is_rematerialised(op) or op_name(op) == "linalg.fill"

    def _follow_rows(self, op: Operation) -> bool:
        self.by_rows.update(op.results)
        if is_rematerialised(op):
            return op_name(op) != "arith.constant" or _resized(op, 1) is not None
        needs = row_operands(op)
        if needs is None:
            return False
        for value, by_rows in zip(op.operands, needs, strict=True):
            if is_tensor(value):
                (self.by_rows if by_rows else self.whole).add(value)
        # Tensors that a body reads elements of, wherever they are.
        bodies = (inner for inner in op.walk() if inner is not op)
        self.whole.update(value for inner in bodies for value in inner.operands if is_tensor(value))
        return True


def of_rows(type_: Attribute, rows: int) -> TensorType:
    """The type of so many rows of a tensor."""
    assert isinstance(type_, TensorType)
    return TensorType(type_.get_element_type(), [rows, *type_.get_shape()[1:]], type_.encoding)


def _extent(value: SSAValue) -> int | None:
    """How many rows a tensor has."""
    shape = value.type.get_shape() if isinstance(value.type, TensorType) else ()
    return shape[0] if shape and shape[0] > 0 else None


def _resize_constant(constant: Operation, rows: int) -> None:
    resized = _resized(constant, rows)
    assert resized is not None
    (constant.properties if _VALUE in constant.properties else constant.attributes)[_VALUE] = resized


def _resized(constant: Operation, rows: int) -> DenseIntOrFPElementsAttr | None:
    """The value of a constant that has another number of rows; None if they differ, as far as is known."""
    element = element_of(constant.get_attr_or_prop(_VALUE))
    return None if element is None else splat(element, of_rows(constant.results[0].type, rows))


def _values(function: FuncOp) -> list[SSAValue]:
    """The arguments of a function, and the results of the operations in its block."""
    block = function.body.block
    return [*block.args, *(result for op in block.ops for result in op.results)]
