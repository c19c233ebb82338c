"""What each function needs of each memory, and where its part of the program's storage begins.

A program has one arena per memory. A function's part begins behind the parts of all functions that may be under
way when it is called; functions that are never under way together lie over each other.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from devscope.lowering.memory.buffers import Buffer, find_buffers, share_buffers
from devscope.lowering.memory.call_graph import CallGraph
from devscope.lowering.memory.offsets import Block, peak, place, profile
from devscope.lowering.memory.timeline import Step, Timeline


@dataclass
class Placed:
    """What a function needs of one memory: the ``size`` of its part of the arena, which begins at ``base``.

    ``offsets`` of its ``buffers`` count from there. ``alone``: buffers in no arena, since they share their memory
    with nothing. ``peak``: the most bytes that it and its callees need at one moment.
    """

    buffers: list[Buffer]
    blocks: list[Block]
    offsets: list[int]
    size: int
    alone: list[Buffer]
    base: int = 0
    peak: int = 0

    @property
    def end(self) -> int:
        return self.base + self.size


@dataclass
class FunctionStorage:
    """What a function needs. ``memories`` is keyed by the text of a memory space, "" for the host's."""

    name: str
    timeline: Timeline
    calls: list[tuple[Step, str]]
    in_loop: bool = False
    buffers: list[Buffer] = field(default_factory=list[Buffer])
    memories: dict[str, Placed] = field(default_factory=dict[str, Placed])

    def live_blocks(self, space: str, functions: Functions) -> list[Block]:
        """What is needed and when: the function's buffers, and its callees' peaks while they run."""
        placed = self.memories[space]
        own = [*placed.blocks, *(_block(buffer, self.timeline) for buffer in placed.alone)]
        calls = [(step, functions[callee].memories[space]) for step, callee in self.calls if callee != self.name]
        return [*own, *(Block(callee.peak, step.begin, step.end) for step, callee in calls)]


Functions: TypeAlias = dict[str, FunctionStorage]
"""What functions need, callers before callees."""


def collect_functions(graph: CallGraph, roots: Iterable[str]) -> Functions:
    """What ``roots`` reach: buffers are merged, but not placed yet."""
    used = graph.reachable(roots)
    functions: Functions = {}
    for name in reversed(graph.order):
        if name in used:
            timeline = Timeline(graph.functions[name])
            calls = [(step, callee) for step in timeline.steps for callee in graph.called_by(step.name, step.op)]
            functions[name] = FunctionStorage(name, timeline, calls)
    # A caller may stand behind its callee where functions call each other in cycles.
    for _ in range(2):
        for storage in functions.values():
            for step, callee in storage.calls:
                functions[callee].in_loop |= storage.in_loop or step.in_loop
    for name, storage in functions.items():
        if name not in graph.recursive:
            storage.buffers = _reduce(find_buffers(storage.timeline, storage.in_loop))
    return functions


def place_buffers(functions: Functions, space: str, alignment: int) -> None:
    """Fill in where everything goes that is in the memory ``space``."""
    for storage in functions.values():
        found = [b for b in storage.buffers if b.bytes is not None and b.space == space]
        storage.memories[space] = _place(found, storage.timeline, alignment)
    for storage in reversed(functions.values()):  # callees first; what calls itself has no buffers
        storage.memories[space].peak = peak(storage.live_blocks(space, functions))
    _set_bases(functions, space)


def _place(found: list[Buffer], timeline: Timeline, alignment: int) -> Placed:
    alone = [buffer for buffer in found if buffer.space and buffer.keeps_storage]
    buffers = [buffer for buffer in found if buffer not in alone]
    blocks = [_block(buffer, timeline) for buffer in buffers]
    offsets, size = place(blocks, alignment)
    return Placed(buffers, blocks, offsets, -(-size // alignment) * alignment, alone)


def live_at_peak(functions: Functions, root: str, space: str) -> list[Buffer]:
    """The buffers that are live when ``root`` and what it calls need most."""
    found: list[Buffer] = []
    name: str | None = root
    while name is not None:
        storage = functions[name]
        moments = profile(storage.live_blocks(space, functions))
        moment = max(moments, key=lambda item: item[1], default=(0, 0))[0]
        placed = storage.memories[space]
        pairs = zip(placed.buffers, placed.blocks, strict=True)
        found += [buffer for buffer, block in pairs if block.first <= moment <= block.last] + placed.alone
        called = [c for s, c in storage.calls if s.begin <= moment <= s.end and c != name]
        name = max(called, key=lambda callee: functions[callee].memories[space].peak, default=None)
    return found


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


def _set_bases(functions: Functions, space: str) -> None:
    changed = True
    while changed:
        changed = False
        for storage in functions.values():
            end = storage.memories[space].end
            for placed in (functions[callee].memories[space] for _, callee in storage.calls):
                if placed.base < end:
                    placed.base = end
                    changed = True


def reach(functions: Functions, graph: CallGraph, root: str, space: str) -> int:
    """The end of the storage that ``root`` and what it calls use."""
    used = (functions[name].memories[space] for name in graph.reachable([root]))
    return max((placed.end for placed in used if placed.buffers or placed.alone), default=0)
