"""One copy of a value to a scope serves everything that it dominates."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Region, SSAValue

from devscope.analysis.dominance import Dominators
from devscope.dialects.device import DeviceCopyOp, ScopeAttr
from devscope.passes.device_move_copies.copy_index import Outline, is_single_block
from devscope.rewriting.copies import first_of_chain, there_and_back


def merge_copies(outline: Outline) -> bool:
    """Merge copies into those that dominate them, and use the original for what was copied there and back."""
    changed = False
    earlier = _Earlier()
    for copy in list(outline.copies):
        equal = there_and_back(copy) or earlier.result(copy)
        if equal is not None:
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
    """The copies seen so far, for values and scopes, by the blocks where they have run."""

    def __init__(self) -> None:
        self._seen: dict[tuple[SSAValue, ScopeAttr], dict[Block, DeviceCopyOp | None]] = {}
        """What has run in a block where the walk is, or None for nothing, as far as it was asked for."""
        self._graphs: dict[Region, Dominators] = {}

    def result(self, copy: DeviceCopyOp) -> SSAValue | None:
        """The result of an equal copy that has run whenever ``copy`` does, if one was seen."""
        here = copy.parent
        assert here is not None
        seen = self._seen.setdefault((copy.operand, copy.dst), {})
        if not seen:
            seen[here] = copy
            return None
        found: DeviceCopyOp | None = None
        path: list[tuple[Block, bool]] = []
        for block, is_over in self._before(here):
            if block in seen:
                found = seen[block]
                break
            path.append((block, is_over))
        # Remembered for each block on the way, so that long ways are gone once.
        seen.update((block, found) for block, is_over in path if found is not None or is_over)
        seen.setdefault(here, copy)
        return found.result if found is not None else None

    def _before(self, block: Block) -> Iterator[tuple[Block, bool]]:
        """``block`` and all that have run before, the nearest first; and whether the walk is through with them."""
        current: Block | None = block
        while current is not None:
            yield current, False
            region = current.parent
            if region is not None and not is_single_block(region):
                if region not in self._graphs:
                    self._graphs[region] = Dominators(region)
                dominators = self._graphs[region].dominators(current)
                yield from ((dominator, True) for dominator in islice(dominators, 1, None))
            parent = current.parent_op()
            current = None if parent is None or isinstance(parent, FuncOp) else parent.parent
