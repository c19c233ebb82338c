"""``--verify-diagnostics``: compares what was reported with the annotations in the input.

An annotation is a comment, written as for mlir-opt::

    // expected-error@+1 {{part of the message}}
    // expected-note-re@below {{regular expressions in {{.*}} double braces}}

``@+N``/``@-N`` count lines from the annotation, ``@above``/``@below`` mean the nearest line that holds no
annotation, ``@unknown`` a diagnostic without a position, and nothing the annotation's own line. Every error,
warning and remark must be expected, and everything expected must come. Notes are free to come unannounced;
so are the further errors that one failure of MLIR brings along, which devscope reports as notes.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from devscope.errors import DevscopeError, Note, SourceLocation

_ANNOTATION = re.compile(
    r"expected-(?P<kind>error|note|remark|warning)(?P<regex>-re)?"
    r"[ \t]*(?:@(?P<where>[+-]\d+|above|below|unknown))?[ \t]*\{\{(?P<text>.*)\}\}[ \t]*$"
)
_LOOKS_LIKE_ANNOTATION = re.compile(r"//[ \t]*expected-(?:error|note|remark|warning)")
_LOCATED = re.compile(r"(?P<file>.+?):(?P<line>\d+):(?P<column>\d+): (?:error: )?(?P<text>.*)", re.DOTALL)
_UNKNOWN_LINE = 0


@dataclass(frozen=True)
class Diagnostic:
    """One reported message; ``severity`` is error, warning, remark or note."""

    severity: str
    message: str
    location: SourceLocation | None

    @property
    def line(self) -> int:
        return _UNKNOWN_LINE if self.location is None else self.location.line

    def __str__(self) -> str:
        where = "" if self.location is None else f"{self.location}: "
        return f"{where}{self.severity}: {self.message}"


def diagnostics_of(error: DevscopeError) -> list[Diagnostic]:
    """Each error with its notes; a note without a position of its own has the error's."""
    found: list[Diagnostic] = []
    for one in (error, *error.others):
        found.append(Diagnostic("error", one.message, one.location))
        found += (_note(note, one.location) for note in one.notes)
    return found


def _note(note: Note, around: SourceLocation | None) -> Diagnostic:
    match = _LOCATED.fullmatch(note.text)  # as MLIR's come
    if note.location is not None or match is None:
        return Diagnostic("note", note.text, note.location or around)
    location = SourceLocation(match["file"], int(match["line"]), int(match["column"]))
    return Diagnostic("note", match["text"], location)


@dataclass
class _Expectation:
    kind: str
    pattern: re.Pattern[str]
    text: str
    line: int
    """The line that the diagnostic must point to."""
    location: SourceLocation
    """Where the annotation stands."""

    def accepts(self, diagnostic: Diagnostic) -> bool:
        # devscope reports the second and later errors of one failure as notes of the first.
        kinds = (self.kind, "note") if self.kind == "error" else (self.kind,)
        return (
            diagnostic.severity in kinds
            and diagnostic.line == self.line
            and self.pattern.search(diagnostic.message) is not None
        )


def check_diagnostics(text: str, filename: str, reported: Sequence[Diagnostic]) -> list[str]:
    """What does not agree between the annotations in ``text`` and the diagnostics, one message each."""
    expectations, problems = _parse_annotations(text, filename)
    for diagnostic in reported:
        match = next((one for one in expectations if one.accepts(diagnostic)), None)
        if match is not None:
            expectations.remove(match)
        elif diagnostic.severity != "note":
            where = "" if diagnostic.location is None else f"{diagnostic.location}: "
            problems.append(f"{where}error: unexpected {diagnostic.severity}: {diagnostic.message}")
    for left in expectations:
        problems.append(f'{left.location}: error: expected {left.kind} "{left.text}" was not produced')
    return problems


def _parse_annotations(text: str, filename: str) -> tuple[list[_Expectation], list[str]]:
    lines = text.split("\n")
    matches = [_ANNOTATION.search(line) for line in lines]
    annotated = {number for number, match in enumerate(matches, 1) if match is not None}
    expectations: list[_Expectation] = []
    problems: list[str] = []
    for number, (line, match) in enumerate(zip(lines, matches, strict=True), 1):
        if match is not None:
            location = SourceLocation(filename, number, match.start() + 1)
            target = _target_line(number, match["where"], annotated)
            pattern = _pattern(match["text"], is_regex=match["regex"] is not None)
            expectations.append(_Expectation(match["kind"], pattern, match["text"], target, location))
        elif (attempt := _LOOKS_LIKE_ANNOTATION.search(line)) is not None:
            location = SourceLocation(filename, number, attempt.start() + 1)
            problems.append(f"{location}: error: malformed annotation, write: expected-error@+1 {{{{message}}}}")
    return expectations, problems


def _target_line(number: int, where: str | None, annotated: set[int]) -> int:
    if where is None:
        return number
    if where == "unknown":
        return _UNKNOWN_LINE
    if where in ("above", "below"):
        step = -1 if where == "above" else 1
        number += step
        while number in annotated:
            number += step
        return number
    return number + int(where)


def _pattern(text: str, is_regex: bool) -> re.Pattern[str]:
    """A plain annotation is a substring; in a ``-re`` one, only ``{{...}}`` holds a regular expression."""
    if not is_regex:
        return re.compile(re.escape(text))
    parts = re.split(r"\{\{(.*?)\}\}", text)
    return re.compile("".join(part if index % 2 else re.escape(part) for index, part in enumerate(parts)))
