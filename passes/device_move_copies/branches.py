"""Copies around branches: in front or behind where every region copies, inside where one need not.

A copy all of whose uses stand in regions of one branch moves to the start of each of them that has any, and on
from there into branches inside. It stays where every path through the branch would copy. It is never put into a
loop: there, it would run more often.

What all regions copy is copied in front of the branch, or behind it if they yield it. If a region yields what was
copied to where the result is, and the result is copied back, the regions copy back instead: for that one, there is
nothing to copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.ir import Block, Operation, Region, SSAValue, Use
from xdsl.rewriter import Rewriter

from devscope.analysis.dominance import is_single_block
from devscope.analysis.insertion import region_in
from devscope.dialects.device import DeviceCopyOp, ScopeAttr
from devscope.dialects.op_facts import Control, facts_of
from devscope.rewriting.copies import insert_copy, move_before


def sink_copy(copy: DeviceCopyOp) -> bool:
    """Sink a copy as deep as it goes, or erase it if nothing uses it; whether it was either."""
    use = copy.result.first_use
    if use is None:
        Rewriter.erase_op(copy)
        return True
    places = _places(copy) if use.operation.parent is not copy.parent else ()
    if not places or places[0].block is copy.parent:
        return False
    for place in places[1:]:
        place.use(insert_copy(copy.operand, copy.src, copy.dst, copy, place.start))
    move_before(copy, places[0].start)
    return True


@dataclass
class _Place:
    """A block, and uses of one copy that stand in it, nested ones included."""

    block: Block
    uses: list[Use]
    branch: Operation | None = None
    """What all uses stand in."""
    inside: list[_Place] = field(default_factory=list["_Place"])
    """Of the branch, the regions that have uses."""
    best: list[_Place] = field(default_factory=list["_Place"])
    """Where copies serve the uses: in the block, or only on those paths of the branch that need them."""

    @property
    def start(self) -> Operation:
        assert self.block.first_op is not None
        return self.block.first_op

    def use(self, value: SSAValue) -> None:
        for use in self.uses:
            use.operation.operands[use.index] = value


def _places(copy: DeviceCopyOp) -> list[_Place]:
    """The blocks where copies serve the uses of ``copy``."""
    assert copy.parent is not None
    places = [_Place(copy.parent, list(copy.result.uses))]
    for place in places:
        place.branch = _branch(place)
        if place.branch is not None:
            place.inside = _regions(place.branch, place.uses)
            places += place.inside
    for place in reversed(places):
        if place.branch is None or (
            len(place.inside) == len(place.branch.regions) and all(inner.best == [inner] for inner in place.inside)
        ):
            place.best = [place]
        else:
            place.best = [best for inner in place.inside for best in inner.best]
    return places[0].best


def _branch(place: _Place) -> Operation | None:
    """The branch in which all uses stand, if they stand in one."""
    branch: Operation | None = None
    for use in place.uses:
        around = place.block.find_ancestor_op_in_block(use.operation)
        if around is None or around is use.operation or around is not (branch or around):
            return None
        branch = around
    if branch is None or facts_of(branch).control is not Control.CHOICE:
        return None
    return branch if all(is_single_block(region) for region in branch.regions if region.blocks) else None


def _regions(branch: Operation, uses: list[Use]) -> list[_Place]:
    found: dict[Region, list[Use]] = {}
    for use in uses:
        found.setdefault(region_in(branch, use.operation), []).append(use)
    return [_Place(region.block, found[region]) for region in branch.regions if region in found]


def join_copies(branch: Operation) -> bool:
    """Move copies of one outside value that all regions make in front of the branch; whether there were any."""
    blocks = _blocks(branch)
    if not blocks:
        return False
    first, *others = (_of_outside_values(branch, block) for block in blocks)
    changed = False
    for key, copy in first.items():
        if all(key in other for other in others):
            move_before(copy, branch)
            for other in others:
                Rewriter.replace_op(other[key], [], [copy.result])
            changed = True
    return changed


def join_results(branch: Operation) -> bool:
    """Copy a result of a branch instead of what each region yields for it; whether there were any such."""
    blocks = _blocks(branch)
    after = branch.next_op
    if not blocks or after is None:
        return False
    changed = False
    for result in branch.results:
        copies = _yielded_copies(blocks, result.index)
        if copies is None:
            continue
        first = copies[0]
        uses = list(result.uses)
        made = insert_copy(result, first.src, first.dst, first, after)
        for use in uses:
            use.operation.operands[use.index] = made
        for copy in copies:
            Rewriter.replace_op(copy, [], [copy.operand])
        changed = True
    return changed


def split_results(branch: Operation) -> bool:
    """Let regions copy back what they yield, if one of them need not; whether there was such a result."""
    blocks = _blocks(branch)
    changed = False
    for result in branch.results if blocks else ():
        copies = _copies_back(result, branch)
        if not copies:
            continue
        src, dst = copies[0].src, copies[0].dst
        yielded = [_yielded(block, result.index) for block in blocks]
        firsts = [value.owner if value is not None else None for value in yielded]
        if not any(isinstance(first, DeviceCopyOp) and first.src == dst for first in firsts):
            continue
        for block, value in zip(blocks, yielded, strict=True):
            end = block.last_op
            assert end is not None
            assert value is not None
            back = insert_copy(value, src, dst, copies[0], end)
            end.operands[result.index] = back
        for copy in copies:
            Rewriter.replace_op(copy, [], [result])
        changed = True
    return changed


def _copies_back(result: SSAValue, branch: Operation) -> list[DeviceCopyOp]:
    """The copies of a result, if nothing else uses it, all go to one scope, and one follows the branch."""
    users = [use.operation for use in result.uses if not facts_of(use.operation).query]
    copies = [user for user in users if isinstance(user, DeviceCopyOp)]
    if len(copies) < len(users) or len({copy.dst for copy in copies}) != 1:
        return []
    return copies if any(copy.parent is branch.parent for copy in copies) else []


def _yielded(block: Block, index: int) -> SSAValue | None:
    end = block.last_op
    return end.operands[index] if end is not None and index < len(end.operands) else None


def _blocks(branch: Operation) -> list[Block]:
    """The blocks of a branch each path through which runs one of them; none if some run none, or several."""
    regions = branch.regions
    return [region.block for region in regions] if all(map(is_single_block, regions)) else []


def _of_outside_values(branch: Operation, block: Block) -> dict[tuple[SSAValue, ScopeAttr], DeviceCopyOp]:
    copies = (op for op in block.ops if isinstance(op, DeviceCopyOp))
    return {(copy.operand, copy.dst): copy for copy in copies if not branch.is_ancestor(copy.operand.owner)}


def _yielded_copies(blocks: Sequence[Block], index: int) -> list[DeviceCopyOp] | None:
    """The copies that all blocks yield and nothing else uses, if they have the same ends."""
    found: list[DeviceCopyOp] = []
    for block in blocks:
        value = _yielded(block, index)
        copy = value.owner if value is not None else None
        if not isinstance(copy, DeviceCopyOp) or not copy.result.has_one_use():
            return None
        found.append(copy)
    ends = {(copy.src, copy.dst) for copy in found}
    return found if len(ends) == 1 else None
