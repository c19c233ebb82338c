"""How often a block runs per call of its function, and in which blocks a copy for a use may stand.

* loops run their body as often as their bounds say (`loops.trips`), else an assumed number of times;
* each branch of an ``scf.if`` runs half of the times, of an ``scf.index_switch`` the same share of them, and so
  for ``affine`` and ``stablehlo``;
* between blocks, a loop is left once in the assumed number of times; other successors are equally likely.
"""

from collections.abc import Mapping
from typing import Any

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, Region, SSAValue

from devscope.analysis.dominance import Dominators, DominatorTrees
from devscope.analysis.insertion import is_branch, region_in
from devscope.analysis.loops import trips


class Frequencies:
    """Frequencies and places of blocks. ``graphs`` are control-flow graphs that somebody made already."""

    def __init__(self, trip_count: int, graphs: Mapping[Region, Dominators] | None = None) -> None:
        self._assumed = trip_count
        self._graphs = DominatorTrees(graphs or {})
        self._blocks: dict[Block, float] = {}
        self._within: dict[Region, dict[Block, float]] = {}

    def of_block(self, block: Block) -> float:
        """How often ``block`` runs per call of the function around it."""
        frequency = self._blocks.get(block)
        if frequency is None:
            parent = block.parent_op()
            frequency = 1.0
            if parent is not None and parent.parent is not None and not isinstance(parent, FuncOp):
                frequency = self.of_block(parent.parent) * trips(parent, self._assumed)
            frequency = self._blocks[block] = frequency * self._share(block)
        return frequency

    def _share(self, block: Block) -> float:
        """How often ``block`` runs per run of its region."""
        region = block.parent
        if region is None or region.first_block is region.last_block:
            return 1.0
        found = self._within.get(region)
        if found is None:
            found = self._within[region] = block_frequencies(self._graphs[region], self._assumed)
        return found[block]

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
                places += self._graphs[start.parent].path(start, anchor.parent)
            if anchor is user or not is_branch(anchor):
                break
            start = region_in(anchor, user).blocks[0]
            places.append(start)
        return tuple(places)


def block_frequencies(graph: Dominators, assumed: int) -> dict[Block, float]:
    """How often each block of a region runs per run of the region: a Markov chain's expected visits."""
    import numpy as np
    from scipy.sparse import identity
    from scipy.sparse.linalg import splu

    number = {block: index for index, block in enumerate(graph.order)}
    count = len(number)
    flow: Any = identity(count, format="lil")
    for block, chance in _chances(graph, assumed):
        for successor, share in chance.items():
            flow[number[successor], number[block]] -= share
    entry = np.zeros(count)
    entry[0] = 1.0
    try:
        visits = splu(flow.tocsc()).solve(entry)
    except RuntimeError:  # Nothing leaves a loop with several entries: there is no answer.
        visits = np.full(count, np.nan)
    sane = bool(np.all(np.isfinite(visits))) and bool(np.all(visits > -1e-9))
    return {block: float(max(visits[index], 0.0)) if sane else 1.0 for block, index in number.items()}


def _chances(graph: Dominators, assumed: int) -> list[tuple[Block, dict[Block, float]]]:
    """Per block, how likely each of its successors is next."""
    loops = graph.loops
    left: set[Block] = set()
    found: list[tuple[Block, dict[Block, float]]] = []
    for block in graph.order:
        last = block.last_op
        successors = list(dict.fromkeys(last.successors)) if last is not None else []
        leaving = [s for s in successors if loops[block] - loops[s]]
        for successor in leaving:
            left |= loops[block] - loops[successor]
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
