"""``stablehlo.reduce_window`` up to each element, or from it on, as JAX writes running sums and extrema."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from devscope.lowering.interop.bindings import ir
from devscope.lowering.stablehlo import windows
from devscope.lowering.stablehlo.scans import scan
from devscope.lowering.stablehlo.templates import (
    APPLY,
    RETURN,
    applied_block,
    axes_map,
    element,
    expand,
    integers,
    shape,
    tensor,
)

PARTS = 32
"""Of a row that is alone. So many totals are windows as others."""


def expand_reduce_window(op: Any) -> None:
    if (along := _direction(op)) is not None:
        expand(op, _running_fold(op, *along))
    else:
        windows.expand_reduce_window(op)


def _direction(op: Any) -> tuple[int, bool] | None:
    """The dimension along which windows, of all others one element, have all that is before an element, or behind it,
    and whether it is that behind.

    Those of a few elements are windows as others, and so are sums that are rounded at each step.
    """
    extents, of = shape(op.operands[0].type), element(op.operands[0].type)
    rank, window = len(extents), integers(op, "window_dimensions")
    axes = [axis for axis, size in enumerate(window) if size != 1]
    steps = [integers(op, name, [1] * rank) for name in ("window_strides", "base_dilations", "window_dilations")]
    if (
        len(axes) != 1
        or op.results[0].type != op.operands[0].type
        or steps != [[1] * rank] * 3
        or not windows.pads_neutrally(op)
    ):
        return None
    (axis,) = axes
    if window[axis] != extents[axis] or -1 in extents or window[axis] <= PARTS:
        return None
    is_exact = op.regions[0].blocks[0].operations[0].operation.name in windows.IDEMPOTENT
    if isinstance(of, ir.FloatType) and of.width < 32 and not is_exact:
        return None
    padding, others = integers(op, "padding", [0] * (2 * rank)), window[axis] - 1
    sides = padding[2 * axis : 2 * axis + 2]
    return (axis, sides[1] > 0) if sorted(sides) == [0, others] and sum(padding) == others else None


def _running_fold(op: Any, axis: int, is_backwards: bool) -> str:
    """What the body of ``op`` makes of the second operand and of all elements of the first up to each, along ``axis``.

    A row that is alone is cut into parts, which go side by side: one loop would be the host's, a launch for each step.
    """
    type_, of = op.operands[0].type, element(op.operands[0].type)
    extents, scalar = shape(type_), op.operands[1].type
    before, count, behind = math.prod(extents[:axis]), extents[axis], math.prod(extents[axis + 1 :])
    parts = PARTS if before * behind == 1 else 1
    length = -(-count // parts)
    more, flat = parts * length - count, tensor([before * parts, length, behind], of)
    low, high = (more, 0) if is_backwards else (0, more)
    block = op.regions[0].blocks[0]

    def step(emit: Callable[[str], None]) -> Sequence[str]:
        return applied_block(block, emit, "t", [("%was0", of), ("%x", of)])

    row, filled = tensor([before, count, behind], of), tensor([before, parts * length, behind], of)
    lines = [
        f"%row_of = stablehlo.reshape %0 : ({type_}) -> {row}",
        f"%filled = stablehlo.pad %row_of, %1, low = [0, {low}, 0], high = [0, {high}, 0], interior = [0, 0, 0] "
        f": ({row}, {scalar}) -> {filled}",
        f"%flat = stablehlo.reshape %filled : ({filled}) -> {flat}",
    ]
    first = f"tensor.extract %1[] : {scalar}"
    lines += scan("%flat", ir.Type.parse(flat, op.context), [flat], [of], [first], step, is_backwards)
    if parts > 1:
        lines += _joined(block, parts, length, of, is_backwards)
    lines += [
        f"%long = stablehlo.reshape {'%joined' if parts > 1 else '%r#0'} : ({flat}) -> {filled}",
        f"%cut = stablehlo.slice %long [0:{before}, {low}:{low + count}, 0:{behind}] : ({filled}) -> {row}",
        f"%whole = stablehlo.reshape %cut : ({row}) -> {type_}",
    ]
    return "\n".join([*lines, f'"{RETURN}"(%whole) : ({type_}) -> ()'])


def _joined(block: Any, parts: int, length: int, of: Any, is_backwards: bool) -> list[str]:
    """Text of ``%joined``: the parts, ``%r#0``, each after what is made of all before it."""
    last, kept = (0, f"1:{parts}") if is_backwards else (length - 1, f"0:{parts - 1}")
    low, high = (0, 1) if is_backwards else (1, 0)
    all_, fewer, ends = tensor([parts], of), tensor([parts - 1], of), tensor([parts, 1, 1], of)
    padding = [0, parts - 1] if is_backwards else [parts - 1, 0]
    scalar, two = tensor([], of), tensor([parts, length, 1], of)
    lines = [
        f"%ends = stablehlo.slice %r#0 [0:{parts}, {last}:{last + 1}, 0:1] : ({two}) -> {ends}",
        f"%totals = stablehlo.reshape %ends : ({ends}) -> {all_}",
        f"%others = stablehlo.slice %totals [{kept}] : ({all_}) -> {fewer}",
        f"%earlier = stablehlo.pad %others, %1, low = [{low}], high = [{high}], interior = [0] : ({fewer}, {scalar}) -> {all_}",
        f'%before = "stablehlo.reduce_window"(%earlier, %1) <{{window_dimensions = array<i64: {parts}>, '
        f"padding = dense<[{padding}]> : tensor<1x2xi64>}}> ({{",
        f"^bb0(%left: {scalar}, %right: {scalar}):",
        f'%both = "{APPLY}"(%left, %right) : ({scalar}, {scalar}) -> {scalar}',
        f"stablehlo.return %both : {scalar}\n}}) : ({all_}, {scalar}) -> {all_}",
        f"%room = tensor.empty() : {two}",
        f"%joined = linalg.generic {{indexing_maps = [{axes_map(3, [0])}, {axes_map(3, range(3))}, {axes_map(3, range(3))}], "
        f'iterator_types = ["parallel", "parallel", "parallel"]}} ins(%before, %r#0 : {all_}, {two}) '
        f"outs(%room : {two}) {{\n^bb0(%all: {of}, %own: {of}, %o: {of}):",
    ]
    (made,) = applied_block(block, lines.append, "j", [("%all", of), ("%own", of)])
    return [*lines, f"linalg.yield {made} : {of}\n}} -> {two}"]
