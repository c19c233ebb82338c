"""Elements of constants that are read in another order are another constant, not work for each call.

So are filters of transposed convolutions, which torch-mlir turns around.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from devscope.lowering import mlir_util
from devscope.lowering.constants import ConstantTable, constant_tensor, tensor_elements
from devscope.lowering.interop.bindings import ir

_INDICES = {"arith.addi": np.add, "arith.subi": np.subtract, "arith.muli": np.multiply}


def fold_moved_constants(module: Any, table: ConstantTable) -> None:
    """Replace operations of ``module`` whose elements are each one of a constant at places known now."""
    for op in mlir_util.named(module.operation, "linalg.generic"):
        if len(op.operands) == 1 and len(op.results) == 1 and not _reads_result(op):
            moved = _moved(op, table)
            if moved is not None:
                mlir_util.replace_op(op, [constant_tensor(op, moved, op.results[0].type.element_type, table)])


def _reads_result(op: Any) -> bool:
    return any(True for _ in mlir_util.entry_block(op).arguments[0].uses)


def _moved(op: Any, table: ConstantTable) -> np.ndarray[Any, Any] | None:
    """The result of ``op``, if that is no larger than the constant that it reads."""
    type_ = op.results[0].type
    if not isinstance(type_, ir.RankedTensorType) or not type_.has_static_shape:
        return None
    (map_,) = (ir.AffineMapAttr(each).value for each in ir.ArrayAttr(op.attributes["indexing_maps"]))
    if map_ != ir.AffineMap.get_identity(type_.rank, op.context):
        return None
    *steps, end = mlir_util.children(op)
    if not steps or steps[-1].name != "tensor.extract" or end.operands[0] != steps[-1].results[0]:
        return None
    extract = steps.pop()
    constant, *places = extract.operands
    elements = tensor_elements(constant, table)
    if elements is None or elements.size < np.prod(type_.shape, dtype=int):
        return None
    indices = _indices(places, steps, type_.shape)
    if indices is None or any(
        np.any((index < 0) | (index >= size)) for index, size in zip(indices, elements.shape, strict=True)
    ):
        return None
    return np.ascontiguousarray(np.broadcast_to(elements[tuple(indices)], type_.shape))


def _indices(places: Iterable[Any], steps: Iterable[Any], shape: Iterable[int]) -> list[Any] | None:
    """What ``places`` are in each iteration, by the ``steps`` of a body; arrays with an axis for each loop."""
    grid = np.indices([*shape], sparse=True)
    known: list[tuple[Any, Any]] = []

    def value_of(value: Any) -> Any | None:
        found = next((index for made, index in known if made == value), None)
        if found is not None or isinstance(value.owner, ir.Block):
            return found
        op = value.owner.operation
        return ir.IntegerAttr(op.attributes["value"]).value if op.name == "arith.constant" else None

    for step in steps:
        if step.name == "linalg.index":
            made = grid[ir.IntegerAttr(step.attributes["dim"]).value]
        else:
            operands = [index for operand in step.operands if (index := value_of(operand)) is not None]
            if step.name not in _INDICES or len(operands) != 2:
                return None
            made = _INDICES[step.name](*operands)
        known.append((step.results[0], made))
    indices = [value_of(place) for place in places]
    return None if any(index is None for index in indices) else [np.asarray(index) for index in indices]
