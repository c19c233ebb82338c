"""Folds the control flow of a function whose choices are known."""

from __future__ import annotations

from xdsl.ir import Operation, Region
from xdsl.rewriter import InsertPoint, Rewriter

from devscope.analysis.value_flow import first_carried, first_operand
from devscope.dialects.names import op_name
from devscope.passes.device_sccp.propagation import Propagation


def fold_control_flow(body: Region, found: Propagation) -> bool:
    """Replace choices by what is chosen, drop loops that do not run, and erase blocks that are not reached.

    Whether there was anything of that.
    """
    folded = False
    regions = [body]
    while regions:
        work, changed = _reached_operations(regions.pop(), found)
        folded |= changed
        while work:
            op = work.pop()
            taken = found.taken_region(op)
            if taken is not None:
                work += _take(op, taken)
            elif found.is_skipped(op):
                Rewriter.replace_op(op, (), op.operands[first_carried(op) :])
            else:
                regions += op.regions
                continue
            folded = True
    return folded


def _reached_operations(region: Region, found: Propagation) -> tuple[list[Operation], bool]:
    """What control reaches in a region, which loses all else; whether there was anything to lose."""
    reached = [block for block in region.blocks if block in found.reached]
    if not reached:
        return [], False  # The body of a loop that never runs: it must have one.
    branches = [op for block in reached if (op := block.last_op) is not None and op_name(op) == "cf.cond_br"]
    known = [branch for branch in branches if len(found.taken_successors(branch)) == 1]
    for branch in known:
        _fold_branch(branch, found)
    dead = [block for block in region.blocks if block not in found.reached]
    for block in dead:
        for op in block.walk():
            op.drop_all_references()
    for block in dead:
        region.detach_block(block)
        block.erase(safe_erase=False)
    return [op for block in reached for op in block.ops], bool(known or dead)


def _take(op: Operation, region: Region) -> list[Operation]:
    """Put the body of ``region`` in the place of ``op``; returns what stood in there."""
    block = region.first_block
    if block is None:  # an scf.if without else
        Rewriter.replace_op(op, (), ())
        return []
    *moved, end = block.ops
    Rewriter.inline_block(block, InsertPoint.before(op))
    Rewriter.replace_op(op, (), end.operands)
    Rewriter.erase_op(end)
    return moved


def _fold_branch(branch: Operation, found: Propagation) -> None:
    from xdsl.dialects.cf import BranchOp  # few programs have branches, and fewer known ones

    (number,) = found.taken_successors(branch)
    block, first = branch.successors[number], first_operand(branch, number)
    new = BranchOp(block, *branch.operands[first : first + len(block.args)])
    new.location = branch.location
    Rewriter.replace_op(branch, new)
