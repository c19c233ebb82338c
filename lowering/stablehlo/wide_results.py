"""Results in bf16 of which nothing but f32 is made keep their digits, as in what XLA makes for processors."""

from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.stablehlo.small_types import compute_as, convert_result
from devscope.lowering.stablehlo.templates import element

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
