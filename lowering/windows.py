"""Inputs of convolutions and pooling, cut to the part that is read, and types of results, where that is needed.

The last elements of an input may be left unread. Then ``linalg-fold-unit-extent-dims``, which takes loops of one
iteration out of the indexing maps, goes wrong: it leaves ``d1`` of ``d0 * 2 + d1``, and the extent of an input
whose index is a loop's counts as the number of the loop's iterations. Results whose types do not
say that they have one element along an axis get none; where all indices are loops, canonicalisation completes
types.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop import bindings
from devscope.lowering.interop.bindings import ir
from devscope.lowering.mlir_util import Builder

_WINDOWED = ("linalg.generic", "linalg.conv", "linalg.depthwise", "linalg.pooling")
_MAPS = "indexing_maps"

Dimension = tuple[int, int]
"""The position of an operand and an axis of it."""


def windowed_operations(module: Any) -> list[Any]:
    """The operations on buffers of ``module`` some of whose indices are anything else than a loop."""
    linalg = bindings.load("_mlir_libs._mlirDialectsLinalg")
    return [op for op in mlir_util.walk(module.operation) if _has_windows(op, linalg)]


def _has_windows(op: Any, linalg: Any) -> bool:
    if not op.name.startswith("linalg.") or len(op.operands) < 2 or len(op.results):
        return False
    maps = [ir.AffineMapAttr(attribute).value for attribute in linalg.get_indexing_maps(op) or ()]
    return any(not isinstance(index, ir.AffineDimExpr) for map_ in maps for index in map_.results)


def cut_windows(module: Any) -> None:
    """Cut the inputs of the operations on tensors of ``module`` some of whose indices become those of one loop;
    have the types of results say where there is one element."""
    for op in mlir_util.walk(module.operation):
        if op.name.startswith(_WINDOWED) and len(op.results):
            _cut(op)


def _cut(op: Any) -> None:
    maps = _indexing_maps(op)
    if all(map_.is_projected_permutation for map_ in maps):
        return
    shapes = [ir.RankedTensorType(v.type).shape if _is_tensor(v) else [] for v in op.operands]
    sources = _sources(maps, shapes)
    extents = {loop: shapes[operand][axis] for loop, (operand, axis) in sources.items()}
    for number, map_ in enumerate(maps[: -len(op.results)]):
        needed: dict[int, Dimension | None] = {}
        for axis, expression in enumerate(map_.results):
            loops = None if isinstance(expression, ir.AffineDimExpr) else _loops_left(expression, extents)
            if loops is not None:
                needed[axis] = sources[loops[0]] if loops else None
        sizes = {axis: 1 if source is None else shapes[source[0]][source[1]] for axis, source in needed.items()}
        dynamic = ir.ShapedType.get_dynamic_size()
        if any(size == dynamic or size != shapes[number][axis] for axis, size in sizes.items()):
            op.operands[number] = _slice(op, number, needed)
    for result, map_ in zip(op.results, maps[-len(op.results) :], strict=True):
        _say_ones(result, map_, extents)


def _say_ones(result: Any, map_: Any, extents: dict[int, int]) -> None:
    type_ = ir.RankedTensorType(result.type)
    loops = [
        ir.AffineDimExpr(index).position if isinstance(index, ir.AffineDimExpr) else None for index in map_.results
    ]
    is_one = [loop is not None and extents.get(loop) == 1 for loop in loops]
    shape = [1 if one else size for one, size in zip(is_one, type_.shape, strict=True)]
    if shape != list(type_.shape):
        op = result.owner
        made = ir.RankedTensorType.get(shape, type_.element_type, loc=op.location)
        number = len(op.operands) - len(op.results) + result.result_number
        op.operands[number] = Builder(op).value("tensor.cast", [op.operands[number]], made)
        mlir_util.retype_result(result, made, "tensor.cast")


def _indexing_maps(op: Any) -> list[Any]:
    if _MAPS in op.attributes:
        attributes = ir.ArrayAttr(op.attributes[_MAPS])
    else:
        attributes = bindings.load("_mlir_libs._mlirDialectsLinalg").get_indexing_maps(op)
    return [ir.AffineMapAttr(attribute).value for attribute in attributes]


def _is_tensor(value: Any) -> bool:
    return isinstance(value.type, ir.RankedTensorType)


def _sources(maps: Iterable[Any], shapes: Sequence[Sequence[int]]) -> dict[int, Dimension]:
    """For each loop a dimension that has its extent; one that is known if there is one."""
    found: dict[int, Dimension] = {}
    for number, map_ in enumerate(maps):
        for axis, expression in enumerate(map_.results):
            if isinstance(expression, ir.AffineDimExpr):
                known = shapes[number][axis] != ir.ShapedType.get_dynamic_size()
                if known or expression.position not in found:
                    found[expression.position] = (number, axis)
    return found


def _loops_left(expression: Any, extents: dict[int, int]) -> list[int] | None:
    """The loops of an index once those of one iteration are taken out; None if that leaves more than one loop."""
    terms = sum_of_loops(expression)
    if terms is None or not any(extents.get(loop) == 1 for loop, _ in terms):
        return None
    left = [(loop, factor) for loop, factor in terms if extents.get(loop) != 1]
    if len(left) > 1 or any(factor != 1 or loop not in extents for loop, factor in left):
        return None
    return [loop for loop, _ in left]


def sum_of_loops(expression: Any) -> list[tuple[int, int]] | None:
    """Loops and their factors in a sum of them; None for anything else."""
    if isinstance(expression, ir.AffineDimExpr):
        return [(expression.position, 1)]
    if isinstance(expression, ir.AffineAddExpr):
        left, right = sum_of_loops(expression.lhs), sum_of_loops(expression.rhs)
        return None if left is None or right is None else left + right
    if isinstance(expression, ir.AffineMulExpr) and isinstance(expression.rhs, ir.AffineConstantExpr):
        terms = sum_of_loops(expression.lhs)
        return None if terms is None else [(loop, factor * expression.rhs.value) for loop, factor in terms]
    return None


def _slice(op: Any, number: int, needed: dict[int, Dimension | None]) -> Any:
    """The first elements of an operand: along the axes of ``needed`` as many as a dimension has, or one."""
    type_ = ir.RankedTensorType(op.operands[number].type)
    lines: list[str] = []
    sizes: list[str] = []
    shape: list[str] = []
    for axis in range(type_.rank):
        source = needed.get(axis, (number, axis))
        size = 1 if source is None else ir.RankedTensorType(op.operands[source[0]].type).shape[source[1]]
        if source is not None and size == ir.ShapedType.get_dynamic_size():
            lines.append(f"%axis{axis} = arith.constant {source[1]} : index")
            tensor = f"%{source[0]}"
            lines.append(f"%size{axis} = tensor.dim {tensor}, %axis{axis} : {op.operands[source[0]].type}")
            sizes.append(f"%size{axis}")
            shape.append("?")
        else:
            sizes.append(str(size))
            shape.append(str(size))
    result = f"tensor<{'x'.join([*shape, str(type_.element_type)])}>"
    zeros, ones = ([value] * type_.rank for value in (0, 1))
    lines.append(
        f"%part = tensor.extract_slice %{number}{zeros} [{', '.join(sizes)}] {ones} : {type_} to {result}"
    )
    return mlir_util.insert(op, "\n".join(lines), list(op.operands))[-1].results[0]
