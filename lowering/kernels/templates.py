"""What rows of schedules may say, by template: the file ``templates.toml`` of a target. Free of MLIR."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Number:
    """``candidates``: what is tried for it; ``multiple_of``: the name of another number; ``default``: what a row
    means that does not say it, None where every row has to. ``power``: whether it is a power of two."""

    least: int
    most: int
    candidates: Sequence[int]
    multiple_of: str = ""
    default: int | None = None
    power: bool = False


@dataclass(frozen=True)
class Must:
    """What every row for a template says of the operations that it is for, because the template needs it."""

    contiguous: str | None = None
    at_most: Mapping[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True)
class Template:
    """``kind``: what it computes. ``loops``: names of sizes. ``contiguous``: legal values of that key of rows.

    ``in_registers``: numbers whose product is the elements of a block that is to stay in vector registers.
    """

    kind: str
    elements: Sequence[str]
    loops: Sequence[str]
    numbers: Mapping[str, Number]
    contiguous: Sequence[str] = ()
    must: Must = Must()
    in_registers: Sequence[str] = ()


@cache
def read_templates(path: Path) -> Mapping[str, Template]:
    """The templates of a target, by name."""
    return {name: _template(**table) for name, table in tomllib.loads(path.read_text(encoding="utf-8")).items()}


def _template(
    numbers: Mapping[str, Mapping[str, Any]], must: Mapping[str, Any] | None = None, **rest: Any
) -> Template:
    legal = {
        name: Number(candidates=number["try"], **{key: value for key, value in number.items() if key != "try"})
        for name, number in numbers.items()
    }
    return Template(numbers=legal, must=Must(**(must or {})), **rest)
