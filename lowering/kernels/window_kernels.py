"""Windows over an image without a loop of filters: ``window.mlir`` of the target."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels.accumulators import filled_before
from devscope.lowering.kernels.epilogue import epilogue_of
from devscope.lowering.kernels.library import KernelLibrary
from devscope.lowering.kernels.packed_constants import PackedConstants
from devscope.lowering.kernels.phases import have_everything, phases
from devscope.lowering.kernels.table import Row, Schedules
from devscope.lowering.kernels.window_calls import Call, unrolled
from devscope.lowering.kernels.windowed import Windowed, element_of, strides_of

KIND = "window"


def plan(found: Windowed) -> "Plan | None":
    """How ``found`` is computed; None if its result has no elements that stand side by side."""
    strides = strides_of(found.result)
    if not found.axes_of_result or strides[-1] != 1:
        return None
    by_axis = sorted(found.axes_of_result, key=lambda loop: found.axes_of_result[loop])
    # The last axis, but not one channel or column: those before it are side by side then.
    wide = [loop for loop in by_axis if found.extent(loop) != 1 and strides[found.axes_of_result[loop]] == 1]
    last = wide[-1] if wide else by_axis[-1]
    sums = [axis.inner for axis in found.axes if axis.inner is not None]
    sums += [loop for loop in found.axes_of_weights if loop not in sums and loop not in by_axis]
    return Plan(found, [loop for loop in by_axis if loop != last], last, sums)


@dataclass
class Plan:
    """``side_by_side``: the loop along which vectors are; ``rows``: the other ones of the result."""

    found: Windowed
    rows: list[int]
    side_by_side: int
    sums: list[int]

    def contiguous(self) -> str:
        """What stands side by side in the result: ``"pixels"``, along which windows move, or ``"channels"``."""
        number = self.found.axis_with(self.side_by_side)
        is_alone = number is None or self.found.axes[number].inner is None
        return "channels" if is_alone or self.side_by_side in self.found.axes_of_weights else "pixels"

    def sizes(self) -> dict[str, int | None]:
        found = self.found
        return {
            "rows": found.size(self.rows),
            "columns": found.extent(self.side_by_side),
            "sums": found.size(self.sums),
        }

    def replace(self, row: Row, schedules: Schedules, library: KernelLibrary, constants: PackedConstants) -> None:
        found, op = self.found, self.found.op
        filled = filled_before(op, found.result)
        if filled is not None and not filled[1]:
            filled = None
        if (parts := phases(found)) is not None:
            for part in parts:
                _compute_part(part, row, None if filled is None else filled[1], library, constants)
            if filled is not None and have_everything(found):
                filled[0].erase()
            op.erase()
            return
        follows = None
        if filled is not None:
            follows = epilogue_of(op, found.result, library.functions, found.sources)
        if follows is not None and strides_of(follows.result)[found.axes_of_result[self.side_by_side]] != 1:
            follows = None
        if follows is not None:
            schedules.include(follows.op, element_of(follows.result), self.sizes())
        turned = _with_filters_side_by_side(self, row, constants)
        Call(turned, row, None if filled is None else filled[1], follows).insert(library)
        for old in (follows, None if filled is None else filled[0], op):
            if old is not None:
                old.erase()


def _compute_part(
    part: Windowed, row: Row, begin: str | None, library: KernelLibrary, constants: PackedConstants
) -> None:
    """A phase, into a buffer of its own where elements of its result do not stand side by side.

    ``begin``: what sums begin with; None: what is in the result.
    """
    view, made = part.result, plan(part)
    buffer = view if made is not None else _buffer_like(part.op, view)
    made = made or plan(replace(part, result=buffer))
    assert made is not None
    if buffer is not view and begin is None:
        mlir_util.insert(part.op, f"memref.copy %0, %1 : {view.type} to {buffer.type}", [view, buffer])
    Call(_with_filters_side_by_side(made, row, constants), row, begin, None).insert(library)
    if buffer is not view:
        mlir_util.insert(part.op, f"memref.copy %0, %1 : {buffer.type} to {view.type}", [buffer, view])


def _with_filters_side_by_side(made: Plan, row: Row, constants: PackedConstants) -> Plan:
    """The plan of filters with the axis last along which vectors are: constants, and those that a kernel reads
    again for each vector of the result."""
    found, plain = made.found, made.found.weights
    axis = None if found.w is None else found.axes_of_weights.get(made.side_by_side)
    if plain is None or axis is None or strides_of(plain)[axis] == 1:
        return made
    order = [*(other for other in found.axes_of_weights.values() if other != axis), axis]
    packed = constants.pack(found.op, plain, ([], order[:-1], [axis]), 1)
    if packed is not None:
        groups = [[0], [*range(1, len(order) + 1)]]
        shape = [1, *(ir.MemRefType(plain.type).shape[each] for each in order)]
        type_ = f"memref<{'x'.join(map(str, shape))}x{element_of(packed)}>"
        text = f"%made = memref.expand_shape %0 {groups} output_shape {shape} : {packed.type} into {type_}"
        weights = mlir_util.insert(found.op, text, [packed])[0].results[0]
    elif (found.size(made.sums) or unrolled(row) + 1) > unrolled(row):
        weights = _buffer_like(found.op, plain, order)
        types = f"ins(%0 : {plain.type}) outs(%1 : {weights.type})"
        mlir_util.insert(found.op, f"linalg.transpose {types} permutation = {order}", [plain, weights])
    else:
        return made
    first = 0 if packed is None else 1
    axes = {loop: first + order.index(axis) for loop, axis in found.axes_of_weights.items()}
    return replace(made, found=replace(found, weights=weights, axes_of_weights=axes))


def _buffer_like(op: Any, value: Any, order: Sequence[int] | None = None) -> Any:
    """A new buffer for what ``value`` has, its axes in another ``order``."""
    type_ = ir.MemRefType(value.type)
    order = range(type_.rank) if order is None else order
    dynamic = [axis for axis in order if type_.is_dynamic_dim(axis)]
    lines = [f"%a{axis} = arith.constant {axis} : index" for axis in dynamic]
    lines += [f"%d{axis} = memref.dim %0, %a{axis} : {type_}" for axis in dynamic]
    shape = "x".join("?" if axis in dynamic else str(type_.shape[axis]) for axis in order)
    sizes = ", ".join(f"%d{axis}" for axis in dynamic)
    type_ = f"memref<{shape}x{element_of(value)}>"
    lines.append(f"%made = memref.alloc({sizes}) {{alignment = 64 : i64}} : {type_}")
    return mlir_util.insert(op, "\n".join(lines), [value])[-1].results[0]
