"""Rules that place operations, as a file. ``docs/placing.md`` documents the format. Needs no xDSL."""

from __future__ import annotations

import os
import re
from typing import Any, NoReturn

from devscope.analysis.placement import AUTO, LIMITS, PATTERNS, Placement, Rule
from devscope.analysis.text_files import decoded, read_text
from devscope.errors import OptionError, PlacementFileError, SourceLocation

_KEYS = ("device", *PATTERNS, *LIMITS)
_HEAD = re.compile(r"^\s*\[\[\s*rule\s*\]\]", re.MULTILINE)
_SEE = 'a rule is a table [[rule]] with device = "TYPE:NUMBER" and conditions, see docs/placing.md'


def read_placement(path: str) -> Placement:
    """The rules in a file. Raises PlacementFileError where it cannot be read, and with line and column for what is
    wrong in it."""
    notes = ["a pattern alone places nothing: write PATTERN=DEVICE"] if not path.endswith(".toml") else []
    return parse_placement(read_text(path, "the rules", PlacementFileError, notes), path)


def parse_placement(text: str, path: str) -> Placement:
    """As `read_placement`, for the text of a file of this name."""
    return _File(text, path).placement(decoded(text, path, PlacementFileError, _SEE))


class _File:
    """Finds lines again, which tomllib does not tell."""

    def __init__(self, text: str, path: str) -> None:
        self._lines = text.splitlines()
        self._path = path
        self._heads = [text.count("\n", 0, match.end()) for match in _HEAD.finditer(text)]

    def placement(self, table: dict[str, Any]) -> Placement:
        for key in table:
            if key not in ("rule", "devices"):
                self._fail(f"'{key}' is no part of a file of rules", self._at(key), "legal: rule, devices", _SEE)
        rules = table.get("rule", [])
        if not isinstance(rules, list) or not all(isinstance(rule, dict) for rule in rules):
            self._fail("'rule' must be tables, each below [[rule]]", self._at("rule"), _SEE)
        devices = table.get("devices", [])
        if not isinstance(devices, list):
            self._fail("'devices' must be an array of devices", self._at("devices"))
        if not rules and not devices:
            self._fail("there is no rule", self._at(""), _SEE)
        found = [self._rule(rule, index) for index, rule in enumerate(rules)]
        try:
            return Placement(found, devices)
        except OptionError as error:
            raise PlacementFileError(error.message, error.location or self._at("devices"), error.notes) from None

    def _rule(self, rule: dict[str, Any], index: int) -> Rule:
        head = self._heads[index] if index < len(self._heads) else None
        name = f"rule {index + 1} of {os.path.basename(self._path)}"
        for key in rule:
            if key not in _KEYS:
                self._fail(f"'{key}' is no part of a rule", self._at(key, head), f"legal: {', '.join(_KEYS)}")
        if "device" not in rule:
            self._fail("the rule has no 'device'", self._at("", head), 'such as device = "opencl:0"')
        for key, value in rule.items():
            try:  # one by one: the line is that of the key
                given: dict[str, Any] = {"device": "cpu:0", key: value} if value != AUTO else {"device": AUTO}
                Rule(**given)
            except OptionError as error:
                self._fail(error.message, self._at(key, head), *error.notes)
        try:
            return Rule(**rule, name=name, at=self._at("", head))
        except OptionError as error:
            self._fail(error.message, self._at("device", head), *error.notes)

    def _at(self, key: str, head: int | None = None) -> SourceLocation:
        """The line of a key, in the rule whose head is in line ``head`` from 0, or of that head."""
        start = head or 0
        for number in range(start, len(self._lines)) if key else ():
            if number > start and self._lines[number].lstrip().startswith("[["):
                break
            if (match := re.match(rf"\s*\"?{re.escape(key)}\"?\s*=", self._lines[number])) is not None:
                return SourceLocation(self._path, number + 1, len(match[0]) - len(match[0].lstrip()) + 1)
        return SourceLocation(self._path, start + 1, 1)

    def _fail(self, message: str, where: SourceLocation, *notes: str) -> NoReturn:
        raise PlacementFileError(message, where, notes)
