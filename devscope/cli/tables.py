"""Tables that fit a terminal, and that other programs can read: piped ones have one line per row."""

import io
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass

_UNLIMITED = 100_000
_MINIMUM = 40
_GAP = "  "


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
    sizes = [max(map(_cells, column)) for column in zip([c.title for c in columns], *rows, strict=True)]
    if sum(sizes) + len(_GAP) * (len(sizes) - 1) <= width:
        # rich would do this, too, at 0.3 ms a row: as much as planning takes.
        lines = ([column.title for column in columns], *rows)
        return "".join(f"{_GAP.join(map(_padded, line, sizes, columns)).rstrip()}\n" for line in lines)
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, len(_GAP), 0, 0))
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


def _cells(text: str) -> int:
    """How many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _padded(text: str, size: int, column: Column) -> str:
    blanks = " " * (size - _cells(text))
    return blanks + text if column.right else text + blanks
