"""How often a block runs per call of its function, and in which blocks a copy for a use may stand.

* counted loops (``scf.for``, ``scf.forall``, ``scf.parallel``, ``affine.for``, ``affine.parallel``) with constant
  bounds run their body as often as these say, all other loops an assumed number of times;
* each branch of an ``scf.if`` runs half of the times, of an ``scf.index_switch`` the same share of them, and so
  for ``affine`` and ``stablehlo``;
* between blocks, a loop is left once in the assumed number of times; other successors are equally likely.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, DenseArrayBase, IntegerAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineConstantExpr

from devscope.analysis.dominance import Dominators
from devscope.analysis.insertion import BRANCHES, region_in
from devscope.dialects.names import op_name

_DYNAMIC = -(2**63)
"""What MLIR writes for an index that an operand has."""


def trips(op: Operation, assumed: int) -> float:
    """How often one run of ``op`` runs each of its regions; a share of 1 for branches."""
    name = op_name(op)
    match name:
        case "scf.if" | "affine.if" | "stablehlo.if":
            return 0.5
        case "scf.index_switch" | "stablehlo.case":
            return 1.0 / len(op.regions)
        case "scf.while" | "stablehlo.while":
            return float(assumed)
        case "scf.for":
            return _steps([[_constant(value)] for value in op.operands[:3]], assumed)
        case "scf.parallel":
            rank = len(op.regions[0].blocks[0].args)
            bounds = [_constant(value) for value in op.operands[: 3 * rank]]
            return _steps([bounds[:rank], bounds[rank : 2 * rank], bounds[2 * rank :]], assumed)
        case "scf.forall":
            keys = ("staticLowerBound", "staticUpperBound", "staticStep")
            return _steps([_static(op, key) for key in keys], assumed)
        case "affine.for":
            return _affine_steps(op, ("lowerBoundMap", "upperBoundMap", "step"), assumed)
        case "affine.parallel":
            return _affine_steps(op, ("lowerBoundsMap", "upperBoundsMap", "steps"), assumed)
        case _:
            return 1.0


def _steps(bounds: Sequence[Sequence[int | None]], assumed: int) -> float:
    """The size of an iteration space, from lower and upper bounds and steps of all dimensions.

    ``assumed`` along dimensions that are not constant.
    """
    total = 1.0
    for first, last, stride in zip(*bounds, strict=True):
        if first is None or last is None or stride is None or stride <= 0:
            total *= assumed
        else:
            total *= max(math.ceil((last - first) / stride), 0)
    return total


def _constant(value: SSAValue) -> int | None:
    owner = value.owner
    if isinstance(owner, Operation) and op_name(owner) in ("arith.constant", "index.constant"):
        attribute = owner.get_attr_or_prop("value")
        return attribute.value.data if isinstance(attribute, IntegerAttr) else None
    return None


def _affine_steps(op: Operation, keys: tuple[str, str, str], assumed: int) -> float:
    """`_steps` of a loop whose bounds are maps. One that is the least or greatest of several counts as unknown."""
    strides = _static(op, keys[2])
    bounds: list[list[int | None]] = []
    for key in keys[:2]:
        attribute = op.get_attr_or_prop(key)
        results = attribute.data.results if isinstance(attribute, AffineMapAttr) else ()
        constants = [result.value if isinstance(result, AffineConstantExpr) else None for result in results]
        bounds.append(constants if len(constants) == len(strides) else [None] * len(strides))
    return _steps([*bounds, strides], assumed)


def _static(op: Operation, key: str) -> list[int | None]:
    attribute = op.get_attr_or_prop(key)
    if isinstance(attribute, IntegerAttr):
        return [attribute.value.data]
    if isinstance(attribute, ArrayAttr):
        return [one.value.data if isinstance(one, IntegerAttr) else None for one in attribute]
    if not isinstance(attribute, DenseArrayBase):
        return []
    values: Iterable[int] = attribute.get_values()
    return [None if value == _DYNAMIC else value for value in values]


class Frequencies:
    """Frequencies and places of blocks. ``graphs`` are control-flow graphs that somebody made already."""

    def __init__(self, trip_count: int, graphs: dict[Region, Dominators] | None = None) -> None:
        self._assumed = trip_count
        self._graphs = dict(graphs or {})
        self._blocks: dict[Block, float] = {}
        self._within: dict[Region, dict[Block, float]] = {}

    def of_block(self, block: Block) -> float:
        """How often ``block`` runs per call of the function around it."""
        chain: list[Block] = []
        current: Block | None = block
        while current is not None and current not in self._blocks:
            chain.append(current)
            parent = current.parent_op()
            current = parent.parent if parent is not None and op_name(parent) != "func.func" else None
        frequency = self._blocks[current] if current is not None else 1.0
        for inner in reversed(chain):
            parent = inner.parent_op()
            frequency *= trips(parent, self._assumed) if parent is not None else 1.0
            frequency *= self._share(inner)
            self._blocks[inner] = frequency
        return frequency

    def _share(self, block: Block) -> float:
        """How often ``block`` runs per run of its region."""
        region = block.parent
        if region is None or region.first_block is region.last_block:
            return 1.0
        found = self._within.get(region)
        if found is None:
            found = self._within[region] = block_frequencies(self._graph(region), self._assumed)
        return found[block]

    def _graph(self, region: Region) -> Dominators:
        found = self._graphs.get(region)
        if found is None:
            found = self._graphs[region] = Dominators(region)
        return found

    def places(self, value: SSAValue, user: Operation) -> tuple[Block, ...]:
        """The blocks in which a copy of ``value`` for ``user`` may stand, outermost first.

        From the block of the definition down the dominators and into branches, but into no loop: as
        `insertion.InsertionPoints` does.
        """
        owner = value.owner
        start = owner if isinstance(owner, Block) else owner.parent
        assert start is not None
        places = [start]
        while user.parent is not start:
            anchor = user
            while anchor.parent is not None and anchor.parent.parent is not start.parent:
                parent = anchor.parent.parent_op()
                assert parent is not None
                anchor = parent
            if anchor.parent is not start and anchor.parent is not None and start.parent is not None:
                places += self._graph(start.parent).path(start, anchor.parent)
            if anchor is user or op_name(anchor) not in BRANCHES:
                break
            start = region_in(anchor, user).blocks[0]
            places.append(start)
        return tuple(places)


def block_frequencies(graph: Dominators, assumed: int) -> dict[Block, float]:
    """How often each block of a region runs per run of the region: a Markov chain's expected visits."""
    import numpy as np
    from scipy.sparse import csc_array, identity
    from scipy.sparse.linalg import spsolve

    number = {block: index for index, block in enumerate(graph.order)}
    count = len(number)
    rows: list[int] = []
    columns: list[int] = []
    chances: list[float] = []
    for block, chance in _chances(graph, assumed):
        for successor, share in chance.items():
            rows.append(number[successor])
            columns.append(number[block])
            chances.append(share)
    flow: Any = identity(count, format="csc") - csc_array((chances, (rows, columns)), shape=(count, count))
    entry = np.zeros(count)
    entry[0] = 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Nothing leaves a loop with several entries: there is no answer.
        visits: Any = spsolve(flow, entry)
    sane = bool(np.all(np.isfinite(visits))) and bool(np.all(visits > -1e-9))
    return {block: float(max(visits[index], 0.0)) if sane else 1.0 for block, index in number.items()}


def _chances(graph: Dominators, assumed: int) -> list[tuple[Block, dict[Block, float]]]:
    """Per block, how likely each of its successors is next."""
    headers = [block for block in graph.order if graph.is_header(block)]
    loops = {block: [header for header in headers if graph.in_loop(header, block)] for block in graph.order}
    left: set[Block] = set()
    found: list[tuple[Block, dict[Block, float]]] = []
    for block in graph.order:
        last = block.last_op
        successors = list(dict.fromkeys(last.successors)) if last is not None else []
        leaving = [s for s in successors if any(header not in loops[s] for header in loops[block])]
        for successor in leaving:
            left.update(header for header in loops[block] if header not in loops[successor])
        staying = [s for s in successors if s not in leaving]
        leave = (1.0 / assumed if staying else 1.0) if leaving else 0.0
        chance = {s: leave / len(leaving) for s in leaving}
        chance.update({s: (1.0 - leave) / len(staying) for s in staying})
        found.append((block, chance))
    for block, chance in found:
        for successor in chance:
            if successor in loops[block] and successor not in left:
                # A loop that nothing leaves.
                chance[successor] *= 1.0 - 1.0 / max(assumed, 2)
    return found
