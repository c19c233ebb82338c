"""What a plan of the memory says to its readers, and the error when a device has less than it takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from devscope.errors import Note, PlanError
from devscope.lowering.constants import CONSTANT_PREFIX, constant_number
from devscope.lowering.interop.diagnostics import decode_location
from devscope.lowering.memory.buffers import Buffer
from devscope.lowering.memory.plan import Arena
from devscope.runtime.format_bytes import format_bytes

_SHOWN = 5
"""Of the largest live values, in an error."""


def memory_of_devices(
    arenas: Mapping[int, Arena], names: Mapping[int, str], constants: Sequence[Any], limits: Mapping[str, int]
) -> dict[str, Arena]:
    """What each virtual device needs, by its name; ``constants`` are the arrays of the constant table.

    Raises PlanError if a device needs more than its limit, naming the largest values at the peak. The planned
    module must be as it was planned.
    """
    memory = {names[slot]: arena for slot, arena in arenas.items()}
    for arena in memory.values():
        numbers = {constant_number(symbol) for symbol in arena.globals if symbol.startswith(CONSTANT_PREFIX)}
        arena.constants = sum(constants[number].nbytes for number in numbers)
    errors = [_error(name, memory[name], limit) for name, limit in limits.items() if _total(memory[name]) > limit]
    if errors:
        errors[0].others = tuple(errors[1:])
        raise errors[0]
    return memory


def _total(arena: Arena) -> int:
    return arena.planned + arena.constants


def _error(name: str, needed: Arena, limit: int) -> PlanError:
    live = sorted(needed.at_peak, key=lambda buffer: -(buffer.bytes or 0))
    parts = f"{_exact(needed.planned)} for values, {_exact(needed.constants)} of constants"
    notes: list[str] = [f"{parts}; at least {_exact(needed.lower_bound)} of values are live at one moment"]
    notes += [_note(buffer) for buffer in live[:_SHOWN]]
    if len(live) > _SHOWN:
        rest = sum(buffer.bytes or 0 for buffer in live[_SHOWN:])
        notes.append(f"live then: {len(live) - _SHOWN} more, {_exact(rest)} together")
    location = decode_location(live[0].alloc.op.location) if live else None
    message = f"'{name}' needs {_exact(_total(needed))} of memory, its limit is {_exact(limit)}"
    return PlanError(message, location, [*notes, "place some of the work on another device, or raise the limit"])


def _note(buffer: Buffer) -> Note:
    type_ = str(buffer.value.type).split(",")[0].replace("memref<", "").rstrip(">")
    return Note(f"live then: {type_}, {_exact(buffer.bytes or 0)}", decode_location(buffer.alloc.op.location))


def _exact(count: int) -> str:
    return format_bytes(count) if count < 1024 else f"{format_bytes(count)} ({count} bytes)"
