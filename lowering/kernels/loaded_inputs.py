"""Inputs that are indexed by sums of loops, such as overlapping windows, as loads of the body."""

from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.mlir_util import Builder


def load_inputs(op: Any) -> Any:
    """Let the body of ``op``, a ``linalg.generic`` on buffers, load such inputs itself. Gives what it is then.

    Where a loop would be left that indexes no operand, it stays.
    """
    if op.name != "linalg.generic":
        return op
    maps = [ir.AffineMapAttr(map_).value for map_ in ir.ArrayAttr(op.attributes["indexing_maps"])]
    inputs, outputs = mlir_util.operand_groups(op)
    taken = [
        number
        for number, value in enumerate(inputs)
        if mlir_util.is_memref(value.type)
        and not maps[number].is_projected_permutation
        and all(map(_is_sum, maps[number].results))
    ]
    kept = [number for number in range(len(maps)) if number not in taken]
    used = {e.position for number in kept for e in map(_dim, maps[number].results) if e is not None}
    if not taken or used != set(range(maps[0].n_dims)):
        return op
    block = mlir_util.entry_block(op)
    build = Builder(mlir_util.first_child(op))
    for number in taken:
        buffer, argument = inputs[number], block.arguments[number]
        places = [_number(build, index) for index in maps[number].results]
        loaded = build.value("memref.load", [buffer, *places], argument.type)
        argument.replace_all_uses_with(loaded)
    for number in reversed(taken):
        block.erase_argument(number)
    left = [ir.AffineMapAttr.get(maps[number]) for number in kept]
    attributes = {**dict(op.attributes.items()), "indexing_maps": ir.ArrayAttr.get(left, op.context)}
    groups = [value for number, value in enumerate(inputs) if number not in taken], outputs
    made = Builder(op).grouped(op.name, groups, attributes=attributes, regions=1)
    block.append_to(made.regions[0])
    op.erase()
    return made


def _dim(index: Any) -> Any | None:
    return ir.AffineDimExpr(index) if isinstance(index, ir.AffineDimExpr) else None


def _is_sum(index: Any) -> bool:
    if isinstance(index, ir.AffineAddExpr | ir.AffineMulExpr):
        return _is_sum(index.lhs) and _is_sum(index.rhs)
    return isinstance(index, ir.AffineDimExpr | ir.AffineConstantExpr)


def _number(build: Builder, index: Any) -> Any:
    if isinstance(index, ir.AffineConstantExpr):
        return build.constant(index.value)
    if isinstance(index, ir.AffineDimExpr):
        dim = ir.IntegerAttr.get(build.i64, index.position)
        return build.value("linalg.index", [], build.index, {"dim": dim})
    name = "arith.addi" if isinstance(index, ir.AffineAddExpr) else "arith.muli"
    return build.value(name, [_number(build, index.lhs), _number(build, index.rhs)], build.index)
