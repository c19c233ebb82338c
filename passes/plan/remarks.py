"""What planning has to say about a program that it plans: remarks and warnings."""

from __future__ import annotations

from dataclasses import dataclass

from devscope.errors import Note, SourceLocation


@dataclass(frozen=True)
class Remark:
    """A message that is no error; notes say why, or what would be better."""

    severity: str
    """``remark`` or ``warning``."""
    message: str
    location: SourceLocation | None = None
    notes: tuple[Note, ...] = ()

    def __str__(self) -> str:
        """The message in one line, as `DevscopeError` writes its own; without notes."""
        return f"{self.location or '<unknown>'}: {self.severity}: {self.message}"

    @property
    def text(self) -> str:
        """The message and its notes, a line for each."""
        return "\n".join([str(self), *(f"  note: {note}" for note in self.notes)])
