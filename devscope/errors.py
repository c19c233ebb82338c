"""The errors that devscope reports to its users.

Every error that bad input can cause is one of these types. Command lines print ``str(error)`` and
exit with status 1; the Python API raises them. The text has the form used by MLIR and clang::

    model.mlir:12:7: error: unknown device type 'tpu'
      note: legal device types are: cpu, cuda, opencl, rocm
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class SourceLocation:
    """A position in a source file; line and column count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class Note(str):
    """The text of a note. One that speaks of another position than its error's begins with that position."""

    __slots__ = ("location", "text")

    location: SourceLocation | None
    text: str
    """The note without its position."""

    def __new__(cls, text: str, location: SourceLocation | None = None) -> Note:
        note = super().__new__(cls, text if location is None else f"{location}: {text}")
        note.location, note.text = location, text
        return note


class DevscopeError(Exception):
    """Base class: a message, where it applies, and notes that say what is legal or what to do.

    One failure can have several errors: the first one is raised, in the order of the source, and has the
    ``others``. ``str()`` has them all.
    """

    def __init__(
        self,
        message: str,
        location: SourceLocation | None = None,
        notes: Sequence[str] = (),
        others: Sequence[DevscopeError] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        self.location = location
        self.notes = tuple(note if isinstance(note, Note) else Note(note) for note in notes)
        self.others = tuple(others)

    def __str__(self) -> str:
        where = f"{self.location}: " if self.location is not None else ""
        lines = [f"{where}error: {self.message}", *(f"  note: {note}" for note in self.notes)]
        return "\n".join([*lines, *(str(other) for other in self.others)])


class ParseError(DevscopeError):
    """The input is not a valid module: syntax, unknown op, or an op that upstream's verifier refuses."""


class VerifyError(DevscopeError):
    """A module breaks an invariant of the ``device`` dialect or of a planned module."""


class OptionError(DevscopeError):
    """An option, pass name, target kind or device name that does not exist or has a wrong type."""


class PlanError(DevscopeError):
    """The program demands two scopes for one value."""


class LoweringError(DevscopeError):
    """A target cannot compile an operation."""


class InputError(DevscopeError):
    """Arrays given to an executable do not fit its entry: number, shape, dtype or layout."""


class DeviceNotFoundError(DevscopeError):
    """A device that the program needs is not on this machine."""


class DeviceError(DevscopeError):
    """A driver refused a request: out of memory, failed build, lost device."""


class ExecutionError(DevscopeError):
    """A program stopped itself: an assertion of its own does not hold."""


class ExecutableFormatError(DevscopeError):
    """A ``.dsx`` file is damaged, foreign, or of another format version or machine."""


class DevscopeWarning(UserWarning):
    """What devscope did otherwise than asked, and why, where that is no error; command lines print it."""
