"""Pipelines and schedules are files: what upstream's passes and transforms do, in which order.

``NAME.pipeline`` is text of MLIR's pass manager, with comments; ``NAME.mlir`` a module of the transform dialect.
Both stand in folders ``pipelines`` and ``schedules`` of this package and of each target's: ``cpu/to_llvm`` is
``cpu/pipelines/to_llvm.pipeline``.
"""

from functools import cache
from pathlib import Path
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop import bindings
from devscope.lowering.interop.bindings import ir

SCHEDULE = "devscope.schedule"
"""On an operation: the schedule that is chosen for it. Transforms find it by this."""

_ROOT = Path(__file__).parent


@cache
def pipeline(name: str, **values: str) -> str:
    """The text of a pipeline, with ``values`` in the place of ``$NAME``."""
    lines = _read(name, "pipelines", ".pipeline", **values).splitlines()
    return " ".join(line.strip() for line in lines if not line.lstrip().startswith("//"))


def apply_schedule(module: Any, name: str, sequence: str, **values: str) -> None:
    """Run a named sequence of a schedule on ``module``, with ``values`` in the place of ``$NAME``."""
    script = ir.Module.parse(_read(name, "schedules", ".mlir", **values), module.context)
    entry = next(op for op in mlir_util.children(script.operation) if mlir_util.symbol_name(op) == sequence)
    interpreter = bindings.load("_mlir_libs._mlirTransformInterpreter")  # takes plain operations
    interpreter.apply_named_sequence(module.operation, entry, script.operation)


@cache
def _read(name: str, folder: str, suffix: str, **values: str) -> str:
    path = _ROOT / name
    text = (path.parent / folder / (path.name + suffix)).read_text(encoding="utf-8")
    for key, value in values.items():
        text = text.replace(f"${key}", value)
    return text
