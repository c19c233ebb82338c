"""Where the schedules of GPUs come from. Free of MLIR."""

from collections.abc import Sequence
from pathlib import Path

from devscope.lowering.kernels.table import Row, read_table

FOLDER = Path(__file__).parent / "kernels"
"""Of templates and tables."""


def gpu_rows() -> Sequence[Row]:
    return read_table(FOLDER / "gpu.toml")
