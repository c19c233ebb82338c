"""``device-pipeline-loops``: a loop begins the device's work of its next iteration before it waits for this one's.

Runs on a split module. A loop of the host that copies in, computes on a device and copies out::

    for i: begin(i); end(i)                 begin: copies in, calls of device functions; end: copies out, the rest

becomes, with the device's results carried from one iteration to the next::

    begin(first); for i, but the last: { begin(i + step); end(i) }; end(last)

so that the host copies and works on one iteration while the device computes another. Legal where ``begin`` uses
nothing that earlier iterations made and has no side effects; of loops inside each other, the innermost that this
fits changes. Where bounds are known at run time only, all of it stands in a loop of at most one iteration, so that
nothing begins where there is nothing to do. It takes the memory of one more iteration's device data.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.dialects.builtin import IndexType, IntegerType
from xdsl.ir import Block, Operation

from devscope.analysis.captured_values import definitions_in, free_values
from devscope.analysis.classify import is_rematerialised
from devscope.analysis.effects import has_side_effects
from devscope.analysis.loops import constant_index, trip_count
from devscope.analysis.manager import AnalysisManager, ManagedPass
from devscope.analysis.split_functions import split_by_host
from devscope.analysis.symbols import Symbols, callee_name
from devscope.dialects.device import DeviceCopyOp, ScopeAttr
from devscope.dialects.names import op_name
from devscope.passes.device_pipeline_loops.pipelined_loop import PipelinedLoop


@dataclass(frozen=True)
class DevicePipelineLoopsPass(ManagedPass):
    """Begin the device's work of a loop's next iteration before waiting for this one's."""

    name = "device-pipeline-loops"
    preserved = frozenset({Symbols})

    host: str = "cpu:0"
    """The scope that host functions run on."""

    def run(self, analyses: AnalysisManager) -> bool:
        """Pipeline the loops of the host functions of a split module, where that is legal and of use."""
        functions, on_devices = split_by_host(analyses)
        pipelined: list[Block] = []
        loops = [op for f in functions if on_devices for op in f.walk() if op_name(op) == "scf.for"]
        for loop in reversed(loops):  # those inside others first
            block = loop.parent
            if any(loop.is_ancestor(inner) for inner in pipelined):
                continue
            if _pipeline(loop, analyses.host, on_devices):
                pipelined += [block] if block is not None else []
        return bool(pipelined)


def _pipeline(loop: Operation, host: ScopeAttr, on_devices: set[str]) -> bool:
    halves = _split(loop, host, on_devices)
    pipelined = None if halves is None else PipelinedLoop(loop, *halves)
    if pipelined is None or pipelined.carries_host_data:
        return False
    pipelined.build()
    return True


def _split(
    loop: Operation, host: ScopeAttr, on_devices: set[str]
) -> tuple[list[Operation], list[Operation]] | None:
    """The operations of ``begin`` and ``end``, in order; None if the loop stays as it is."""
    if not _may_repeat(loop):
        return None
    body = loop.regions[0].block
    ops = [op for op in body.ops if op is not body.last_op]
    launches = [op for op in ops if callee_name(op) in on_devices]
    waits = any(isinstance(op, DeviceCopyOp) and op.dst.same_device(host) for op in loop.walk())
    if not launches or not waits:
        return None
    begin = _with_definitions(launches, body)
    if any(_needs_order(op, host, on_devices) for op in begin):
        return None
    carried = set(body.args[1:])
    if any(value in carried for op in begin for value in free_values(op)):
        return None
    return [op for op in ops if op in begin], [op for op in ops if op not in begin]


def _may_repeat(loop: Operation) -> bool:
    """Whether a loop may have two iterations, as far as its bounds tell, which are to be signed."""
    if "unsignedCmp" in loop.attributes or "unsignedCmp" in loop.properties:
        return False
    if not isinstance(loop.regions[0].block.args[0].type, IndexType | IntegerType):
        return False
    step = constant_index(loop.operands[2])
    if step is not None and step <= 0:
        return False
    count = trip_count(loop)
    return count is None or count > 1


def _with_definitions(ops: Iterable[Operation], body: Block) -> set[Operation]:
    """``ops`` and what they need, in the body of a loop."""
    found: set[Operation] = set()
    stack = list(ops)
    while stack:
        op = stack.pop()
        if op not in found:
            found.add(op)
            stack += definitions_in(body, op)
    return found


def _needs_order(op: Operation, host: ScopeAttr, on_devices: set[str]) -> bool:
    """Whether ``op`` has side effects, or waits for a device, which would end the overlap."""
    if callee_name(op) in on_devices or is_rematerialised(op):
        return False
    if isinstance(op, DeviceCopyOp):
        return op.dst.same_device(host)
    return (bool(op.regions) and op_name(op).startswith("scf.")) or has_side_effects(op)
