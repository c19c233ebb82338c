"""How control flow carries values: from initial values, yields and branches to results and block arguments.

Annotations that constrain nothing pass their value on as well.

Everything is read off the module when it is asked for. Only the order of blocks and the origins of values are
remembered, until `ValueFlow.invalidate`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, BlockArgument, Operation, OpResult, Region, SSAValue

from devscope.analysis.dominance import reverse_post_order
from devscope.dialects.device import OnDeviceOp
from devscope.dialects.op_facts import ENDS, LOOPS, Control, facts_of


class ValueFlow:
    """Where the values come from that control flow carries."""

    def __init__(self) -> None:
        self._orders: dict[Region, dict[Block, int]] = {}
        self._origins: dict[SSAValue, SSAValue | None] = {}

    def invalidate(self) -> None:
        """Forget everything: control flow has changed."""
        self._orders.clear()
        self._origins.clear()

    def origin(self, value: SSAValue) -> SSAValue | None:
        """The first value that flows into ``value``, followed to one that an operation or a caller makes.

        First is what enters a loop, else what the first region yields or the first block passes, blocks taken
        in reverse post-order. Other values flow in, too: that they agree is for a verifier to check. None
        for arguments of unreachable blocks that only such arguments flow into.
        """
        path: dict[SSAValue, None] = {}
        found: SSAValue | None = None
        current = value
        while current not in path:
            if current in self._origins:
                found = self._origins[current]
                break
            following = next(self.sources(current), None)
            if following is None:
                found = current
                break
            path[current] = None
            current = following
        for step in path:
            self._origins[step] = found
        return found

    def sources(self, value: SSAValue) -> Iterator[SSAValue]:
        """All values that control flow carries into ``value``, in the order of `origin`; none for others."""
        if isinstance(value, OpResult):
            yield from self._result_sources(value.op, value.index)
        elif isinstance(value, BlockArgument) and (region := value.block.parent) is not None:
            if value.block is region.first_block:
                yield from self._entry_sources(region, value.index)
            else:
                yield from self._branch_sources(value.block, value.index)

    def _result_sources(self, op: Operation, index: int) -> Iterator[SSAValue]:
        known = facts_of(op)
        if known.control is Control.COUNTED:
            yield op.operands[first_carried(op) + index]
            yield from self._ends(op.regions[0], index)
        elif known.control is Control.WHILE and known.by_tensor:
            yield op.operands[index]
            yield from self._ends(op.regions[1], index)
        elif known.control is Control.WHILE:
            yield from self._ends(op.regions[0], index + 1)
        elif known.is_entered:
            for region in op.regions:
                yield from self._ends(region, index)
        elif isinstance(op, OnDeviceOp) and not constrains(op):
            yield op.operand

    def _entry_sources(self, region: Region, index: int) -> Iterator[SSAValue]:
        op = region.parent
        if op is None or (known := facts_of(op)).control not in LOOPS:
            return
        if known.control is Control.COUNTED:
            if index > 0:
                yield from self._result_sources(op, index - 1)
        elif known.by_tensor:
            yield from self._result_sources(op, index)
        elif region is op.regions[0]:
            yield op.operands[index]
            yield from self._ends(op.regions[1], index)
        else:
            yield from self._ends(op.regions[0], index + 1)

    def _branch_sources(self, block: Block, index: int) -> Iterator[SSAValue]:
        order = self._order(block.parent)
        branches = [
            (order[parent], use.index, use.operation)
            for use in block.uses
            if (parent := use.operation.parent) is not None and parent in order
        ]
        for _, successor, branch in sorted(branches, key=lambda entry: entry[:2]):
            yield branch.operands[first_operand(branch, successor) + index]

    def _ends(self, region: Region, index: int) -> Iterator[SSAValue]:
        """Operand ``index`` of every operation that leaves a region."""
        blocks = region.blocks if region.first_block is region.last_block else self._order(region)
        for block in blocks:
            last = block.last_op
            if last is None or last.successors or index >= len(last.operands):
                continue
            if facts_of(last).control in ENDS:
                yield last.operands[index]

    def _order(self, region: Region | None) -> dict[Block, int]:
        if region is None:
            return {}
        found = self._orders.get(region)
        if found is None:
            found = self._orders[region] = {block: n for n, block in enumerate(reverse_post_order(region))}
        return found


def first_carried(op: Operation) -> int:
    """The number of the first operand that a counted loop carries."""
    return len(op.operands) - len(op.results)


def decides(op: Operation) -> bool:
    """Whether the operand of ``op``, a tensor, decides which way control takes, and is read on the host."""
    known = facts_of(op)
    if known.control is Control.CHOICE:
        return known.by_tensor
    parent = op.parent_op()
    if parent is None or known.control is not Control.YIELD or op.parent_region() is not parent.regions[0]:
        return False
    return (around := facts_of(parent)).control is Control.WHILE and around.by_tensor


def constrains(op: OnDeviceOp) -> bool:
    """Whether an annotation says anything about where its value is."""
    return op.constrains_body or op.constrains_result


def first_operand(branch: Operation, successor: int) -> int:
    """The number of the operand that a branch passes as first argument to its successor of that number."""
    counts = [len(block.args) for block in branch.successors]
    return len(branch.operands) - sum(counts[successor:])


def targets(op: Operation) -> Iterator[tuple[int, SSAValue]]:
    """What the operands of a piece of control flow flow into: number of the operand, and result or argument."""
    known = facts_of(op)
    control = known.control
    parent = op.parent_op()
    if control is Control.COUNTED:
        yield from _pairs(first_carried(op), op.results)
        yield from _pairs(first_carried(op), _entry(op.regions[0])[1:])
    elif control is Control.WHILE and known.by_tensor:
        for values in (op.results, *map(_entry, op.regions)):
            yield from _pairs(0, values)
    elif control is Control.WHILE:
        yield from _pairs(0, _entry(op.regions[0]))
    elif control is Control.BRANCH:
        for number, block in enumerate(op.successors):
            yield from _pairs(first_operand(op, number), block.args)
    elif control is Control.CONDITION and parent is not None:
        yield from _pairs(1, parent.results)
        yield from _pairs(1, _entry(parent.regions[1]))
    elif control is Control.YIELD and parent is not None and not decides(op):
        yield from _yield_targets(parent)


def _yield_targets(parent: Operation) -> Iterator[tuple[int, SSAValue]]:
    known = facts_of(parent)
    if known.control is Control.WHILE and not known.by_tensor:
        yield from _pairs(0, _entry(parent.regions[0]))
    elif known.is_entered:
        yield from _pairs(0, parent.results)
        if known.control is Control.COUNTED:
            yield from _pairs(0, _entry(parent.regions[0])[1:])
        elif known.control is Control.WHILE:
            yield from _pairs(0, _entry(parent.regions[0]))
            yield from _pairs(0, _entry(parent.regions[1]))


def planned_operations(within: FuncOp | Region) -> Iterator[Operation]:
    """The operations of a body that have a scope of their own to be in, outer before inner.

    The bodies of computations are not entered: these run as one.
    """
    stack = [_in_order(within.body if isinstance(within, FuncOp) else within)]
    while stack:
        op = next(stack[-1], None)
        if op is None:
            stack.pop()
            continue
        yield op
        if facts_of(op).is_entered:
            stack += (_in_order(region) for region in reversed(op.regions))


def _in_order(region: Region) -> Iterator[Operation]:
    """The operations of a region, each after those that define its operands."""
    for block in reverse_post_order(region):
        yield from block.ops


def _pairs(first: int, values: Sequence[SSAValue]) -> Iterator[tuple[int, SSAValue]]:
    return enumerate(values, first)


def _entry(region: Region) -> Sequence[SSAValue]:
    return region.first_block.args if region.first_block is not None else ()
