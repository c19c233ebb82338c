"""Products of matrices as patterns, and what their operations say: what the backends that call libraries share."""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue

from devscope.analysis.patterns import Match, broadcast, elementwise, op, wildcard
from devscope.analysis.patterns.attributes import splat_value
from devscope.backends.backend import Claimed
from devscope.dialects.names import op_name


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


def transposes(product: Operation) -> tuple[bool, bool] | None:
    """Which factors a product itself reads transposed; None where its maps are others."""
    maps = product.get_attr_or_prop("indexing_maps")
    if maps is None:
        return False, False
    found = [str(one.data) for one in getattr(maps, "data", ())]
    batch = 1 if op_name(product) == "linalg.batch_matmul" else 0
    dims = [f"d{number}" for number in range(batch + 3)]
    lead, (m, n, k) = dims[:batch], dims[batch:]

    def written(*results: str) -> str:
        return f"({', '.join(dims)}) -> ({', '.join([*lead, *results])})"

    if len(found) != 3 or found[2] != written(m, n):
        return None
    a = {written(m, k): False, written(k, m): True}.get(found[0])
    b = {written(k, n): False, written(n, k): True}.get(found[1])
    return None if a is None or b is None else (a, b)


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
