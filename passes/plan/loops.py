"""How often a copy would run: the loops that it would stand in."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import Block, Operation, Region, SSAValue

from devscope.dialects.names import op_name
from devscope.passes.plan.blocks import Dominators
from devscope.passes.value_flow import LOOPS


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
