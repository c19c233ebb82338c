"""``device-overlap``: orders the host's code so that devices start early and the host waits late.

Runs on a split module. In every block of a host function, calls of device functions come as soon as what they need
is there, after them host work that other devices wait for, then what nobody waits for, and copies to the host,
which block, last. So the host works while devices do, and devices work at the same time. Tensors are values:
operations may stand in any order in which operands come first, if those with side effects keep theirs. What an
assertion comes before it may guard: an index that does not exist, or extents that differ, must not be met earlier.
"""

import heapq
from dataclasses import dataclass
from enum import IntEnum
from graphlib import TopologicalSorter
from itertools import pairwise

from xdsl.ir import Block, Operation

from devscope.analysis.assertions import asserts, may_be_guarded
from devscope.analysis.captured_values import definitions_in
from devscope.analysis.classify import (
    CONTROL_FLOW,
    executed_blocks,
    executed_operations,
    is_rematerialised,
    is_scalar_code,
    is_terminator,
)
from devscope.analysis.effects import has_side_effects
from devscope.analysis.manager import AnalysisManager
from devscope.analysis.split_functions import split_by_host
from devscope.analysis.symbols import Symbols, callee_name
from devscope.dialects.device import DeviceCopyOp, ScopeAttr
from devscope.dialects.names import op_name
from devscope.passes.device_verify_split import SplitModulePass
from devscope.rewriting.blocks import reorder


@dataclass(frozen=True)
class DeviceOverlapPass(SplitModulePass):
    """Let devices start early and the host wait late."""

    name = "device-overlap"
    preserved = frozenset({Symbols})

    host: str = "cpu:0"
    """The scope that host functions run on."""

    def run(self, analyses: AnalysisManager) -> bool:
        functions, on_devices = split_by_host(analyses)
        ranks = _Ranks(analyses.host, on_devices)
        blocks = [block for function in functions for block in executed_blocks(function)]
        return any([_order(block, ranks) for block in blocks])


class _Rank(IntEnum):
    """What runs first of what could run now."""

    LAUNCH = 0
    TO_DEVICE = 1
    SCALAR = 2
    FEEDS_DEVICE = 3
    HOST = 4
    TO_HOST = 5


@dataclass(frozen=True)
class _Ranks:
    host: ScopeAttr
    on_devices: set[str]

    def of(self, op: Operation, feeds_device: bool) -> _Rank:
        if self.launches(op):
            return _Rank.LAUNCH
        if isinstance(op, DeviceCopyOp):
            return _Rank.TO_HOST if op.dst.same_device(self.host) else _Rank.TO_DEVICE
        if is_scalar_code(op) or is_rematerialised(op):
            return _Rank.SCALAR
        return _Rank.FEEDS_DEVICE if feeds_device else _Rank.HOST

    def launches(self, op: Operation) -> bool:
        """Whether ``op`` itself is a call of a device function."""
        return callee_name(op) in self.on_devices

    def uses_device(self, op: Operation) -> bool:
        """Whether ``op`` gives a device something to do, itself or in its regions."""
        inner = op.walk() if op_name(op) in CONTROL_FLOW else (op,)
        return any(
            self.launches(i) or (isinstance(i, DeviceCopyOp) and not i.dst.same_device(self.host)) for i in inner
        )


def _order(block: Block, ranks: _Ranks) -> bool:
    """List scheduling: of the operations whose operands are there, the one of the best rank is next."""
    ops = [op for op in block.ops if not is_terminator(op)]
    if not any(isinstance(op, DeviceCopyOp) or ranks.uses_device(op) for op in ops):
        return False
    position = {op: number for number, op in enumerate(ops)}
    needs = {number: {position[made] for made in definitions_in(block, op)} for number, op in enumerate(ops)}
    for before, after in pairwise(number for number, op in enumerate(ops) if _keeps_its_place(op, ranks)):
        needs[after].add(before)
    guard: int | None = None
    for number, op in enumerate(ops):
        if guard is not None and may_be_guarded(op):
            needs[number].add(guard)
        if asserts(op):
            guard = number
    feeding: set[int] = set()
    """What is work for a device, or some such work waits for."""
    for number in reversed(range(len(ops))):
        if number in feeding or ranks.uses_device(ops[number]):
            feeding |= {number, *needs[number]}
    rank = [ranks.of(op, number in feeding) for number, op in enumerate(ops)]
    waiting = TopologicalSorter(needs)
    waiting.prepare()
    ready: list[tuple[_Rank, int]] = []
    order: list[int] = []
    while waiting.is_active():
        for number in waiting.get_ready():
            heapq.heappush(ready, (rank[number], number))
        _, number = heapq.heappop(ready)
        order.append(number)
        waiting.done(number)
    if order == sorted(order):
        return False
    reorder(block, [ops[number] for number in order])
    return True


def _keeps_its_place(op: Operation, ranks: _Ranks) -> bool:
    if op_name(op) in CONTROL_FLOW:
        return any(_keeps_its_place(i, ranks) for i in executed_operations(op) if op_name(i) not in CONTROL_FLOW)
    return not ranks.launches(op) and has_side_effects(op)
