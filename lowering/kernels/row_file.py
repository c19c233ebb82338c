"""Schedules that users write, ``--schedules FILE``: read, checked, and written. Free of MLIR.

docs/schedules.md documents the format, which is that of the built-in tables.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from devscope.analysis.text_files import decoded, read_text
from devscope.errors import ScheduleFileError
from devscope.lowering.kernels.table import Row
from devscope.lowering.kernels.templates import Template

_LEGAL = (
    "template",
    "element",
    "numbers",
    "at_most",
    "at_least",
    "dynamic",
    "contiguous",
    "instructions",
    "saves",
    "constant",
)
_REQUIRED = ("template", "element", "numbers")
_SEE = "docs/schedules.md says what a row is"


def rows_text(path: str) -> str:
    """The text of a file of schedules. Raises ScheduleFileError when it cannot be read."""
    return read_text(path, "the schedules", ScheduleFileError)


def checked_rows(
    text: str,
    path: str,
    name: str,
    templates: Mapping[str, Template],
    instructions: Sequence[str],
    problem_of: Callable[[Row], str | None],
) -> list[Row]:
    """The rows of a file's text. Raises ScheduleFileError, which says file, row and key, for what no row is.

    ``name`` is that of the file where rows are shown, ``instructions`` are the legal values of that key;
    ``problem_of`` says what is wrong with legal numbers together.
    """
    tables = decoded(text, path, ScheduleFileError, _SEE)
    kinds = sorted({template.kind for template in templates.values()})
    rows: list[Row] = []
    for kind, found in tables.items():
        if kind not in kinds:
            _fail(path, kind, "no kernel computes that", f"kinds of kernels: {', '.join(kinds)}")
        if not isinstance(found, list):
            _fail(path, kind, f"must be rows, each below [[{kind}]]", _SEE)
        for number, row in enumerate(found, 1):
            checker = _Checker(path, f"{kind} {number}", templates, instructions)
            checker.check(kind, row)
            rows.append(Row(kind, **row, place=f"{name}, {kind} {number}"))
            if problem := problem_of(rows[-1]):
                _fail(path, f"{kind} {number}", problem, _SEE)
    return rows


def _fail(path: str, where: str, message: str, *notes: str) -> NoReturn:
    raise ScheduleFileError(f"{path}: {where}: {message}", notes=notes)


class _Checker:
    """Of one row; ``where`` says which."""

    def __init__(
        self, path: str, where: str, templates: Mapping[str, Template], instructions: Sequence[str]
    ) -> None:
        self._path, self._where, self._templates, self._instructions = path, where, templates, instructions

    def check(self, kind: str, row: Any) -> None:
        if not isinstance(row, dict):
            self._fail("must be a table", _SEE)
        self._keys("", row, _LEGAL, _REQUIRED)
        template = self._template(kind, row["template"])
        self._one_of("element", row["element"], template.elements)
        if "contiguous" in row:
            self._one_of("contiguous", row["contiguous"], template.contiguous)
        if "instructions" in row:
            self._one_of("instructions", row["instructions"], self._instructions)
        if "saves" in row:
            self._whole("saves", row["saves"], 1, 99)
            if kind != "contraction":
                self._fail("saves is for contractions", _SEE)
        if "constant" in row:
            if not isinstance(row["constant"], bool):
                self._fail(f"constant must be true or false, not {row['constant']!r}")
            if kind != "contraction":
                self._fail("constant is for contractions", _SEE)
        self._sizes(row, template)
        self._what_must_be(row, template)
        self._numbers(row["numbers"], template)

    def _template(self, kind: str, name: object) -> Template:
        self._one_of("template", name, [other for other, found in self._templates.items() if found.kind == kind])
        return self._templates[str(name)]

    def _sizes(self, row: Mapping[str, Any], template: Template) -> None:
        for key in ("at_most", "at_least"):
            sizes = row.get(key, {})
            self._table(key, sizes)
            self._keys(f"{key}.", sizes, template.loops)
            for name, size in sizes.items():
                self._whole(f"{key}.{name}", size, 0, (1 << 63) - 1)
        unknown = row.get("dynamic", [])
        if not isinstance(unknown, list):
            self._fail(f"dynamic must be a list of loops, not {unknown!r}")
        for name in unknown:
            self._one_of("dynamic", name, template.loops)
        most, least = row.get("at_most", {}), row.get("at_least", {})
        for name in (*most, *least):
            if name in unknown:
                self._fail(f"the size of {name} cannot be both dynamic and known")
            if least.get(name, 0) > most.get(name, least.get(name, 0)):
                self._fail(f"no size of {name} is at least {least[name]} and at most {most[name]}")

    def _what_must_be(self, row: Mapping[str, Any], template: Template) -> None:
        must, name = template.must, row["template"]
        if must.contiguous is not None and row.get("contiguous", "").split(", ")[-1] != must.contiguous:
            self._fail(f'template "{name}" needs contiguous = "{must.contiguous}"', _SEE)
        for loop, most in must.at_most.items():
            if row.get("at_most", {}).get(loop, most + 1) > most:
                self._fail(f'template "{name}" needs at_most.{loop}, of {most} or less', _SEE)

    def _numbers(self, numbers: Any, template: Template) -> None:
        self._table("numbers", numbers)
        required = [name for name, legal in template.numbers.items() if legal.default is None]
        self._keys("numbers.", numbers, template.numbers, required)
        given = {name: numbers.get(name, legal.default) for name, legal in template.numbers.items()}
        for name, legal in template.numbers.items():
            self._whole(f"numbers.{name}", given[name], legal.least, legal.most)
            if legal.power and given[name] & (given[name] - 1):
                self._fail(f"numbers.{name} must be a power of two, not {given[name]}")
        for name, legal in template.numbers.items():
            of = legal.multiple_of
            if of and given[name] % given[of]:
                self._fail(f"numbers.{name} must be a multiple of {of}, {given[of]}, not {given[name]}")

    def _table(self, key: str, value: object) -> None:
        if not isinstance(value, dict):
            self._fail(f"{key} must be a table, not {value!r}", _SEE)

    def _keys(
        self, before: str, table: Mapping[str, Any], legal: Sequence[str] | Mapping[str, Any], required: Any = ()
    ) -> None:
        for key in table:
            if key not in legal:
                self._fail(f"unknown key {before}{key}", f"known here: {', '.join(legal)}")
        for key in required:
            if key not in table:
                self._fail(f"{before}{key} is missing", f"needed here: {', '.join(required)}")

    def _one_of(self, key: str, value: object, legal: Sequence[str]) -> None:
        if not isinstance(value, str) or value not in legal:
            shown = json.dumps(value) if isinstance(value, str) else repr(value)
            self._fail(f"{key} is {shown}", f"legal: {', '.join(legal)}")

    def _whole(self, key: str, value: object, least: int, most: int) -> None:
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            self._fail(f"{key} must be a whole number from {least} to {most}, not {value!r}")

    def _fail(self, message: str, *notes: str) -> NoReturn:
        _fail(self._path, self._where, message, *notes)


def row_toml(row: Row, comment: str = "") -> str:
    """A row as a file has it; ``comment`` goes above it, line by line."""
    # Names of files and nodes have characters that TOML's comments must not have.
    legal = "".join(char if char.isprintable() or char == "\n" else "?" for char in comment)
    lines = [f"# {line}" for line in legal.splitlines()]
    lines += [f"[[{row.kind}]]", f'template = "{row.template}"', f'element = "{row.element}"']
    lines += [f'{key} = "{value}"' for key in ("contiguous", "instructions") if (value := getattr(row, key))]
    lines += [f"{key} = {_inline(value)}" for key in ("at_least", "at_most") if (value := getattr(row, key))]
    lines += [f"saves = {row.saves}"] if row.saves else []
    lines += ["constant = true"] if row.constant else []
    if row.dynamic:
        lines.append(f"dynamic = {json.dumps(list(row.dynamic))}")
    return "\n".join([*lines, f"numbers = {_inline(row.numbers)}"]) + "\n"


def _inline(numbers: Mapping[str, int]) -> str:
    return f"{{ {', '.join(f'{name} = {number}' for name, number in numbers.items())} }}"
