"""Products of numbers written as rows of zeros with a one, and a matrix: rows of the matrix.

Frontends write embeddings so: a comparison of numbers with 0, 1, 2, ..., whose results are multiplied by weights.
The sum is the row itself where all weights are finite: that is known of constants, and of integers.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from devscope.lowering import mlir_util
from devscope.lowering.constants import ConstantTable, constant_tensor, tensor_elements
from devscope.lowering.interop import bindings
from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels.normalise import contractions_of


@dataclass(frozen=True)
class _OneHot:
    """Where numbers are compared with the index along ``axis``: ``map_`` is that of ``numbers``, from the axes."""

    numbers: Any
    map_: Any
    axis: int


def read_rows(module: Any, constants: ConstantTable) -> bool:
    """Rewrite the contractions on tensors of ``module`` one of whose operands is such rows; whether there are any.

    Afterwards what follows can be fused with what reads the rows. What computes operands is elementwise
    operations, fused, perhaps with a copy behind.
    """
    linalg = bindings.load("_mlir_libs._mlirDialectsLinalg")
    changed = False
    for op in contractions_of(module):
        if len(op.results) == 1 and isinstance(op.results[0].type, ir.RankedTensorType):
            for number in (0, 1):
                found = _one_hot(op.operands[number], linalg, constants)
                if found is not None and _replace(op, number, found, linalg, constants):
                    changed = True
                    break
    return changed


def _one_hot(value: Any, linalg: Any, constants: ConstantTable) -> _OneHot | None:
    op = mlir_util.maker(value)
    if op is not None and op.name == "bufferization.alloc_tensor" and len(op.operands):
        op = mlir_util.maker(list(op.operands)[-1])
    if op is None or op.name != "linalg.generic" or len(op.results) != 1:
        return None
    *before, end = mlir_util.children(op)
    made = {result: inner for inner in before for result in inner.results}
    converted = made.get(end.operands[0])
    if converted is None or converted.name not in ("arith.uitofp", "arith.extui"):
        return None
    equal = made.get(converted.operands[0])
    if equal is None or equal.name != "arith.cmpi" or ir.IntegerAttr(equal.attributes["predicate"]).value != 0:
        return None
    maps = [ir.AffineMapAttr(attribute).value for attribute in linalg.get_indexing_maps(op)]
    arguments = list(mlir_util.entry_block(op).arguments)
    if maps[-1] != ir.AffineMap.get_identity(maps[-1].n_dims, op.context):
        return None
    for numbers, counted in (equal.operands, reversed(list(equal.operands))):
        if numbers not in arguments[:-1] or not isinstance(numbers.type, ir.IntegerType):
            continue
        number = arguments.index(numbers)
        axis = _axis(counted, made, arguments, op, maps, constants)
        if axis is not None and not any(_is_loop(index, axis) for index in maps[number].results):
            return _OneHot(op.operands[number], maps[number], axis)
    return None


def _axis(
    value: Any, made: dict[Any, Any], arguments: list[Any], op: Any, maps: list[Any], constants: ConstantTable
) -> int | None:
    """The axis of the result of ``op`` along which ``value``, of its body, is 0, 1, 2 and so on."""
    if value in arguments[:-1]:
        number = arguments.index(value)
        axes = [index.position for index in maps[number].results if isinstance(index, ir.AffineDimExpr)]
        array = tensor_elements(op.operands[number], constants)
        if len(axes) != 1 or array is None:
            return None
        size = ir.RankedTensorType(op.results[0].type).shape[axes[0]]
        return axes[0] if np.array_equal(array.reshape(-1), np.arange(size)) else None
    cast = made.get(value)
    index = made.get(cast.operands[0]) if cast is not None and cast.name == "arith.index_cast" else None
    if index is None or index.name != "linalg.index":
        return None
    return ir.IntegerAttr(index.attributes["dim"]).value


def _is_loop(index: Any, loop: int) -> bool:
    return isinstance(index, ir.AffineDimExpr) and index.position == loop


def _replace(op: Any, number: int, found: _OneHot, linalg: Any, constants: ConstantTable) -> bool:
    maps = [ir.AffineMapAttr(attribute).value for attribute in linalg.get_indexing_maps(op)]
    matrix, init = op.operands[1 - number], op.operands[2]
    of_rows, of_matrix, of_result = maps[number], maps[1 - number], maps[2]
    type_, element = op.results[0].type, str(ir.RankedTensorType(op.results[0].type).element_type)
    if any(str(ir.RankedTensorType(value.type).element_type) != element for value in list(op.operands)[:2]):
        return False
    loops = {index.position: axis for axis, index in enumerate(of_result.results)}
    summed = of_rows.results[found.axis].position
    if summed in loops or len(loops) + 1 != of_result.n_dims:
        return False
    places = [index.position for index in of_matrix.results]
    if not element.startswith("i"):
        array = tensor_elements(matrix, constants)
        if array is None or array.dtype.kind != "f" or not np.isfinite(array).all():
            return False
        if places[-1] == summed:  # rows are read side by side
            matrix = _turned(op, matrix, array, places.index(summed), constants)
            places.remove(summed)
            places.insert(0, summed)
    extent = ir.RankedTensorType(matrix.type).shape[places.index(summed)]
    width = ir.IntegerType(ir.RankedTensorType(found.numbers.type).element_type).width
    if extent == ir.ShapedType.get_dynamic_size() or extent > 1 << width:
        return False
    read = []
    for index in found.map_.results:
        if isinstance(index, ir.AffineDimExpr):
            read.append(f"d{loops[of_rows.results[index.position].position]}")
        else:
            read.append(str(index))
    names = ", ".join(f"d{axis}" for axis in range(len(loops)))
    add, zero = ("addi", "0") if element.startswith("i") else ("addf", "0.0")
    at = {loop: f"%at{axis}" for loop, axis in loops.items()} | {summed: "%row"}
    lines = [f"%at{axis} = linalg.index {axis} : index" for axis in loops.values()]
    kinds = ", ".join('"parallel"' for _ in loops)
    (made,) = mlir_util.insert(
        op,
        f"""
        %made = linalg.generic {{indexing_maps = [affine_map<({names}) -> ({", ".join(read)})>,
            affine_map<({names}) -> ({names})>], iterator_types = [{kinds}]}}
            ins(%0 : {found.numbers.type}) outs(%2 : {type_}) {{
        ^bb0(%number: i{width}, %sum: {element}):
          {chr(10).join(lines)}
          %first = arith.constant 0 : index
          %zero = arith.constant {zero} : {element}
          %rows = arith.constant {extent} : index
          %asked = arith.index_castui %number : i{width} to index
          %is_row = arith.cmpi ult, %asked, %rows : index
          %row = arith.select %is_row, %asked, %first : index
          %there = tensor.extract %1[{", ".join(at[loop] for loop in places)}] : {matrix.type}
          %value = arith.select %is_row, %there, %zero : {element}
          %total = arith.{add} %sum, %value : {element}
          linalg.yield %total : {element}
        }} -> {type_}
        """,
        [found.numbers, matrix, init],
    )
    copy = mlir_util.maker(op.operands[number])
    mlir_util.replace_op(op, made.results)
    if copy is not None and copy.name == "bufferization.alloc_tensor" and not list(copy.results[0].uses):
        copy.erase()
    return True


def _turned(op: Any, matrix: Any, array: np.ndarray[Any, Any], axis: int, constants: ConstantTable) -> Any:
    """A constant like ``matrix`` whose ``axis`` is the first one."""
    turned = np.ascontiguousarray(np.moveaxis(array, axis, 0))
    return constant_tensor(op, turned, ir.RankedTensorType(matrix.type).element_type, constants)
