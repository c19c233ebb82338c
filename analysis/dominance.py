"""The control flow graph of a region: order, dominators, loops."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile

from xdsl.ir import Block, Region


def is_single_block(region: Region) -> bool:
    return region.first_block is not None and region.first_block is region.last_block


def reverse_post_order(region: Region) -> list[Block]:
    """The blocks of a region, each after its dominators; unreachable ones last, as they stand.

    Blocks in the usual layout keep their order, in which messages come: xDSL's `PostOrderIterator` takes the last
    successor first, and skips unreachable blocks.
    """
    blocks = list(region.blocks)
    if len(blocks) < 2:
        return blocks
    order: list[Block] = []
    seen: set[Block] = set()
    stack = [(blocks[0], False)]
    while stack:
        block, finished = stack.pop()
        if finished:
            order.append(block)
        elif block not in seen:
            seen.add(block)
            stack.append((block, True))
            # The last successor is taken first, so that blocks in the usual layout keep their order.
            stack += ((successor, False) for successor in _successors(block))
    order.reverse()
    return order + [block for block in blocks if block not in seen]


def _successors(block: Block) -> Sequence[Block]:
    return block.last_op.successors if block.last_op is not None else ()


class Dominators:
    """Order, immediate dominators and natural loops of the blocks of one region.

    xDSL's `DominanceInfo` has neither immediate dominators nor loops. The algorithm is by Cooper, Harvey, Kennedy
    ("A Simple, Fast Dominance Algorithm"). Unreachable blocks count as dominated by the entry.
    """

    def __init__(self, region: Region) -> None:
        self.order = order = reverse_post_order(region)
        """The blocks, each after its dominators; unreachable ones last."""
        self._number = {block: number for number, block in enumerate(order)}
        self._predecessors: dict[Block, list[Block]] = {block: [] for block in order}
        reachable = {order[0]}
        for block in order:
            # Edges from unreachable blocks dominate nothing; a cycle of such blocks would never settle.
            for successor in _successors(block) if block in reachable else ():
                reachable.add(successor)
                self._predecessors[successor].append(block)
        self._idom: dict[Block, Block] = {order[0]: order[0]}
        changed = True
        while changed:
            changed = False
            for block in order[1:]:
                known = [p for p in self._predecessors[block] if p in self._idom]
                dominator = self.nearest_common(known) if known else order[0]
                if self._idom.get(block) is not dominator:
                    self._idom[block] = dominator
                    changed = True
        self.loops = self._find_loops(order)
        """Per block, the headers of the natural loops that contain it; a header is in its own loop."""

    def nearest_common(self, blocks: Iterable[Block]) -> Block:
        """The nearest block that dominates all of ``blocks``, of which there is at least one."""
        iterator = iter(blocks)
        common = next(iterator)
        for block in iterator:
            while block is not common:
                if self._number[block] > self._number[common]:
                    block = self._idom[block]
                else:
                    common = self._idom[common]
        return common

    def outside_loops(self, block: Block, definition: Block) -> Block:
        """The nearest dominator of ``block`` that is in no loop that ``definition`` is not in."""
        allowed = self.loops[definition]
        while not self.loops[block] <= allowed:
            block = self._idom[block]
        return block

    def path(self, start: Block, block: Block) -> list[Block]:
        """The dominators of ``block`` below ``start``, which dominates it, in no loop that ``start`` is not in."""
        # Nothing but itself dominates an unreachable one.
        ends = (start, self.order[0])
        below = takewhile(lambda found: found not in ends, self.dominators(self.outside_loops(block, start)))
        return list(below)[::-1]

    def dominators(self, block: Block) -> Iterator[Block]:
        """``block`` and the blocks that dominate it, the nearest first."""
        yield block
        while block is not self.order[0]:
            block = self._idom[block]
            yield block

    def _find_loops(self, order: list[Block]) -> dict[Block, set[Block]]:
        loops: dict[Block, set[Block]] = {block: set() for block in order}
        for header in order:
            work = [p for p in self._predecessors[header] if self.nearest_common((p, header)) is header]
            while work:
                block = work.pop()
                if header in loops[block]:
                    continue
                loops[block].add(header)
                if block is not header:
                    work += self._predecessors[block]
        return loops


class DominatorTrees(dict[Region, Dominators]):
    """The dominators of the regions of a module, made when they are asked for."""

    def __missing__(self, region: Region) -> Dominators:
        found = self[region] = Dominators(region)
        return found
