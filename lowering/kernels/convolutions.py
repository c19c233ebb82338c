"""Convolutions and pooling on buffers become calls of kernels.

The loops of a convolution are pixels (in the image and the result), filters (in the filters and the result),
groups (in all three) and sums (not in the result). With filters it is a contraction whose one matrix is read from
the image as it is packed: `convolution_kernels`. Others, and pooling, are computed in place: `window_kernels`.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop import bindings
from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels.accumulators import is_zero
from devscope.lowering.kernels.images import erase_unused, image_of
from devscope.lowering.kernels.library import KernelLibrary
from devscope.lowering.kernels.packed_constants import PackedConstants
from devscope.lowering.kernels.repeated_channels import with_repeated_channels
from devscope.lowering.kernels.table import Schedules
from devscope.lowering.kernels.windowed import Axis, Element, Windowed
from devscope.lowering.windows import sum_of_loops

_LEAST_WORK = 4096
"""Multiplications below which loops are as fast, and compiled sooner."""

_COMPUTED_IN = {"f16": "f32", "bf16": "f32"}

_EXTENSIONS = frozenset({"arith.extf", "arith.extsi", "arith.extui", "arith.sitofp", "arith.uitofp"})

_COMBINATIONS = frozenset(
    f"arith.{name}"
    for name in (
        *("addf", "addi", "mulf", "muli", "maximumf", "minimumf", "maxnumf", "minnumf"),
        *("maxsi", "minsi", "maxui", "minui"),
    )
)


def call_convolutions(
    ops: Iterable[Any], schedules: Schedules, library: KernelLibrary, constants: PackedConstants
) -> None:
    """Replace those of ``ops``, of bufferised host code, which have windows, for which there are rows."""
    linalg = bindings.load("_mlir_libs._mlirDialectsLinalg")
    for op in ops:
        found = _match(op, linalg)
        if found is not None:
            _replace(found, schedules, library, constants)


def _replace(found: Windowed, schedules: Schedules, library: KernelLibrary, constants: PackedConstants) -> None:
    # For what matches, which is rare.
    from devscope.lowering.kernels import convolution_kernels, convolution_words, window_kernels

    op = found.op
    found = with_repeated_channels(found) or found
    for kernels in (convolution_kernels, window_kernels):
        plan = kernels.plan(found)
        if plan is None:
            continue
        sizes, contiguous = plan.sizes(), plan.contiguous()
        words = convolution_words.words_for(found, constants) if kernels is convolution_kernels else None
        row = schedules.find(kernels.KIND, found.element, sizes, contiguous, words.element if words else None)
        if row is not None and words is not None and row.element == words.element:
            over_words = plan.of_words(words, row, library, constants)
            if over_words is None:
                row = schedules.find(kernels.KIND, found.element, sizes, contiguous)
            plan = over_words or plan
        if row is not None:
            schedules.note(op, row, found.element, sizes, contiguous)
        if row is not None and row.template == convolution_kernels.PLANES:
            plan = window_kernels.plan(found)
            assert plan is not None
        if row is not None:
            plan.replace(row, schedules, library, constants)
            erase_unused(found.image)
            return


def _match(op: Any, linalg: Any) -> Windowed | None:
    """None for what stays loops."""
    *inputs, result = list(op.operands)
    buffers = [value for value in inputs if mlir_util.is_memref(value.type)]
    if not 1 <= len(buffers) <= 2 or not mlir_util.is_memref(result.type) or not list(op.regions):
        return None
    maps = [ir.AffineMapAttr(attribute).value for attribute in linalg.get_indexing_maps(op)]
    indices = [[sum_of_loops(index) for index in map_.results] for map_ in maps]
    numbers = [number for number, value in enumerate(inputs) if mlir_util.is_memref(value.type)]
    payload = _payload(op)
    if payload is None:
        return None
    combine, x, w = payload
    if numbers[0] != x.operand or (w is not None and numbers[1] != w.operand):
        return None
    axes_of_result = _axes(indices[-1])
    axes_of_weights = _axes(indices[numbers[1]]) if len(numbers) > 1 else {}
    if axes_of_result is None or axes_of_weights is None or any(index is None for index in indices[x.operand]):
        return None
    image = image_of(op, inputs[x.operand])
    if w is not None and image.outside is not None and not is_zero(image.outside.rpartition(" : ")[0]):
        return None
    axes: list[Axis] = []
    for terms, place in zip(indices[x.operand], image.axes, strict=True):
        outer = [term for term in terms or () if term[0] in axes_of_result]
        inner = [term for term in terms or () if term[0] not in axes_of_result]
        if len(outer) > 1 or len(inner) > 1 or any(factor < 1 for _, factor in (*outer, *inner)):
            return None
        axes.append(Axis(*(outer or [(None, 1)])[0], *(inner or [(None, 1)])[0], place))
    used = [loop for axis in axes for loop in (axis.outer, axis.inner) if loop is not None]
    if len(used) != len(set(used)):
        return None
    element = str(ir.MemRefType(result.type).element_type)
    window = inputs[numbers[1]] if len(numbers) > 1 else None
    found = Windowed(
        op,
        image,
        axes,
        window,
        axes_of_weights,
        result,
        axes_of_result,
        _COMPUTED_IN.get(element, element),
        combine,
        x,
        w,
        maps[0].n_dims,
    )
    return found if _is_worth_it(found) else None


def _is_worth_it(found: Windowed) -> bool:
    work = 1
    for loop in range(found.loops):
        place = found.place_of(loop)
        if place is None:
            return False
        extent = found.extent(loop)
        if extent is not None:
            work *= extent
        else:
            return all(found.place_of(other) is not None for other in range(found.loops))
    return work >= _LEAST_WORK


def _axes(indices: Sequence[Any]) -> dict[int, int] | None:
    """The axis that each loop is the index of; None if an index is anything else than a loop."""
    found: dict[int, int] = {}
    for axis, terms in enumerate(indices):
        if terms is None or len(terms) != 1 or terms[0][1] != 1 or terms[0][0] in found:
            return None
        found[terms[0][0]] = axis
    return found


def _payload(op: Any) -> tuple[str, Element, Element | None] | None:
    """What is done with the result so far, and elements of the image and, if there are products, the filters."""
    arguments = {argument: number for number, argument in enumerate(mlir_util.entry_block(op).arguments)}
    last = len(arguments) - 1
    end = mlir_util.children(op)[-1]
    combine = _definition(end.operands[0], arguments)
    if len(end.operands) != 1 or combine is None or combine.name not in _COMBINATIONS:
        return None
    others = [value for value in combine.operands if arguments.get(value) != last]
    if len(others) != 1 or len(combine.operands) != 2:
        return None
    product = _definition(others[0], arguments)
    if product is not None and product.name in ("arith.mulf", "arith.muli"):
        if combine.name != product.name.replace("mul", "add"):
            return None
        elements = [_element(op, value, arguments) for value in product.operands]
        x, w = (
            sorted((each for each in elements if each is not None), key=lambda each: each.operand)
            if None not in elements
            else (None, None)
        )
        if x is None or w is None or x.operand == w.operand or w.operand == last:
            return None
        return combine.name, x, w
    element = _element(op, others[0], arguments)
    return None if element is None or element.operand != 0 else (combine.name, element, None)


def _definition(value: Any, arguments: Any) -> Any | None:
    return None if value in arguments or isinstance(value.owner, ir.Block) else value.owner.operation


def _element(op: Any, value: Any, arguments: dict[Any, int]) -> Element | None:
    """An element as it is computed with: extended, and less a zero point."""
    minus: Any = None
    inner = _definition(value, arguments)
    if inner is not None and inner.name == "arith.subi":
        value, minus = inner.operands
        if minus in arguments:
            minus = op.operands[arguments[minus]]
            if isinstance(minus.type, ir.ShapedType):
                return None
        elif _is_inside(minus, op):
            return None
        inner = _definition(value, arguments)
    extend = ""
    if inner is not None and inner.name in _EXTENSIONS:
        extend, value = inner.name, inner.operands[0]
    return Element(arguments[value], extend, minus) if value in arguments else None


def _is_inside(value: Any, op: Any) -> bool:
    return any(value in inner.results for inner in mlir_util.children(op))
