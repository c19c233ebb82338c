"""A loop in two halves, the first of which runs an iteration ahead. `device_pipeline_loops` says which and why."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import Rewriter

from devscope.analysis.captured_values import free_values
from devscope.analysis.classify import is_rematerialised, is_scalar_code
from devscope.analysis.loops import constant_index
from devscope.analysis.symbols import callee_name
from devscope.dialects.device import DeviceCopyOp
from devscope.dialects.names import op_name

_BOUNDS = 3
"""The operands of ``scf.for`` start with its bounds and its step."""

#: Cheap enough to be done again in the second half instead of being carried.
_REPEATED = frozenset({"tensor.extract_slice", "tensor.empty"})


class PipelinedLoop:
    """``begin(first); for i, but the last: { begin(i + step); end(i) }; end(last)``, yet to be built."""

    def __init__(self, loop: Operation, begin: list[Operation], end: list[Operation]) -> None:
        self._loop, self._begin, self._end = loop, begin, end
        self._body = loop.regions[0].block
        yield_ = self._body.last_op
        assert yield_ is not None
        self._yield = yield_
        repeated = _repeated(begin, [*end, yield_])
        self._again = [op for op in begin if op in repeated]
        self._results = _results(begin, [*end, yield_], repeated)

    @property
    def carries_host_data(self) -> bool:
        """Whether the second half needs tensors of the host that the first makes: carrying them takes copies."""
        owners = [result.owner for result in self._results]
        return any(isinstance(op, Operation) and not _is_from_device(op) for op in owners)

    def build(self) -> None:
        """Replace the loop; constant bounds must give two iterations or more."""
        from xdsl.dialects import arith  # programs without such loops do without it

        bounds = constant_bounds(self._loop)
        if bounds is None:
            self._build_in_a_loop()
            return
        first, end, step = bounds
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
        before = _clones(self._begin, ahead)
        begun = [ahead[result] for result in self._results]
        loop = _like(self._loop, [first, last, step, *inits, *begun], self._new_body(step))
        after, mapping = self._finish([last, *loop.results])
        return [*before, loop, *after], [mapping.get(v, v) for v in self._yield.operands]

    def _new_body(self, step: SSAValue) -> Block:
        from xdsl.dialects import arith

        block = Block(arg_types=[*self._body.arg_types, *[result.type for result in self._results]])
        index = arith.AddiOp(block.args[0], step)
        index.location = self._loop.location
        ahead: dict[SSAValue, SSAValue] = {self._body.args[0]: index.result}
        block.add_ops([index, *_clones(self._begin, ahead)])
        now, mapping = self._finish(block.args)
        block.add_ops(now)
        carried = [mapping.get(v, v) for v in self._yield.operands]
        block.add_op(_like(self._yield, [*carried, *[ahead[result] for result in self._results]]))
        return block

    def _finish(self, state: Iterable[SSAValue]) -> tuple[list[Operation], dict[SSAValue, SSAValue]]:
        """The second half of an iteration, on its index, what it carries, and what its first half made."""
        mapping: dict[SSAValue, SSAValue] = dict(zip((*self._body.args, *self._results), state, strict=True))
        return _clones([*self._again, *self._end], mapping), mapping


def constant_bounds(loop: Operation) -> tuple[int, int, int] | None:
    """Lower bound, upper bound and step of an ``scf.for``, if all are constants."""
    first, end, step = (constant_index(value) for value in loop.operands[:_BOUNDS])
    return None if first is None or end is None or step is None else (first, end, step)


def _is_cheap(op: Operation) -> bool:
    return is_scalar_code(op) or is_rematerialised(op) or op_name(op) in _REPEATED


def _repeated(begin: list[Operation], users: list[Operation]) -> set[Operation]:
    """Cheap operations of ``begin`` that ``users`` need, with the cheap ones that they need."""
    inside, repeated = set(begin), set[Operation]()
    stack = [value.owner for op in users for value in free_values(op)]
    while stack:
        op = stack.pop()
        if isinstance(op, Operation) and op in inside and op not in repeated and _is_cheap(op):
            repeated.add(op)
            stack.extend(value.owner for value in free_values(op))
    return repeated


def _results(begin: list[Operation], users: list[Operation], repeated: set[Operation]) -> list[SSAValue]:
    inside = set(begin) - repeated
    users = [*users, *[op for op in begin if op in repeated]]
    found = (value for op in users for value in free_values(op))
    return list(dict.fromkeys(v for v in found if isinstance(v.owner, Operation) and v.owner in inside))


def _is_from_device(op: Operation) -> bool:
    return callee_name(op) is not None or isinstance(op, DeviceCopyOp)


def _like(op: Operation, operands: list[SSAValue], body: Block | None = None) -> Operation:
    """``op`` on other operands, with another body; a loop's results have the types of what it carries."""
    made = type(op).create(
        operands=operands,
        result_types=[] if body is None else [v.type for v in operands[_BOUNDS:]],
        attributes=dict(op.attributes),
        properties=dict(op.properties),
        regions=[] if body is None else [Region(body)],
    )
    made.location = op.location
    return made


def _clones(ops: Iterable[Operation], mapping: dict[SSAValue, SSAValue]) -> list[Operation]:
    """Copies of ``ops`` on mapped operands; their results enter the mapping."""
    made: list[Operation] = []
    for op in ops:
        clone = op.clone(mapping)
        clone.location = op.location
        made.append(clone)
    return made
