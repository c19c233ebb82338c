"""What planning has to say about a program that it plans: remarks and warnings."""

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
    loops: int = 0
    """How many loops ``copy`` stood in."""

    def __str__(self) -> str:
        """The message in one line, as `DevscopeError` writes its own; without notes."""
        where = f"{self.location}: " if self.location is not None else ""
        return f"{where}{self.severity}: {self.message}"

    @property
    def text(self) -> str:
        """The message and its notes, a line for each."""
        return "\n".join([str(self), *(f"  note: {note}" for note in self.notes)])

    @property
    def holds(self) -> bool:
        """Whether it still does. Only what moves copies may have changed the module: some leave their loops."""
        copy = self.copy
        return copy is None or (copy.parent is not None and loops_around(copy) >= self.loops)


def loops_around(op: Operation) -> int:
    """How many operations that are loops hold ``op``."""
    return LoopNest({}).of_op(op)
