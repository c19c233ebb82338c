"""What computes the operands of contractions and of windows stays out of their bodies.

Upstream's ``linalg-fuse-elementwise-ops`` takes contractions for loops like any others: once a reshape is folded
into one, which makes a ``linalg.generic`` of it, what computes an operand elementwise is fused, too, and is done
again for each row or column of the other operand; nor is that a contraction any more. What only moves elements,
which kernels read in any layout, may go in. Windows that overlap, of convolutions and pooling, read elements
again as well, and their kernels take the elements as they are. What takes long stays out of operations that would
do it again for each element of rows that it is broadcast to, such as the gates of a squeeze and excitation.
"""

from itertools import pairwise
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop import bindings
from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels.normalise import contractions_of, moved_axes, only_extends
from devscope.lowering.windows import sum_of_loops

_KEPT = "devscope.apart"
"""On a copy that fusion does not look through."""
_COPY = "bufferization.alloc_tensor"

_VIEWS = ("tensor.cast", "tensor.collapse_shape", "tensor.expand_shape")
_SLOW = ("math.", "arith.div", "arith.rem")


def keep_operands_apart(module: Any) -> None:
    """Put a copy behind what computes an operand of a contraction, and in front of what moves its elements."""
    linalg = bindings.load("_mlir_libs._mlirDialectsLinalg")
    for op in contractions_of(module):
        maps = [ir.AffineMapAttr(attribute).value for attribute in linalg.get_indexing_maps(op)]
        for number in (0, 1):
            if isinstance(op.operands[number].type, ir.RankedTensorType) and _is_used_again(op, maps, number):
                if _parts_sums(op, maps, number, linalg):
                    insert_copy(op, number)
                _keep(op, number, linalg)
    for op in [op for op in mlir_util.walk(module.operation) if op.name.startswith("linalg.")]:
        for number in _broadcast_operands(op, linalg):
            if _is_slow(op.operands[number], linalg):
                _keep(op, number, linalg)
    for op in mlir_util.named(module.operation, "linalg.generic"):
        if 2 <= len(op.operands) <= 3 and len(op.results) == 1:
            image = ir.AffineMapAttr(linalg.get_indexing_maps(op)[0]).value
            if any(len(sum_of_loops(index) or ()) > 1 for index in image.results):
                _keep(op, 0, linalg)


def join_operands(module: Any, mark: str = _KEPT) -> None:
    """Take the copies of `keep_operands_apart` away, or those of `insert_copy` with another mark."""
    for op in mlir_util.named(module.operation, _COPY):
        if mark in op.attributes:
            mlir_util.replace_op(op, list(op.operands)[-1:])


def _broadcast_operands(op: Any, linalg: Any) -> list[int]:
    """The tensors that ``op``, an elementwise one, reads elements of several times."""
    if len(op.results) != 1 or all(value.type == op.results[0].type for value in op.operands):
        return []  # at once for most: what has the shape of the result is not broadcast
    maps = [ir.AffineMapAttr(attribute).value for attribute in linalg.get_indexing_maps(op) or ()]
    if not maps or not maps[-1].is_permutation:
        return []
    shape = ir.RankedTensorType(op.results[0].type).shape
    loops = {str(index) for index, extent in zip(maps[-1].results, shape, strict=True) if extent != 1}
    return [
        number
        for number, map_ in enumerate(maps[:-1])
        if isinstance(op.operands[number].type, ir.RankedTensorType)
        and loops - {str(index) for index in map_.results}
    ]


def _is_slow(value: Any, linalg: Any) -> bool:
    """Whether fusion would put slow operations in place of ``value``, which is made of products.

    Not where it is made of sums of rows, such as those of a norm, all of whose steps are done in one pass over a
    row, nor of what programs have in place of constants, which kernels compute as they end.
    """
    slow = of_products = False
    waiting, seen = [value], set[Any]()
    while waiting:
        op = mlir_util.maker(waiting.pop())
        if op is None or op in seen:
            continue
        seen.add(op)
        if op.name in _VIEWS:
            waiting.append(op.operands[0])
        elif is_elementwise(op, linalg):
            slow = slow or any(inner.name.startswith(_SLOW) for inner in mlir_util.walk(op))
            waiting += [each for each in op.operands if isinstance(each.type, ir.RankedTensorType)]
        elif op.name.startswith("linalg.") and op.name != "linalg.fill":
            if len(op.operands) == 2:
                return False
            of_products = True
    return slow and of_products


def _is_used_again(op: Any, maps: list[Any], number: int) -> bool:
    """Whether an element of an operand is multiplied by several of the other."""
    own = {str(index) for index in maps[number].results}
    other = maps[1 - number].results
    shape = ir.ShapedType(op.operands[1 - number].type).shape
    return any(str(index) not in own and extent != 1 for index, extent in zip(other, shape, strict=True))


def _parts_sums(op: Any, maps: list[Any], number: int, linalg: Any) -> bool:
    """Whether an operand is a transpose, reshaped, whose source has the elements of a sum at several distances.

    Read where they are, they would be sums in a loop around the kernel: heads of an attention in front of a layer.
    """
    reshape = mlir_util.maker(op.operands[number], "tensor.collapse_shape")
    transpose = None if reshape is None else mlir_util.maker(reshape.operands[0])
    moved = None if transpose is None else moved_axes(transpose, linalg)
    if reshape is None or transpose is None or moved is None:
        return False
    groups = [
        [axis.value for axis in map(ir.IntegerAttr, ir.ArrayAttr(group))] for group in _reassociation(reshape)
    ]
    shape = ir.RankedTensorType(transpose.results[0].type).shape
    result = {str(index) for index in maps[2].results}
    for index, group in zip(maps[number].results, groups, strict=True):
        places = [moved.get(axis, -1) for axis in group if shape[axis] != 1]
        if str(index) not in result and any(two != one + 1 for one, two in pairwise(places)):
            return True
    return False


def _reassociation(op: Any) -> Any:
    return ir.ArrayAttr(op.attributes["reassociation"])


def insert_copy(user: Any, number: int, mark: str = _KEPT) -> None:
    """Let ``user`` read a marked copy of an operand, which fusion does not look through."""
    value, build = user.operands[number], mlir_util.Builder(user)
    marks = {mark: ir.UnitAttr.get(user.context)}
    user.operands[number] = build.grouped(_COPY, [[], [value], []], [value.type], marks).results[0]


def _keep(user: Any, number: int, linalg: Any) -> None:
    """Follow an operand to what computes it, and put a copy there."""
    while not isinstance((value := user.operands[number]).owner, ir.Block):
        op = value.owner.operation
        if op.name not in _VIEWS and moved_axes(op, linalg) is None and not only_extends(op):
            if is_elementwise(op, linalg):
                insert_copy(user, number)
            return
        user, number = op, 0


def is_elementwise(op: Any, linalg: Any) -> bool:
    """Whether fusion would take ``op`` in."""
    if op.name.startswith(("arith.", "math.")):
        return op.name != "arith.constant"
    if not op.name.startswith("linalg.") or op.name == "linalg.fill":
        return False
    maps = list(linalg.get_indexing_maps(op) or ())[-len(op.results) :]
    return bool(maps) and all(ir.AffineMapAttr(map_).value.is_permutation for map_ in maps)
