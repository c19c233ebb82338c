"""The errors that devscope reports to its users.

Every error that bad input can cause is one of these types. The Python API raises them; command lines print
``error.text(flags=True)`` and exit with status 1, or 2 where the command line itself is wrong. The text has the
form used by MLIR and clang::

    model.mlir:12:7: error: unknown device type 'tpu'
      note: legal device types are: cpu, cuda, opencl, rocm
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class SourceLocation:
    """A position in a source file; line and column count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"

    @classmethod
    def of_byte(cls, file: str, data: bytes, at: int) -> SourceLocation:
        """The position of a byte of a file's contents."""
        return cls(file, data.count(b"\n", 0, at) + 1, at - data.rfind(b"\n", 0, at))


class Note(str):
    """The text of a note. One that speaks of another position than its error's begins with that position.

    ``flags``: the same for those who use a command line, where it speaks of options.
    """

    __slots__ = ("flags", "location", "text")

    flags: str
    location: SourceLocation | None
    text: str
    """The note without its position."""

    def __new__(cls, text: str, location: SourceLocation | None = None, flags: str | None = None) -> Note:
        where = "" if location is None else f"{location}: "
        note = super().__new__(cls, f"{where}{text}")
        note.location, note.text, note.flags = location, text, f"{where}{flags or text}"
        return note


def option_note(advice: str, option: str, value: str | Mapping[str, str]) -> Note:
    """``advice`` to give an option: as a keyword of the API, ``devices={"cuda:0": "opencl:0"}``, or as a flag."""
    text = value if isinstance(value, str) else ",".join(f"{key}={item}" for key, item in value.items())
    given = value if isinstance(value, str) else dict(value)
    return Note(f"{advice} {option}={given!r}", flags=f"{advice} --{option.replace('_', '-')} {text}")


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
        return self.text()

    def text(self, flags: bool = False) -> str:
        """All of it. With ``flags``, notes speak of a command line's options, else of the API's keywords."""
        where = f"{self.location}: " if self.location is not None else ""
        notes = (note.flags if flags else note for note in self.notes)
        lines = [f"{where}error: {self.message}", *(f"  note: {note}" for note in notes)]
        return "\n".join([*lines, *(other.text(flags) for other in self.others)])


class ParseError(DevscopeError):
    """The input is not a valid module: syntax, unknown op, or an op that upstream's verifier refuses."""


class VerifyError(DevscopeError):
    """A module breaks an invariant of the ``device`` dialect or of a planned module."""


class OptionError(DevscopeError):
    """An option, pass name, target kind or device name that does not exist or has a wrong type."""


class UserFileError(OptionError):
    """A file of figures or rules that an option names, and what is wrong in it."""


class MachineFileError(UserFileError):
    """A machine description that cannot be read, or that says what no machine is like."""


class ScheduleFileError(UserFileError):
    """A file of schedules that cannot be read, or that says what no kernel can be made with."""


class PlacementFileError(UserFileError):
    """A file of rules that cannot be read, or that says what no rule is."""


class CostFileError(UserFileError):
    """A file of costs that cannot be read, or that says what costs nothing."""


class PlanError(DevscopeError):
    """The program demands two scopes for one value."""


class LoweringError(DevscopeError):
    """A target cannot compile an operation."""


class BackendError(LoweringError):
    """A backend cannot compile what it claimed. ``pattern`` is empty for several matches together, which
    ``patterns`` has all.
    """

    def __init__(
        self, *arguments: Any, backend: str, pattern: str, patterns: Sequence[str] = (), **named: Any
    ) -> None:
        super().__init__(*arguments, **named)
        self.backend, self.pattern, self.patterns = backend, pattern, frozenset(patterns or (pattern,)) - {""}


class InputError(DevscopeError):
    """What a user gives does not fit: arrays an entry (shape, dtype, layout), a file that cannot be read."""


class ArgumentError(InputError, TypeError):
    """A call of an entry has too few or too many arguments, or a keyword that is none of its names."""


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


@contextmanager
def raised_as(
    kind: type[DevscopeError], what: str, location: SourceLocation | None = None, notes: Sequence[str] = ()
) -> Generator[None]:
    """Whatever code of others raises is an error of a ``kind`` that says ``what`` failed, and where."""
    try:
        yield
    except DevscopeError as error:
        error.location = error.location or location
        raise
    except Exception as error:
        raise kind(f"{what}: {type(error).__name__}: {error}", location, notes) from error


@contextmanager
def depth_reported() -> Generator[None]:
    """xDSL walks regions recursively: the end of Python's stack becomes a LoweringError."""
    try:
        yield
    except RecursionError:
        raise LoweringError(
            "the program has too many regions inside each other", notes=["some hundreds are possible"]
        ) from None
