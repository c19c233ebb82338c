"""Paths that users give."""

import os
from typing import Any

from devscope.errors import InputError, OptionError


def checked_path(given: Any, what: str, error: type[InputError | OptionError] = InputError) -> str:
    """``given`` as text. Raises ``error`` if it is no path: Python would take a number for an open file."""
    path = os.fspath(given) if isinstance(given, str | os.PathLike) else None  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    if isinstance(path, str) and "\0" not in path:
        return path
    raise error(f"{what} is {given!r}, which is no path", notes=["give a str or a pathlib.Path"])
