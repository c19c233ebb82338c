"""Where a kernel over rows has what its steps compute: in registers, in local memory or in buffers.

A few work-items share a row, and each has every so manieth element of it. Where the lengths of rows are known and
go into equal shares, what an element is stays in a register from one operation to the next: it is read and written
once.
"""

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.gpu.row_steps import ALONE, Step
from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels.nest import Operand
from devscope.lowering.kernels.rows import RowGroup
from devscope.lowering.memory.effects import elementwise_pairs


class RowShares:
    """``share``: work-items of a row; ``per_group``: rows of a workgroup, which has ``threads`` work-items.

    ``in_registers``: whether elements stay there; ``is_exact``: whether all workgroups have that many rows.
    """

    def __init__(self, group: RowGroup, steps: Sequence[Step], numbers: Mapping[str, int]) -> None:
        most, values = numbers["work_items"], numbers["values"]
        lengths = [step.length() for step in steps if step.kind != ALONE]
        known = [length for length in lengths if length is not None]
        self.share = most
        self.in_registers = False
        if len(known) == len(lengths) and 0 not in known:
            while self.share > 1 and any(length % self.share for length in known):
                self.share //= 2
            self.in_registers = max(known) <= self.share * values
            if not self.in_registers:
                self.share = min(most, 1 << (max(known) - 1).bit_length())
        self.per_group = most // self.share
        rows = group.row_count()
        while self.per_group > 1 and rows is not None and self.per_group >= 2 * rows:
            self.per_group //= 2
        self.is_exact = self.per_group == 1 or (rows is not None and rows % self.per_group == 0)
        self.threads = self.share * self.per_group


class RowPlaces:
    """``scalars``: buffers with one number for a row, which all its work-items have; ``held``: those whose
    elements stay in registers; ``local``: names of those in local memory. ``private``: buffers that nobody needs
    any more; ``operands``: values for the parameters, and ``written``, those of them that are.

    ``shared``: what some work-items write and others may read. ``pairs``: inputs with results that may be in their
    memory; ``changing``: what is not the same all the time.
    """

    def __init__(self, group: RowGroup, steps: Sequence[Step], shares: RowShares, local_bytes: int) -> None:
        written = {o.value for step in steps for o in step.nest.results}
        accesses: dict[Any, list[tuple[Step, Operand]]] = {}
        for step in steps:
            for operand in step.nest.operands:
                if operand.is_buffer:
                    accesses.setdefault(operand.value, []).append((step, operand))
        self.scalars = {
            value for value, uses in accesses.items() if all(list(o.dims) == list(s.around) for s, o in uses)
        }
        self.held = {
            value
            for value, uses in accesses.items()
            if shares.in_registers and all(s.is_aligned(o) and not (s.best and value in written) for s, o in uses)
        }
        temporary = set(group.temporaries())
        self.private = [v for v in accesses if v in temporary & (self.scalars | self.held)]
        self.local: dict[Any, str] = {}
        left = local_bytes
        for value in accesses:
            size = _row_bytes(value, group.rows)
            if value in temporary and value not in self.private and size is not None:
                size *= shares.per_group
                if size <= left:
                    left -= size
                    self.local[value] = f"line{len(self.local)}"
        self.private += list(self.local)
        values = [o.value for step in steps for o in step.nest.operands]
        values += [value for step in steps for value in step.captured]
        self.operands = [value for value in dict.fromkeys(values) if value not in self.private]
        self.shared = written - self.scalars - self.held
        self.pairs = [
            (source, target)
            for step in steps
            for source, target in elementwise_pairs(step.nest.op)
            if {source, target} <= self.held
            and source not in written
            and target in self.operands
            and not any(s.best for s, _ in accesses[source])  # which read all elements again
        ]
        self.changing = written | {source for source, _ in self.pairs}
        self.written = written & set(self.operands)


def _row_bytes(value: Any, rows: int) -> int | None:
    """Of a row of a buffer; None where local memory cannot have one."""
    type_ = ir.MemRefType(value.type)
    inside = type_.shape[rows:]
    if ir.ShapedType.get_dynamic_size() in inside:
        return None
    return prod(inside) * mlir_util.element_bytes(type_.element_type)
