"""Where floats of 16 bits are rounded, as in what XLA makes for processors.

Results in bf16 of which nothing but f32 is made keep their digits; short sums are rounded at each step.
"""

import math
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.stablehlo.small_types import compute_as, convert_result
from devscope.lowering.stablehlo.templates import element, integers, shape
from devscope.lowering.stablehlo.windows import IN_STEPS

_PRODUCTS = frozenset(f"stablehlo.{name}" for name in ("convolution", "dot", "dot_general", "dynamic_conv"))
"""What has operands of another type than its result."""
_ARITHMETIC = frozenset(["chlo.erf"]) | frozenset(
    f"stablehlo.{name}"
    for name in [
        *("add", "atan2", "divide", "multiply", "power", "subtract"),
        *("cbrt", "cosine", "exponential", "exponential_minus_one", "log", "log_plus_one", "logistic"),
        *("rsqrt", "sine", "sqrt", "tan", "tanh"),
    ]
)
_SHORT_SUM = 32
"""Elements that XLA sums one after the other; longer sums it cuts into such (its pass TreeReductionRewriter)."""


def keep_digits(module: Any) -> None:
    """Conversions to f32 of what arithmetic makes take it before it is rounded; others get it rounded."""
    for op in mlir_util.named(module.operation, "stablehlo.convert"):
        value, wide = op.operands[0], op.results[0].type
        if str(element(value.type)) != "bf16" or str(element(wide)) != "f32" or isinstance(value.owner, ir.Block):
            continue
        made = value.owner.operation
        if made.name in _ARITHMETIC:
            compute_as(made, _wide)
        elif made.name in _PRODUCTS:
            convert_result(made.results[0], "f32")
        if made.results[0].type == wide:
            mlir_util.replace_op(op, list(made.results))


def _wide(type_: Any) -> str:
    return "f32" if str(element(type_)) == "bf16" else ""


def round_steps(module: Any) -> None:
    """Short sums of f16 and bf16 are rounded at each step: a conversion in the body keeps others from widening them.

    Long ones are rounded once (`kernels.wide_sums`): at each step, they would lose what is less than their last digit.
    """
    for name in ("stablehlo.reduce", "stablehlo.reduce_window"):
        for op in mlir_util.named(module.operation, name):
            body = [inner.operation for inner in op.regions[0].blocks[0].operations]
            of = element(op.results[0].type)
            narrow = isinstance(of, ir.FloatType) and of.width <= 16
            if (
                narrow
                and [inner.name for inner in body] == ["stablehlo.add", "stablehlo.return"]
                and _is_short(op)
            ):
                compute_as(body[0], lambda _: "f32")
                if name == "stablehlo.reduce_window":
                    op.attributes[IN_STEPS] = ir.UnitAttr.get(op.context)


def _is_short(op: Any) -> bool:
    """Whether as few elements are summed as XLA does in one go."""
    extents = shape(op.operands[0].type)
    summed = integers(op, "window_dimensions") or [extents[axis] for axis in integers(op, "dimensions")]
    return -1 not in summed and math.prod(summed) <= _SHORT_SUM
