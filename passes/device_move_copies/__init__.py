"""``device-move-copies``: copies run as seldom as the paths of a planned module allow.

Tensors are values, so a copy makes the same wherever it stands: copies are moved, merged and removed, the scopes
of computations stay as they are. Works on any module for which ``device-verify`` holds. Copies that users wrote
move like others. A path never gets more copies than it had, but for one: where a loop does not run at all, the
copies in front of it and behind it do, once each.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from devscope.analysis.manager import AnalysisManager, ManagedPass
from devscope.analysis.value_flow import CHOICES, LOOPS
from devscope.dialects.names import op_name
from devscope.passes.device_move_copies.carry import carry_copied
from devscope.passes.device_move_copies.copy_index import Outline
from devscope.passes.device_move_copies.hoist import hoist_copies
from devscope.passes.device_move_copies.join import join_copies, join_results, split_results
from devscope.passes.device_move_copies.merge import fold_chains, merge_copies
from devscope.passes.device_move_copies.sink import sink_copies


@dataclass(frozen=True)
class DeviceMoveCopiesPass(ManagedPass):
    """Share copies, sink them into the branches that need them, and take them out of loops."""

    name = "device-move-copies"

    def run(self, analyses: AnalysisManager) -> bool:
        return move_copies(analyses.module)


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
