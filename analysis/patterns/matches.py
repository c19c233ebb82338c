"""What a pattern matched, and what one that did not lacks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from xdsl.ir import Operation, SSAValue

from devscope.analysis.patterns.python_values import python_value
from devscope.dialects.location import source_location
from devscope.dialects.names import op_name

_Options = Mapping[str, str | int | bool]


@dataclass(frozen=True)
class Match:
    """What a pattern matched: ``ops`` in the order of their block, the last is ``root``; ``match["x"]`` is the
    value called ``x``. ``options`` are those of the target that the operations would be compiled for."""

    root: Operation
    ops: tuple[Operation, ...]
    values: Mapping[str, SSAValue]
    options: _Options = field(default_factory=dict[str, str | int | bool])

    def __getitem__(self, name: str) -> SSAValue:
        return self.values[name]

    def __contains__(self, name: object) -> bool:
        return name in self.values

    def attribute(self, name: str, op: Operation | None = None) -> Any:
        """An attribute of ``op``, or of the root, as a Python value; None if it is not there."""
        return python_value((op or self.root).get_attr_or_prop(name))

    def named(self, *names: str) -> list[Operation]:
        """The matched operations with these names."""
        return [op for op in self.ops if op_name(op) in names]


@dataclass(frozen=True)
class NearMiss:
    """Where a pattern stopped to match that had matched ``matched`` operations."""

    matched: int
    text: str
    op: Operation | None

    def __str__(self) -> str:
        where = source_location(self.op) if self.op is not None else None
        return f"{where}: {self.text}" if where is not None else self.text


def in_order(ops: frozenset[Operation]) -> tuple[Operation, ...]:
    """Operations in the order of their block; of several blocks, as they are met."""
    if len(ops) < 2:
        return tuple(ops)
    blocks = {op.parent for op in ops}
    if len(blocks) > 1:  # no region is crossed: whoever asks finds out
        return tuple(sorted(ops, key=op_name))
    block = blocks.pop()
    assert block is not None
    return tuple(op for op in block.ops if op in ops)
