"""Products of matrices as patterns, and what their operations say: what the backends that call libraries share."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue

from devscope.analysis.patterns import (
    Match,
    broadcast,
    constant,
    elementwise,
    op,
    op_name,
    splat_value,
    transposes,
    wildcard,
)
from devscope.backends.backend import Claimed, Row


def _transposable(name: str, swap: list[int]) -> Any:
    plain = wildcard().named(name)
    return op("linalg.transpose", plain, attributes={"permutation": swap}) | plain


MATRICES = op(
    "linalg.matmul", _transposable("a", [1, 0]), _transposable("b", [1, 0]), wildcard().named("init")
).named("product")
BATCH = op(
    "linalg.batch_matmul", _transposable("a", [0, 2, 1]), _transposable("b", [0, 2, 1]), wildcard().named("init")
).named("product")
VECTOR = op(
    ("linalg.matvec", "linalg.vecmat"), wildcard().named("a"), wildcard().named("b"), wildcard().named("init")
).named("product")


def biased(product: Any) -> Any:
    """``product`` and a row, the same for all of its rows, or a tensor of its shape: ``match["bias"]``."""
    bias = wildcard().named("bias")
    return elementwise("add", product, broadcast(bias, [-1])) | elementwise("add", product, bias)


def scaled(product: Any) -> Any:
    """``product`` times a number, ``match["factor"]``."""
    return elementwise("mul", product, constant().named("factor"))


def _alone(product: Any) -> Any:
    return product


def product_rows(predicate: Any) -> tuple[Row, ...]:
    """Rows of a table for libraries that compute ``factor * a * b + added``."""
    return tuple(
        Row(f"{name}{suffix}", extend(product), predicate)
        for name, product in (("matmul", MATRICES), ("batch_matmul", BATCH), ("matvec", VECTOR))
        for suffix, extend in (("_bias", biased), ("_scaled", scaled), ("", _alone))
    )


def refusal(match: Match, elements: Collection[tuple[str, str]], most: int) -> str | None:
    """Why such a library does not compute what a row of `product_rows` matches; None: it does.

    ``elements``: which types of factors and of results it knows. ``most``: its largest size.
    """
    product = product_of(match)
    known = " and ".join(dict.fromkeys(factor for factor, _ in elements))
    for value in (*product.operands[:2], match.root.results[0]):
        type_ = value.type
        if not isinstance(type_, TensorType) or not any(element_of(value) in pair for pair in elements):
            return f"it computes with {known}, not with {type_}"
        if any(size > most for size in type_.get_shape()):
            return f"a size of {type_} is larger than {most}"
    a, b, init = (element_of(value) for value in product.operands[:3])
    if a != b or (a, init) not in elements:
        return f"operands are of {' and '.join(sorted({a, b, init}))}"
    if product.get_attr_or_prop("indexing_maps") is not None and transposes(product) is None:
        return "its indexing maps are not those of a product of matrices"
    if (reason := made_inside(match["a"], match["b"])) is not None:
        return reason
    if "bias" in match and not is_zero(match["init"]):
        return "it adds to a tensor, and a bias to that"
    if "factor" in match and not is_zero(match["init"]):
        return "it multiplies a sum"
    if "bias" in match and rank_of(match["bias"]) not in (1, rank_of(product.results[0])):
        return "its bias is neither a row nor of the result's shape"
    return None


def element_of(value: SSAValue) -> str:
    return str(value.type.get_element_type()) if isinstance(value.type, TensorType) else str(value.type)


def is_zero(value: SSAValue) -> bool:
    return splat_value(value) == 0


def made_inside(*values: SSAValue) -> str | None:
    """What to say where a factor is one number everywhere: then it is no operand of the code."""
    same = any(splat_value(value) is not None for value in values)
    return "one of its factors is the same number everywhere" if same else None


def rank_of(value: SSAValue) -> int:
    type_ = value.type
    assert isinstance(type_, TensorType)
    return len(type_.get_shape())


def product_of(match: Match) -> Operation:
    return match.named("linalg.matmul", "linalg.batch_matmul", "linalg.matvec", "linalg.vecmat")[0]


def operand_of(function: Claimed, value: SSAValue) -> tuple[int, bool]:
    """Which operand of the code a factor of a product is, and whether an operation transposes that before."""
    before = value.owner
    if isinstance(before, Operation) and op_name(before) == "linalg.transpose":
        return function.operand(before.operands[0]), True
    return function.operand(value), False


def program(name: str, a: str, b: str, c: str, tail: str) -> str:
    """A product and what follows it, for the conformance suite."""
    return f"""func.func @main(%a: tensor<{a}xf32>, %b: tensor<{b}xf32>, %c: tensor<{c}xf32>) -> tensor<{c}xf32> {{
      %z = arith.constant dense<0.0> : tensor<{c}xf32>
      %f = arith.constant dense<0.125> : tensor<{c}xf32>
      %r = linalg.{name} ins(%a, %b : tensor<{a}xf32>, tensor<{b}xf32>)
        outs(%z : tensor<{c}xf32>) -> tensor<{c}xf32>
      %s = {tail} : tensor<{c}xf32>
      return %s : tensor<{c}xf32>
    }}"""


def product_programs() -> tuple[str, ...]:
    """For the conformance suite: what the rows of `product_rows` match that its own programs have not got."""
    return tuple(
        program(name, a, b, c, tail)
        for name, a, b, c in (
            ("matmul", "6x5", "5x7", "6x7"),
            ("batch_matmul", "3x6x5", "3x5x7", "3x6x7"),
            ("matvec", "6x5", "5", "6"),
        )
        for tail in ("arith.addf %r, %c", "arith.mulf %r, %f")
    )
