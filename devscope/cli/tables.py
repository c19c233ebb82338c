"""Tables that fit a terminal, and that other programs can read: piped ones have one line per row."""

import io
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass

_UNLIMITED = 100_000
_MINIMUM = 40


@dataclass(frozen=True)
class Column:
    """``wraps``: long cells take several lines, where the terminal is too narrow."""

    title: str
    wraps: bool = False
    right: bool = False


def output_width() -> int:
    """Columns of the terminal that stdout is; without limit when it is none."""
    if not sys.stdout.isatty():
        return _UNLIMITED
    return max(shutil.get_terminal_size().columns, _MINIMUM)


def table_text(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int) -> str:
    """The table as text, no line longer than ``width`` and none with blanks at its end."""
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(
            column.title,
            justify="right" if column.right else "left",
            overflow="fold",
            no_wrap=not column.wraps,
        )
    for row in rows:
        table.add_row(*row)
    stream = io.StringIO()
    Console(file=stream, width=width, markup=False, highlight=False, emoji=False, color_system=None).print(table)
    return "".join(f"{line.rstrip()}\n" for line in stream.getvalue().splitlines())
