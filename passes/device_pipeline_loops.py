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

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import Rewriter

from devscope.analysis.captured_values import backward_slice, free_values
from devscope.analysis.classify import is_rematerialised, is_scalar_code
from devscope.analysis.effects import has_side_effects
from devscope.analysis.loops import constant_index, trip_count
from devscope.analysis.manager import AnalysisManager
from devscope.analysis.split_functions import split_by_host
from devscope.analysis.symbols import Symbols, callee_name
from devscope.dialects.device import DeviceCopyOp, ScopeAttr
from devscope.dialects.names import op_name
from devscope.dialects.op_facts import facts_of
from devscope.passes.device_verify_split import SplitModulePass

_BOUNDS = 3
"""The operands of ``scf.for`` start with its bounds and its step."""


@dataclass(frozen=True)
class DevicePipelineLoopsPass(SplitModulePass):
    """Begin the device's work of a loop's next iteration before waiting for this one's."""

    name = "device-pipeline-loops"
    preserved = frozenset({Symbols})

    host: str = "cpu:0"
    """The scope that host functions run on."""

    def run(self, analyses: AnalysisManager) -> bool:
        """Pipeline the loops of the host functions of a split module, where that is legal and of use."""
        functions, on_devices = split_by_host(analyses)
        pipelined: list[Block] = []
        loops = [op for function in functions for op in function.walk() if op_name(op) == "scf.for"]
        for loop in reversed(loops):  # those inside others first
            block = loop.parent
            if block is None or not _may_repeat(loop) or any(loop.is_ancestor(inner) for inner in pipelined):
                continue
            begin = _begin(loop, analyses.host, on_devices)
            if begin and not (new := _PipelinedLoop(loop, begin)).carries_host_data:
                new.build()
                pipelined.append(block)
        return bool(pipelined)


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


def _begin(loop: Operation, host: ScopeAttr, on_devices: set[str]) -> set[Operation]:
    """The operations of ``begin``: calls of device functions, and what they need; none if the loop stays."""
    body = loop.regions[0].block
    begin = backward_slice(body, (op for op in body.ops if callee_name(op) in on_devices))
    waits = any(isinstance(op, DeviceCopyOp) and op.dst.same_device(host) for op in loop.walk())
    carried = set(body.args[1:])
    if (
        not waits
        or any(_needs_order(op, host, on_devices) for op in begin)
        or any(value in carried for op in begin for value in free_values(op))
    ):
        return set()
    return begin


def _needs_order(op: Operation, host: ScopeAttr, on_devices: set[str]) -> bool:
    """Whether ``op`` has side effects, or waits for a device, which would end the overlap."""
    if callee_name(op) in on_devices or is_rematerialised(op):
        return False
    if isinstance(op, DeviceCopyOp):
        return op.dst.same_device(host)
    return (bool(op.regions) and op_name(op).startswith("scf.")) or has_side_effects(op)


class _PipelinedLoop:
    """``begin(first); for i, but the last: { begin(i + step); end(i) }; end(last)``, yet to be built."""

    def __init__(self, loop: Operation, begin: set[Operation]) -> None:
        self._loop = loop
        self._body = loop.regions[0].block
        *ops, self._yield = self._body.ops
        self._begin = [op for op in ops if op in begin]
        users = [op for op in (*ops, self._yield) if op not in begin]
        repeated = backward_slice(self._body, users, lambda op: op in begin and _is_cheap(op))
        again = [op for op in self._begin if op in repeated]
        self._end = [*again, *users[:-1]]
        used = (value for op in (*users, *again) for value in free_values(op))
        self._results = list(dict.fromkeys(v for v in used if v.owner in begin and v.owner not in repeated))
        """What the second half needs of the first, and does not do again."""

    @property
    def carries_host_data(self) -> bool:
        """Whether the second half needs tensors of the host that the first makes: carrying them takes copies."""
        makers = [op for result in self._results if isinstance(op := result.owner, Operation)]
        return not all(callee_name(op) is not None or isinstance(op, DeviceCopyOp) for op in makers)

    def build(self) -> None:
        """Replace the loop; constant bounds must give two iterations or more."""
        from xdsl.dialects import arith  # programs without such loops do without it

        first, end, step = (constant_index(value) for value in self._loop.operands[:_BOUNDS])
        if first is None or end is None or step is None:
            self._build_in_a_loop()
            return
        last = arith.ConstantOp(self._number(first + (end - first - 1) // step * step))
        last.location = self._loop.location
        ops, results = self._in_order(last.result, self._loop.operands[_BOUNDS:])
        Rewriter.replace_op(self._loop, [last, *ops], results)

    def _build_in_a_loop(self) -> None:
        """As bounds are known at run time only: nothing is begun unless there is an iteration.

        The condition is a loop of at most one iteration, for bufferisation's sake: were the initial values what
        the other branch of an ``scf.if`` yields, it would copy those that iterations do not update in place.
        """
        from xdsl.dialects import arith

        first, end, step = self._loop.operands[:_BOUNDS]
        zero, one = (arith.ConstantOp(self._number(value)) for value in (0, 1))
        runs = arith.CmpiOp(first, end, "slt")
        times = arith.SelectOp(runs, one, zero)
        inits = self._loop.operands[_BOUNDS:]
        block = Block(arg_types=[first.type, *[value.type for value in inits]])
        # Unsigned and modulo 2^n, the distance is right for all bounds that are in order.
        distance = arith.SubiOp(end, first)
        before = arith.SubiOp(distance, one)
        count = arith.DivUIOp(before, step)
        ahead = arith.MuliOp(count, step)
        last = arith.AddiOp(first, ahead)
        ops, results = self._in_order(last.result, block.args[1:])
        block.add_ops([distance, before, count, ahead, last, *ops, _like(self._yield, results)])
        once = _like(self._loop, [zero.result, times.result, one.result, *inits], block)
        for op in (zero, one, runs, times, distance, before, count, ahead, last):
            op.location = self._loop.location
        Rewriter.replace_op(self._loop, [zero, one, runs, times, once], list(once.results))

    def _number(self, value: int) -> IntegerAttr:
        """A constant of the type of the loop's bounds."""
        type_ = self._loop.operands[0].type
        assert isinstance(type_, IndexType | IntegerType)
        return IntegerAttr(value, type_)

    def _in_order(self, last: SSAValue, inits: Sequence[SSAValue]) -> tuple[list[Operation], list[SSAValue]]:
        """What the loop does if it runs up to ``last``: operations, and the values that replace its results."""
        first, _, step = self._loop.operands[:_BOUNDS]
        ahead: dict[SSAValue, SSAValue] = {self._body.args[0]: first}
        before = [op.clone(ahead) for op in self._begin]
        begun = [ahead[result] for result in self._results]
        loop = _like(self._loop, [first, last, step, *inits, *begun], self._new_body(step))
        after, left = self._finish([last, *loop.results])
        return [*before, loop, *after], left

    def _new_body(self, step: SSAValue) -> Block:
        from xdsl.dialects import arith

        block = Block(arg_types=[*self._body.arg_types, *[result.type for result in self._results]])
        index = arith.AddiOp(block.args[0], step)
        index.location = self._loop.location
        ahead: dict[SSAValue, SSAValue] = {self._body.args[0]: index.result}
        block.add_ops([index, *[op.clone(ahead) for op in self._begin]])
        now, left = self._finish(block.args)
        block.add_ops([*now, _like(self._yield, [*left, *[ahead[result] for result in self._results]])])
        return block

    def _finish(self, state: Iterable[SSAValue]) -> tuple[list[Operation], list[SSAValue]]:
        """The second half of an iteration, on its index, what it carries, and what its first half made; and what
        it leaves."""
        mapping: dict[SSAValue, SSAValue] = dict(zip((*self._body.args, *self._results), state, strict=True))
        return [op.clone(mapping) for op in self._end], [mapping.get(v, v) for v in self._yield.operands]


def _is_cheap(op: Operation) -> bool:
    """Whether it is better done again in the second half than carried."""
    return is_scalar_code(op) or is_rematerialised(op) or facts_of(op).view_of is not None


def _like(op: Operation, operands: list[SSAValue], body: Block | None = None) -> Operation:
    """``op`` on other operands, with another body; a loop's results have the types of what it carries."""
    return type(op).create(
        operands=operands,
        result_types=[] if body is None else [v.type for v in operands[_BOUNDS:]],
        attributes=dict(op.attributes),
        properties=dict(op.properties),
        regions=[] if body is None else [Region(body)],
        location=op.location,
    )
