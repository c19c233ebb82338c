"""Windows over an image without a loop of filters: ``window.mlir`` of the target."""

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
from devscope.lowering.kernels.window_calls import Call
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
        return "channels" if number is None or self.found.axes[number].inner is None else "pixels"

    def sizes(self) -> dict[str, int | None]:
        found = self.found
        return {
            "rows": found.size(self.rows),
            "columns": found.extent(self.side_by_side),
            "sums": found.size(self.sums),
        }

    def replace(self, row: Row, schedules: Schedules, library: KernelLibrary, constants: PackedConstants) -> None:
        del constants
        found, op = self.found, self.found.op
        filled = filled_before(op, found.result)
        if filled is not None and not filled[1]:
            filled = None
        if filled is not None and (parts := phases(found)) is not None:
            for part in parts:
                _compute_part(part, row, filled[1], library)
            for old in (filled[0], op) if have_everything(found) else (op,):
                old.erase()
            return
        follows = None
        if filled is not None:
            follows = epilogue_of(op, found.result, library.functions, found.sources)
        if follows is not None and strides_of(follows.result)[found.axes_of_result[self.side_by_side]] != 1:
            follows = None
        if follows is not None:
            schedules.include(follows.op, element_of(follows.result), self.sizes())
        Call(self, row, None if filled is None else filled[1], follows).insert(library)
        for old in (follows, None if filled is None else filled[0], op):
            if old is not None:
                old.erase()


def _compute_part(part: Windowed, row: Row, begin: str, library: KernelLibrary) -> None:
    """A phase, into a buffer of its own where elements of its result do not stand side by side."""
    made = plan(part)
    if made is not None:
        Call(made, row, begin, None).insert(library)
        return
    view, buffer = part.result, _buffer_like(part.op, part.result)
    made = plan(replace(part, result=buffer))
    assert made is not None
    Call(made, row, begin, None).insert(library)
    mlir_util.insert(part.op, f"memref.copy %0, %1 : {buffer.type} to {view.type}", [buffer, view])


def _buffer_like(op: Any, view: Any) -> Any:
    type_ = ir.MemRefType(view.type)
    shape = ["?" if type_.is_dynamic_dim(axis) else str(size) for axis, size in enumerate(type_.shape)]
    dynamic = [axis for axis in range(type_.rank) if type_.is_dynamic_dim(axis)]
    lines = [f"%a{axis} = arith.constant {axis} : index" for axis in dynamic]
    lines += [f"%d{axis} = memref.dim %0, %a{axis} : {type_}" for axis in dynamic]
    sizes = ", ".join(f"%d{axis}" for axis in dynamic)
    lines.append(
        f"%made = memref.alloc({sizes}) {{alignment = 64 : i64}} : memref<{'x'.join([*shape, element_of(view)])}>"
    )
    return mlir_util.insert(op, "\n".join(lines), [view])[-1].results[0]
