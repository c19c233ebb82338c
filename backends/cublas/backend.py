"""``cublas``: products on CUDA devices, by a call of cuBLASLt that enqueues them.

Products of matrices, of batches of them, and of a matrix and a vector, of f32, f64, f16 and bf16, and of the
latter two into f32. Transposed operands, a factor, and what is added are part of the call: a tensor of the
result's shape as the matrix that cuBLASLt adds, a row as its epilogue.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType

from devscope.analysis.patterns import Match, splat_value, transposes
from devscope.backends.backend import Backend, Claimed, Code, Row
from devscope.backends.contractions import (
    element_of,
    is_zero,
    product_of,
    product_programs,
    product_rows,
    rank_of,
    refusal,
)
from devscope.backends.cublas.call import MOST_MATRICES, Call
from devscope.dialects.target import OptionSpec

_ELEMENTS = [
    ("f32", "f32"),
    ("f64", "f64"),
    ("f16", "f16"),
    ("bf16", "bf16"),
    ("f16", "f32"),
    ("bf16", "f32"),
]


def _accepts(match: Match) -> bool | str:
    """Whether cuBLASLt computes it as it is written."""
    if (reason := refusal(match, _ELEMENTS, MOST_MATRICES)) is not None:
        return reason
    product = product_of(match)
    type_ = product.operands[0].type
    assert isinstance(type_, TensorType)
    is_transposed = (transposes(product) or (False,))[0]
    if type_.get_shape()[-2 if is_transposed else -1] in (0, DYNAMIC_INDEX):
        return "how many products it sums is not known, or none"
    if splat_value(match["bias"] if "bias" in match else match["init"]) is not None:
        return "it adds the same number everywhere" if "bias" in match or not is_zero(match["init"]) else True
    is_row = "bias" in match and rank_of(match["bias"]) < rank_of(product.results[0])
    return "it adds rows of f32, f16 and bf16" if is_row and element_of(match["bias"]) == "f64" else True


class Cublas(Backend):
    name: ClassVar[str] = "cublas"
    device_type: ClassVar[str] = "cuda"
    options: ClassVar[Mapping[str, OptionSpec]] = {
        "tf32": OptionSpec(bool, "whether products of f32 may be computed with 10 bits of precision")
    }
    patterns: Sequence[Row] = product_rows(_accepts)
    programs: Sequence[str] = product_programs()

    def codegen(self, function: Claimed) -> Code:
        assert function.match is not None
        return Call(function, function.match, bool(function.options.get("tf32"))).code()
