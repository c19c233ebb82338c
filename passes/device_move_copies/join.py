"""Copies around branches: in front or behind where every region copies, inside where one need not.

What all regions copy is copied in front of the branch, or behind it if they yield it. If a region yields what was
copied to where the result is, and the result is copied back, the regions copy back instead: for that one, there is
nothing to copy.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block, Operation, SSAValue

from devscope.dialects.device import DeviceCopyOp, ScopeAttr
from devscope.dialects.op_facts import facts_of
from devscope.passes.device_move_copies.copy_index import Outline, is_inside, is_single_block


def join_copies(branch: Operation, outline: Outline) -> bool:
    """Move copies of one outside value that all regions make in front of the branch; whether there were any."""
    blocks = _blocks(branch)
    if not blocks:
        return False
    first, *others = (_of_outside_values(branch, block, outline) for block in blocks)
    changed = False
    for key, copy in first.items():
        if all(key in other for other in others):
            outline.move(copy, branch)
            for other in others:
                outline.replace(other[key], copy.result)
            changed = True
    return changed


def join_results(branch: Operation, outline: Outline) -> bool:
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
        made = outline.make(DeviceCopyOp(result, first.src, first.dst), first, after)
        for use in uses:
            use.operation.operands[use.index] = made
        for copy in copies:
            outline.replace(copy, copy.operand)
        changed = True
    return changed


def split_results(branch: Operation, outline: Outline) -> bool:
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
            back = outline.make(DeviceCopyOp(value, src, dst), copies[0], end)
            end.operands[result.index] = back
        for copy in copies:
            outline.replace(copy, result)
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


def _of_outside_values(
    branch: Operation, block: Block, outline: Outline
) -> dict[tuple[SSAValue, ScopeAttr], DeviceCopyOp]:
    copies = outline.in_block(block)
    return {(copy.operand, copy.dst): copy for copy in copies if not is_inside(copy.operand, branch)}


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
