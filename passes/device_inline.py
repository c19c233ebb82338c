"""``device-inline``: calls in device code that its target cannot make are replaced by the callee's body.

Device functions call each other unless their target, by its option ``calls`` or its kind, says that they cannot.
Kernels never call: a call in the body of a computation is inlined on every device. What is inlined runs on the
scope of its caller; it must be a function of the same scope and target, or one of scalars alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from devscope.analysis.call_graph import CALL
from devscope.analysis.classify import CONTROL_FLOW
from devscope.analysis.placed_functions import HOST_TYPE, scope_of_function
from devscope.analysis.recursion import Recursion
from devscope.analysis.symbols import Symbols, function_of
from devscope.analysis.value_kinds import HOST, kind_of
from devscope.dialects.device import TARGET_ATTR, TargetAttr
from devscope.dialects.location import source_location
from devscope.dialects.names import op_name
from devscope.dialects.scope_attribute import unplaced
from devscope.dialects.target import get_target_kind
from devscope.errors import LoweringError

MOST_COPIES = 20_000
"""More are taken for a program that grows exponentially."""


@dataclass(frozen=True)
class DeviceInlinePass(ModulePass):
    """Inline the calls that a target cannot make; recursion that would have to be inlined is an error."""

    name = "device-inline"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        inline_calls(op)


def inline_calls(module: ModuleOp) -> None:
    """Inline the calls that targets cannot make. Raises LoweringError where these are recursive, or too many."""
    symbols = Symbols(module)
    work = [call for call in symbols.calls if _must_inline(call) and _can_inline(call, symbols)]
    if not work:
        return
    _refuse_recursion(work, symbols)
    # Functions all of whose calls are inlined go: only their copies have to be without calls.
    gone = _only_called_by(work, symbols)
    work = [call for call in work if function_of(call) not in gone]
    inlined: dict[FuncOp, None] = {}
    copies = 0
    while work:
        call = work.pop()
        callee = symbols.callee(call)
        assert callee is not None
        inlined[callee] = None
        copies += 1
        if copies > MOST_COPIES:
            raise LoweringError(
                f"there are more than {MOST_COPIES} calls to inline, one of them of '{callee.sym_name.data}'",
                source_location(call),
                ["functions that call each other several times, in several levels, multiply"],
            )
        new = inline_call(call, callee)
        work += (
            inner
            for op in new
            for inner in op.walk()
            if op_name(inner) == CALL and _must_inline(inner) and _can_inline(inner, symbols)
        )
    _erase_uncalled(module, inlined)


def _must_inline(call: Operation) -> bool:
    """Whether a call stands in device code that cannot make it."""
    function = function_of(call)
    target = function.attributes.get(TARGET_ATTR) if function is not None else None
    if function is None or scope_of_function(function) is None or not isinstance(target, TargetAttr):
        return False
    if target.device_type == HOST_TYPE:
        return False
    return not _can_call(target) or _is_in_kernel(call, function)


def _can_call(target: TargetAttr) -> bool:
    return bool(target.option_values.get("calls", get_target_kind(target.kind_name).calls))


def _is_in_kernel(call: Operation, function: FuncOp) -> bool:
    current = call.parent_op()
    while current is not None and current is not function:
        if op_name(current) not in CONTROL_FLOW:
            return True
        current = current.parent_op()
    return False


def _can_inline(call: Operation, symbols: Symbols) -> bool:
    """Whether the callee's body means the same in the caller; `cut_module` refuses the calls that stay."""
    callee, caller = symbols.callee(call), function_of(call)
    if callee is None or caller is None or not callee.body.blocks:
        return False
    same_target = callee.attributes.get(TARGET_ATTR) == caller.attributes.get(TARGET_ATTR)
    return (same_target and scope_of_function(callee) == scope_of_function(caller)) or _is_scalar(callee)


def _is_scalar(function: FuncOp) -> bool:
    return all(
        kind_of(value.type) == HOST for op in function.body.walk() for value in (*op.operands, *op.results)
    ) and all(kind_of(type_) == HOST for type_ in function.function_type.inputs)


def _refuse_recursion(calls: list[Operation], symbols: Symbols) -> None:
    callees: dict[str, list[str]] = {name: [] for name in symbols.functions}
    for call in symbols.calls:
        caller, callee = function_of(call), symbols.callee(call)
        if caller is not None and callee is not None:
            callees[caller.sym_name.data].append(callee.sym_name.data)
    recursion = Recursion(callees)
    for call in calls:
        callee, caller = symbols.callee(call), function_of(call)
        if callee is None or caller is None:
            continue
        circle = recursion.below(callee.sym_name.data)
        if circle is None:
            continue
        way = [symbols.functions[name] for name in circle]
        inner = next(c for c in symbols.calls if function_of(c) is way[0] and symbols.callee(c) is way[1])
        raise _recursive(inner, circle, call, caller)


def _recursive(inner: Operation, circle: list[str], call: Operation, caller: FuncOp) -> LoweringError:
    target = caller.attributes[TARGET_ATTR]
    assert isinstance(target, TargetAttr)
    in_kernel = _is_in_kernel(call, caller)
    who = "kernels" if in_kernel else f"functions for target {target.short()}"
    way = " -> ".join(f"'{name}'" for name in circle)
    where = source_location(call)
    notes: list[str] = []
    if caller.sym_name.data not in circle:
        notes.append(f"'{caller.sym_name.data}' needs it" + (f" at {where}" if where is not None else ""))
    choice = ", or leave out 'calls = false'" if "calls" in target.option_values and not in_kernel else ""
    notes.append(f"write it as a loop (scf.while){choice}")
    return LoweringError(
        f"{who} cannot call, and a recursive function cannot be inlined: {way}", source_location(inner), notes
    )


def inline_call(call: Operation, callee: FuncOp) -> list[Operation]:
    """Put a copy of the callee's body in the place of a call; the operations that now stand there."""
    if len(callee.body.blocks) > 1:
        return [_inline_blocks(call, callee)]
    block = callee.body.block
    values: dict[SSAValue, SSAValue] = dict(zip(block.args, call.operands, strict=True))
    new: list[Operation] = []
    for op in block.ops:
        if isinstance(op, ReturnOp):
            for result, value in zip(call.results, op.operands, strict=True):
                result.replace_all_uses_with(values.get(value, value))
        else:
            new.append(unplaced(op, values))
            Rewriter.insert_op(new[-1], InsertPoint.before(call))
    call.detach()
    call.erase()
    return new


def _inline_blocks(call: Operation, callee: FuncOp) -> Operation:
    """The same for a body with branches, which becomes an ``scf.execute_region``."""
    from xdsl.dialects.scf import ExecuteRegionOp, YieldOp

    region = Region()
    values: dict[SSAValue, SSAValue] = {}
    blocks: dict[Block, Block] = {}
    callee.body.clone_into(region, value_mapper=values, block_mapper=blocks)
    entry = region.blocks[0]
    for argument, operand in zip(list(entry.args), call.operands, strict=True):
        argument.replace_all_uses_with(operand)
    for argument in reversed(entry.args):
        entry.erase_arg(argument)
    for block in region.blocks:
        end = block.last_op
        if isinstance(end, ReturnOp):
            operands = list(end.operands)
            end.detach()
            end.erase()
            leave = YieldOp(*operands)
            leave.location = call.location
            block.add_op(leave)
    new = ExecuteRegionOp.create(result_types=[result.type for result in call.results], regions=[region])
    new.location = call.location
    Rewriter.insert_op(new, InsertPoint.before(call))
    for result, value in zip(call.results, new.results, strict=True):
        result.replace_all_uses_with(value)
    call.detach()
    call.erase()
    return new


def _only_called_by(calls: list[Operation], symbols: Symbols) -> set[FuncOp]:
    """Private functions that these calls call, and no others."""
    among = set(calls)
    others = {symbols.callee(call) for call in symbols.calls if call not in among}
    called = {callee for call in calls if (callee := symbols.callee(call)) is not None}
    return {function for function in called if function in symbols.private and function not in others}


def _erase_uncalled(module: ModuleOp, inlined: dict[FuncOp, None]) -> None:
    """Of the functions that were inlined, those that nobody calls any more go, and then what only they called."""
    symbols = Symbols(module)
    callees: dict[FuncOp, list[FuncOp]] = {}
    calls: dict[FuncOp, int] = {}
    for call in symbols.calls:
        caller, callee = function_of(call), symbols.callee(call)
        if caller is not None and callee is not None:
            callees.setdefault(caller, []).append(callee)
            calls[callee] = calls.get(callee, 0) + 1
    stack = [function for function in inlined if not calls.get(function)]
    while stack:
        function = stack.pop()
        if function not in symbols.private:
            continue
        for callee in callees.get(function, ()):
            calls[callee] -= 1
            if not calls[callee] and callee in inlined:
                stack.append(callee)
        function.detach()
        function.erase(safe_erase=False)
