"""The text of a pass pipeline: split into items, and an item's options split into words.

Grammar (blanks around items are free)::

    pipeline ::= [ item { "," item } ]
    item     ::= name [ "{" options "}" ]        one pass, of devscope, xDSL or MLIR
               | name "(" mlir-pipeline ")"      MLIR passes, nested as in mlir-opt
    options  ::= { key [ "=" value { "," value } ] }    separated by blanks
    value    ::= bare word | "quoted" | 'quoted'

A bare word runs to the next blank, comma or closing brace, so ``opencl:0@global`` and ``1.5e-3`` need no
quotes. Inside quotes a backslash takes the next character literally. What stands in parentheses, and the
options of an MLIR pass, go to MLIR unchanged.

xDSL's own parser (``xdsl.utils.arg_spec``) has neither MLIR's nested pipelines nor bare words such as scopes, and
allows no blanks between items.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from devscope.errors import OptionError, SourceLocation

PIPELINE_FILE = "<pipeline>"
"""File name in the locations of errors about the pipeline text."""

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")
_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_BLANKS = re.compile(r"\s*")
_PLAIN = re.compile(r"[^\s,{(\[]+")
_QUOTED = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'', re.DOTALL)
_BRACKET_OR_QUOTE = re.compile(rf"{_QUOTED.pattern}|[\"'(){{}}\[\]]", re.DOTALL)
_CLOSERS = {"{": "}", "(": ")", "[": "]"}


@dataclass(frozen=True)
class PassItem:
    """One item of a pipeline: ``name{options}`` or ``name(nested)``; ``inside``: where these texts begin."""

    name: str
    location: SourceLocation
    options: str | None = None
    nested: str | None = None
    inside: int = 0


@dataclass(frozen=True)
class PassOption:
    """One ``key=value,value`` of a pass; a key without ``=`` has no values."""

    key: str
    values: tuple[str, ...]
    location: SourceLocation


def parse_pipeline(text: str, base: int = 0) -> list[PassItem]:
    """Splits a pipeline into its items; ``base`` is added to every offset.

    Raises OptionError with the column of the first character that does not fit.
    """
    reader = _Reader(text, base)
    items: list[PassItem] = []
    while reader.next or items:
        items.append(_item(reader))
        if not reader.next:
            break
        if reader.next != ",":
            found = f"after '{items[-1].name}', found '{reader.next}'"
            raise reader.error(f"expected ',' or the end of the pipeline {found}")
        reader.position += 1
        reader.take(_BLANKS)
    return items


def parse_options(text: str, base: int) -> list[PassOption]:
    """Splits the text between the braces of an item, which stands at ``base``. Raises OptionError."""
    reader = _Reader(text, base)
    options: dict[str, PassOption] = {}
    while reader.next:
        option = _option(reader)
        if option.key in options:
            raise OptionError(f"option '{option.key}' is given twice", option.location)
        options[option.key] = option
        reader.take(_BLANKS)
    return list(options.values())


class _Reader:
    """A position in a part of the pipeline; the part begins at ``base``. Blanks in front are skipped."""

    def __init__(self, text: str, base: int) -> None:
        self.text, self.base, self.position = text, base, 0
        self.take(_BLANKS)

    @property
    def next(self) -> str:
        """The character here, "" at the end."""
        return self.text[self.position : self.position + 1]

    @property
    def location(self) -> SourceLocation:
        return SourceLocation(PIPELINE_FILE, 1, self.base + self.position + 1)

    def take(self, pattern: re.Pattern[str]) -> str:
        """The text here that matches, which is passed over; "" when nothing does."""
        match = pattern.match(self.text, self.position)
        found = "" if match is None else match.group()
        self.position += len(found)
        return found

    def bracketed(self) -> str:
        """The text up to the bracket that closes the one here, with both; quoted text does not count."""
        start, expected = self.position, list[str]()
        for match in _BRACKET_OR_QUOTE.finditer(self.text, start):
            token, self.position = match.group(), match.start()
            if token in _CLOSERS:
                expected.append(_CLOSERS[token])
            elif token in ('"', "'"):
                raise self.error("a quoted string is never closed")
            elif token in ("}", ")", "]"):
                if token != (wanted := expected.pop()):
                    raise self.error(f"expected '{wanted}' before '{token}'")
                if not expected:
                    self.position += 1
                    return self.text[start : self.position]
        self.position = start
        raise self.error(f"'{self.next}' is never closed")

    def error(self, message: str, notes: Sequence[str] = ()) -> OptionError:
        return OptionError(message, self.location, notes)


def _item(reader: _Reader) -> PassItem:
    location, name = reader.location, reader.take(_NAME)
    if not name:
        found = f"'{reader.next}'" if reader.next else "the end of the pipeline"
        raise reader.error(f"expected a pass name, found {found}")
    reader.take(_BLANKS)
    opener, inside = reader.next, reader.base + reader.position + 1
    if opener == "[":
        braces = "options stand in braces: name{key=value}"
        nested = "MLIR passes stand in parentheses: mlir(cse,func.func(...))"
        raise reader.error(f"'[' cannot follow '{name}'", [braces, nested])
    text = reader.bracketed()[1:-1] if opener and opener in "{(" else None
    reader.take(_BLANKS)
    options, nested = (text, None) if opener == "{" else (None, text)
    return PassItem(name, location, options, nested, inside)


def _option(reader: _Reader) -> PassOption:
    location, key = reader.location, reader.take(_KEY)
    if not key:
        raise reader.error(f"expected an option name, found '{reader.next}'")
    if reader.next.strip() not in ("", "="):
        raise reader.error(f"expected '=' or a blank after '{key}', found '{reader.next}'")
    values: list[str] = []
    while reader.next == ("," if values else "="):
        reader.position += 1
        values.append(_value(reader))
    return PassOption(key, tuple(values), location)


def _value(reader: _Reader) -> str:
    if reader.next in ("'", '"'):
        quoted = reader.take(_QUOTED)
        if not quoted:
            raise reader.error("a quoted string is never closed")
        return re.sub(r"\\(.)", r"\1", quoted[1:-1], flags=re.DOTALL)
    value = ""
    # A bracketed value, such as an attribute, may hold blanks and commas.
    while part := reader.bracketed() if reader.next in _CLOSERS else reader.take(_PLAIN):
        value += part
    if not value:
        raise reader.error("expected a value")
    return value
