"""Copies go into the branches that need them, and go altogether where nobody does.

A copy all of whose uses stand in regions of one branch moves to the start of each of them that has any, and on
from there into branches inside. It stays where every path through the branch would copy. It is never put into a
loop: there, it would run more often.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.ir import Block, Operation, Region, SSAValue, Use

from devscope.analysis.insertion import region_in
from devscope.analysis.value_flow import CHOICES
from devscope.dialects.device import DeviceCopyOp
from devscope.dialects.names import op_name
from devscope.passes.device_move_copies.copy_index import Outline, is_single_block


def sink_copies(outline: Outline) -> bool:
    """Sink the copies of a function as deep as they go, and erase unused ones; whether there were any."""
    changed = False
    # The last first: copies of copies come before what they copy, and all go to the start, in their order.
    for copy in reversed(list(outline.copies)):
        use = copy.result.first_use
        if use is None:
            outline.erase(copy)
            changed = True
            continue
        places = _places(copy) if use.operation.parent is not copy.parent else ()
        if not places or places[0].block is copy.parent:
            continue
        for place in places[1:]:
            clone = DeviceCopyOp(copy.operand, copy.src, copy.dst)
            place.use(outline.make(clone, copy, place.start))
        outline.move(copy, places[0].start)
        changed = True
    return changed


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
    if branch is None or op_name(branch) not in CHOICES:
        return None
    return branch if all(is_single_block(region) for region in branch.regions if region.blocks) else None


def _regions(branch: Operation, uses: list[Use]) -> list[_Place]:
    found: dict[Region, list[Use]] = {}
    for use in uses:
        found.setdefault(region_in(branch, use.operation), []).append(use)
    return [_Place(region.block, found[region]) for region in branch.regions if region in found]
