"""``memref.copy``: which copies move whole buffers, and the loops that the others are."""

from __future__ import annotations

from typing import Any

from devscope.lowering.interop.bindings import ir


def is_whole_copy(copy: Any) -> bool:
    """True if both sides of a ``memref.copy`` are contiguous buffers that start at offset 0."""
    return all(ir.MemRefType(v.type).layout == ir.AffineMapAttr.get(_identity(v)) for v in copy.operands)


def _identity(value: Any) -> Any:
    return ir.AffineMap.get_identity(ir.MemRefType(value.type).rank, value.type.context)


def copy_as_linalg(copy: Any) -> None:
    """``memref.copy`` -> ``linalg.generic`` that yields its input: the form that parallel loops come from."""
    source, target = copy.operands
    rank = ir.MemRefType(target.type).rank
    context = copy.context
    identity = ir.AffineMapAttr.get(ir.AffineMap.get_identity(rank, context))
    element = ir.MemRefType(target.type).element_type
    # Parsed as one array: see HEAVY_DIALECT for what looking at one of its items would cost.
    iterators = ir.Attribute.parse(f"[{', '.join(['#linalg.iterator_type<parallel>'] * rank)}]", context)
    generic = ir.Operation.create(
        "linalg.generic",
        operands=[source, target],
        attributes={
            "indexing_maps": ir.ArrayAttr.get([identity, identity], context),
            "iterator_types": iterators,
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1], context),
        },
        regions=1,
        loc=copy.location,
        ip=ir.InsertionPoint(copy),
    )
    body = ir.Block.create_at_start(generic.regions[0], [element, element], [copy.location] * 2)
    body.append(ir.Operation.create("linalg.yield", operands=[body.arguments[0]], loc=copy.location))
    copy.erase()
