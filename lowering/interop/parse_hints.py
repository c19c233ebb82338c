"""What could stand where MLIR's parser finds an error: its messages say what it saw, not what is legal."""

import difflib
import re
from collections.abc import Iterator

from xdsl.universe import Universe

from devscope.errors import DevscopeError, Note, ParseError, SourceLocation
from devscope.lowering.interop.custom_form import BRACKETED, STRING

_DEVICE_OPERATION = re.compile(
    rf"{STRING}|//[^\n]*|(?<![\w.])(device\.(?:on_device|device_copy|region|launch|yield))\b"
)
_FORMS = {
    "device.device_copy": "device.device_copy %x from #a to #b : tensor<4xf32>",
    "device.on_device": "device.on_device %x on #a : tensor<4xf32>",
}
_ATTRIBUTE = re.compile(rf"#device\.(\w*)(?=({BRACKETED.removesuffix('?')}|.*))")
_ATTRIBUTES = {
    "scope": '#device.scope<TYPE, ID, TARGET, MEMORY>, such as #device.scope<"opencl", 0 : i64, "", "">',
    "target": '#device.target<KIND, {OPTIONS}>, such as #device.target<"opencl", {workgroup = 64 : i64}>',
}
_UNDEFINED_ALIAS = re.compile(r"undefined symbol alias id '(.*)'")
_ALIAS = re.compile(r"^#(\w+)\s*=", re.MULTILINE)
_UNKNOWN_OPERATION = re.compile(r"custom op '([\w.$-]+)' is unknown.*")
_UNPREFIXED = ("func", "arith", "math", "tensor", "linalg", "scf", "cf", "memref")
"""Dialects to look in for the operation that a name without a dialect means."""


def explained(error: DevscopeError, text: str, filename: str) -> DevscopeError:
    """``error``, which MLIR's parser found in ``text``, with notes on what is legal there."""
    if error.location is None:
        return error if error.notes else _in_wrong_form(error, text, filename)
    if text.startswith("\ufeff"):
        error.notes += (Note("the file begins with a byte order mark: save it as UTF-8 without one"),)
    error.notes += tuple(Note(hint) for hint in _hints(error, error.location, text))
    return error


def _in_wrong_form(error: DevscopeError, text: str, filename: str) -> DevscopeError:
    """A better error where MLIR has no message, as for a custom form of an operation that has none."""
    match = next((match for match in _DEVICE_OPERATION.finditer(text) if match[1]), None)
    if match is None:
        return error
    start, name = match.start(1), match[1]
    line, column = text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start)
    message, note = f"'{name}' is written in generic form only", "with the name in quotes: "
    if name in _FORMS:
        message, note = f"this is no form of '{name}'", f"write {_FORMS[name]}, or, with the name in quotes: "
    generic = f'"{name}"(%x) {{...}} : (tensor<4xf32>) -> tensor<4xf32>'
    return ParseError(message, SourceLocation(filename, line, column), [note + generic])


def _hints(error: DevscopeError, where: SourceLocation, text: str) -> Iterator[str]:
    if alias := _UNDEFINED_ALIAS.fullmatch(error.message):
        yield from _close(alias[1], _ALIAS.findall(text), "#", "defined are")
    if operation := _UNKNOWN_OPERATION.fullmatch(error.message):
        yield from _close(operation[1], _operations(operation[1]))
    lines = text.split("\n")
    line = lines[where.line - 1] if where.line <= len(lines) else ""
    if not line[where.column - 1 :].strip() and not "".join(lines[where.line :]).strip():
        yield "the text ends here: is a bracket not closed?"
    around = [m for m in _ATTRIBUTE.finditer(line) if m.start() < where.column <= m.end(2) + 1]
    if not around:
        return
    name = around[-1][1]
    if name not in _ATTRIBUTES:
        error.message = f"the dialect 'device' has no attribute '{name}'"
    forms = {name: _ATTRIBUTES[name]} if name in _ATTRIBUTES else _ATTRIBUTES
    yield from (f"write {form}" for form in forms.values())
    if "scope" in forms:
        yield '"" and -1 leave a field open'


def _close(name: str, names: list[str], mark: str = "", listed: str = "") -> Iterator[str]:
    close = difflib.get_close_matches(name, names, n=1)
    if close:
        yield f"did you mean '{mark}{close[0]}'?"
    elif names and listed:
        yield f"{listed}: {', '.join(mark + one for one in names)}"


def _operations(name: str) -> list[str]:
    """The operations among which the one called ``name`` was probably meant."""
    dialect, dot, _ = name.partition(".")
    known = Universe.get_multiverse().all_dialects
    found = [
        op.name for one in ([dialect] if dot else _UNPREFIXED) if one in known for op in known[one]().operations
    ]
    return found if dot else [one for one in found if one.partition(".")[2] == name]
