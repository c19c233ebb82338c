"""Rules for the ``device`` dialect: what users ask for, and what an earlier planning wrote."""

from xdsl.ir import Operation

from devscope.analysis.user_kernels import check_launch
from devscope.analysis.value_kinds import TENSOR, kind_of
from devscope.dialects.device import DeviceCopyOp, OnDeviceOp, RegionOp
from devscope.dialects.location import source_location
from devscope.passes.device_plan.domains import (
    ANNOTATED,
    FIXED,
    HOST_NODE,
    INDIRECT,
    NOT_COMPUTED,
    PLACED,
    REMATERIALISED,
    Reason,
)
from devscope.passes.device_plan.edges import FREE, LOOSE
from devscope.passes.device_plan.remarks import Remark
from devscope.passes.device_plan.rules.compute import compute
from devscope.passes.device_plan.system import System


def on_device(system: System, op: Operation) -> None:
    """An annotation, in four modes.

    * body only: the operand is computed there; what uses the result may be elsewhere;
    * body and result: the operand is there, and so is what uses the result;
    * result only: what uses the result is there; the operand may be elsewhere;
    * neither: a copy is allowed here, none is asked for.
    """
    assert isinstance(op, OnDeviceOp)
    value = op.operand
    node = system.node_of(value)
    system.transparent.append(op)
    system.origins[op.result] = value
    if node == HOST_NODE:
        text = "'device.on_device' places nothing: its operand is a scalar or vector, which is on the host"
        remark = Remark("warning", text, source_location(op))
        if (op.constrains_body or op.constrains_result) and remark not in system.remarks:
            system.remarks.append(remark)
        return
    scope = system.scopes.number(op.scope)
    reason: Reason = ("on_device", op, 0)
    if kind_of(value.type) != TENSOR:
        # No copy can stand for a buffer or a function: it is there, or the demand is an error.
        if op.constrains_body or op.constrains_result:
            system.require(node, scope, reason)
        system.define(op.result, node)
    elif op.constrains_result:
        system.define(op.result, _fixed(system, op, node, scope, reason))
    elif node == REMATERIALISED:
        system.define(op.result, node)
    elif op.constrains_body:
        system.define(op.result, _body_only(system, op, node, scope, reason))
    else:
        free = system.domains.new(NOT_COMPUTED | INDIRECT)
        system.edges.add(node, free, op, 0, FREE)
        system.define(op.result, free)


def _fixed(system: System, op: OnDeviceOp, node: int, scope: int, reason: Reason) -> int:
    """The node of a result that must be on ``scope``."""
    if node == REMATERIALISED:
        return system.demanded(scope, reason, NOT_COMPUTED | INDIRECT | FIXED)
    # An argument that is merely pinned to the host is copied: the pin is the caller's, not the program's.
    pinned = system.flags[node] & PLACED and system.flags[node] & NOT_COMPUTED
    if op.constrains_body and not pinned:
        system.require(node, scope, reason)
        return _alias(system, node, FIXED, reason)
    return _copied(system, op, node, scope, FIXED, reason)


def _body_only(system: System, op: OnDeviceOp, node: int, scope: int, reason: Reason) -> int:
    """The node of a value annotated body-only. On what no operation computes, the first annotation wins."""
    if system.flags[node] & NOT_COMPUTED and not system.domains.demand(node, scope, reason):
        return _copied(system, op, node, scope, ANNOTATED, reason)
    system.require(node, scope, reason)
    return _alias(system, node, ANNOTATED, reason)


def _alias(system: System, node: int, flags: int, reason: Reason) -> int:
    alias = system.domains.new(flags | INDIRECT | system.flags[node] & NOT_COMPUTED)
    system.domains.unify(alias, node, reason)
    return alias


def _copied(system: System, op: OnDeviceOp, node: int, scope: int, flags: int, reason: Reason) -> int:
    there = system.demanded(scope, reason, flags | NOT_COMPUTED | INDIRECT)
    system.edges.add(node, there, op, 0, LOOSE)
    return there


def device_copy(system: System, op: Operation) -> None:
    """An explicit copy. It keeps its destination; the operand is put on its source if it can be.

    A copy of a value that is rematerialised on every scope is only a demand for where it is used.
    """
    assert isinstance(op, DeviceCopyOp)
    node = system.node_of(op.operand)
    there = system.demanded(system.scopes.number(op.dst), ("copy_result", op, 0), NOT_COMPUTED | INDIRECT | FIXED)
    if node == HOST_NODE:
        system.transparent.append(op)
        system.origins[op.result] = op.operand
        return
    system.define(op.result, there)
    if node == REMATERIALISED:
        system.transparent.append(op)
        system.origins[op.result] = op.operand
    else:
        system.copies.append(op)
        system.domains.demand(node, system.scopes.number(op.src), ("copy_operand", op, 0))


def launch(system: System, op: Operation) -> None:
    """A computation on what stands in its body. Raises `VerifyError` where it does not fit a kernel.

    If the module has kernels, launches were checked before.
    """
    check_launch(op)
    compute(system, op)


def region(system: System, op: Operation) -> None:
    """A frame; see `build`. Its results are defined at its ``device.yield``."""
    system.transparent.append(op)


def yield_(system: System, op: Operation) -> None:
    """The results of a ``device.region`` are what it yields."""
    parent = op.parent_op()
    assert isinstance(parent, RegionOp)
    for result, value in zip(parent.results, op.operands, strict=True):
        system.origins[result] = value
        system.define(result, system.node_of(value))
