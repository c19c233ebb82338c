"""What loops do not write, such as all that a reduction over no iterations has: it is what was there before.

Upstream takes a body that does not use what was there for one that writes all: ``linalg-fuse-elementwise-ops`` has
it begin with an empty tensor, bufferisation with a new buffer. Where a loop that is reduced over is never run,
nothing is written. Canonicalisation makes such bodies: of ``x * 0`` of integers, of ``x and false``. Nor is all
written of results whose indices are not just loops: of a diagonal, ``(i) -> (i, i)``, or a row, ``(i) -> (2, i)``.
``linalg-fold-unit-extent-dims`` has even bodies that use what was there begin with an empty tensor, if all of
their loops are parallel.
"""

from collections.abc import Sequence
from typing import Any

from devscope.errors import LoweringError
from devscope.lowering import mlir_util
from devscope.lowering.interop import bindings
from devscope.lowering.interop.bindings import ir
from devscope.lowering.interop.diagnostics import decode_location
from devscope.lowering.mlir_util import Builder

_KEPT = "devscope.kept"
"""On a choice, in a body, between what it computes, which is always taken, and what was there before."""


def drop_empty_loops(module: Any) -> None:
    """Leave out the operations on tensors of ``module`` one of whose loops is known to have no iterations."""
    for op in _on_tensors(module):
        shapes = [value.type.shape for value in op.operands if isinstance(value.type, ir.RankedTensorType)]
        if any(0 in shape for shape in shapes) and 0 in _extents(op, loops_by_axis(op)).values():
            mlir_util.replace_op(op, list(op.operands)[-len(op.results) :])


def keep_initial_values(module: Any) -> None:
    """Have reductions over loops of unknown length, and what writes parts of its results, use what was there
    before, whatever becomes of their bodies.

    What writes parts becomes reductions. `release_initial_values` takes the use back where it is not needed.
    """
    dynamic = ir.ShapedType.get_dynamic_size()
    for op in _on_tensors(module):
        if op.name in ("linalg.generic", "linalg.reduce"):
            loops = loops_by_axis(op)
            results = loops[-len(op.results) :]
            in_all = set[int | None].intersection(*map(set, results))
            unknown = [n for n, extent in _extents(op, loops).items() if extent == dynamic and n not in in_all]
            if any(_writes_parts(value, each) for value, each in zip(op.results, results, strict=True)):
                kinds = op.attributes["iterator_types"]
                if not len(kinds):
                    raise LoweringError(
                        f"'{op.name}' without loops writes one element of a larger tensor",
                        decode_location(op.location),
                        ["write it as a tensor.insert"],
                    )
                unknown = list(range(len(kinds)))
                reduced = ir.Attribute.parse("#linalg.iterator_type<reduction>", op.context)
                op.attributes["iterator_types"] = ir.ArrayAttr.get([reduced for _ in kinds], op.context)
            if unknown:
                _keep(op, unknown)


def _on_tensors(module: Any) -> list[Any]:
    return [op for op in mlir_util.walk(module.operation) if op.name.startswith("linalg.") and len(op.results)]


def loops_by_axis(op: Any) -> list[list[int | None]]:
    """Of each operand, the loop that indexes each axis; None for an index that is more than a loop.

    Empty for what has no indexing maps, such as ``linalg.softmax``.
    """
    maps = bindings.load("_mlir_libs._mlirDialectsLinalg").get_indexing_maps(op) or ()
    indices = (ir.AffineMapAttr(map_).value.results for map_ in maps)
    return [[_loop(index) for index in each] for each in indices]


def _loop(index: Any) -> int | None:
    return ir.AffineDimExpr(index).position if isinstance(index, ir.AffineDimExpr) else None


def _extents(op: Any, loops: Sequence[Sequence[int | None]]) -> dict[int, int]:
    """Of loops that index an axis by themselves; one that is known if an operand says it."""
    found: dict[int, int] = {}
    dynamic = ir.ShapedType.get_dynamic_size()
    for value, used in zip(op.operands, loops, strict=False):
        if isinstance(value.type, ir.RankedTensorType):
            for loop, extent in zip(used, value.type.shape, strict=True):
                if loop is not None and found.get(loop, dynamic) == dynamic:
                    found[loop] = extent
    return found


def _keep(op: Any, loops: Sequence[int]) -> None:
    """Let ``op`` yield what was there, if indices of ``loops`` were negative, which they are not."""
    *_, end = mlir_util.children(op)
    build = Builder(end)
    some: Any = None
    for loop in loops:
        index = build.value("linalg.index", [], build.index, {"dim": ir.IntegerAttr.get(build.i64, loop)})
        some = index if some is None else build.value("arith.ori", [some, index], build.index)
    i1 = ir.IntegerType.get_signless(1, op.context)
    not_less = {"predicate": ir.IntegerAttr.get(build.i64, 5)}
    always = build.value("arith.cmpi", [some, build.constant(0)], i1, not_less)
    arguments = list(mlir_util.entry_block(op).arguments)[-len(op.results) :]
    for number, (value, argument) in enumerate(zip(list(end.operands), arguments, strict=True)):
        if value != argument:
            kept = {_KEPT: ir.UnitAttr.get(op.context)}
            end.operands[number] = build.value("arith.select", [always, value, argument], value.type, kept)


def _writes_parts(result: Any, loops: Sequence[int | None]) -> bool:
    """Whether its indices are not just loops: the only index of a dimension of one element may be any."""
    long = [loop for loop, extent in zip(loops, ir.ShapedType(result.type).shape, strict=True) if extent != 1]
    return None in long or len(set(long)) < len(long)


def release_initial_values(module: Any) -> None:
    """Undo `keep_initial_values` where bodies use what was there before by themselves."""
    for op in mlir_util.named(module.operation, "arith.select"):
        if _KEPT in op.attributes:
            condition, value, before = op.operands
            if len(list(before.uses)) > 1:
                mlir_util.replace_op(op, [value])
                _erase_unused(condition)
            else:
                del op.attributes[_KEPT]


def _erase_unused(value: Any) -> None:
    """What computes ``value``, as far as nothing else uses it."""
    if not isinstance(value.owner, ir.Block) and not list(value.uses):
        op = value.owner.operation
        operands = list(op.operands)
        op.erase()
        for operand in dict.fromkeys(operands):
            _erase_unused(operand)
