"""Files of a user's figures and rules: read whole, of a size that fits, TOML or JSON of the same structure."""

import json
import os
import tomllib

from devscope.errors import UserFileError

_MOST_BYTES = 1 << 24


def read_text(path: str | os.PathLike[str], what: str, kind: type[UserFileError]) -> str:
    """The text of a file, ``what``: "the costs". Raises an error of the kind if it cannot be read."""
    name = os.fspath(path)
    said = f"{what} '{name}' {'are' if what.endswith('s') else 'is'}"
    try:
        with open(path, "rb") as file:
            data = file.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise kind(f"{said} longer than 16 MiB")
        return data.decode()
    except UnicodeDecodeError:
        raise kind(f"{said} not UTF-8 text") from None
    except (OSError, ValueError) as error:  # ValueError: a null character in the path
        raise kind(f"cannot read {what} '{name}': {getattr(error, 'strerror', None) or error}") from None


def decoded(text: str, source: str, what: str, kind: type[UserFileError]) -> object:
    """What stands in TOML or JSON. Raises an error of the kind for text that is neither."""
    try:
        # No TOML file begins with a brace.
        return json.loads(text) if text.lstrip().startswith("{") else tomllib.loads(text)
    except RecursionError:
        raise kind(f"{source}: nested too deeply for {what}") from None
    except ValueError as error:  # of syntax, and numbers of more digits than Python reads
        raise kind(f"{source}: {error}", notes=[f"{what}: TOML or JSON"]) from None
