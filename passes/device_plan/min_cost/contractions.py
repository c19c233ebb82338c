"""Operations that multiply and add: products of matrices and vectors, convolutions, and poolings with them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import cache, partial

from xdsl.ir import Operation

from devscope.dialects.names import op_name
from devscope.passes.device_plan.min_cost.sizes import Sizes


def _product(sizes: Sizes, op: Operation, batch: int = 0) -> float:
    """A contraction of two operands, every index in two of the three shapes: 2 * sqrt(|A| |B| |C| / batch).

    With ``batch`` leading dimensions that all three have. Matrices and vectors of any order fit.
    """
    first = sizes.shape(op.operands[0].type)
    shapes = (
        first,
        sizes.shape(op.operands[1].type),
        sizes.shape(op.results[0].type if op.results else op.operands[2].type),
    )
    shared = math.prod(first[:batch])
    return 2.0 * math.sqrt(math.prod(map(math.prod, shapes)) / shared) if shared else 0.0


def _dot_general(sizes: Sizes, op: Operation) -> float:
    """Elements of the result times those of the contracted dimensions."""
    text = str(op.get_attr_or_prop("dot_dimension_numbers"))
    contracted = re.search(r"lhs_contracting_dimensions\s*=\s*\[([0-9, ]*)\]", text)
    if contracted is None:
        return _product(sizes, op)
    shape = sizes.shape(op.operands[0].type)
    indices = [int(index) for index in contracted[1].split(",") if index.strip()]
    size = math.prod(shape[index] for index in indices if index < len(shape))
    return 2.0 * size * math.prod(sizes.shape(op.results[0].type))


def _stablehlo_convolution(sizes: Sizes, op: Operation) -> float:
    """The kernel's layout is the second list of ``[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]``."""
    text = str(op.get_attr_or_prop("dimension_numbers"))
    layout = re.search(r"x\s*\[([^\]]*)\]", text)
    kernel = sizes.shape(op.operands[1].type)
    letters = [letter.strip() for letter in layout[1].split(",")] if layout is not None else []
    features = (
        kernel[letters.index("o")] if "o" in letters and len(letters) == len(kernel) else max(kernel, default=1)
    )
    return 2.0 * math.prod(sizes.shape(op.results[0].type)) * math.prod(kernel) / max(features, 1)


def _tosa_convolution(sizes: Sizes, op: Operation) -> float:
    """A kernel with its output channels first."""
    kernel = sizes.shape(op.operands[1].type)
    return 2.0 * math.prod(sizes.shape(op.results[0].type)) * math.prod(kernel[1:])


_PRODUCTS = (
    r"(linalg\.(matmul|matmul_transpose_[ab]|quantized_matmul|matvec|vecmat|dot|mmt4d)|stablehlo\.dot"
    r"|tosa\.fully_connected)",
    r"(linalg\.(batch_(matmul|matmul_transpose_[ab]|matvec|vecmat|mmt4d)|quantized_batch_matmul)|tosa\.matmul)",
)
"""The names of products, by their number of batch dimensions."""

_OTHERS: dict[str, Callable[[Sizes, Operation], float]] = {
    "stablehlo.dot_general": _dot_general,
    "stablehlo.convolution": _stablehlo_convolution,
    "tosa.conv2d": _tosa_convolution,
    "tosa.conv3d": _tosa_convolution,
}

_PER_OUTPUT = frozenset("fmg")
"""Letters of a filter's layout that say which output it makes; all others are summed over."""


def contraction_flops(sizes: Sizes, op: Operation, name: str) -> float | None:
    """The flops of products, convolutions and poolings; None for all other operations."""
    contraction = _contraction(name)
    if contraction is _convolution and len(op.operands) < 3:
        return None
    return contraction(sizes, op) if contraction is not None else None


@cache
def _contraction(name: str) -> Callable[[Sizes, Operation], float] | None:
    for batch, names in enumerate(_PRODUCTS):
        if re.fullmatch(names, name):
            return partial(_product, batch=batch)
    is_windowed = re.match(r"linalg\.(pooling|.*conv)", name)
    return _OTHERS.get(name, _convolution if is_windowed else None)


def _convolution(sizes: Sizes, op: Operation) -> float:
    """linalg's named convolutions and poolings: the filter's share of one output element, per output element."""
    name = op_name(op).partition(".")[2]
    outputs = math.prod(sizes.shape(op.operands[-1].type))
    filter_ = sizes.shape(op.operands[1].type)
    if name.startswith("pooling"):
        return float(outputs * math.prod(filter_))
    layout = name.removesuffix("_q").rpartition("_")[2]
    per_output = _PER_OUTPUT | set("c") if name.startswith("depthwise") else _PER_OUTPUT
    if len(layout) != len(filter_):
        return 2.0 * outputs * math.prod(filter_)
    summed = math.prod(size for letter, size in zip(layout, filter_, strict=True) if letter not in per_output)
    return 2.0 * outputs * summed
