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
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from devscope.errors import OptionError, SourceLocation

PIPELINE_FILE = "<pipeline>"
"""File name in the locations of errors about the pipeline text."""

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")
_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_BLANKS = re.compile(r"\s*")
_CLOSERS = {"{": "}", "(": ")", "[": "]"}


@dataclass(frozen=True)
class PassItem:
    """One item of a pipeline: ``name{options}`` or ``name(nested)``."""

    name: str
    offset: int
    """Where the name starts in the pipeline text."""
    options: str | None = None
    """The text between the braces; None when there are no braces."""
    options_offset: int = 0
    nested: str | None = None
    """The text between the parentheses; None when there are none."""
    nested_offset: int = 0

    @property
    def location(self) -> SourceLocation:
        return pipeline_location(self.offset)


@dataclass(frozen=True)
class PassOption:
    """One ``key=value,value`` of a pass; a key without ``=`` has no values."""

    key: str
    values: tuple[str, ...]
    offset: int

    @property
    def location(self) -> SourceLocation:
        return pipeline_location(self.offset)


def pipeline_location(offset: int) -> SourceLocation:
    return SourceLocation(PIPELINE_FILE, 1, offset + 1)


def parse_pipeline(text: str, base: int = 0) -> list[PassItem]:
    """Splits a pipeline into its items; ``base`` is added to every offset.

    Raises OptionError with the column of the first character that does not fit.
    """
    items: list[PassItem] = []
    position = _skip_blanks(text, 0)
    if position == len(text):
        return items
    while True:
        item, position = _parse_item(text, position, base)
        items.append(item)
        position = _skip_blanks(text, position)
        if position == len(text):
            return items
        if text[position] != ",":
            raise OptionError(
                f"expected ',' or the end of the pipeline after '{item.name}', found '{text[position]}'",
                pipeline_location(base + position),
            )
        position = _skip_blanks(text, position + 1)


def parse_options(text: str, base: int) -> list[PassOption]:
    """Splits the text between the braces of a pass into options.

    Raises OptionError on a malformed key, a missing value or an option given twice.
    """
    options: dict[str, PassOption] = {}
    position = _skip_blanks(text, 0)
    while position < len(text):
        option, position = _parse_option(text, position, base)
        if option.key in options:
            raise OptionError(f"option '{option.key}' is given twice", option.location)
        options[option.key] = option
        position = _skip_blanks(text, position)
    return list(options.values())


def _skip_blanks(text: str, position: int) -> int:
    match = _BLANKS.match(text, position)
    return match.end() if match is not None else position


def _parse_item(text: str, position: int, base: int) -> tuple[PassItem, int]:
    match = _NAME.match(text, position)
    if match is None:
        found = f"'{text[position]}'" if position < len(text) else "the end of the pipeline"
        raise OptionError(f"expected a pass name, found {found}", pipeline_location(base + position))
    name, offset, position = match.group(), base + position, _skip_blanks(text, match.end())
    opener = text[position : position + 1]
    if opener == "{":
        end = _matching_close(text, position, base)
        inner = text[position + 1 : end]
        return PassItem(name, offset, options=inner, options_offset=base + position + 1), end + 1
    if opener == "(":
        end = _matching_close(text, position, base)
        inner = text[position + 1 : end]
        return PassItem(name, offset, nested=inner, nested_offset=base + position + 1), end + 1
    if opener == "[":
        raise OptionError(
            f"'[' cannot follow '{name}'",
            pipeline_location(base + position),
            [
                "options stand in braces: name{key=value}",
                "MLIR passes stand in parentheses: mlir(cse,func.func(...))",
            ],
        )
    return PassItem(name, offset), position


def _matching_close(text: str, start: int, base: int) -> int:
    """Position of the bracket that closes the one at ``start``; quoted text does not count."""
    expected: list[str] = []
    position = start
    while position < len(text):
        char = text[position]
        if char in "\"'":
            position = _quote_end(text, position, base)
        elif char in _CLOSERS:
            expected.append(_CLOSERS[char])
        elif char in "})]":
            if char != expected[-1]:
                raise OptionError(f"expected '{expected[-1]}' before '{char}'", pipeline_location(base + position))
            expected.pop()
            if not expected:
                return position
        position += 1
    raise OptionError(f"'{text[start]}' is never closed", pipeline_location(base + start))


def _quote_end(text: str, start: int, base: int) -> int:
    """Position of the quote that ends the string starting at ``start``."""
    position = start + 1
    while position < len(text):
        if text[position] == "\\":
            position += 1
        elif text[position] == text[start]:
            return position
        position += 1
    raise OptionError("a quoted string is never closed", pipeline_location(base + start))


def _parse_option(text: str, position: int, base: int) -> tuple[PassOption, int]:
    match = _KEY.match(text, position)
    if match is None:
        raise OptionError(f"expected an option name, found '{text[position]}'", pipeline_location(base + position))
    offset, position = base + position, match.end()
    if text[position : position + 1] != "=":
        if position < len(text) and not text[position].isspace():
            raise OptionError(
                f"expected '=' or a blank after '{match.group()}', found '{text[position]}'",
                pipeline_location(base + position),
            )
        return PassOption(match.group(), (), offset), position
    values: list[str] = []
    while True:
        value, position = _parse_value(text, position + 1, base)
        values.append(value)
        if text[position : position + 1] != ",":
            return PassOption(match.group(), tuple(values), offset), position


def _parse_value(text: str, position: int, base: int) -> tuple[str, int]:
    if text[position : position + 1] in ('"', "'"):
        end = _quote_end(text, position, base)
        return re.sub(r"\\(.)", r"\1", text[position + 1 : end], flags=re.DOTALL), end + 1
    end = position
    while end < len(text) and not text[end].isspace() and text[end] != ",":
        # A bracketed value, such as an attribute, may hold blanks and commas.
        end = (_matching_close(text, end, base) if text[end] in _CLOSERS else end) + 1
    if end == position:
        raise OptionError("expected a value", pipeline_location(base + position))
    return text[position:end], end
