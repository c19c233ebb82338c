"""What a plan of the memory says to its readers, and the error when a device has less than it takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from devscope.errors import Note, PlanError
from devscope.lowering.constants import CONSTANT_PREFIX, constant_number
from devscope.lowering.llvm_dialect import mlir_location
from devscope.lowering.memory.buffers import Buffer
from devscope.lowering.memory.plan import Arena
from devscope.runtime.format_bytes import format_bytes

_SHOWN = 5
"""Of the largest live values, in an error."""


@dataclass
class Memory:
    """What a program needs of the memory of one virtual device."""

    arena: Arena
    constants: int

    @property
    def total(self) -> int:
        return self.planned + self.constants

    @property
    def planned(self) -> int:
        return self.arena.size + self.arena.alone

    def to_json(self) -> dict[str, int]:
        arena = self.arena
        return {
            "planned": self.planned,
            "lower_bound": arena.lower_bound,
            "constants": self.constants,
            "values": arena.values,
            "unplanned": arena.others,
        }


def memory_of_devices(
    arenas: Mapping[int, Arena], names: Mapping[int, str], constants: Sequence[Any], limits: Mapping[str, int]
) -> dict[str, Memory]:
    """What each virtual device needs, by its name; ``constants`` are the arrays of the constant table.

    Raises PlanError if a device needs more than its limit, naming the largest values at the peak. The planned
    module must be as it was planned.
    """
    memory = {names[slot]: Memory(arena, _constant_bytes(arena, constants)) for slot, arena in arenas.items()}
    _check_limits(memory, limits)
    return memory


def _constant_bytes(arena: Arena, constants: Sequence[Any]) -> int:
    """Small constants of the host are in its code, and do not count."""
    numbers = {constant_number(symbol) for symbol in arena.globals if symbol.startswith(CONSTANT_PREFIX)}
    return sum(constants[number].nbytes for number in numbers)


def _check_limits(memory: Mapping[str, Memory], limits: Mapping[str, int]) -> None:
    errors = [_error(name, memory[name], limit) for name, limit in limits.items() if memory[name].total > limit]
    if errors:
        errors[0].others = tuple(errors[1:])
        raise errors[0]


def _error(name: str, needed: Memory, limit: int) -> PlanError:
    live = sorted(needed.arena.at_peak, key=lambda buffer: -(buffer.bytes or 0))
    parts = f"{_exact(needed.planned)} for values, {_exact(needed.constants)} of constants"
    notes: list[str] = [f"{parts}; at least {_exact(needed.arena.lower_bound)} of values are live at one moment"]
    notes += [_note(buffer) for buffer in live[:_SHOWN]]
    if len(live) > _SHOWN:
        rest = sum(buffer.bytes or 0 for buffer in live[_SHOWN:])
        notes.append(f"live then: {len(live) - _SHOWN} more, {_exact(rest)} together")
    location = mlir_location(live[0].alloc.op) if live else None
    message = f"'{name}' needs {_exact(needed.total)} of memory, its limit is {_exact(limit)}"
    return PlanError(message, location, [*notes, "place some of the work on another device, or raise the limit"])


def _note(buffer: Buffer) -> Note:
    type_ = str(buffer.value.type).split(",")[0].replace("memref<", "").rstrip(">")
    return Note(f"live then: {type_}, {_exact(buffer.bytes or 0)}", mlir_location(buffer.alloc.op))


def _exact(count: int) -> str:
    return format_bytes(count) if count < 1024 else f"{format_bytes(count)} ({count} bytes)"
