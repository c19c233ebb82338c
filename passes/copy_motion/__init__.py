"""Moves, merges and removes the copies of a planned module. The scopes of computations stay as they are.

A path never gets more copies than it had, but for one: where a loop does not run at all, the copies in front of it
and behind it do, once each.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from devscope.analysis.value_flow import CHOICES, LOOPS
from devscope.dialects.names import op_name
from devscope.passes.copy_motion.carry import carry_copied
from devscope.passes.copy_motion.hoist import hoist_copies
from devscope.passes.copy_motion.join import join_copies, join_results, split_results
from devscope.passes.copy_motion.merge import fold_chains, merge_copies
from devscope.passes.copy_motion.outline import Outline
from devscope.passes.copy_motion.sink import sink_copies


def move_copies(module: ModuleOp) -> bool:
    """Move the copies of a planned module in place, until none is left to move; whether there was any."""
    changed = False
    for function in module.body.block.ops:
        if isinstance(function, FuncOp) and function.body.blocks:
            # A round moves copies over any number of branches and loops. The next one sees what has become equal.
            while _round(Outline(function)):
                changed = True
    return changed


def _round(outline: Outline) -> bool:
    if not outline.copies:
        return False
    changed = merge_copies(outline)
    changed |= fold_chains(outline)
    changed |= sink_copies(outline)
    for op in reversed(outline.nests):  # those inside others first
        name = op_name(op)
        if name in CHOICES:
            changed |= join_copies(op, outline)
            changed |= join_results(op, outline) or split_results(op, outline)
        elif name in LOOPS:
            changed |= hoist_copies(op, outline)
            changed |= carry_copied(op, outline)
    return changed
