"""Costs that the user gives, or that were measured: a file in TOML, or JSON of the same structure.

``docs/partitioning.md`` documents the format.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from xdsl.ir import Operation

from devscope.analysis.text_files import decoded, read_text
from devscope.dialects.location import source_location
from devscope.dialects.names import op_name
from devscope.errors import CostFileError

FORMAT = 1
_NEVER = 1e300  # an integer may be larger than any float
_KEYS = ("operation", "pattern", "location", "where", "seconds", "structure", "machine")


@dataclass(frozen=True)
class CostRow:
    """``seconds`` of an ``operation`` (a name), at a ``location`` (``FILE:LINE``), or of a ``pattern`` of a
    backend (``BACKEND.NAME``); all with ``*``. ``where``: a device, a device type or a backend. ``structure``:
    what was measured, exactly, and on which ``machine``."""

    where: str
    seconds: float
    operation: str = ""
    pattern: str = ""
    location: str = ""
    structure: str = ""
    machine: str = ""
    source: str = ""

    def _is_for(self, names: tuple[str, str]) -> bool:
        backend, device = names
        wanted = {backend}
        if backend == device:  # generated code goes by its device, or the type of that
            wanted.add(device.partition(":")[0])
        return any(fnmatchcase(name, self.where) for name in wanted)

    def is_of_pattern(self, name: str, names: tuple[str, str], ops: Sequence[Operation]) -> bool:
        """Whether the row, one that was not measured, says what a candidate of this name costs as a whole."""
        if not self.pattern or not self._is_for(names) or not fnmatchcase(name, self.pattern):
            return False
        return not self.location or any(self._is_at(op) for op in ops)

    def is_of(self, op: Operation, names: tuple[str, str]) -> bool:
        """Whether the row, one that was not measured, says what one operation costs."""
        if self.pattern or not (self.operation or self.location) or not self._is_for(names):
            return False
        if self.operation and not fnmatchcase(op_name(op), self.operation):
            return False
        return not self.location or self._is_at(op)

    def _is_at(self, op: Operation) -> bool:
        where = source_location(op)
        if where is None:
            return False
        file = str(where).rpartition(":")[0]
        return any(fnmatchcase(text, self.location) for text in (str(where), file, os.path.basename(file)))


def read_costs(path: str | os.PathLike[str]) -> list[CostRow]:
    """The rows of a file. Raises CostFileError, with the file and the row, for anything that is wrong in it."""
    return parse_costs(costs_text(path), os.fspath(path))


def costs_text(path: str | os.PathLike[str]) -> str:
    """The text of a file. Raises CostFileError when it cannot be read."""
    return read_text(path, "the costs", CostFileError)


def parse_costs(text: str, source: str) -> list[CostRow]:
    """As `read_costs`, for the text of a file called ``source``."""
    found = decoded(text, source, CostFileError, "costs (docs/partitioning.md): TOML or JSON")
    if found.get("format", FORMAT) != FORMAT:
        raise CostFileError(f"{source}: format: {found['format']!r} is not {FORMAT}")
    unknown = sorted(set(found) - {"format", "cost"})
    if unknown:
        raise CostFileError(f"{source}: unknown key '{unknown[0]}'", notes=["legal: format, cost"])
    rows = found.get("cost", [])
    if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
        raise CostFileError(f"{source}: 'cost' is no list of tables", notes=["write [[cost]] before each row"])
    return [_row(row, f"{source}: cost {number}", source) for number, row in enumerate(rows, 1)]


def _row(row: Mapping[str, Any], where: str, source: str) -> CostRow:
    unknown = sorted(set(row) - set(_KEYS))
    if unknown:
        raise CostFileError(f"{where}: unknown key '{unknown[0]}'", notes=[f"legal: {', '.join(_KEYS)}"])
    texts = {key: row[key] for key in _KEYS if key != "seconds" and key in row}
    wrong = next((key for key, value in texts.items() if not isinstance(value, str)), None)
    if wrong is not None:
        raise CostFileError(f"{where}: {wrong}: {texts[wrong]!r} is no text")
    seconds = row.get("seconds")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds <= math.inf:
        raise CostFileError(f"{where}: seconds: {seconds!r} is no time", notes=["seconds, 0 or more; inf: never"])
    if not texts.get("where"):
        raise CostFileError(
            f"{where}: 'where' is missing", notes=["a backend, a device (opencl:0) or a device type"]
        )
    if not any(texts.get(key) for key in ("operation", "pattern", "location", "structure")):
        raise CostFileError(
            f"{where}: it says of nothing what it costs", notes=["give operation, pattern or location"]
        )
    if texts.get("operation") and texts.get("pattern"):
        raise CostFileError(f"{where}: an operation and a pattern", notes=["give one of them"])
    return CostRow(seconds=float(seconds) if seconds < _NEVER else math.inf, source=source, **texts)


def costs_json(rows: Sequence[CostRow]) -> str:
    """The text of a file with these rows."""
    written = (replace(row, seconds=min(row.seconds, _NEVER)) for row in rows)  # JSON has no infinity
    plain = [{k: v for k, v in asdict(row).items() if v != "" and k != "source"} for row in written]
    return json.dumps({"format": FORMAT, "cost": plain}, indent=2) + "\n"
