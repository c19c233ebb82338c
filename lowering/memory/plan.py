"""The pass: decides where the buffers of the host code live, and marks them with it.

Works on the bufferised host code of a whole program, launchers of device work and entries included.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.memory.buffers import Buffer, space_text
from devscope.lowering.memory.call_graph import CallGraph
from devscope.lowering.memory.function_storage import (
    FunctionStorage,
    collect_functions,
    live_at_peak,
    place_buffers,
    reach,
)
from devscope.lowering.memory.storage import ALONE, STORAGE_ATTR, mark

HOST_ALIGNMENT = 64
DEVICE_ALIGNMENT = 512
"""Of the places of a device's arena. OpenCL devices ask for 128 (CPUs) to 512 bytes (NVIDIA)."""


@dataclass(frozen=True)
class MemoryOptions:
    """``planned``: whether buffers get places at all. ``limits``: the most bytes that virtual devices may need.
    ``shared``: pairs of virtual devices that reach each other's memory."""

    planned: bool = True
    limits: Mapping[str, int] = field(default_factory=dict[str, int])
    shared: frozenset[frozenset[str]] = frozenset()


@dataclass
class Arena:
    """The storage of one memory. ``places``: offset (or ALONE) and bytes of each.

    ``size``: bytes of the arena itself; ``alone``: of the places outside of it. ``needed``: bytes of the arena
    that each entry uses. ``lower_bound``: the most bytes that are live at one moment. ``values``: how many buffers
    were planned; ``others``: how many allocations were not, because size or lifetime are known at run time only.
    ``at_peak``: the buffers that are live at that moment. ``globals``: the symbols of the constants in this
    memory.
    """

    slot: int
    alignment: int
    size: int = 0
    alone: int = 0
    lower_bound: int = 0
    values: int = 0
    others: int = 0
    places: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    needed: dict[str, int] = field(default_factory=dict[str, int])
    at_peak: list[Buffer] = field(default_factory=list[Buffer])
    globals: set[str] = field(default_factory=set[str])


def plan_memory(
    module: Any, spaces: Mapping[str, int], entries: Mapping[str, str], planned: bool = True
) -> dict[int, Arena]:
    """The arena of every memory, by slot; ``module`` is annotated.

    ``spaces`` has the slot of each memory space, "" for the host's; ``entries`` the function of each entry. If not
    ``planned``, the module stays as it is, and the arenas are empty.
    """
    arenas = _plan(module, spaces, entries) if planned else {slot: Arena(slot, 1) for slot in spaces.values()}
    _look_at_rest(module, arenas, spaces)
    return arenas


def _plan(module: Any, spaces: Mapping[str, int], entries: Mapping[str, str]) -> dict[int, Arena]:
    graph = CallGraph(module)
    functions = collect_functions(graph, entries.values())
    alignments = {space: HOST_ALIGNMENT if space == "" else DEVICE_ALIGNMENT for space in spaces}
    place_buffers(functions, alignments)
    arenas: dict[int, Arena] = {}
    for space, slot in spaces.items():
        arena = arenas[slot] = Arena(slot, alignments[space])
        _number_places(arena, functions, space)
        for name, function in entries.items():
            arena.needed[name] = reach(functions, graph, function, space)
            if functions[function].peaks[space] > arena.lower_bound:
                arena.lower_bound = functions[function].peaks[space]
                arena.at_peak = live_at_peak(functions, function, space)
        arena.size = max(arena.needed.values(), default=0)
    return arenas


def _number_places(arena: Arena, functions: dict[str, FunctionStorage], space: str) -> None:
    numbers: dict[tuple[int, int], int] = {}
    for storage in functions.values():
        placed = storage.memories.get(space)
        if placed is None:
            continue
        base = storage.bases.get(space, 0)
        for buffer, block, offset in zip(placed.buffers, placed.blocks, placed.offsets, strict=True):
            place = base + offset, block.size
            number = numbers.setdefault(place, len(numbers))
            mark(buffer.alloc.op, buffer.free.op, number, *place)
        arena.values += len(placed.buffers) + len(placed.alone)
    arena.places = list(numbers)
    for placed in (storage.memories[space] for storage in functions.values() if space in storage.memories):
        for buffer in placed.alone:
            size = max(buffer.bytes or 0, 1)
            mark(buffer.alloc.op, buffer.free.op, len(arena.places), ALONE, size)
            arena.places.append((ALONE, size))
            arena.alone += size


def _look_at_rest(module: Any, arenas: Mapping[int, Arena], spaces: Mapping[str, int]) -> None:
    """Count the allocations that stay, and find the constants that each memory holds."""
    for op in mlir_util.walk(module.operation):
        if op.name not in ("memref.alloc", "memref.get_global"):
            continue
        arena = arenas[spaces[space_text(op.results[0])]]
        if op.name == "memref.alloc":
            arena.others += STORAGE_ATTR not in op.attributes
        else:
            arena.globals.add(ir.FlatSymbolRefAttr(op.attributes["name"]).value)
