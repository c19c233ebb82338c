"""What each function needs of each memory, and where its part of the program's storage begins.

A program has one arena per memory. A function's part begins behind the parts of all functions that may be under
way when it is called; functions that are never under way together lie over each other.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from devscope.lowering.interop.bindings import ir
from devscope.lowering.memory.buffers import Buffer, find_buffers
from devscope.lowering.memory.call_graph import CallGraph
from devscope.lowering.memory.offsets import Block, peak, place, profile
from devscope.lowering.memory.sharing import share_buffers
from devscope.lowering.memory.timeline import Step, Timeline


@dataclass
class Placed:
    """The buffers of a function in one memory. ``offsets`` count from the begin of its part.

    ``alone``: buffers in no arena, since they share their memory with nothing.
    """

    buffers: list[Buffer]
    blocks: list[Block]
    offsets: list[int]
    size: int
    alone: list[Buffer]


@dataclass
class FunctionStorage:
    """What a function needs. ``memories`` is keyed by the text of a memory space, "" for the host's."""

    name: str
    timeline: Timeline
    calls: list[tuple[Step, str]] = field(default_factory=list[tuple[Step, str]])
    in_loop: bool = False
    buffers: list[Buffer] = field(default_factory=list[Buffer])
    memories: dict[str, Placed] = field(default_factory=dict[str, Placed])
    bases: dict[str, int] = field(default_factory=dict[str, int])
    peaks: dict[str, int] = field(default_factory=dict[str, int])

    def live_blocks(self, space: str, functions: dict[str, FunctionStorage]) -> list[Block]:
        """What is needed and when: the function's buffers, and its callees' peaks while they run."""
        placed = self.memories.get(space)
        own = [] if placed is None else [*placed.blocks, *(_block(b, self.timeline) for b in placed.alone)]
        calls = [(step, functions[callee]) for step, callee in self.calls if callee != self.name]
        return [*own, *(Block(callee.peaks.get(space, 0), step.begin, step.end) for step, callee in calls)]


def collect_functions(graph: CallGraph, roots: Iterable[str]) -> dict[str, FunctionStorage]:
    """What ``roots`` reach, callers before callees: buffers are merged, but not placed yet."""
    used = graph.reachable(roots)
    order = [name for name in reversed(graph.order) if name in used]
    functions = {name: FunctionStorage(name, Timeline(graph.functions[name].func)) for name in order}
    for storage in functions.values():
        _find_calls(storage, graph)
    # A caller may stand behind its callee where functions call each other in cycles.
    for _ in range(2):
        for storage in functions.values():
            for step, callee in storage.calls:
                functions[callee].in_loop |= storage.in_loop or step.in_loop
    for name, storage in functions.items():
        if name not in graph.recursive:
            storage.buffers = _reduce(find_buffers(storage.timeline, storage.in_loop))
    return functions


def place_buffers(functions: dict[str, FunctionStorage], alignments: dict[str, int]) -> None:
    """Fill in where everything goes; ``alignments`` has every memory."""
    for storage in functions.values():
        for space, alignment in alignments.items():
            found = [b for b in storage.buffers if b.bytes is not None and b.space == space]
            if found:
                storage.memories[space] = _place(found, storage.timeline, alignment)
    for name in reversed(functions):  # callees first; what calls itself has no buffers
        for space in alignments:
            functions[name].peaks[space] = peak(functions[name].live_blocks(space, functions))
    _set_bases(functions, alignments)


def _place(found: list[Buffer], timeline: Timeline, alignment: int) -> Placed:
    alone = [buffer for buffer in found if buffer.space and buffer.keeps_storage]
    buffers = [buffer for buffer in found if buffer not in alone]
    blocks = [_block(buffer, timeline) for buffer in buffers]
    offsets, size = place(blocks, alignment)
    return Placed(buffers, blocks, offsets, -(-size // alignment) * alignment, alone)


def live_at_peak(functions: dict[str, FunctionStorage], root: str, space: str) -> list[Buffer]:
    """The buffers that are live when ``root`` and what it calls need most."""
    found: list[Buffer] = []
    name: str | None = root
    while name is not None:
        storage = functions[name]
        moments = profile(storage.live_blocks(space, functions))
        moment = max(moments, key=lambda item: item[1], default=(0, 0))[0]
        placed = storage.memories.get(space)
        if placed is not None:
            pairs = zip(placed.buffers, placed.blocks, strict=True)
            found += [buffer for buffer, block in pairs if block.first <= moment <= block.last] + placed.alone
        called = [c for s, c in storage.calls if s.begin <= moment <= s.end and c != name]
        name = max(called, key=lambda callee: functions[callee].peaks[space], default=None)
    return found


def _find_calls(storage: FunctionStorage, graph: CallGraph) -> None:
    values = [name for name, found in graph.functions.items() if found.is_value]
    for step in storage.timeline.steps:
        if step.name == "func.call":
            callee = ir.FlatSymbolRefAttr(step.op.attributes["callee"]).value
            if callee in graph.functions:
                storage.calls.append((step, callee))
        elif step.name == "func.call_indirect":
            storage.calls += [(step, callee) for callee in values]


def _reduce(buffers: list[Buffer]) -> list[Buffer]:
    """Drop buffers without a use, merge those that may be one, and let all of them live no longer than needed."""
    for buffer in buffers:
        if not buffer.users:
            buffer.free.op.erase()
            buffer.alloc.op.erase()
    left = share_buffers([buffer for buffer in buffers if buffer.users])
    for buffer in left:
        buffer.alloc.op.move_before(buffer.users[0].op)
        buffer.free.op.move_after(buffer.users[-1].op)
    return left


def _block(buffer: Buffer, timeline: Timeline) -> Block:
    assert buffer.bytes is not None
    size = max(buffer.bytes, 1)  # a device has no empty buffers
    if buffer.keeps_storage:
        return Block(size, 0, timeline.length)
    return Block(size, buffer.first, buffer.last)


def _set_bases(functions: dict[str, FunctionStorage], spaces: Iterable[str]) -> None:
    changed = True
    while changed:
        changed = False
        for storage in functions.values():
            for _, callee in storage.calls:
                for space in spaces:
                    placed = storage.memories.get(space)
                    end = storage.bases.get(space, 0) + (placed.size if placed is not None else 0)
                    if functions[callee].bases.get(space, 0) < end:
                        functions[callee].bases[space] = end
                        changed = True


def reach(functions: dict[str, FunctionStorage], graph: CallGraph, root: str, space: str) -> int:
    """The end of the storage that ``root`` and what it calls use."""
    used = (functions[name] for name in graph.reachable([root]))
    parts = ((storage.bases.get(space, 0), storage.memories.get(space)) for storage in used)
    return max((base + placed.size for base, placed in parts if placed is not None), default=0)
