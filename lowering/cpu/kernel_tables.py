"""Where the host's schedules come from: a table for each set of vector instructions. Free of MLIR."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from devscope.lowering.kernels.table import Row, read_table

if TYPE_CHECKING:
    from devscope.lowering.kernels.templates import Template

FOLDER = Path(__file__).parent / "kernels"
"""Of templates and tables."""

INSTRUCTIONS = ("avx512", "avx2", "other")
_DEVICES = ("opencl-cpu",)
"""What rows may be for, too; those that do not say so are for hosts."""


def built_in_rows(instructions: str) -> Sequence[Row]:
    return read_table(FOLDER / f"{instructions}.toml")


# Few compilations need what these import.


def templates() -> "dict[str, Template]":
    from devscope.lowering.kernels.templates import read_templates

    return dict(read_templates(FOLDER / "templates.toml"))


def user_rows(text: str, path: str, name: str = "") -> list[Row]:
    """The rows of a user's file, shown as of ``name``, or the file's own. Raises ScheduleFileError."""
    from devscope.lowering.kernels.row_file import checked_rows

    return checked_rows(text, path, name or os.path.basename(path), templates(), (*INSTRUCTIONS, *_DEVICES))
