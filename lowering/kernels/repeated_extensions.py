"""What reads a tensor in a wider type converts its elements itself.

Frontends widen a tensor once for all that sums it up, such as the mean and the variance of a norm. Fusion would
leave that as an operation of its own, for its several users: a tensor of twice the size to write and read again.
"""

from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels.normalise import only_extends

_USERS = ("linalg.", "arith.", "math.")


def repeat_extensions(module: Any) -> None:
    """Give each use of what only widens elements of a tensor an operation of its own, which fusion takes in.

    Not where there are others, such as bodies of loops, which read the tensor again and again.
    """
    for op in mlir_util.walk(module.operation):
        if not op.name.startswith(("linalg.generic", "arith.ext")) or not only_extends(op):
            continue
        if not isinstance(op.results[0].type, ir.RankedTensorType):
            continue
        uses = [(use.owner.operation, use.operand_number) for use in op.results[0].uses]
        if all(user.name.startswith(_USERS) and user.parent == op.parent for user, _ in uses):
            for user, number in uses[1:]:
                user.operands[number] = op.clone(ip=ir.InsertionPoint(user)).results[0]
