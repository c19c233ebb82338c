"""``device-pipeline-loops``: a loop begins the device's work of its next iteration before it waits for this one's.

Runs on a split module. A loop of the host that copies in, computes on a device and copies out::

    for i: begin(i); end(i)                 begin: copies in, calls of device functions; end: copies out, the rest

becomes, with the device's results carried from one iteration to the next::

    begin(first); for i, but the last: { begin(i + step); end(i) }; end(last)

so that the host copies and works on one iteration while the device computes another. Legal where ``begin`` uses
nothing that earlier iterations made and has no side effects, and where bounds are known, since the first iteration
must exist. It takes the memory of one more iteration's device data.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import IndexType, IntegerAttr, ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from devscope.dialects.device import SCOPE_ATTR, DeviceCopyOp, ScopeAttr
from devscope.dialects.names import op_name
from devscope.passes.split.classify import callee_name, has_side_effects, is_rematerialised, is_scalar_code
from devscope.passes.split.pieces import free_values

_BOUNDS = 3
"""The operands of ``scf.for`` start with its bounds and its step."""

#: Cheap enough to be done again in the second half instead of being carried.
_REPEATED = frozenset({"tensor.extract_slice", "tensor.empty"})


@dataclass(frozen=True)
class DevicePipelineLoopsPass(ModulePass):
    """Begin the device's work of a loop's next iteration before waiting for this one's."""

    name = "device-pipeline-loops"

    host: str = "cpu:0"
    """The scope that host functions run on."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        pipeline_loops(op, ScopeAttr.parse_text(self.host))


def pipeline_loops(module: ModuleOp, host: ScopeAttr) -> None:
    """Pipeline the loops of the host functions of a split module, where that is legal and of use."""
    functions = [op for op in module.body.block.ops if isinstance(op, func.FuncOp)]
    on_devices = {f.sym_name.data for f in functions if not _is_host(f, host)}
    if not on_devices:
        return
    for function in functions:
        if function.sym_name.data in on_devices:
            continue
        loops = [op for op in function.walk() if op_name(op) == "scf.for"]
        for loop in reversed(loops):  # those inside others first
            halves = _split(loop, host, on_devices)
            if halves is not None:
                _pipeline(loop, *halves)


def _is_host(function: func.FuncOp, host: ScopeAttr) -> bool:
    scope = function.attributes.get(SCOPE_ATTR)
    return not isinstance(scope, ScopeAttr) or scope.is_open or scope.same_device(host)


def _split(
    loop: Operation, host: ScopeAttr, on_devices: set[str]
) -> tuple[list[Operation], list[Operation]] | None:
    """The operations of ``begin`` and ``end``, in order; None if the loop stays as it is."""
    first, end, step = _bounds(loop)
    if first is None or end is None or step is None or step <= 0 or first + step >= end:
        return None
    body = loop.regions[0].block
    if not isinstance(body.args[0].type, IndexType):
        return None
    ops = [op for op in body.ops if op is not body.last_op]
    launches = [op for op in ops if callee_name(op) in on_devices]
    copies_out = [op for op in ops if isinstance(op, DeviceCopyOp) and op.dst.same_device(host)]
    if not launches or not copies_out:
        return None
    begin = _ancestors(launches, body)
    if any(_needs_order(op, host, on_devices) for op in begin):
        return None
    carried = set(body.args[1:])
    if any(value in carried for op in begin for value in free_values(op)):
        return None
    return [op for op in ops if op in begin], [op for op in ops if op not in begin]


def _bounds(loop: Operation) -> list[int | None]:
    """Lower bound, upper bound and step, where they are constants."""
    return [_constant(value) for value in loop.operands[:_BOUNDS]]


def _constant(value: SSAValue) -> int | None:
    owner = value.owner
    if not isinstance(owner, Operation) or op_name(owner) != "arith.constant":
        return None
    number = {**owner.attributes, **owner.properties}.get("value")
    return number.value.data if isinstance(number, IntegerAttr) else None


def _ancestors(ops: Iterable[Operation], body: Block) -> set[Operation]:
    """``ops`` and what they need, in the body of a loop."""
    found: set[Operation] = set()
    stack = list(ops)
    while stack:
        op = stack.pop()
        if op in found:
            continue
        found.add(op)
        for value in free_values(op):
            if isinstance(value.owner, Operation) and value.owner.parent is body:
                stack.append(value.owner)
    return found


def _needs_order(op: Operation, host: ScopeAttr, on_devices: set[str]) -> bool:
    """Whether ``op`` has side effects, or waits for a device, which would end the overlap."""
    if callee_name(op) in on_devices or is_rematerialised(op):
        return False
    if isinstance(op, DeviceCopyOp):
        return op.dst.same_device(host)
    return (bool(op.regions) and op_name(op).startswith("scf.")) or has_side_effects(op)


def _is_cheap(op: Operation) -> bool:
    return is_scalar_code(op) or is_rematerialised(op) or op_name(op) in _REPEATED


def _pipeline(loop: Operation, begin: list[Operation], end: list[Operation]) -> None:
    from xdsl.dialects import arith  # programs without such loops do without it

    body = loop.regions[0].block
    yield_ = body.last_op
    assert yield_ is not None
    repeated = _repeated(begin, end, yield_)
    results = _results(begin, [*end, yield_], repeated)
    if any(isinstance(r.owner, Operation) and not _from_device(r.owner) for r in results):
        return  # host data would be copied to be carried
    index = body.args[0]
    first, step, inits = loop.operands[0], loop.operands[2], loop.operands[_BOUNDS:]
    ahead: dict[SSAValue, SSAValue] = {index: first}
    before = _clones(begin, ahead)
    # begin(i + step), then end(i) on what the iteration before began
    block = Block(arg_types=[*body.arg_types, *[r.type for r in results]])
    count = len(body.args)
    advance = arith.AddiOp(block.args[0], step)
    next_: dict[SSAValue, SSAValue] = {index: advance.result}
    block.add_ops([advance, *_clones(begin, next_)])
    now: dict[SSAValue, SSAValue] = dict(zip(body.args, block.args[:count], strict=True))
    block.add_ops(_clones([op for op in begin if op in repeated], now))
    now.update(zip(results, block.args[count:], strict=True))
    block.add_ops(_clones(end, now))
    block.add_op(_like(yield_, [*[now.get(v, v) for v in yield_.operands], *[next_[r] for r in results]]))
    bound = arith.ConstantOp(IntegerAttr(_last_index(loop), IndexType()))
    pipelined = _like(loop, [first, bound.result, step, *inits, *[ahead[r] for r in results]], block)
    # end(last)
    final: dict[SSAValue, SSAValue] = {index: bound.result}
    final.update(zip(body.args[1:], pipelined.results[: len(inits)], strict=True))
    after = _clones([op for op in begin if op in repeated], final)
    final.update(zip(results, pipelined.results[len(inits) :], strict=True))
    after += _clones(end, final)
    for op in (advance, bound):
        op.location = loop.location
    Rewriter.replace_op(loop, [*before, bound, pipelined, *after], [final.get(v, v) for v in yield_.operands])


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


def _repeated(begin: list[Operation], end: list[Operation], yield_: Operation) -> set[Operation]:
    """Cheap operations of ``begin`` that ``end`` needs, with the cheap ones that they need."""
    inside, repeated = set(begin), set[Operation]()
    stack = [value.owner for op in (*end, yield_) for value in free_values(op)]
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


def _from_device(op: Operation) -> bool:
    return callee_name(op) is not None or isinstance(op, DeviceCopyOp)


def _last_index(loop: Operation) -> int:
    first, end, step = _bounds(loop)
    assert first is not None
    assert end is not None
    assert step is not None
    return first + (end - first - 1) // step * step


def _clones(ops: Iterable[Operation], mapping: dict[SSAValue, SSAValue]) -> list[Operation]:
    """Copies of ``ops`` on mapped operands; their results enter the mapping."""
    made: list[Operation] = []
    for op in ops:
        clone = op.clone(mapping)
        clone.location = op.location
        made.append(clone)
    return made
