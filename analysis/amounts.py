"""Amounts of memory as people write them. Needs no xDSL."""

import re

from devscope.errors import OptionError

_SIZE = re.compile(r"([0-9]{1,18}(?:\.[0-9]+)?) *(B|KiB|MiB|GiB|TiB|kB|MB|GB|TB)?", re.ASCII)
_UNITS = {
    **{"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12},
    **{"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40},
}


def parse_size(text: str | int) -> int:
    """A number of bytes: ``67108864``, ``64MiB``, ``1.5 GB``. Raises OptionError."""
    if isinstance(text, int) and not isinstance(text, bool) and text >= 0:
        return text
    match = _SIZE.fullmatch(text.strip()) if isinstance(text, str) else None
    if match is None:
        raise OptionError(
            f"{text!r} is not an amount of memory",
            notes=[f"write bytes, or a number and one of {', '.join(_UNITS)}"],
        )
    return int(float(match[1]) * _UNITS[match[2]]) if match[2] else int(float(match[1]))
