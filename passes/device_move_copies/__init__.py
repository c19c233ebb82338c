"""``device-move-copies``: copies run as seldom as the paths of a planned module allow.

Tensors are values, so a copy makes the same wherever it stands: copies are moved, merged and removed, the scopes
of computations stay as they are. Works on any module for which ``device-verify`` holds. Copies that users wrote
move like others. A path never gets more copies than it had, but for one: where a loop does not run at all, the
copies in front of it and behind it do, once each.

The walk is this pass's own: xDSL's walker recurses where regions are inside each other, and goes through the
bodies of computations.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, SSAValue
from xdsl.rewriter import Rewriter

from devscope.analysis.dominance import DominatorTrees
from devscope.analysis.manager import AnalysisManager
from devscope.analysis.symbols import Symbols
from devscope.analysis.value_flow import planned_operations
from devscope.dialects.device import DeviceCopyOp, ScopeAttr
from devscope.dialects.op_facts import LOOPS, Control, facts_of
from devscope.passes.device_move_copies.branches import join_copies, move_result_copies, sink_copy
from devscope.passes.device_move_copies.loops import carry_copied, hoist_copies
from devscope.passes.device_verify import PlannedModulePass
from devscope.rewriting.copies import fold_copy


@dataclass(frozen=True)
class DeviceMoveCopiesPass(PlannedModulePass):
    """Share copies, sink them into the branches that need them, and take them out of loops."""

    name = "device-move-copies"
    preserved = frozenset({Symbols})

    def run(self, analyses: AnalysisManager) -> bool:
        return move_copies(analyses.module)


def move_copies(module: ModuleOp) -> bool:
    """Move the copies of a planned module in place, until none is left to move; whether there was any."""
    changed = False
    for function in module.body.block.ops:
        if isinstance(function, FuncOp) and function.body.blocks:
            # A round moves copies over any number of branches and loops. The next one sees what has become equal.
            while _round(function):
                changed = True
    return changed


def _round(function: FuncOp) -> bool:
    ops = list(planned_operations(function))
    copies = [op for op in ops if isinstance(op, DeviceCopyOp)]
    if not copies:
        return False
    changed = _merge(copies)
    for copy in copies:
        value = fold_copy(copy) if copy.parent is not None else None
        if value is not None:
            Rewriter.replace_op(copy, [], [value])
            changed = True
    # The last first: copies of copies come before what they copy, and all go to the start, in their order.
    for copy in reversed(copies):
        changed |= copy.parent is not None and sink_copy(copy)
    for op in reversed(ops):  # those inside others first
        control = facts_of(op).control if op.regions else None
        if control is Control.CHOICE:
            changed |= join_copies(op)
            changed |= move_result_copies(op)
        elif control in LOOPS:
            changed |= hoist_copies(op)
            changed |= carry_copied(op)
    return changed


def _merge(copies: list[DeviceCopyOp]) -> bool:
    """Merge copies, each after those that dominate it, into those; whether there were any."""
    changed = False
    seen: dict[tuple[SSAValue, ScopeAttr], dict[Block, DeviceCopyOp]] = {}
    graphs = DominatorTrees()
    for copy in copies:
        assert copy.parent is not None
        equal = seen.setdefault((copy.operand, copy.dst), {})
        dominating = _dominating(copy.parent, graphs) if equal else ()
        earlier = next((equal[block] for block in dominating if block in equal), None)
        if earlier is None:
            equal[copy.parent] = copy
        else:
            Rewriter.replace_op(copy, [], [earlier.result])
            changed = True
    return changed


def _dominating(block: Block | None, graphs: DominatorTrees) -> Iterator[Block]:
    """``block`` and all blocks that dominate it, those around it included, the nearest first."""
    while block is not None and (region := block.parent) is not None:
        yield from graphs[region].dominators(block)
        block = None if isinstance(region.parent, FuncOp) else block.parent_block()
