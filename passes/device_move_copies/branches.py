"""Copies around branches: in front or behind where every region copies, inside where one need not.

A copy all of whose uses stand in regions of one branch moves to the start of each of them that has any, and on
from there into branches inside. It stays where every path through the branch would copy. It is never put into a
loop: there, it would run more often.

What all regions copy is copied in front of the branch, or behind it if they yield it. If a region yields what was
copied to where the result is, and the result is copied back, the regions copy back instead: for that one, there is
nothing to copy.
"""

from xdsl.ir import Block, Operation, OpResult, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from devscope.analysis.dominance import is_single_block
from devscope.dialects.device import DeviceCopyOp, ScopeAttr
from devscope.dialects.op_facts import Control, facts_of
from devscope.rewriting.copies import insert_copy, move_before


def sink_copy(copy: DeviceCopyOp) -> bool:
    """Sink a copy as deep as it goes, or erase it if nothing uses it; whether it was either."""
    use, home = copy.result.first_use, copy.parent
    assert home is not None
    if use is None:
        Rewriter.erase_op(copy)
        return True
    first, *others = _copying_blocks(copy, home) if use.operation.parent is not home else [home]
    if first is home:
        return False
    copies = {block: copy.clone(clone_name_hints=False) for block in others}
    for block, other in copies.items():
        Rewriter.insert_op(other, InsertPoint.at_start(block))
    copy.detach()
    Rewriter.insert_op(copy, InsertPoint.at_start(first))
    for use in list(copy.result.uses) if copies else ():
        block = use.operation.parent
        while block is not None and block is not first and block not in copies:
            block = block.parent_block()
        if block is not None and block in copies:
            use.operation.operands[use.index] = copies[block].result
    return True


def _copying_blocks(copy: DeviceCopyOp, home: Block) -> list[Block]:
    """The blocks at whose start copies serve the uses of ``copy``, which stands in ``home``."""
    users = {use.operation for use in copy.result.uses}
    if any(home.find_ancestor_op_in_block(user) is None for user in users):
        return [home]
    holders: dict[Block, set[Operation]] = {}
    """Per block the operations in it that are users, or have some inside."""
    for user in users:
        op: Operation | None = user
        while op is not None and (block := op.parent) is not None and op not in holders.setdefault(block, set()):
            holders[block].add(op)
            op = block.parent_op() if block is not home else None
    inside: dict[Block, list[Block]] = {}
    """Where copies can be instead of in a block: in regions of the one branch that has all of its users."""
    blocks = [home]
    for block in blocks:
        branch, *others = holders[block]
        sinks = not others and branch not in users and facts_of(branch).control is Control.CHOICE
        regions = [region for region in branch.regions if region.blocks]
        if sinks and all(map(is_single_block, regions)):
            inside[block] = [region.block for region in regions if region.block in holders]
            blocks += inside[block]
    chosen: dict[Block, list[Block]] = {}
    for block in reversed(blocks):
        inner = inside.get(block, [])
        branch = inner[0].parent_op() if inner else None
        every_path = branch is None or len(inner) == len(branch.regions)
        if every_path and all(chosen[other] == [other] for other in inner):
            chosen[block] = [block]
        else:
            chosen[block] = [found for other in inner for found in chosen[other]]
    return chosen[home]


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


def move_result_copies(branch: Operation) -> bool:
    """Copy results instead of what each region yields for them, or let regions copy back what they yield, if one
    of them need not; whether there were such results."""
    blocks = _blocks(branch)
    results = branch.results if blocks else ()
    return any([_join_result(result, blocks) or _split_result(result, blocks) for result in results])


def _join_result(result: OpResult, blocks: list[Block]) -> bool:
    copies = _yielded_copies(result, blocks)
    ends = {(copy.src, copy.dst) for copy in copies}
    after = result.op.next_op
    if len(copies) < len(blocks) or len(ends) > 1 or after is None:
        return False
    if not all(copy.result.has_one_use() for copy in copies):
        return False
    uses = list(result.uses)
    made = insert_copy(result, *ends.pop(), copies[0], after)
    for use in uses:
        use.operation.operands[use.index] = made
    for copy in copies:
        Rewriter.replace_op(copy, [], [copy.operand])
    return True


def _split_result(result: OpResult, blocks: list[Block]) -> bool:
    copies = _copies_back(result)
    if not copies or not any(copy.src == copies[0].dst for copy in _yielded_copies(result, blocks)):
        return False
    for end in (block.last_op for block in blocks):
        assert end is not None
        value = end.operands[result.index]
        end.operands[result.index] = insert_copy(value, copies[0].src, copies[0].dst, copies[0], end)
    for copy in copies:
        Rewriter.replace_op(copy, [], [result])
    return True


def _copies_back(result: OpResult) -> list[DeviceCopyOp]:
    """The copies of a result, if nothing else uses it, all go to one scope, and one follows the branch."""
    users = [use.operation for use in result.uses if not facts_of(use.operation).query]
    copies = [user for user in users if isinstance(user, DeviceCopyOp)]
    if len(copies) < len(users) or len({copy.dst for copy in copies}) != 1:
        return []
    return copies if any(copy.parent is result.op.parent for copy in copies) else []


def _yielded_copies(result: OpResult, blocks: list[Block]) -> list[DeviceCopyOp]:
    """The copies that blocks yield for a result."""
    ends = (block.last_op.operands[result.index :] for block in blocks if block.last_op is not None)
    return [owner for end in ends if end and isinstance(owner := end[0].owner, DeviceCopyOp)]


def _blocks(branch: Operation) -> list[Block]:
    """The blocks of a branch each path through which runs one of them; none if some run none, or several."""
    regions = branch.regions
    return [region.block for region in regions] if all(map(is_single_block, regions)) else []


def _of_outside_values(branch: Operation, block: Block) -> dict[tuple[SSAValue, ScopeAttr], DeviceCopyOp]:
    copies = (op for op in block.ops if isinstance(op, DeviceCopyOp))
    return {(copy.operand, copy.dst): copy for copy in copies if not branch.is_ancestor(copy.operand.owner)}
