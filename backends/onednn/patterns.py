"""What ``onednn`` takes: products and convolutions with what follows them, and softmax however it is written."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import NamedTuple

from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.ir import Operation, SSAValue

from devscope.analysis.patterns import Match, broadcast, constant, elementwise, op, relu, wildcard
from devscope.analysis.patterns.attributes import splat_value
from devscope.analysis.patterns.elements import dimensions_of, is_parallel, kind_of_scalar
from devscope.analysis.patterns.language import Custom, Either, Pattern
from devscope.analysis.patterns.python_values import python_value
from devscope.backends.contractions import BATCH, MATRICES, is_zero, made_inside, product_of, rank_of, transposes
from devscope.dialects.names import op_name


class Layout(NamedTuple):
    """The axes of a convolution's image, filters and result: ``n`` batch, ``g`` group, ``c`` channel, ``f``
    filter, and of space ``d``, ``h``, ``w``."""

    image: str
    filters: str
    result: str

    @property
    def space(self) -> str:
        return "".join(axis for axis in self.image if axis in "dhw")

    @property
    def channels_last(self) -> bool:
        return self.image[-1] not in "dhw"

    @property
    def channel(self) -> str:
        return "f" if "f" in self.result else "g"


LAYOUTS = {
    "linalg.conv_1d_nwc_wcf": Layout("nwc", "wcf", "nwf"),
    "linalg.conv_1d_ncw_fcw": Layout("ncw", "fcw", "nfw"),
    "linalg.conv_2d_nhwc_hwcf": Layout("nhwc", "hwcf", "nhwf"),
    "linalg.conv_2d_nhwc_fhwc": Layout("nhwc", "fhwc", "nhwf"),
    "linalg.conv_2d_nchw_fchw": Layout("nchw", "fchw", "nfhw"),
    "linalg.conv_2d_ngchw_gfchw": Layout("ngchw", "gfchw", "ngfhw"),
    "linalg.conv_2d_nhwgc_gfhwc": Layout("nhwgc", "gfhwc", "nhwgf"),
    "linalg.conv_3d_ndhwc_dhwcf": Layout("ndhwc", "dhwcf", "ndhwf"),
    "linalg.conv_3d_ncdhw_fcdhw": Layout("ncdhw", "fcdhw", "nfdhw"),
    "linalg.depthwise_conv_1d_nwc_wc": Layout("nwg", "wg", "nwg"),
    "linalg.depthwise_conv_1d_ncw_cw": Layout("ngw", "gw", "ngw"),
    "linalg.depthwise_conv_2d_nhwc_hwc": Layout("nhwg", "hwg", "nhwg"),
    "linalg.depthwise_conv_2d_nhwc_hwcm": Layout("nhwg", "hwgf", "nhwgf"),
    "linalg.depthwise_conv_2d_nchw_chw": Layout("nghw", "ghw", "nghw"),
}

_COUNT = count()


def _number(value: float) -> Pattern:
    """A constant that is ``value``, to as many digits as f32 has."""

    def check(found: SSAValue) -> bool:
        number = splat_value(found)
        return number is not None and math.isclose(number, value, rel_tol=1e-6)

    return constant().where(check)


def _gelu(x: Pattern, is_exact: bool) -> Pattern:
    """``x / 2 * (1 + erf(x / sqrt(2)))``, or its approximation by ``tanh``."""
    x, half = x.named(x.name or f"_gelu{next(_COUNT)}"), _number(0.5)
    if is_exact:
        inner = elementwise("mul", x, _number(math.sqrt(0.5))) | elementwise("div", x, _number(math.sqrt(2)))
        curve = elementwise("erf", inner)
    else:
        cube = elementwise("mul", x, elementwise("mul", x, x)) | elementwise("pow", x, _number(3.0))
        sum_ = elementwise("add", x, elementwise("mul", cube, _number(0.044715)))
        curve = elementwise("tanh", elementwise("mul", sum_, _number(math.sqrt(2 / math.pi))))
    above = elementwise("add", curve, _number(1.0))
    return (
        elementwise("mul", elementwise("mul", x, half), above)
        | elementwise("mul", x, elementwise("mul", above, half))
        | elementwise("mul", elementwise("mul", x, above), half)
    )


ACTIVATIONS: Mapping[str, Callable[[Pattern], Pattern]] = {
    "relu": relu,
    "gelu": lambda x: _gelu(x, True),
    "gelu_tanh": lambda x: _gelu(x, False),
    "tanh": lambda x: elementwise("tanh", x),
}


# ------------------------------------------------------------------------------------------------ convolutions


def _padding(pad: Operation) -> tuple[Sequence[Operation], Mapping[str, SSAValue]] | str:
    """The padding of an image by zeros."""
    inside = pad.regions[0].first_block
    end = None if inside is None else inside.last_op
    if end is None or splat_value(end.operands[0]) != 0:
        return "the image is padded by something else than zero"
    for side in ("static_low", "static_high"):
        if any(size < 0 for size in python_value(pad.get_attr_or_prop(side))):
            return "how much the image is padded is not known"
    return [pad], {"image": pad.operands[0]}


def _convolutions() -> Sequence[tuple[Pattern, int]]:
    """Patterns of convolutions, and the axis of the channels of their results, from the end."""
    image = Custom(_padding, "the padding of an image", ("tensor.pad",)) | wildcard().named("image")
    by_axis: dict[int, list[str]] = {}
    for name, layout in LAYOUTS.items():
        by_axis.setdefault(layout.result.index(layout.channel) - len(layout.result), []).append(name)
    return [
        (op(names, image, wildcard().named("filters"), wildcard().named("init")).named("product"), axis)
        for axis, names in by_axis.items()
    ]


def _any(patterns: Sequence[Pattern]) -> Pattern:
    return Either(tuple(patterns)) if len(patterns) > 1 else patterns[0]


def _with_bias(product: Pattern, axis: int) -> Pattern:
    return elementwise("add", product, broadcast(wildcard().named("bias"), [axis]))


def rows() -> Iterator[tuple[str, Pattern]]:
    """Products and convolutions by name, the longest patterns first."""
    products = {"convolution": _convolutions(), "matmul": [(MATRICES, -1)], "batch_matmul": [(BATCH, -1)]}
    for name, found in products.items():
        product = _any([one for one, _ in found])
        biased = _any([_with_bias(one, axis) for one, axis in found])
        both, summed = (elementwise("add", one, wildcard().named("sum")) for one in (biased, product))
        for activation, step in ACTIVATIONS.items():
            before = _any([both, biased, summed, product]).named("before")
            yield f"{name}_{activation}", step(before).named(activation)
        yield f"{name}_bias", biased
        yield f"{name}_sum", both | summed
        yield name, product


def accepts(match: Match) -> bool | str:
    """Whether oneDNN computes a product or a convolution as it is written."""
    found = next(iter(match.named(*LAYOUTS)), None)
    product = product_of(match) if found is None else found
    values = [*product.operands[:3], match.root.results[0], *(match[n] for n in ("bias", "sum") if n in match)]
    for value in values:
        if not isinstance(value.type, TensorType) or str(value.type.get_element_type()) != "f32":
            return f"it computes with f32, not with {value.type}"
    factors = [match[name] for name in ("a", "b", "image", "filters", "bias") if name in match]
    if (reason := made_inside(*factors)) is not None:
        return reason
    if "bias" in match and not is_zero(match["init"]):
        return "it adds to a tensor, and a bias to that"
    if "sum" in match and not is_zero(match["init"]):
        return "it adds to two tensors"
    if "sum" in match and rank_of(match["sum"]) != rank_of(product.results[0]):
        return "what it adds is not of the result's shape"
    if "gelu" in match and not match.options.get("finite"):
        return "its gelu of an infinity is no number; where there is none: onednn:finite=true"
    return _accepts_product(product) if found is None else _accepts_convolution(product, match)


def _accepts_product(product: Operation) -> bool | str:
    turned = transposes(product)
    if turned is None:
        return "its indexing maps are not those of a product of matrices"
    shape = _shape(product.operands[0])
    inner = shape[-2 if turned[0] else -1]
    return inner > 0 or "how many products it sums is not known, or none"


def _accepts_convolution(product: Operation, match: Match) -> bool | str:
    layout = LAYOUTS[op_name(product)]
    if any(size <= 0 for size in _shape(product.operands[1])):
        return "the sizes of its filters are not known, or 0"
    if "bias" in match and "gf" in layout.result:
        return "its bias is that of a group"
    before = product.operands[0].owner
    if before in match.ops and isinstance(before, Operation):
        pads = [python_value(before.get_attr_or_prop(side)) for side in ("static_low", "static_high")]
        if any(
            sizes[axis] for sizes in pads for axis, name in enumerate(layout.image) if name not in layout.space
        ):
            return "it is padded along more than space"
    return True


# ------------------------------------------------------------------------------------------------ softmax


def _reduction(kind: str, rank: int, axis: int, name: str) -> Pattern:
    """The greatest (``max``) or the sum (``add``) along an axis of the tensor ``name``."""

    def check(reduce: Operation) -> tuple[Sequence[Operation], Mapping[str, SSAValue]] | str:
        block = reduce.regions[0].first_block
        end = None if block is None else block.last_op
        if block is None or end is None or len(end.operands) != 1 or len(reduce.operands) != 2:
            return "it reduces several tensors"
        found = end.operands[0].owner
        if not isinstance(found, Operation) or kind_of_scalar(op_name(found)) != kind:
            return f"it does not reduce by '{kind}'"
        if {*found.operands} != {*block.args} or rank_of(reduce.operands[0]) != rank:
            return "it reduces something else"
        if _reduced(reduce) != [axis]:
            return f"it does not reduce axis {axis}"
        if splat_value(reduce.operands[1]) != (-math.inf if kind == "max" else 0.0):
            return "it reduces to a number that was there before"
        return [reduce], {name: reduce.operands[0]}

    return Custom(check, f"a reduction by '{kind}'", ("linalg.generic", "linalg.reduce"))


def _reduced(reduce: Operation) -> list[int] | None:
    """The axes along which an operation reduces, where it reads its operand as it is."""
    if op_name(reduce) == "linalg.reduce":
        return python_value(reduce.get_attr_or_prop("dimensions"))
    maps, kinds = reduce.get_attr_or_prop("indexing_maps"), reduce.get_attr_or_prop("iterator_types")
    axes = [axis for axis, kind in enumerate(getattr(kinds, "data", ())) if not is_parallel(kind)]
    taken, given = (dimensions_of(one.data) for one in getattr(maps, "data", ()))
    rank = rank_of(reduce.operands[0])
    kept = tuple(axis for axis in range(rank) if axis not in axes)
    return axes if taken == tuple(range(rank)) and given == kept else None


def _softmax(rank: int, axis: int) -> Pattern:
    """``exp(x - max(x)) / sum``, of which each is an operation of its own, or several are."""
    kept = [other for other in range(rank) if other != axis]
    x = wildcard().named("x")
    greatest = _reduction("max", rank, axis, "x")
    powers = elementwise("exp", elementwise("sub", x, broadcast(greatest, kept))).named("powers")
    total = _reduction("add", rank, axis, "powers")
    return elementwise("div", powers, broadcast(total, kept)).named(f"axis{axis}")


SOFTMAX = _any(
    [
        op("linalg.softmax", wildcard().named("x")),
        *(_softmax(rank, axis) for rank in range(1, 5) for axis in range(rank)),
    ]
)


def softmax_axis(match: Match) -> int:
    if op_name(match.root) == "linalg.softmax":
        return int(match.attribute("dimension"))
    return next(axis for axis in range(4) if f"axis{axis}" in match)


def accepts_softmax(match: Match) -> bool | str:
    type_ = match["x"].type
    if not isinstance(type_, TensorType) or str(type_.get_element_type()) != "f32":
        return f"it computes with f32, not with {type_}"
    return made_inside(match["x"]) or True


def _shape(value: SSAValue) -> Sequence[int]:
    """Sizes, -1 for those that are not known."""
    assert isinstance(value.type, TensorType)
    return [-1 if size == DYNAMIC_INDEX else size for size in value.type.get_shape()]
