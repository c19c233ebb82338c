"""The angle of a point at the origin: upstream's folder of ``math.atan2`` makes NaN of two zeros, of any signs.

C (annex F.10.1.4) has 0 or pi there, by the sign of the second, with the sign of the first, and so has the code
of the operation; only constants are folded to something else.
"""

from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.divisions import booleans_like, filled_like
from devscope.lowering.interop.bindings import ir

_EQUAL = 1  # ordered and equal


def guard_angles(module: Any) -> None:
    """Where both operands are zeros, the second becomes 1 with its sign, of which the angle is the same."""
    for op in mlir_util.named(module.operation, "math.atan2"):
        y, x = op.operands
        build = mlir_util.Builder(op)
        zero, one = filled_like(build, x, 0), filled_like(build, x, 1)
        booleans = booleans_like(x.type, op.location)
        equal = {"predicate": ir.IntegerAttr.get(build.i64, _EQUAL)}
        zeros = [build.value("arith.cmpf", [value, zero], booleans, equal) for value in (y, x)]
        both = build.value("arith.andi", zeros, booleans)
        signed = build.value("math.copysign", [one, x], x.type)
        op.operands[1] = build.value("arith.select", [both, signed, x], x.type)
