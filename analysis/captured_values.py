"""Values that operations with regions capture from outside, and users of values as operations of one block."""

from collections.abc import Callable, Iterable, Iterator

from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.region_utils import iter_used_values_defined_above

from devscope.analysis.value_kinds import HOST, kind_of


def free_values(op: Operation) -> list[SSAValue]:
    """Values that ``op`` and the operations nested in it use but do not define, in first-use order."""
    captured = (value for region in op.regions for value in iter_used_values_defined_above(region))
    return list(dict.fromkeys((*op.operands, *captured)))


def captured_uses(op: Operation) -> Iterator[tuple[Operation, int]]:
    """The operands inside the regions of ``op`` that use data from outside of it."""
    blocks = [block for region in op.regions for block in region.blocks]
    inside: set[Block] = set()
    uses: list[tuple[Operation, int]] = []
    while blocks:
        block = blocks.pop()
        inside.add(block)
        for inner in block.ops:
            blocks += (nested for region in inner.regions for nested in region.blocks)
            uses += ((inner, i) for i, value in enumerate(inner.operands) if kind_of(value.type) != HOST)
    for inner, index in uses:
        owner = inner.operands[index].owner
        if (owner if isinstance(owner, Block) else owner.parent) not in inside:
            yield inner, index


def users_in(block: Block, op: Operation) -> list[Operation | None]:
    """Operations of ``block`` that use a result of ``op``, nested uses included; None for uses elsewhere."""
    return [block.find_ancestor_op_in_block(use.operation) for result in op.results for use in result.uses]


def definitions_in(block: Block | None, op: Operation) -> list[Operation]:
    """Operations of ``block`` that make what ``op``, which stands in it, and the operations nested in it use."""
    owners = (value.owner for value in free_values(op))
    return [owner for owner in owners if isinstance(owner, Operation) and owner.parent is block]


def backward_slice(
    block: Block, ops: Iterable[Operation], follow: Callable[[Operation], bool] | None = None
) -> set[Operation]:
    """``ops``, which stand in ``block``, with what they need there, as far as ``follow`` holds."""
    found: set[Operation] = set()
    stack = list(ops)
    while stack:
        op = stack.pop()
        if op not in found:
            found.add(op)
            stack += (made for made in definitions_in(block, op) if follow is None or follow(made))
    return found
