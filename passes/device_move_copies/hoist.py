"""Copies of what is defined outside of a loop leave it.

Only those that every iteration runs: one under a branch inside may run never, and stays there. A loop that runs no
iteration then has one copy more than before, as with the copies that the planner makes; other loops have fewer.
"""

from __future__ import annotations

from xdsl.ir import Operation

from devscope.passes.device_move_copies.copy_index import Outline, is_inside, is_single_block


def hoist_copies(loop: Operation, outline: Outline) -> bool:
    """Move copies in front of a loop; whether there were any. Loops inside must have been done before."""
    changed = False
    for region in loop.regions:
        if not is_single_block(region):
            continue
        for copy in outline.in_block(region.block):
            if not is_inside(copy.operand, loop):
                outline.move(copy, loop)
                changed = True
    return changed
