"""Loops, of operations and of blocks: how often a copy would run, and which loop an operation stands in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import Block, Operation, Region, SSAValue

from devscope.analysis.dominance import Dominators
from devscope.analysis.value_flow import LOOPS
from devscope.dialects.names import op_name


@dataclass(frozen=True)
class Loop:
    """A loop operation, or the header of a loop of blocks."""

    start: Operation | Block
    graph: Dominators | None = None

    @property
    def first(self) -> Operation | None:
        """The operation that stands for the loop in messages."""
        return self.start if isinstance(self.start, Operation) else self.start.first_op

    def operations(self) -> Iterator[Operation]:
        """Everything inside."""
        if isinstance(self.start, Operation):
            blocks = [block for region in self.start.regions for block in region.blocks]
        else:
            graph, header = self.graph, self.start
            assert graph is not None
            blocks = [block for block in graph.order if graph.in_loop(header, block)]
        for block in blocks:
            yield from block.walk()

    def carried(self) -> Sequence[SSAValue]:
        """What it carries from one iteration to the next."""
        blocks = [r.blocks[0] for r in self.start.regions] if isinstance(self.start, Operation) else [self.start]
        return [argument for block in blocks for argument in block.args]


class LoopNest:
    """Loop depths of the blocks of one module. ``graphs`` has the control flow of regions of several blocks."""

    def __init__(self, graphs: Mapping[Region, Dominators]) -> None:
        self._graphs = graphs
        self._depths: dict[Block, int] = {}

    def of_copy(self, value: SSAValue, user: Operation) -> int:
        """In how many loops a copy of ``value`` for ``user`` stands: in those that hold both."""
        owner = value.owner
        block = owner if isinstance(owner, Block) else owner.parent
        if block is None:
            return 0
        depth = self.of_block(block)
        region = block.parent
        graph = self._graphs.get(region) if region is not None else None
        if graph is None:
            return depth
        around: Operation | None = user
        while around is not None and around.parent_region() is not region:
            around = around.parent_op()
        if around is None or around.parent is None:
            return depth
        return depth - graph.loops_around(block) + graph.common_loops(block, around.parent)

    def of_op(self, op: Operation) -> int:
        """How many loops an operation stands in."""
        return self.of_block(op.parent) if op.parent is not None else 0

    def of_block(self, block: Block) -> int:
        """How many loops ``block`` stands in."""
        path: list[tuple[Block, int]] = []
        current: Block | None = block
        while current is not None and current not in self._depths:
            parent = current.parent_op()
            loops = int(parent is not None and op_name(parent) in LOOPS)
            region = current.parent
            if region is not None and (graph := self._graphs.get(region)) is not None:
                loops += graph.loops_around(current)
            path.append((current, loops))
            current = parent.parent if parent is not None else None
        depth = self._depths[current] if current is not None else 0
        for around, loops in reversed(path):
            depth += loops
            self._depths[around] = depth
        return depth


def innermost_loop(op: Operation, graphs: Mapping[Region, Dominators]) -> Loop | None:
    block = op.parent
    while block is not None and (region := block.parent) is not None:
        graph = graphs.get(region)
        if graph is not None and (header := _header(graph, block)) is not None:
            return Loop(header, graph)
        parent = region.parent
        if parent is None or op_name(parent) in LOOPS:
            return Loop(parent) if parent is not None else None
        block = parent.parent
    return None


def _header(graph: Dominators, block: Block) -> Block | None:
    """The header of the innermost loop around ``block``."""
    if not graph.loops_around(block):
        return None
    headers = [header for header in graph.order if graph.in_loop(header, block)]
    return max(headers, key=graph.loops_around)
