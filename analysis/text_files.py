"""Files of a user's figures and rules: read whole, of a size that fits, TOML or JSON of the same structure."""

import json
import os
import re
import tomllib
from collections.abc import Sequence
from typing import Any

from devscope.errors import SourceLocation, UserFileError

_MOST_BYTES = 1 << 24
_AT = re.compile(r"(.*) \(at (?:line (\d+), column (\d+)|end of document)\)", re.DOTALL)


def read_text(
    path: str | os.PathLike[str], what: str, kind: type[UserFileError], notes: Sequence[str] = ()
) -> str:
    """The text of a file, ``what``: "the costs". Raises an error of the kind if it cannot be read, with notes."""
    name = os.fspath(path)
    verb = "are" if what.endswith("s") else "is"
    try:
        with open(path, "rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a null character in the path
        reason = getattr(error, "strerror", None) or str(error)
        raise kind(f"cannot read {what} '{name}': {reason}", notes=notes) from None
    if len(data) > _MOST_BYTES:
        raise kind(f"{what} '{name}' {verb} longer than 16 MiB")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise kind(f"{what} {verb} not UTF-8 text", SourceLocation.of_byte(name, data, error.start)) from None


def decoded(text: str, source: str, kind: type[UserFileError], *notes: str) -> dict[str, Any]:
    """What stands in the TOML or JSON of the file ``source``. Raises an error of the kind for what is neither."""
    try:
        # No TOML file begins with a brace.
        return json.loads(text) if text.lstrip().startswith("{") else tomllib.loads(text)
    except RecursionError:
        message, where = "brackets are nested too deeply", SourceLocation(source, 1, 1)
    except json.JSONDecodeError as error:
        message, where = error.msg, SourceLocation(source, error.lineno, error.colno)
    except ValueError as error:  # of TOML's syntax, and numbers of more digits than Python reads
        match = _AT.fullmatch(str(error))
        message, line, column = match.groups() if match is not None else (str(error), 1, 1)
        end = SourceLocation.of_byte(source, text.encode(), len(text.encode()))
        where = SourceLocation(source, int(line), int(column)) if line else end
    raise kind(f"{message[:1].lower()}{message[1:]}", where, notes)
