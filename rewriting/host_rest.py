"""What backends left over on devices of their own goes to the host.

Such a device runs what its backend claimed, and nothing else. Planning may have put more there: fills and splats,
which are made where they are needed, and what stands between two claimed functions. The host does it, on copies.
Memory, constants, views of all elements and single elements stay: these take no code on the device.
"""

from __future__ import annotations

from collections.abc import Collection, Container

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from devscope.analysis.classify import is_rematerialised
from devscope.analysis.manager import AnalysisManager
from devscope.analysis.scope_analysis import Need, ScopeAnalysis
from devscope.analysis.value_flow import planned_operations
from devscope.analysis.value_kinds import holds_data
from devscope.dialects.device import DeviceCopyOp, ScopeAttr
from devscope.dialects.names import op_name
from devscope.dialects.op_facts import facts_of
from devscope.dialects.scope_attribute import write_scope
from devscope.rewriting.copies import insert_copy

NEEDS_NO_CODE = frozenset(
    {
        "arith.constant",
        "tensor.cast",
        "tensor.collapse_shape",
        "tensor.dim",
        "tensor.empty",
        "tensor.expand_shape",
        "tensor.extract",
    }
)
"""What can be on a device that has code of its backend only: the host knows where data is, and reads elements."""


def leave_to_host(analyses: AnalysisManager, devices: Collection[str], placed: Container[Operation]) -> bool:
    """Do so for ``devices``, types of devices, in a planned module; whether there was anything.

    What the program itself has ``placed`` there stays, and will be refused.
    """
    scopes = ScopeAnalysis(analyses.module, analyses.host)
    moved = [
        op
        for function in analyses.module.body.block.ops
        if isinstance(function, FuncOp) and function.body.blocks
        for op in planned_operations(function)
        if op_name(op) not in NEEDS_NO_CODE
        and facts_of(op).control is None
        and scopes.executes(op)
        and scopes.of_op(op).type_name in devices
        and (op not in placed or is_rematerialised(op))
    ]
    plans = [
        (op, scopes.of_op(op), [need for need in scopes.needs(op) if need.scope.type_name in devices])
        for op in moved
    ]
    copies: list[DeviceCopyOp] = []
    for op, scope, needs in plans:
        outer = op.parent_op()
        write_scope(op, scopes.host, outer is not None and scopes.lexical(outer) == scopes.host)
        for need in needs:
            need.op.operands[need.operand] = _on_host(need, op, scopes.host)
        copies += _copied_back(op, scopes.host, scope)
    for copy in copies:
        if not copy.result.uses:
            Rewriter.erase_op(copy)
    if moved:
        analyses.invalidate()
    return bool(moved)


def _on_host(need: Need, op: Operation, host: ScopeAttr) -> SSAValue:
    """What ``op`` uses on the host in the place of a value on the device."""
    value = need.op.operands[need.operand]
    owner = value.owner
    if isinstance(owner, DeviceCopyOp) and owner.src == host:
        return owner.operand
    if isinstance(owner, Operation) and is_rematerialised(owner):
        made = owner.clone()
        write_scope(made, host, implied=False)
        Rewriter.insert_op(made, InsertPoint.before(op))
        return made.results[list(owner.results).index(value)]  # type: ignore[arg-type]
    return insert_copy(value, need.scope, host, op, op)


def _copied_back(op: Operation, host: ScopeAttr, scope: ScopeAttr) -> list[DeviceCopyOp]:
    """The results of ``op``, on the device where they were used before."""
    found: list[DeviceCopyOp] = []
    for result in reversed(op.results):
        if not holds_data(result.type):
            continue
        copy = DeviceCopyOp(result, host, scope)
        copy.location = op.location
        result.replace_uses_with_if(copy.result, lambda use, copy=copy: use.operation is not copy)
        Rewriter.insert_op(copy, InsertPoint.after(op))
        found.append(copy)
    return found
