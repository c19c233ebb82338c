"""Contractions as convolutions of single pixels: B's columns are pixels of an image, A's rows are its filters.

Blocks of sums are vectors along A's rows then, which are turned as they are written. That is for few columns, of
which vectors would be partly empty, as 49 are for vectors of 16.
"""

from typing import Any

from devscope.lowering.kernels import convolution_kernels
from devscope.lowering.kernels.contraction_match import Contraction, Operand
from devscope.lowering.kernels.images import image_of
from devscope.lowering.kernels.packed_constants import PackedConstants
from devscope.lowering.kernels.windowed import Axis, Element, Windowed


def turned_plan(op: Any, found: Contraction, constants: PackedConstants) -> convolution_kernels.Plan | None:
    """None unless A is a constant that is packed once, for all of the batch."""
    a, b, c = found.a, found.b, found.c
    if not constants.has(a.value) or any(loop in a.axes for loop in (*found.loops["b"], *found.outer)):
        return None
    image = image_of(op, b.value)
    axes = [
        Axis(loop, 1, None, 1, place) if loop in c.axes else Axis(None, 1, loop, 1, place)
        for loop, place in zip(b.axes, image.axes, strict=True)
    ]
    combine = "arith.addf" if found.element.startswith("f") else "arith.addi"
    x, w = (_element(op, operand, found) for operand in (b, a))
    count = len({*a.axes, *b.axes, *c.axes})
    return convolution_kernels.plan(
        Windowed(
            op, image, axes, a.value, dict(a.axes), c.value, dict(c.axes), found.element, combine, x, w, count
        )
    )


def _element(op: Any, operand: Operand, found: Contraction) -> Element:
    return Element(
        list(op.operands).index(operand.value), "" if operand.element == found.element else found.extend, None
    )
