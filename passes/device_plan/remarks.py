"""What planning has to say about a program that it plans: remarks and warnings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from xdsl.ir import Operation

from devscope.analysis.loops import LoopNest
from devscope.errors import Note, SourceLocation


@dataclass(frozen=True)
class Remark:
    """A message that is no error; notes say why, or what would be better."""

    severity: str
    """``remark`` or ``warning``."""
    message: str
    location: SourceLocation | None = None
    notes: tuple[Note, ...] = ()
    copy: Operation | None = field(default=None, compare=False, repr=False)
    """Of a warning about a copy that is repeated, the copy."""

    def __str__(self) -> str:
        """The message in one line, as `DevscopeError` writes its own; without notes."""
        return f"{self.location or '<unknown>'}: {self.severity}: {self.message}"

    @property
    def text(self) -> str:
        """The message and its notes, a line for each."""
        return "\n".join([str(self), *(f"  note: {note}" for note in self.notes)])


class LoopWarnings:
    """The warnings of a plan, some of which are about copies that later passes take out of their loops."""

    def __init__(self, remarks: Iterable[Remark]) -> None:
        warnings = [remark for remark in remarks if remark.severity == "warning"]
        self._warnings = [(remark, _loops_around(remark.copy)) for remark in warnings]

    def left(self) -> list[str]:
        """Those that still hold. Only what moves copies may have changed the module meanwhile."""
        return [
            remark.text
            for remark, loops in self._warnings
            if remark.copy is None or (remark.copy.parent is not None and _loops_around(remark.copy) >= loops)
        ]


def _loops_around(op: Operation | None) -> int:
    return LoopNest({}).of_op(op) if op is not None else 0
