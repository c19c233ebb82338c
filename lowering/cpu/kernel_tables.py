"""Where schedules come from: for hosts, a table for each set of vector instructions. Free of MLIR."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from devscope.lowering.gpu import kernel_tables as gpu
from devscope.lowering.kernels.contraction_words import WORDS, problem_of
from devscope.lowering.kernels.table import Row, read_table

if TYPE_CHECKING:
    from devscope.lowering.kernels.templates import Template

FOLDER = Path(__file__).parent / "kernels"
"""Of templates and tables."""

INSTRUCTIONS = ("avx512", "avx2", "other")
PRODUCTS = tuple(words.instructions for words in WORDS.values())
"""Instructions of some processors with AVX-512."""
OPENCL_CPU, OPENCL_CPU_32 = "opencl-cpu", "opencl-cpu-32"
"""All of them, and those with vectors of 32 bytes or less."""
DEVICES = (OPENCL_CPU, OPENCL_CPU_32, *gpu.INSTRUCTIONS)
"""What rows may be for, too; those that do not say so are for hosts."""

_TABLES_OF_OPENCL_CPUS = {OPENCL_CPU: "cpu.toml", OPENCL_CPU_32: "cpu_32.toml"}


def built_in_rows(instructions: str) -> Sequence[Row]:
    if instructions in gpu.INSTRUCTIONS:
        return gpu.gpu_rows()
    if instructions in _TABLES_OF_OPENCL_CPUS:
        return read_table(FOLDER.parent.parent / "opencl" / "kernels" / _TABLES_OF_OPENCL_CPUS[instructions])
    return read_table(FOLDER / f"{instructions}.toml")


# Few compilations need what these import.


def templates() -> "dict[str, Template]":
    """By name: of the host, of devices that are such, and of GPUs."""
    from devscope.lowering.kernels.templates import read_templates

    return {**read_templates(FOLDER / "templates.toml"), **read_templates(gpu.FOLDER / "templates.toml")}


def user_rows(text: str, path: str, name: str = "") -> list[Row]:
    """The rows of a user's file, shown as of ``name``, or the file's own. Raises ScheduleFileError."""
    from devscope.lowering.kernels.row_file import checked_rows

    legal = (*INSTRUCTIONS, *PRODUCTS, *DEVICES)

    def problem(row: Row) -> str | None:
        if row.instructions in _TABLES_OF_OPENCL_CPUS and row.numbers.get("stack"):
            return "numbers.stack must be 0 on OpenCL devices: their tasks have no memory for it"
        return problem_of(row.template, row.element, row.instructions, row.numbers) or gpu.problem_of(row)

    return checked_rows(text, path, name or os.path.basename(path), templates(), legal, problem)
