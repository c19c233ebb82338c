"""Powers with constant exponents that a product is exact enough for: functions take 20 times as long."""

from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.constants import constant_value
from devscope.lowering.divisions import filled_like
from devscope.lowering.interop.bindings import ir


def multiply_small_powers(module: Any) -> None:
    """Replace ``math.powf`` and ``math.fpowi`` by products for the exponents 2 and 3, by a quotient for -1.

    Special values are those of C's pow. Three factors, which are rounded twice, are only for f32 and f64.
    """
    for op in mlir_util.walk(module.operation):
        if op.name not in ("math.powf", "math.fpowi"):
            continue
        x = op.operands[0]
        build, exponent = mlir_util.Builder(op), _exponent(op.operands[1])
        if exponent == 2 or (exponent == 3 and _digits(x.type) > 16):
            product = x
            for _ in range(int(exponent) - 1):
                product = build.value("arith.mulf", [product, x], x.type)
            mlir_util.replace_op(op, [product])
        elif exponent == -1:
            mlir_util.replace_op(op, [build.value("arith.divf", [filled_like(build, x, 1), x], x.type)])


def _digits(type_: Any) -> int:
    return ir.FloatType(ir.ShapedType(type_).element_type if isinstance(type_, ir.ShapedType) else type_).width


def _exponent(value: Any) -> float | None:
    """What ``value`` is, or each of its elements."""
    if isinstance(value.owner, ir.Block) or value.owner.name != "arith.constant":
        return None
    constant: Any = constant_value(value.owner)
    if isinstance(constant, ir.DenseElementsAttr):
        constant = constant.get_splat_value() if constant.is_splat else None
    return constant.value if isinstance(constant, ir.FloatAttr | ir.IntegerAttr) else None
