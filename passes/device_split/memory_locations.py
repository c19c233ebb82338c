"""Memory locations: scopes without their targets.

After the split ``device.target`` on a function is the only truth about how it is compiled, and a ``device.scope``
says no more than where things are.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute
from xdsl.rewriter import Rewriter

from devscope.dialects.device import SCOPE_ATTR, DeviceCopyOp, ScopeAttr
from devscope.dialects.signature import ARGUMENTS, RESULTS, set_signature_attributes, signature_attributes


def reduce_to_memory_locations(module: ModuleOp) -> None:
    """Drop the targets of all scopes; copies that thereby go nowhere are dropped too."""
    for op in list(module.walk()):
        scope = op.attributes.get(SCOPE_ATTR)
        if isinstance(scope, ScopeAttr):
            op.attributes[SCOPE_ATTR] = scope.memory_location
        if isinstance(op, DeviceCopyOp):
            op.src, op.dst = op.src.memory_location, op.dst.memory_location
            if op.src == op.dst:
                Rewriter.replace_op(op, [], [op.operand])
        elif isinstance(op, FuncOp):
            types = op.function_type
            for side, count in ((ARGUMENTS, len(types.inputs)), (RESULTS, len(types.outputs))):
                scopes = signature_attributes(op, side, count)
                set_signature_attributes(op, side, [_location(scope) for scope in scopes])


def _location(scope: Attribute | None) -> Attribute | None:
    return scope.memory_location if isinstance(scope, ScopeAttr) else scope
