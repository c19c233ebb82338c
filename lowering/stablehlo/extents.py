"""What the types of values say of their extents."""

from collections.abc import Iterable, Sequence
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.mlir_util import Builder
from devscope.lowering.stablehlo.einsum import terms_of
from devscope.lowering.stablehlo.templates import (
    BOUNDS,
    element,
    enum,
    flag,
    integers,
    number,
    shape,
    tensor,
)


def drop_bounds(module: Any) -> None:
    """Dimensions of a bounded size are of any size: what is made of them needs no bound."""
    for op in mlir_util.walk(module.operation)[1:]:
        for value in mlir_util.defined_values(op):
            value.set_type(_without_bounds(value.type))
        if "function_type" in op.attributes:
            type_ = mlir_util.function_type(op)
            parts = [[_without_bounds(each) for each in part] for part in (type_.inputs, type_.results)]
            op.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(*parts))


def _without_bounds(type_: Any) -> Any:
    if not isinstance(type_, ir.RankedTensorType) or not str(type_.encoding).startswith(BOUNDS):
        return type_
    return ir.Type.parse(tensor(shape(type_), element(type_)))


_ELEMENTWISE = frozenset(
    f"stablehlo.{name}"
    for name in [
        "abs",
        "add",
        "and",
        "atan2",
        "cbrt",
        "ceil",
        "clamp",
        "compare",
        "complex",
        "convert",
        "cosine",
        "count_leading_zeros",
        "divide",
        "exponential",
        "exponential_minus_one",
        "floor",
        "imag",
        "is_finite",
        "log",
        "log_plus_one",
        "logistic",
        "maximum",
        "minimum",
        "multiply",
        "negate",
        "not",
        "or",
        "popcnt",
        "power",
        "real",
        "reduce_precision",
        "remainder",
        "round_nearest_afz",
        "round_nearest_even",
        "rsqrt",
        "select",
        "shift_left",
        "shift_right_arithmetic",
        "shift_right_logical",
        "sign",
        "sine",
        "sqrt",
        "subtract",
        "tan",
        "tanh",
        "xor",
    ]
)


_BATCH_NORMS = frozenset(f"stablehlo.batch_norm_{name}" for name in ("training", "inference", "grad"))
_SAME = frozenset(["stablehlo.sort", "stablehlo.map", "chlo.next_after", "chlo.polygamma", "chlo.zeta"])

_Group = Sequence[tuple[int, Iterable[int]]]
"""Numbers of values, of operands and then of results, with axes of each: the first ones have one extent, and so on."""


def agree_on_extents(module: Any) -> None:
    """Values know the extents that others must share with them; expansions are of one type."""
    for op in mlir_util.walk(module.operation):
        values = [*op.operands, *op.results]
        if not all(isinstance(value.type, ir.RankedTensorType) for value in values):
            continue
        if all(value.type.has_static_shape for value in values):
            continue
        known = [shape(value.type) for value in values]
        for group in _alike(op, [len(extents) for extents in known]):
            for places in zip(*([(value, axis) for axis in axes] for value, axes in group), strict=True):
                extent = max(known[value][axis] for value, axis in places)
                for value, axis in places:
                    known[value][axis] = extent
        _know_lengths(op, known)
        for place, (value, extents) in enumerate(zip(values, known, strict=True)):
            if shape(value.type) == extents:
                continue
            type_ = ir.Type.parse(tensor(extents, element(value.type)), op.context)
            if place < len(op.operands):
                op.operands[place] = Builder(op).value("tensor.cast", [value], type_)
            else:
                mlir_util.retype_result(value, type_, "tensor.cast")


def _alike(op: Any, ranks: Sequence[int]) -> list[_Group]:
    """What has the same extents, of values of ``ranks``."""
    many, count = len(op.results), len(op.operands)
    inputs, results = range(count), range(count, count + many)

    def same(*values: Iterable[int]) -> list[_Group]:
        return [[(value, range(ranks[value])) for value in group] for group in values]

    if op.name in _ELEMENTWISE or (
        op.name.startswith("chlo.") and many == count == 1
    ):  # scalars say how tensors are clamped, and which are selected
        return same([n for n in (*inputs, *results) if ranks[n] == ranks[-1]])
    if op.name in _SAME:
        return same((*inputs, *results))
    if op.name == "chlo.top_k":
        return [[(value, range(ranks[value] - 1)) for value in (*inputs, *results)]]
    if op.name in ("stablehlo.reduce", "stablehlo.reduce_window"):
        return same(inputs[:many], results)
    if op.name == "stablehlo.scatter":
        return same((*inputs[:many], *results), inputs[many + 1 :])
    if op.name in ("stablehlo.select_and_scatter", "stablehlo.dynamic_update_slice", "stablehlo.reverse"):
        return same((*inputs[:1], *results))
    if op.name == "stablehlo.fft":
        return [[(value, range(ranks[value] - 1)) for value in (0, 1)]]
    if op.name == "stablehlo.cholesky":
        return [
            [(0, range(ranks[0] - 2)), (1, range(ranks[1] - 2))],
            [*_square(0, ranks[0]), *_square(1, ranks[0])],
        ]
    if op.name == "stablehlo.triangular_solve":
        batch, side = range(ranks[0] - 2), ranks[0] - 2 if flag(op, "left_side") else ranks[0] - 1
        return [
            *same((1, 2)),
            [(0, batch), (1, batch), (2, batch)],
            [*_square(0, ranks[0]), (1, [side]), (2, [side])],
        ]
    if op.name in _BATCH_NORMS:
        feature = [number(op, "feature_index")]
        wide = [0, count, *([4] if op.name.endswith("grad") else [])]
        return [*same(wide), [(value, feature if value in wide else [0]) for value in (*inputs, *results)]]
    if op.name == "stablehlo.einsum":
        terms = terms_of(op)
        return [
            [
                (value, [axis])
                for value, term in enumerate(terms)
                for axis, each in enumerate(term)
                if each == letter
            ]
            for letter in set("".join(terms))
            if "." not in "".join(terms)
        ]
    return []


def _square(value: int, rank: int) -> _Group:
    """Of matrices."""
    return [(value, [rank - 2]), (value, [rank - 1])]


def _know_lengths(op: Any, known: Sequence[list[int]]) -> None:
    """Extents that attributes say."""
    if op.name == "chlo.top_k":
        for extents in known[1:]:
            extents[-1] = number(op, "k")
    elif op.name == "stablehlo.fft":
        lengths, kind = integers(op, "fft_length"), enum(op, "fft_type")
        for extents, is_half in zip(known, (kind == "IRFFT", kind == "RFFT"), strict=True):
            extents[-len(lengths) :] = [*lengths[:-1], lengths[-1] // 2 + 1 if is_half else lengths[-1]]
    elif op.name == "stablehlo.slice":
        bounds = (integers(op, name) for name in ("start_indices", "limit_indices", "strides"))
        known[1][:] = [len(range(*bound)) for bound in zip(*bounds, strict=True)]
