"""How control flow carries values: from initial values, yields and branches to results and block arguments.

Annotations that constrain nothing pass their value on as well.

Everything is read off the module when it is asked for. Only the order of blocks and the origins of values are
remembered, until `ValueFlow.invalidate`.
"""

from collections.abc import Iterator

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, BlockArgument, Operation, OpResult, Region, SSAValue

from devscope.analysis.dominance import reverse_post_order
from devscope.dialects.device import OnDeviceOp
from devscope.dialects.op_facts import ENDS, Control, facts_of

_Flow = tuple[int, "Operation | Block | None", int]
"""The number of an operand, whose results or arguments that operand and those after it flow into, and how many of
these are left out."""


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
        assert isinstance(value, OpResult | BlockArgument)
        taker, index = value.owner, value.index
        if isinstance(taker, Block) and taker.parent is not None and taker is not taker.parent.first_block:
            yield from self._branch_sources(taker, index)
            return
        around = taker.parent_op() if isinstance(taker, Block) else taker
        if isinstance(around, OnDeviceOp) and not constrains(around):
            yield around.operand
        if around is None or not facts_of(around).is_entered:
            return
        for op in (around, *self._ends(around)):
            for first, into, skipped in _flows(op):
                if into is taker and 0 <= index - skipped < len(op.operands) - first:
                    yield op.operands[first + index - skipped]

    def _branch_sources(self, block: Block, index: int) -> Iterator[SSAValue]:
        order = self._order(block.parent)
        branches = [
            (order[parent], use.index, use.operation)
            for use in block.uses
            if (parent := use.operation.parent) is not None and parent in order
        ]
        for _, successor, branch in sorted(branches, key=lambda entry: entry[:2]):
            yield branch.operands[first_operand(branch, successor) + index]

    def _ends(self, op: Operation) -> Iterator[Operation]:
        """The operations that leave the regions of ``op``."""
        for region in op.regions:
            for block in region.blocks if region.first_block is region.last_block else self._order(region):
                last = block.last_op
                if last is not None and not last.successors and facts_of(last).control in ENDS:
                    yield last

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
    for first, into, skipped in _flows(op):
        if into is not None:
            yield from enumerate((into.args if isinstance(into, Block) else into.results)[skipped:], first)


def _flows(op: Operation) -> Iterator[_Flow]:
    known = facts_of(op)
    control = known.control
    parent = op.parent_op()
    if control is Control.COUNTED:
        yield first_carried(op), op, 0
        yield first_carried(op), op.regions[0].first_block, 1
    elif control is Control.WHILE and known.by_tensor:
        yield 0, op, 0
        yield from ((0, region.first_block, 0) for region in op.regions)
    elif control is Control.WHILE:
        yield 0, op.regions[0].first_block, 0
    elif control is Control.BRANCH:
        for number, block in enumerate(op.successors):
            yield first_operand(op, number), block, 0
    elif control is Control.CONDITION and parent is not None:
        yield 1, parent, 0
        yield 1, parent.regions[1].first_block, 0
    elif control is Control.YIELD and parent is not None and not decides(op):
        yield from _yield_flows(parent)


def _yield_flows(parent: Operation) -> Iterator[_Flow]:
    known = facts_of(parent)
    if known.control is Control.WHILE:
        yield from _flows(parent)
    elif known.is_entered:
        yield 0, parent, 0
        if known.control is Control.COUNTED:
            yield 0, parent.regions[0].first_block, 1


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
