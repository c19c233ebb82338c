"""Powers that something simpler is exact enough for: functions take 20 times as long, exponentials a third."""

from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.constants import constant_value
from devscope.lowering.divisions import elements_like, filled_like
from devscope.lowering.interop.bindings import ir


def simplify_powers(module: Any) -> None:
    """Replace ``math.powf`` and ``math.fpowi`` by products for the exponents 2 and 3, by a quotient for -1, and
    powers of 2 by ``math.exp2``.

    Special values are those of C's pow. Products of three factors, which are rounded twice, are computed in f32
    where numbers have fewer digits.
    """
    for op in mlir_util.walk(module.operation):
        if op.name not in ("math.powf", "math.fpowi"):
            continue
        x, exponent = op.operands
        build, number = mlir_util.Builder(op), _constant(exponent)
        if number in (2, 3):
            mlir_util.replace_op(op, [_product(build, x, int(number), op.location)])
        elif number == -1:
            mlir_util.replace_op(op, [build.value("arith.divf", [filled_like(build, x, 1), x], x.type)])
        elif op.name == "math.powf" and _constant(x) == 2:
            mlir_util.replace_op(op, [build.value("math.exp2", [exponent], x.type)])


def _product(build: mlir_util.Builder, x: Any, count: int, location: Any) -> Any:
    type_ = x.type
    is_short = count > 2 and _width(type_) < 32
    if is_short:
        x = build.value("arith.extf", [x], elements_like(type_, ir.F32Type.get(type_.context), location))
    product = x
    for _ in range(count - 1):
        product = build.value("arith.mulf", [product, x], x.type)
    return build.value("arith.truncf", [product], type_) if is_short else product


def _width(type_: Any) -> int:
    return ir.FloatType(ir.ShapedType(type_).element_type if isinstance(type_, ir.ShapedType) else type_).width


def _constant(value: Any) -> float | None:
    """What ``value`` is, or each of its elements."""
    if isinstance(value.owner, ir.Block) or value.owner.name != "arith.constant":
        return None
    constant: Any = constant_value(value.owner)
    if isinstance(constant, ir.DenseElementsAttr):
        constant = constant.get_splat_value() if constant.is_splat else None
    return constant.value if isinstance(constant, ir.FloatAttr | ir.IntegerAttr) else None
