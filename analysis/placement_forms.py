"""The forms in which rules are given: ``place=``."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from devscope.analysis.placement import AUTO, Placement, Rule
from devscope.analysis.placement_file import read_placement
from devscope.errors import OptionError


def placement_of(place: Any) -> Placement:
    """What ``place=`` takes, as a `Placement`.

    ``"auto"``; the path of a TOML file; a mapping of patterns to devices; a sequence of `Rule`, of dictionaries of
    what that takes, and of what else this takes, one after the other; a `Placement`. Raises OptionError.
    """
    if isinstance(place, Placement):
        return place
    rules, devices = list[Any](), list[str]()
    for part in place if _is_list(place) else (place,):
        _add(part, rules, devices)
    return Placement(rules, devices)


def _is_list(place: Any) -> bool:
    return isinstance(place, Sequence) and not isinstance(place, str | bytes)


def _add(part: Any, rules: list[Any], devices: list[str]) -> None:
    if isinstance(part, Rule) or (isinstance(part, Mapping) and "device" in part):
        rules.append(part)
    elif isinstance(part, Mapping):
        rules += (_of_pattern(pattern, device) for pattern, device in part.items())
    elif isinstance(part, Placement):
        rules += part.rules
        devices += part.devices
    elif part == AUTO:
        rules.append(Rule(AUTO))
    elif isinstance(part, str | os.PathLike):
        _add(read_placement(os.fspath(part)), rules, devices)
    else:
        raise OptionError(
            f"'place' is {part!r}, which says nothing of places",
            notes=["give rules, a mapping of patterns to devices, the path of a TOML file, or 'auto'"],
        )


def _of_pattern(pattern: Any, device: Any) -> Rule:
    try:
        return Rule(device, match=pattern)
    except OptionError as error:
        raise OptionError(f"'{pattern}={device}': {error.message}", notes=error.notes) from None
