"""What the operations of a function do with buffers, and with parts of them."""

from collections.abc import Sequence
from typing import Any

from devscope.dialects.op_facts import facts
from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels import subviews
from devscope.lowering.kernels.nest import Nest


class Code:
    """Who makes and who uses the values of operations."""

    def __init__(self, ops: Sequence[Any]) -> None:
        self.makers = {result: op for op in ops for result in op.results}
        self.users: dict[Any, list[Any]] = {}
        for op in ops:
            for value in op.operands:
                self.users.setdefault(value, []).append(op)
        self._buffers: dict[Nest, dict[Any, Any]] = {}
        self._loads: dict[Nest, set[Any]] = {}

    def buffers(self, nest: Nest) -> dict[Any, Any]:
        """Those that a nest used when this was asked first, and the `root` of each."""
        if nest not in self._buffers:
            self._buffers[nest] = {value: self.root(value) for value in used_buffers(nest)}
        return self._buffers[nest]

    def loads(self, nest: Nest) -> set[Any]:
        """The `root` of those that its body reads by itself."""
        if nest not in self._loads:
            inside = [v for child in mlir_util.children(nest.op) for v in mlir_util.captured_values(child)]
            self._loads[nest] = {self.root(value) for value in inside if mlir_util.is_memref(value.type)}
        return self._loads[nest]

    def add(self, op: Any) -> Any:
        """The result of a new operation."""
        self.makers[op.results[0]] = op
        return op.results[0]

    def maker_name(self, value: Any) -> str:
        return self.makers[value].name if value in self.makers else ""

    def has_parts_of_rows(self, value: Any, rows: int) -> bool:
        """Whether ``value`` is a whole buffer, or some of each of its rows."""
        for op in self.views(value):
            if op.name != "memref.subview":
                return False
            if ir.MemRefType(op.operands[0].type).rank != ir.MemRefType(op.results[0].type).rank:
                return False
            if not all(subviews.whole_axes(op)[:rows]):
                return False
        return True

    def views(self, value: Any) -> list[Any]:
        """What takes ``value`` from the buffer that it is a part of, the last first."""
        found: list[Any] = []
        while value in self.makers and (source := facts(self.makers[value].name).view_of) is not None:
            found.append(self.makers[value])
            value = self.makers[value].operands[source]
        return found

    def root(self, value: Any) -> Any:
        """The buffer that ``value`` is a part of."""
        views = self.views(value)
        return views[-1].operands[facts(views[-1].name).view_of or 0] if views else value


def used_buffers(nest: Nest) -> list[Any]:
    return [value for value in mlir_util.captured_values(nest.op) if mlir_util.is_memref(value.type)]


def filled_value(op: Any) -> Any | None:
    """What ``op`` writes everywhere in its result, the last operand: a fill, or what reads nothing."""
    if op.name == "linalg.fill":
        return op.operands[0]
    return mlir_util.children(op)[-1].operands[0] if len(op.operands) == 1 else None


def is_quiet(op: Any) -> bool:
    """Whether the memory of buffers is the same before and behind ``op``, and nothing of it is read."""
    known = facts(op.name)
    harmless = (
        known.allocates or known.view_of is not None or known.query or op.name.startswith(("arith.", "math."))
    )
    return harmless and not list(op.regions)
