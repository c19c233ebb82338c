"""One copy of a value to a scope serves everything that it dominates."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Region, SSAValue

from devscope.dialects.device import DeviceCopyOp, ScopeAttr
from devscope.passes.copies import first_of_chain, there_and_back
from devscope.passes.copy_motion.outline import Outline, is_single_block
from devscope.passes.plan.blocks import Dominators


def merge_copies(outline: Outline) -> bool:
    """Merge copies into those that dominate them, and use the original for what was copied there and back."""
    changed = False
    earlier = _Earlier()
    for copy in list(outline.copies):
        equal = there_and_back(copy) or earlier.result(copy)
        if equal is None:
            earlier.add(copy)
        else:
            outline.replace(copy, equal)
            changed = True
    return changed


def fold_chains(outline: Outline) -> bool:
    """Copy directly what is copied over a scope where nothing else uses it: where the first copy stands."""
    changed = False
    for copy in list(outline.copies):
        first = first_of_chain(copy)
        if first is not None:
            first.dst = copy.dst
            outline.replace(copy, first.result)
            changed = True
    return changed


class _Earlier:
    """The first copy of each value to each scope in each block, of the blocks and parts of blocks seen so far."""

    def __init__(self) -> None:
        self._first: dict[tuple[SSAValue, ScopeAttr], dict[Block, DeviceCopyOp]] = {}
        self._graphs: dict[Region, Dominators] = {}

    def add(self, copy: DeviceCopyOp) -> None:
        assert copy.parent is not None
        self._first.setdefault((copy.operand, copy.dst), {})[copy.parent] = copy

    def result(self, copy: DeviceCopyOp) -> SSAValue | None:
        """The result of a copy of the same to the same scope that has run whenever ``copy`` does."""
        equal = self._first.get((copy.operand, copy.dst))
        if equal is None or copy.parent is None:
            return None
        return next((equal[block].result for block in self._dominators(copy.parent) if block in equal), None)

    def _dominators(self, block: Block) -> Iterator[Block]:
        """``block`` and all others whose operations, as far as they were seen, have run before."""
        current: Block | None = block
        while current is not None:
            region = current.parent
            if region is None or is_single_block(region):
                yield current
            else:
                if region not in self._graphs:
                    self._graphs[region] = Dominators(region)
                yield from self._graphs[region].dominators(current)
            parent = current.parent_op()
            current = None if parent is None or isinstance(parent, FuncOp) else parent.parent
