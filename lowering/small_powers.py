"""Powers that something simpler is exact enough for: functions take 20 times as long, exponentials a third."""

import math
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.constants import constant_value
from devscope.lowering.divisions import booleans_like, elements_like, filled_like
from devscope.lowering.interop.bindings import ir


def simplify_powers(module: Any) -> None:
    """Replace ``math.powf`` and ``math.fpowi`` by products for the exponents 2 and 3, by a quotient for -1, by
    roots for 0.5 and -0.5, and powers of 2 by ``math.exp2``.

    Special values are those of C's pow. What is rounded twice is computed in f32 where numbers have fewer digits.
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
        elif number in (0.5, -0.5):
            mlir_util.replace_op(op, [_root(build, x, number < 0, op.location)])
        elif op.name == "math.powf" and _constant(x) == 2:
            mlir_util.replace_op(op, [build.value("math.exp2", [exponent], x.type)])


def _product(build: mlir_util.Builder, x: Any, count: int, location: Any) -> Any:
    type_ = x.type
    x = _single(build, x, location) if count > 2 else x
    product = x
    for _ in range(count - 1):
        product = build.value("arith.mulf", [product, x], x.type)
    return _rounded(build, product, type_)


def _root(build: mlir_util.Builder, x: Any, is_inverse: bool, location: Any) -> Any:
    """Of -0, which has the root -0, that of 0; of -inf, which has none, what C's pow is of it: inf, or 0."""
    type_ = x.type
    x = _single(build, x, location) if is_inverse else x
    made = build.value("math.sqrt", [build.value("arith.addf", [x, filled_like(build, x, 0)], x.type)], x.type)
    if is_inverse:
        made = build.value("arith.divf", [filled_like(build, x, 1), made], x.type)
    equal = {"predicate": ir.IntegerAttr.get(build.i64, 1)}
    bits = booleans_like(x.type, location)
    least = build.value("arith.cmpf", [x, filled_like(build, x, -math.inf)], bits, equal)
    at_least = filled_like(build, x, 0 if is_inverse else math.inf)
    return _rounded(build, build.value("arith.select", [least, at_least, made], x.type), type_)


def _single(build: mlir_util.Builder, x: Any, location: Any) -> Any:
    """``x`` in f32 where it has fewer digits."""
    if _width(x.type) >= 32:
        return x
    return build.value("arith.extf", [x], elements_like(x.type, ir.F32Type.get(x.type.context), location))


def _rounded(build: mlir_util.Builder, x: Any, type_: Any) -> Any:
    return x if x.type == type_ else build.value("arith.truncf", [x], type_)


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
