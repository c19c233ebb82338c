"""Results of functions that are called, and of operations that begin with a tensor without contents, of which each
has memory of its own."""

from collections.abc import Iterable
from typing import Any

from devscope.dialects.op_facts import ENDS, Control, facts
from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir


def separate_results(module: Any) -> None:
    """Give each result of the functions that ``module`` calls memory of its own; they have a single block.

    A workaround: one-shot bufferisation knows which results of a call may be its arguments (MLIR's
    `FuncAnalysisState` has these, in FuncBufferizableOpInterfaceImpl.cpp), but takes results for distinct from
    each other. A caller that updates one in place would change the other.
    """
    functions = {mlir_util.symbol_name(f): f for f in mlir_util.functions(module) if mlir_util.has_body(f)}
    calls = (op for op in mlir_util.walk(module.operation) if op.name == "func.call")
    for name in {ir.FlatSymbolRefAttr(call.attributes["callee"]).value for call in calls}:
        if name in functions:
            _separate(_terminators(functions[name])[0])


def separate_empty(module: Any) -> None:
    """Give each loop that begins with a ``tensor.empty``, or with a part of one, one of its own.

    A workaround: for one-shot bufferisation there is no conflict where nothing has been written yet, so that two
    that a loop carries are one buffer if one of them is not read in the end.
    """
    for op in mlir_util.named(module.operation, "tensor.empty"):
        uses = list(op.results[0].uses)
        for use in uses if len(uses) > 1 else ():
            if use.owner.operation.name.startswith(("scf.", "tensor.extract_slice")):
                use.owner.operands[use.operand_number] = op.clone(ip=ir.InsertionPoint(op)).results[0]


def _separate(return_: Any) -> None:
    taken: set[Any] = set()
    for number, value in enumerate(list(return_.operands)):
        if not isinstance(value.type, ir.RankedTensorType):
            continue
        origins = _origins(value)
        if taken & origins:
            copy = f"%copy = bufferization.alloc_tensor() copy(%0) : {value.type}"
            return_.operands[number] = mlir_util.insert(return_, copy, [value])[0].result
        taken |= origins


def _origins(value: Any) -> set[Any]:
    """The values whose memory ``value`` may be in, followed through what neither computes nor writes."""
    origins: set[Any] = set()
    seen: set[Any] = set()
    stack = [value]
    while stack:
        current = stack.pop()
        if current in seen:
            continue
        seen.add(current)
        sources = list(_sources(current))
        stack.extend(sources)
        if not sources or _is_call_result(current):
            origins.add(current)
    return origins


def _is_call_result(value: Any) -> bool:
    return not isinstance(value.owner, ir.Block) and value.owner.operation.name == "func.call"


def _sources(value: Any) -> Iterable[Any]:
    if isinstance(value.owner, ir.Block):
        return _argument_sources(ir.BlockArgument(value))
    op = value.owner.operation
    number = ir.OpResult(value).result_number
    known = facts(op.name)
    if known.view_of is not None:
        return [op.operands[known.view_of]]
    if known.chooses_from is not None:
        return list(op.operands)[known.chooses_from :]
    if known.control is Control.CALL:
        return [operand for operand in op.operands if isinstance(operand.type, ir.RankedTensorType)]
    if known.control is Control.CHOICE:
        return [terminator.operands[number] for terminator in _terminators(op)]
    if known.control is Control.COUNTED:
        return _carried(op, number)
    if known.control is Control.WHILE:
        return [_terminators(op)[0].operands[number + 1]]
    return []


def _argument_sources(argument: Any) -> Iterable[Any]:
    block, number = argument.owner, argument.arg_number
    op = block.owner.operation
    control = facts(op.name).control
    if control is Control.COUNTED:
        return _carried(op, number - 1)
    if control is not Control.WHILE:
        return []
    condition, yield_ = _terminators(op)
    if block == op.regions[0].blocks[0]:
        return [op.operands[number], yield_.operands[number]]
    return [condition.operands[number + 1]]


def _carried(loop: Any, number: int) -> list[Any]:
    return [loop.operands[len(loop.operands) - len(loop.results) + number], _terminators(loop)[0].operands[number]]


def _terminators(op: Any) -> list[Any]:
    """The last operation of each region; regions have one block each."""
    return [inner for inner in mlir_util.children(op) if facts(inner.name).control in ENDS]
