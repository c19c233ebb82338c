"""``device-inline``: calls in device code that its target cannot make are replaced by the callee's body.

Device functions call each other unless their target, by its option ``calls`` or its kind, says that they cannot.
Kernels never call: a call in the body of a computation is inlined on every device. What is inlined runs on the
scope of its caller; it must be a function of the same scope and target, or one of scalars alone.
"""

from collections import Counter
from collections.abc import Callable

from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation, Region
from xdsl.rewriter import InsertPoint, Rewriter

from devscope.analysis.call_graph import Call, CallGraph
from devscope.analysis.classify import CONTROL_FLOW, is_over_scalars
from devscope.analysis.manager import AnalysisManager, ManagedPass
from devscope.analysis.split_functions import HOST_TYPE, scope_of_function
from devscope.analysis.symbols import CALL, Symbols, function_of
from devscope.dialects.device import TARGET_ATTR, TargetAttr
from devscope.dialects.location import source_location
from devscope.dialects.names import op_name
from devscope.dialects.scope_attribute import drop_scopes
from devscope.dialects.target import get_target_kind
from devscope.errors import LoweringError

MOST_COPIES = 20_000
"""More are taken for a program that grows exponentially."""


class DeviceInlinePass(ManagedPass):
    """Inline the calls that a target cannot make.

    Raises LoweringError where these are recursive, or too many.
    """

    name = "device-inline"

    def run(self, analyses: AnalysisManager) -> bool:
        graph = analyses.get(CallGraph)
        symbols = graph.symbols
        calls = [call for call in graph.calls if _must_inline(call.op) and _can_inline(call.op, symbols)]
        if not calls:
            return False
        _refuse_recursion(calls, graph)
        # Functions all of whose calls are inlined go: only their copies have to be without calls.
        among = {call.op for call in calls}
        others = {call.callee for call in graph.calls if call.op not in among}
        gone = {call.callee for call in calls if call.callee in graph.private} - others
        work = [call.op for call in calls if call.caller not in gone]
        inlined = inline_all(work, symbols, lambda op: _must_inline(op) and _can_inline(op, symbols))
        analyses.invalidate()
        _erase_uncalled(analyses.get(CallGraph), inlined)
        return True


def inline_all(
    calls: list[Operation], symbols: Symbols, follow: Callable[[Operation], bool]
) -> dict[FuncOp, None]:
    """Inline calls, and of those that their callees bring along the ones to ``follow``; the functions inlined.

    Raises LoweringError for too many.
    """
    inlined: dict[FuncOp, None] = {}
    copies = 0
    while calls:
        call = calls.pop()
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
        calls += (inner for op in new for inner in op.walk() if op_name(inner) == CALL and follow(inner))
    return inlined


def _must_inline(call: Operation) -> bool:
    """Whether a call stands in device code that cannot make it."""
    function = function_of(call)
    target = function.attributes.get(TARGET_ATTR) if function is not None else None
    if function is None or scope_of_function(function) is None or not isinstance(target, TargetAttr):
        return False
    if target.device_type == HOST_TYPE:
        return False
    calls = target.option_values.get("calls", get_target_kind(target.kind_name).calls)
    return not calls or _is_in_kernel(call, function)


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
    return (same_target and scope_of_function(callee) == scope_of_function(caller)) or is_over_scalars(callee)


def _refuse_recursion(calls: list[Call], graph: CallGraph) -> None:
    for call, caller, callee in calls:
        if caller is None or callee is None or (functions := graph.cycle_below(callee)) is None:
            continue
        inner = next(other.op for other in graph.calls if [other.caller, other.callee] == functions[:2])
        cycle = [function.sym_name.data for function in functions]
        target = caller.attributes[TARGET_ATTR]
        assert isinstance(target, TargetAttr)
        in_kernel = _is_in_kernel(call, caller)
        who = "kernels" if in_kernel else f"functions for target {target.short()}"
        path = " -> ".join(f"'{name}'" for name in cycle)
        notes: list[str] = []
        if caller.sym_name.data not in cycle:
            where = source_location(call)
            notes.append(f"'{caller.sym_name.data}' needs it" + (f" at {where}" if where is not None else ""))
        choice = ", or leave out 'calls = false'" if "calls" in target.option_values and not in_kernel else ""
        notes.append(f"write it as a loop (scf.while){choice}")
        problem = f"{who} cannot call, and a recursive function cannot be inlined: {path}"
        raise LoweringError(problem, source_location(inner), notes)


def inline_call(call: Operation, callee: FuncOp) -> list[Operation]:
    """Put a copy of the callee's body in the place of a call; the operations that now stand there.

    A body with branches becomes an ``scf.execute_region``.
    """
    body = callee.body.clone()
    drop_scopes(body)
    if len(body.blocks) > 1:
        return [_execute(call, body)]
    *new, end = body.block.ops
    Rewriter.inline_block(body.block, InsertPoint.before(call), call.operands)
    Rewriter.replace_op(call, (), end.operands)
    Rewriter.erase_op(end)
    return new


def _execute(call: Operation, body: Region) -> Operation:
    """Replace a call by a region."""
    from xdsl.dialects.scf import ExecuteRegionOp, YieldOp

    entry = body.blocks[0]
    for argument, operand in reversed([*zip(entry.args, call.operands, strict=True)]):
        argument.replace_all_uses_with(operand)
        entry.erase_arg(argument)
    for block in body.blocks:
        if isinstance(end := block.last_op, ReturnOp):
            leave = YieldOp(*end.operands)
            leave.location = call.location
            Rewriter.replace_op(end, leave, ())
    new = ExecuteRegionOp.create(result_types=call.result_types, regions=[body])
    new.location = call.location
    Rewriter.replace_op(call, new)
    return new


def _erase_uncalled(graph: CallGraph, inlined: dict[FuncOp, None]) -> None:
    """Of the functions that were inlined, those that nobody calls any more go, and then what only they called."""
    calls = Counter(callee for callees in graph.callees.values() for callee in callees)
    callers_first = [function for group in reversed(graph.components) for function in group]
    for function in callers_first:
        if function in inlined and function in graph.private and not calls[function]:
            calls.subtract(graph.callees[function])
            Rewriter.erase_op(function, safe_erase=False)
