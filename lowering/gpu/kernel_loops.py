"""The loops of operations that become kernels: which of them are parallel, in which order they are, and one grid
for several."""

import re
from collections.abc import Sequence
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop import bindings
from devscope.lowering.interop.bindings import ir
from devscope.lowering.mlir_util import Builder


def output_count(op: Any) -> int:
    if "operandSegmentSizes" in op.attributes:
        return len(mlir_util.operand_groups(op)[-1])
    return len(op.operands) // 2 if op.name == "linalg.reduce" else 1


def maps_of(op: Any) -> list[Any]:
    """The affine maps of the operands of ``op``; none of what is no structured operation."""
    if not op.name.startswith("linalg."):
        return []
    maps = bindings.load("_mlir_libs._mlirDialectsLinalg").get_indexing_maps(op)
    return [ir.AffineMapAttr(map_).value for map_ in maps or ()]


def kinds_of(op: Any, maps: Sequence[Any]) -> list[str]:
    """The kinds of the loops of ``op``; named operations reduce along those that their results do not have."""
    if "iterator_types" in op.attributes:  # as text: as objects they would load all of linalg
        return re.findall("parallel|reduction|window", str(op.attributes["iterator_types"]))
    if not maps:
        return []
    places = [place_of(map_) for map_ in maps[-output_count(op) :]]
    is_parallel = [all(place is not None and loop in place for place in places) for loop in range(maps[0].n_dims)]
    return ["parallel" if parallel else "reduction" for parallel in is_parallel]


def place_of(map_: Any) -> tuple[int, ...] | None:
    if not all(isinstance(index, ir.AffineDimExpr) for index in map_.results):
        return None
    return tuple(ir.AffineDimExpr(index).position for index in map_.results)


def put_parallel_loops_first(function: Any) -> None:
    """Let parallel loops be the first ones of each operation of ``function``: a grid is made of these alone."""
    for op in mlir_util.named(function, "linalg.generic", "linalg.reduce"):
        maps = maps_of(op)
        kinds = kinds_of(op, maps)
        order = sorted(range(len(kinds)), key=lambda loop: kinds[loop] != "parallel")
        if order != sorted(order):
            _reorder(op, maps, kinds, order)


def _reorder(op: Any, maps: Sequence[Any], kinds: Sequence[str], order: Sequence[int]) -> None:
    """Replace ``op`` by one with its loops in another ``order``, the outermost one first."""
    context, count = op.context, len(order)
    i64 = ir.IntegerType.get_signless(64, context)
    loops = [ir.AffineDimExpr.get(order.index(loop), context) for loop in range(count)]
    moved = ir.AffineMap.get(count, 0, loops, context)
    places = [ir.AffineMap.get(count, 0, [e.compose(moved) for e in map_.results], context) for map_ in maps]
    iterators = [ir.Attribute.parse(f"#linalg.iterator_type<{kinds[loop]}>", context) for loop in order]
    for index in mlir_util.named(op, "linalg.index"):
        loop = ir.IntegerAttr(index.attributes["dim"]).value
        index.attributes["dim"] = ir.IntegerAttr.get(i64, order.index(loop))
    outputs = output_count(op)
    kept = {name: op.attributes[name] for name in op.attributes if name != "dimensions"}
    attributes = kept | {
        "indexing_maps": ir.ArrayAttr.get([ir.AffineMapAttr.get(place) for place in places], context),
        "iterator_types": ir.ArrayAttr.get(iterators, context),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(op.operands) - outputs, outputs], context),
    }
    made = ir.Operation.create(
        "linalg.generic", [], list(op.operands), attributes, regions=1, loc=op.location, ip=ir.InsertionPoint(op)
    )
    op.regions[0].blocks[0].append_to(made.regions[0])
    op.erase()


def do_repeats_in_order(function: Any) -> None:
    """Parallel loops that a result lacks become others: work-items would write the same elements at once."""
    for op in mlir_util.children(function):
        maps = maps_of(op)
        if not maps or "iterator_types" not in op.attributes:
            continue
        places = [place for map_ in maps[-output_count(op) :] if (place := place_of(map_)) is not None]
        kinds = kinds_of(op, maps)
        ordered = [
            kind if all(loop in place for place in places) else "reduction" for loop, kind in enumerate(kinds)
        ]
        if ordered != kinds:
            made = [ir.Attribute.parse(f"#linalg.iterator_type<{kind}>", op.context) for kind in ordered]
            op.attributes["iterator_types"] = ir.ArrayAttr.get(made, op.context)


def do_inner_loops_in_order(function: Any) -> None:
    """Parallel loops without results inside of those of ``function`` become loops of one iteration at a time."""
    for loop in [op for op in mlir_util.children(function) if op.name == "scf.parallel"]:
        for inner in reversed(mlir_util.named(loop, "scf.parallel")):  # inner ones first
            if inner != loop and not inner.results:
                _do_in_order(inner)


def _do_in_order(loop: Any) -> None:
    *body, _ = mlir_util.children(loop)
    *bounds, _ = mlir_util.operand_groups(loop)
    end, mapping = loop, dict[Any, Any]()
    for argument, *range_ in zip(mlir_util.entry_block(loop).arguments, *bounds, strict=True):
        made = Builder(end).op("scf.for", range_, regions=1)
        block = ir.Block.create_at_start(made.regions[0], [argument.type], [made.location])
        end = ir.Operation.create("scf.yield", loc=made.location, ip=ir.InsertionPoint(block))
        mapping[argument] = block.arguments[0]
    for op in body:
        op.move_before(end)
        mlir_util.remap_operands(op, mapping)
    loop.erase()


def count_in_ones(loop: Any) -> None:
    """Let indices of an ``scf.parallel`` go up by 1: else upstream's tiles compare wrong ones with the bounds."""
    lower, upper, steps, _ = mlir_util.operand_groups(loop)
    arguments = list(mlir_util.entry_block(loop).arguments)
    text = """
        %length = arith.subi %1, %0 : index
        %trips = arith.ceildivsi %length, %2 : index"""
    for number, (begin, end, step) in enumerate(zip(lower, upper, steps, strict=True)):
        if mlir_util.constant_integer(step) == 1:
            continue
        count = mlir_util.insert(loop, text, [begin, end, step])[-1].results[0]
        outside, inside = Builder(loop), Builder(mlir_util.first_child(loop))
        far = inside.op("arith.muli", [arguments[number], step], [outside.index])
        index = inside.value("arith.addi", [far.results[0], begin], outside.index)
        arguments[number].replace_all_uses_except(index, far)
        bounds = [outside.constant(0), count, outside.constant(1)]
        for group, value in enumerate(bounds):
            loop.operands[group * len(arguments) + number] = value


def join_loops(function: Any) -> None:
    """Make one loop of the ``scf.parallel`` in the body of ``function``, all over the same grid."""
    first, *others = [op for op in mlir_util.children(function) if op.name == "scf.parallel"] or [None]
    for loop in others:
        ops = mlir_util.children(function)
        for op in ops[ops.index(first) + 1 : ops.index(loop)]:  # bounds, which the first one may not have
            op.move_before(first)
        pairs = zip(mlir_util.entry_block(loop).arguments, mlir_util.entry_block(first).arguments, strict=True)
        mapping = dict(pairs)
        *body, _ = mlir_util.children(loop)
        end = mlir_util.children(first)[-1]
        for op in body:
            op.move_before(end)
            mlir_util.remap_operands(op, mapping)
        loop.erase()
