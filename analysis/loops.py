"""Loops, of operations and of blocks: which one an operation stands in, how deep, and how often they run."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from xdsl.dialects.builtin import DYNAMIC_INDEX, AffineMapAttr, ArrayAttr, DenseArrayBase, IntegerAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineConstantExpr

from devscope.analysis.dominance import Dominators
from devscope.dialects.names import op_name
from devscope.dialects.op_facts import LOOPS, Control, facts_of


class Loop(NamedTuple):
    """A loop operation, or a loop of blocks, which its header stands for."""

    start: Operation | Block
    blocks: Sequence[Block]
    """The blocks inside, without those in regions of their operations."""
    entries: Sequence[Block]
    """Those whose arguments are what it carries from one iteration to the next."""

    @property
    def first(self) -> Operation | None:
        """The operation that stands for the loop in messages."""
        return self.start if isinstance(self.start, Operation) else self.start.first_op

    def operations(self) -> Iterator[Operation]:
        """Everything inside."""
        return (op for block in self.blocks for op in block.walk())

    def carried(self) -> Sequence[SSAValue]:
        """What it carries from one iteration to the next."""
        return [argument for block in self.entries for argument in block.args]


class LoopNest:
    """Loop depths of the blocks of one module. ``graphs`` has the control flow of regions of several blocks."""

    def __init__(self, graphs: Mapping[Region, Dominators]) -> None:
        self._graphs = graphs
        self._depths: dict[Block, int] = {}

    def of_copy(self, value: SSAValue, user: Operation) -> int:
        """In how many loops a copy of ``value`` for ``user`` stands: in those that hold both."""
        owner = value.owner
        block = owner if isinstance(owner, Block) else owner.parent
        if block is None:
            return 0
        depth = self.of_block(block)
        region = block.parent
        if region is None or (graph := self._graphs.get(region)) is None:
            return depth
        inside = region.find_ancestor_block_in_region(user.parent) if user.parent is not None else None
        own = graph.loops[block]
        return depth if inside is None else depth - len(own - graph.loops[inside])

    def of_op(self, op: Operation) -> int:
        """How many loops an operation stands in."""
        return self.of_block(op.parent) if op.parent is not None else 0

    def of_block(self, block: Block) -> int:
        """How many loops ``block`` stands in."""
        depth = self._depths.get(block)
        if depth is None:
            parent = block.parent_op()
            depth = int(parent is not None and facts_of(parent).control in LOOPS)
            if block.parent is not None and (graph := self._graphs.get(block.parent)) is not None:
                depth += len(graph.loops[block])
            depth += self.of_op(parent) if parent is not None else 0
            self._depths[block] = depth
        return depth


def innermost_loop(op: Operation, graphs: Mapping[Region, Dominators]) -> Loop | None:
    block = op.parent
    while block is not None and (region := block.parent) is not None:
        loops = graphs[region].loops if region in graphs else {}
        if around := loops.get(block):
            # The header of an inner loop is in more loops than that of an outer one.
            header = max((found for found in loops if found in around), key=lambda found: len(loops[found]))
            return Loop(header, [inside for inside in loops if header in loops[inside]], [header])
        parent = region.parent
        if parent is None:
            return None
        if facts_of(parent).control in LOOPS:
            inner = [inside for other in parent.regions for inside in other.blocks]
            return Loop(parent, inner, [other.blocks[0] for other in parent.regions])
        block = parent.parent
    return None


def trips(op: Operation, assumed: int) -> float:
    """How often one run of ``op`` runs each of its regions; a share of 1 for branches.

    ``assumed`` is how often a while loop runs, and a counted one along dimensions whose bounds are not constant.
    """
    control = facts_of(op).control
    if control is Control.CHOICE:
        return 1.0 / len(op.regions)
    if control is Control.WHILE:
        return float(assumed)
    return float(math.prod(assumed if count is None else count for count in _dimensions(op)))


def trip_count(op: Operation) -> int | None:
    """The iterations of a counted loop with constant bounds; None for all else."""
    counts = [count for count in _dimensions(op) if count is not None]
    return math.prod(counts) if counts and len(counts) == len(_dimensions(op)) else None


def _dimensions(op: Operation) -> list[int | None]:
    """The extents of a counted loop's iteration space, None where bounds or step are not constant."""
    match op_name(op):
        case "scf.for":
            return _extents([[constant_index(value)] for value in op.operands[:3]])
        case "scf.parallel":
            rank = len(op.regions[0].blocks[0].args)
            bounds = [constant_index(value) for value in op.operands[: 3 * rank]]
            return _extents([bounds[:rank], bounds[rank : 2 * rank], bounds[2 * rank :]])
        case "scf.forall":
            return _extents(
                [static_integers(op, key) for key in ("staticLowerBound", "staticUpperBound", "staticStep")]
            )
        case "affine.for":
            return _affine_extents(op, ("lowerBoundMap", "upperBoundMap", "step"))
        case "affine.parallel":
            return _affine_extents(op, ("lowerBoundsMap", "upperBoundsMap", "steps"))
        case _:
            return []


def _extents(bounds: Sequence[Sequence[int | None]]) -> list[int | None]:
    """From lower and upper bounds and steps of all dimensions."""
    return [
        None
        if first is None or last is None or stride is None or stride <= 0
        else max(-((first - last) // stride), 0)
        for first, last, stride in zip(*bounds, strict=True)
    ]


def constant_index(value: SSAValue) -> int | None:
    """The value of an integer constant."""
    owner = value.owner
    if isinstance(owner, Operation) and op_name(owner) in ("arith.constant", "index.constant"):
        attribute = owner.get_attr_or_prop("value")
        return attribute.value.data if isinstance(attribute, IntegerAttr) else None
    return None


def _affine_extents(op: Operation, keys: tuple[str, str, str]) -> list[int | None]:
    """`_extents` of a loop whose bounds are maps. The least or greatest of several is not known."""
    strides = static_integers(op, keys[2])
    bounds: list[list[int | None]] = []
    for key in keys[:2]:
        attribute = op.get_attr_or_prop(key)
        results = attribute.data.results if isinstance(attribute, AffineMapAttr) else ()
        constants = [result.value if isinstance(result, AffineConstantExpr) else None for result in results]
        bounds.append(constants if len(constants) == len(strides) else [None] * len(strides))
    return _extents([*bounds, strides])


def static_integers(op: Operation, key: str) -> list[int | None]:
    """The integers in an attribute, None for those that an operand has."""
    attribute = op.get_attr_or_prop(key)
    if isinstance(attribute, IntegerAttr):
        return [attribute.value.data]
    if isinstance(attribute, ArrayAttr):
        return [one.value.data if isinstance(one, IntegerAttr) else None for one in attribute]
    if not isinstance(attribute, DenseArrayBase):
        return []
    values: Iterable[int] = attribute.get_values()
    return [None if value == DYNAMIC_INDEX else value for value in values]
