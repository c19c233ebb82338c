"""The copies of a function and the control flow around them, kept up to date while copies move."""

from __future__ import annotations

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, Region, SSAValue

from devscope.analysis.value_flow import ENTERED, planned_operations
from devscope.dialects.device import DeviceCopyOp
from devscope.dialects.names import op_name


class Outline:
    """The copies of one function, and its control flow. Only copies may be moved, made or erased."""

    def __init__(self, function: FuncOp) -> None:
        self.copies: dict[DeviceCopyOp, None] = {}
        """Each after those that dominate it, as long as nothing was moved."""
        self.nests: list[Operation] = []
        """Control flow that has regions, outer before inner."""
        self._in_block: dict[Block, dict[DeviceCopyOp, None]] = {}
        for op in planned_operations(function):
            if isinstance(op, DeviceCopyOp):
                self._add(op)
            elif op.regions and op_name(op) in ENTERED:
                self.nests.append(op)

    def in_block(self, block: Block) -> list[DeviceCopyOp]:
        """The copies that stand in a block itself."""
        return list(self._in_block.get(block, ()))

    def make(self, copy: DeviceCopyOp, like: Operation, before: Operation) -> SSAValue:
        """Put a new copy, located where ``like`` is, in front of an operation; its result."""
        copy.location = like.location
        self._insert(copy, before)
        return copy.result

    def move(self, copy: DeviceCopyOp, before: Operation) -> None:
        """Put a copy in front of an operation."""
        self._remove(copy)
        copy.detach()
        self._insert(copy, before)

    def replace(self, copy: DeviceCopyOp, value: SSAValue) -> None:
        """Erase a copy, in place of whose result ``value`` is used."""
        self._remove(copy)
        copy.result.replace_all_uses_with(value)
        copy.detach()
        copy.erase()

    def erase(self, copy: DeviceCopyOp) -> None:
        """Erase a copy that nobody uses."""
        self._remove(copy)
        copy.detach()
        copy.erase()

    def _insert(self, copy: DeviceCopyOp, before: Operation) -> None:
        assert before.parent is not None
        before.parent.insert_op_before(copy, before)
        self._add(copy)

    def _add(self, copy: DeviceCopyOp) -> None:
        assert copy.parent is not None
        self.copies[copy] = None
        self._in_block.setdefault(copy.parent, {})[copy] = None

    def _remove(self, copy: DeviceCopyOp) -> None:
        assert copy.parent is not None
        del self.copies[copy]
        del self._in_block[copy.parent][copy]


def is_inside(value: SSAValue, op: Operation) -> bool:
    """Whether a value is defined in a region of ``op``."""
    owner = value.owner
    around = owner if isinstance(owner, Operation) else owner.parent_op()
    if around is op:
        return not isinstance(owner, Operation)
    return around is not None and op.is_ancestor(around)


def is_single_block(region: Region) -> bool:
    return region.first_block is not None and region.first_block is region.last_block
