"""Where data is, apart from how code is compiled: scopes without their targets.

Code of several targets can share one device, and then shares its memory. After the split ``device.target`` on a
function is the only truth about how it is compiled, and a ``device.scope`` says no more than where things are.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute
from xdsl.rewriter import Rewriter

from devscope.dialects.device import SCOPE_ATTR, DeviceCopyOp, ScopeAttr
from devscope.dialects.signature import ARGUMENTS, RESULTS, set_signature_attributes, signature_attributes


def place_of(scope: ScopeAttr) -> ScopeAttr:
    """Device and memory scope of ``scope``."""
    if scope.target_attr is None:
        return scope
    return ScopeAttr.get(scope.type_name, scope.id_value, memory=scope.memory_name)


def symbol_part(scope: ScopeAttr) -> str:
    """A device as a part of a function's name: ``opencl1``."""
    return f"{scope.type_name}{max(scope.id_value, 0)}"


def reduce_to_places(module: ModuleOp) -> None:
    """Drop the targets of all scopes; copies that thereby go nowhere are dropped too."""
    for op in list(module.walk()):
        scope = op.attributes.get(SCOPE_ATTR)
        if isinstance(scope, ScopeAttr):
            op.attributes[SCOPE_ATTR] = place_of(scope)
        if isinstance(op, DeviceCopyOp):
            op.src, op.dst = place_of(op.src), place_of(op.dst)
            if op.src == op.dst:
                Rewriter.replace_op(op, [], [op.operand])
        elif isinstance(op, FuncOp):
            types = op.function_type
            for side, count in ((ARGUMENTS, len(types.inputs)), (RESULTS, len(types.outputs))):
                scopes = signature_attributes(op, side, count)
                set_signature_attributes(op, side, [_place(scope) for scope in scopes])


def _place(scope: Attribute | None) -> Attribute | None:
    return place_of(scope) if isinstance(scope, ScopeAttr) else scope
