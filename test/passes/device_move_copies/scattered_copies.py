"""Planned modules as somebody would write them who copies right where a value is used."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from devscope.analysis.scope_analysis import ScopeAnalysis
from devscope.dialects.device import DeviceCopyOp


def scatter_copies(module: ModuleOp) -> None:
    """Give every use of a copy a copy of its own, right in front of it."""
    scopes = ScopeAnalysis(module)
    for copy in [op for op in module.walk() if isinstance(op, DeviceCopyOp)]:
        for use in list(copy.result.uses):
            own = DeviceCopyOp(copy.operand, copy.src, copy.dst)
            own.location = copy.location
            user = scopes.computation(use.operation)  # which runs on one scope as a whole
            assert user.parent is not None
            user.parent.insert_op_before(own, user)
            use.operation.operands[use.index] = own.result
        copy.detach()
        copy.erase()
