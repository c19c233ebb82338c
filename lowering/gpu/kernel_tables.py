"""Where the schedules of GPUs come from. Free of MLIR."""

from collections.abc import Sequence
from pathlib import Path

from devscope.lowering.kernels.table import Row, Schedules, read_table

FOLDER = Path(__file__).parent / "kernels"
"""Of templates and tables."""

INSTRUCTIONS = ("gpu", "sm_80")
"""What rows may be for: all GPUs, or those of CUDA with tensor cores."""

_MOST_THREADS = 1024
_LOCAL_BYTES = 48 << 10
_WARP = 32


def gpu_rows() -> Sequence[Row]:
    return read_table(FOLDER / "gpu.toml")


def gpu_schedules(rows: Sequence[Row], has_tensor_cores: bool = False, has_tf32: bool = False) -> Schedules:
    """The schedules of a GPU; ``rows``: the user's, of which those for GPUs come first."""
    known = INSTRUCTIONS[: 1 + has_tensor_cores]
    own = [row for row in rows if row.instructions in known]
    found = [row for row in (*own, *gpu_rows()) if row.element != "tf32" or has_tf32]
    return Schedules(found, *known)


def problem_of(row: Row) -> str | None:
    """Why no kernel can be made with the numbers of ``row``, each of which is legal by itself."""
    of = row.numbers
    match row.template:
        case "tiles":
            threads = of["rows"] // of["thread_rows"] * (of["columns"] // of["thread_columns"])
            bytes_, pieces = 4, 1
        case "tensor_tiles":
            threads = _WARP * (of["rows"] // of["warp_rows"]) * (of["columns"] // of["warp_columns"])
            bytes_, pieces = (4, 1) if row.element == "tf32" else (2, 8)
        case "reduction" if of["work_items"] % of["results"]:
            return "numbers.work_items must be a multiple of results"
        case _:
            return None
    if not _WARP <= threads <= _MOST_THREADS:
        return f"a workgroup of {threads} work-items; {_WARP} to {_MOST_THREADS} can share tiles"
    if 2 * of["depth"] * (of["rows"] + of["columns"] + 16) * bytes_ > _LOCAL_BYTES:
        return f"the tiles take more than {_LOCAL_BYTES} bytes"
    if min(of["rows"], of["columns"]) * of["depth"] // pieces < threads or threads < of["depth"]:
        return f"{threads} work-items cannot share the elements of a tile"
    return None
