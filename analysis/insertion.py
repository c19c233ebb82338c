"""Where a copy goes: after the definition, else as near to the uses as every path allows."""

from collections.abc import Sequence
from typing import NamedTuple

from xdsl.ir import Block, Operation, Region, SSAValue

from devscope.analysis.dominance import DominatorTrees
from devscope.dialects.op_facts import Control, facts_of


class Point(NamedTuple):
    """A place in a block, before ``anchor``; without an anchor, right after the definition of the value."""

    block: Block
    anchor: Operation | None


class InsertionPoints:
    """Finds insertion points. Operations may be inserted while it is in use, but not removed or reordered."""

    def __init__(self) -> None:
        self._numbers: dict[Block, dict[Operation, int]] = {}
        self._graphs = DominatorTrees()

    def point(self, value: SSAValue, users: Sequence[Operation]) -> Point:
        """Where one copy of ``value`` serves all ``users``, of which there is at least one.

        Right after the definition, unless all users are on paths that other paths branch off from: then at the
        nearest common dominator of the users, on those paths only. Never inside a loop that the definition is
        outside of.
        """
        owner = value.owner
        definition = owner if isinstance(owner, Block) else _block(owner)
        if all(user.parent is definition for user in users):
            return Point(definition, None)
        start = definition
        while True:
            anchors = [_ancestor(start, user) for user in users]
            block = self._outside_loops([_block(anchor) for anchor in anchors], start)
            branch = anchors[0]
            if branch in users or not is_branch(branch) or any(a is not branch for a in anchors):
                break
            regions = {region_in(branch, user) for user in users}
            if len(regions) > 1:
                break
            start = regions.pop().blocks[0]
        if block is definition:
            return Point(block, None)
        here = [anchor for anchor in anchors if anchor.parent is block]
        return Point(block, min(here, key=self._numbering(block).__getitem__) if here else block.last_op)

    def may_stay(self, copy: Operation, value: SSAValue, users: Sequence[Operation]) -> bool:
        """Whether a copy of ``value`` that stands already serves ``users``, and stands in no loop needlessly."""
        block = _block(copy)
        return self._dominates(copy, block, users) and not self._can_leave_loop(block, value)

    def _dominates(self, copy: Operation, block: Block, users: Sequence[Operation]) -> bool:
        for user in users:
            anchor = _ancestor_or_none(block, user)
            if anchor is None:
                return False
            if anchor.parent is block:
                numbers = self._numbering(block)
                if numbers[copy] >= numbers[anchor]:
                    return False
            elif self._outside_loops([_block(anchor), block], block) is not block:
                return False
        return True

    def _can_leave_loop(self, block: Block, value: SSAValue) -> bool:
        owner = value.owner
        definition = owner if isinstance(owner, Block) else _block(owner)
        while block.parent is not definition.parent:
            parent = block.parent_op()
            assert parent is not None
            assert block.parent is not None
            # What is no choice is a loop.
            chosen = facts_of(parent).control is Control.CHOICE
            if not chosen or self._outside_loops([block], block.parent.blocks[0]) is not block:
                return True
            block = _block(parent)
        return self._outside_loops([block], definition) is not block

    def _outside_loops(self, blocks: Sequence[Block], start: Block) -> Block:
        """The block of ``start``'s region nearest to all of ``blocks``, in no loop that ``start`` is not in."""
        region = start.parent
        if region is None or region.first_block is region.last_block:
            return start
        graph = self._graphs[region]
        return graph.outside_loops(graph.nearest_common(blocks), start)

    def _numbering(self, block: Block) -> dict[Operation, int]:
        found = self._numbers.get(block)
        if found is None:
            found = self._numbers[block] = {op: number for number, op in enumerate(block.ops)}
        return found


def _block(op: Operation) -> Block:
    assert op.parent is not None
    return op.parent


def _ancestor_or_none(start: Block, op: Operation) -> Operation | None:
    """The operation in ``start``'s region that is or contains ``op``."""
    block = start.parent.find_ancestor_block_in_region(_block(op)) if start.parent is not None else None
    return block.find_ancestor_op_in_block(op) if block is not None else None


def _ancestor(start: Block, op: Operation) -> Operation:
    found = _ancestor_or_none(start, op)
    assert found is not None
    return found


def is_branch(op: Operation) -> bool:
    """Whether an operation runs one of several regions: a copy that only one needs goes in there."""
    return facts_of(op).control is Control.CHOICE and len(op.regions) > 1


def region_in(outer: Operation, op: Operation) -> Region:
    """The region of ``outer`` that ``op`` stands in."""
    return next(region for region in outer.regions if region.is_ancestor(op))
