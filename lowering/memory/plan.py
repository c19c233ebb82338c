"""The pass: decides where the buffers of the host code live, and marks them with it.

Works on the bufferised host code of a whole program, launchers of device work and entries included.

A planned ``memref.alloc`` has ``devscope.storage = array<i64: number, offset, bytes>``: its number among the
places of its memory, where in the arena that place begins (ALONE: it is a buffer of its own), and how long it
is. Its ``memref.dealloc`` has the number. It frees nothing, but tells LLVM, which takes places for memory of
their own, until when a place holds this buffer.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from devscope.errors import Note, PlanError
from devscope.lowering import mlir_util
from devscope.lowering.constants import CONSTANT_PREFIX, constant_number
from devscope.lowering.interop.bindings import ir
from devscope.lowering.interop.diagnostics import decode_location
from devscope.lowering.memory.buffers import Buffer, space_text
from devscope.lowering.memory.call_graph import CallGraph
from devscope.lowering.memory.function_storage import (
    Placed,
    collect_functions,
    live_at_peak,
    place_buffers,
    reach,
)
from devscope.lowering.mlir_util import Builder
from devscope.lowering.runtime_builder import RuntimeBuilder
from devscope.runtime.format_bytes import format_bytes
from devscope.runtime.program import ArenaSpec

STORAGE_ATTR = "devscope.storage"

ALONE = -1
"""The offset of a place that is a buffer of its own, made once."""

HOST_ALIGNMENT = 64
DEVICE_ALIGNMENT = 512
"""Of the places of a device's arena. OpenCL devices ask for 128 (CPUs) to 512 bytes (NVIDIA)."""


_SHOWN = 5
"""Of the largest live values, in an error."""


@dataclass(frozen=True)
class MemoryOptions:
    """``planned``: whether buffers get places at all. ``limits``: the most bytes that virtual devices may need.
    ``shared``: pairs of virtual devices that reach each other's memory."""

    planned: bool = True
    limits: Mapping[str, int] = field(default_factory=dict[str, int])
    shared: frozenset[frozenset[str]] = frozenset()


@dataclass
class Arena:
    """The storage of one memory: ``spec`` is what the program has of it.

    ``size``: bytes of the arena itself; ``alone``: of the places outside of it. ``lower_bound``: the most bytes
    that are live at one moment. ``values``: how many buffers were planned; ``others``: how many allocations were
    not, because size or lifetime are known at run time only. ``at_peak``: the buffers that are live at that time.
    ``globals``: the symbols of the constants in this memory; ``constants``: their bytes, but for small ones of the
    host, which are in its code. ``state``: the bytes of what calls leave for later ones, and of what they find.
    """

    spec: ArenaSpec
    size: int = 0
    alone: int = 0
    lower_bound: int = 0
    values: int = 0
    others: int = 0
    at_peak: list[Buffer] = field(default_factory=list[Buffer])
    globals: set[str] = field(default_factory=set[str])
    constants: int = 0
    state: int = 0

    @property
    def planned(self) -> int:
        return self.size + self.alone

    def to_json(self) -> dict[str, int]:
        return {
            "planned": self.planned,
            "lower_bound": self.lower_bound,
            "constants": self.constants,
            "state": self.state,
            "values": self.values,
            "unplanned": self.others,
        }


def plan_memory(
    module: Any, spaces: Mapping[str, int], entries: Mapping[str, str], planned: bool = True
) -> dict[int, Arena]:
    """The arena of every memory, by slot; ``module`` is annotated.

    ``spaces`` has the slot of each memory space, "" for the host's; ``entries`` the function of each entry. If not
    ``planned``, the module stays as it is, and the arenas are empty.
    """
    arenas = {slot: Arena(ArenaSpec(slot, 1)) for slot in spaces.values()}
    if planned:
        arenas = _plan(module, spaces, entries)
    _look_at_rest(module, arenas, spaces)
    return arenas


def _plan(module: Any, spaces: Mapping[str, int], entries: Mapping[str, str]) -> dict[int, Arena]:
    graph = CallGraph(module)
    functions = collect_functions(graph, entries.values())
    arenas: dict[int, Arena] = {}
    for space, slot in spaces.items():
        spec = ArenaSpec(slot, HOST_ALIGNMENT if space == "" else DEVICE_ALIGNMENT)
        arena = arenas[slot] = Arena(spec)
        place_buffers(functions, space, spec.alignment)
        _number_places(arena, [storage.memories[space] for storage in functions.values()])
        for name, function in entries.items():
            spec.needed[name] = reach(functions, graph, function, space)
            if functions[function].memories[space].peak > arena.lower_bound:
                arena.lower_bound = functions[function].memories[space].peak
                arena.at_peak = live_at_peak(functions, function, space)
        arena.size = max(spec.needed.values(), default=0)
    return arenas


def _number_places(arena: Arena, functions: Sequence[Placed]) -> None:
    numbers: dict[tuple[int, int], int] = {}
    for placed in functions:
        for buffer, block, offset in zip(placed.buffers, placed.blocks, placed.offsets, strict=True):
            place = placed.base + offset, block.size
            number = numbers.setdefault(place, len(numbers))
            _mark(buffer.alloc.op, buffer.free.op, number, *place)
        arena.values += len(placed.buffers) + len(placed.alone)
    places = arena.spec.places = [list(place) for place in numbers]
    for buffer in (buffer for placed in functions for buffer in placed.alone):
        size = max(buffer.bytes or 0, 1)
        _mark(buffer.alloc.op, buffer.free.op, len(places), ALONE, size)
        places.append([ALONE, size])
        arena.alone += size


def count_state(arenas: Mapping[int, Arena], spaces: Mapping[str, int], arguments: Iterable[Any]) -> None:
    """Count state, given the ``arguments`` that it is to functions: a call finds a buffer, and leaves another."""
    for value in arguments:
        if mlir_util.is_memref(value.type):
            arenas[spaces[space_text(value)]].state += 2 * (mlir_util.static_bytes(value.type) or 0)


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


def _mark(alloc: Any, free: Any, number: int, offset: int, size: int) -> None:
    """Note the place of a buffer."""
    alloc.attributes[STORAGE_ATTR] = ir.DenseI64ArrayAttr.get([number, offset, size], alloc.context)
    free.attributes[STORAGE_ATTR] = ir.DenseI64ArrayAttr.get([number], free.context)


class PlaceCalls:
    """Replaces marked allocations and releases, in program order, by what the runtime offers for them."""

    def __init__(self) -> None:
        self._bytes: dict[Any, Any] = {}

    def lower(self, op: Any, where: list[int]) -> None:
        """Replace ``op``; ``where`` is its slot."""
        slot = where[0]
        if op.name == "memref.alloc":
            self._find(op, slot)
            return
        if not slot:
            # The bytes that the buffer is a view of: the same pointer, of which LLVM does not lose track.
            Builder(op).call("devscope_done_on_host", [self._bytes[op.operands[0]]])
        op.erase()

    def _find(self, alloc: Any, slot: int) -> None:
        build = RuntimeBuilder(alloc)
        number, _, size = ir.DenseI64ArrayAttr(alloc.attributes[STORAGE_ATTR])
        place, length = build.constant(number, build.i64), build.constant(size)
        if slot:
            raw = build.runtime_buffer("devscope_arena_buffer", [build.constant(slot, build.i64), place], length)
        else:
            raw = build.runtime_bytes("devscope_place_on_host", [place, length])
        view = build.view(raw, [], ir.MemRefType(alloc.results[0].type))
        self._bytes[view] = raw
        mlir_util.replace_op(alloc, [view])


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
    # A device all of whose work was dead has no memory.
    limited = [(name, memory[name], limit) for name, limit in limits.items() if name in memory]
    errors = [_error(name, arena, limit) for name, arena, limit in limited if _total(arena) > limit]
    if errors:
        errors[0].others = tuple(errors[1:])
        raise errors[0]
    return memory


def _total(arena: Arena) -> int:
    return arena.planned + arena.constants + arena.state


def _error(name: str, needed: Arena, limit: int) -> PlanError:
    live = sorted(needed.at_peak, key=lambda buffer: -(buffer.bytes or 0))
    parts = f"{_exact(needed.planned)} for values, {_exact(needed.constants)} of constants"
    parts += f", {_exact(needed.state)} of state" if needed.state else ""
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
