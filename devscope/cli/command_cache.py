"""``devscope cache``: what is kept of compiled programs, and where."""

import argparse
import time

from devscope.errors import OptionError

NAME = "cache"
HELP = "show or clear the cache of compiled programs"
EPILOG = """\
examples:
  devscope cache --show
  devscope cache --clear
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--show", action="store_true", help="print where it is, and its entries with sizes and ages")
    what.add_argument("--clear", action="store_true", help="remove your entries, and nothing else")


def execute(arguments: argparse.Namespace) -> int:
    from devscope.cli.tables import Column, output_width, table_text
    from devscope.runtime.cache import DIRECTORY_VARIABLE, open_cache
    from devscope.runtime.format_bytes import format_bytes

    cache = open_cache()
    if cache is None:
        raise OptionError(f"the cache is off: {DIRECTORY_VARIABLE} says so")
    entries = cache.clear() if arguments.clear else cache.entries()
    size = format_bytes(sum(entry.bytes for entry in entries))
    count = f"{len(entries)} {'entry' if len(entries) == 1 else 'entries'}"
    if arguments.clear:
        print(f"{cache.root}: removed {count}, {size}")
        return 0
    print(f"{cache.root}: {count}, {size}, of at most {format_bytes(cache.max_bytes)}")
    if entries:
        now = time.time()
        kinds = {"dsx": "program", "bin": "driver's binary"}
        columns = [Column("entry"), Column("what"), Column("size", right=True), Column("last used", right=True)]
        rows = [
            (stem[:16], kinds[suffix], format_bytes(entry.bytes), _age(now - entry.used))
            for entry in reversed(entries)
            for stem, _, suffix in [entry.name.partition(".")]
        ]
        print(table_text(columns, rows, output_width()), end="")
    return 0


def _age(seconds: float) -> str:
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.0f} {unit} ago"
    return f"{max(seconds, 0):.0f} s ago"
