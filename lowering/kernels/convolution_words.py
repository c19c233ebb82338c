"""Convolutions of bf16 by instructions that multiply two elements at once: words of two channels of one pixel.

Filters, constants, are packed in words as the program is compiled. Those of the image are made in front of the
kernel, which learns whether its elements and the filters' are so large that nothing on the way can be subnormal.
"""

from dataclasses import dataclass, replace
from math import prod
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels.contraction_words import BYTES, WORD, Words, words_of
from devscope.lowering.kernels.library import KernelLibrary
from devscope.lowering.kernels.packed_constants import PackedConstants
from devscope.lowering.kernels.windowed import FLAT, Windowed, element_of
from devscope.lowering.kernels.windowed_calls import IMAGE, RESULT, Caller

IMAGE_TASKS = 16
"""That make words of an image."""

_TEMPLATE = "image_words"

_LINE = 4096
"""Words of a line where channels stand side by side."""


@dataclass(frozen=True)
class InWords:
    """``filters``: the packed constant; whether all of it is ``finite``; the least exponent of its elements.

    ``least``: a buffer with those of the image, as image_words.mlir has them.
    """

    filters: Any
    finite: bool
    filter_exponent: int
    least: Any


def channels_of(found: Windowed) -> int | None:
    """The loop of sums that elements of one pixel are along."""
    loops = [axis.inner for axis in found.axes if axis.inner is not None and axis.outer is None]
    return loops[0] if len(loops) == 1 else None


def channels_last(found: Windowed, sums: list[int]) -> list[int]:
    """Loops of sums, that of the elements of a word the innermost."""
    channels = channels_of(found)
    return sorted(sums, key=lambda loop: loop == channels)


def words_for(found: Windowed, constants: PackedConstants) -> Words | None:
    """What ``found`` can be computed with, if it can."""
    if found.w is None or not constants.has(found.weights):
        return None
    if len(found.axes_of_weights.keys() & found.axes_of_result.keys()) != 1:
        return None
    words = words_of(element_of(found.image.value), element_of(found.weights), found.element)
    channels = channels_of(found)
    if words is None or words.element == BYTES or channels is None:
        return None
    place = found.axes[_axis(found, channels)].place
    extent, type_ = found.extent(channels), ir.MemRefType(found.image.value.type)
    if any(axis.place.holes != 1 or axis.repeats != 1 for axis in found.axes) or place.checked:
        return None
    if place.source is None or extent is None or extent % words.steps or not mlir_util.is_whole_buffer(type_):
        return None
    return words if type_.shape[place.source] == extent else None


def in_words(
    found: Windowed, sums: list[int], words: Words, width: int, library: KernelLibrary, constants: PackedConstants
) -> tuple[Windowed, InWords] | None:
    """``found`` over words, with lines in front of it that make those of the image. None if filters are too few.

    ``sums``: the loops of sums, that of channels last; ``width``: filters of a panel.
    """
    filters, axes, channels = found.weights, found.axes_of_weights, sums[-1]
    assert filters is not None
    (loop,) = set(axes) - set(sums)
    groups = ([], [axes[loop]], [axes[each] for each in sums])
    packed = constants.pack(found.op, filters, groups, width, words)
    if packed is None:
        return None
    image, least = _image_in_words(found, _axis(found, channels), words, library)
    shape = list(ir.MemRefType(filters.type).shape)
    shape[axes[channels]] //= words.steps
    strides = [prod(shape[axis + 1 :]) for axis in range(len(shape))]
    text = f"""%view = memref.reinterpret_cast %0 to offset: [0], sizes: {shape}, strides: {strides}
        : {packed.type} to memref<{"x".join(map(str, shape))}x{WORD}>"""
    sizes = mlir_util.insert(found.op, text, [packed])[-1].results[0]
    finite = constants.is_finite(filters)
    made = replace(
        found, image=replace(found.image, value=image, outside=f"0 : {WORD}"), weights=sizes, words=words
    )
    return made, InWords(packed, finite, constants.least_exponent(filters), least)


def _axis(found: Windowed, loop: int) -> int:
    number = found.axis_with(loop)
    assert number is not None
    return number


def _image_in_words(found: Windowed, axis: int, words: Words, library: KernelLibrary) -> tuple[Any, Any]:
    """The image in words along ``axis`` of it, and the least bits of its elements."""
    image, source = found.image.value, found.axes[axis].place.source
    assert source is not None
    shape = [*ir.MemRefType(image.type).shape]
    shape[source] //= words.steps
    build, context = mlir_util.Builder(found.op), found.op.context
    type_ = mlir_util.buffer_type(shape, ir.Type.parse(WORD, context))
    made = build.alloc(type_, build.dynamic_sizes(image))
    least = build.alloc(mlir_util.buffer_type([IMAGE_TASKS], ir.Type.parse("i16", context)))
    caller = Caller(found, made, [least])
    sizes = [f"%sizes{RESULT}#{number}" for number in range(len(shape))]
    total, behind = caller.mul(*sizes), caller.mul(*sizes[source + 1 :])
    are_beside = source == len(shape) - 1
    size = _LINE if are_beside else behind
    caller.add_flat("%x", IMAGE, f"%offset{IMAGE}")
    caller.add_flat("%words", RESULT, 0, written=True)
    caller.add_flat("%least", RESULT + 1, 0, written=True)
    # There may be no words of a line.
    lines = caller.ceildiv(total, caller.max(size, 1))
    for name, index in (("%lines", lines), ("%size", size), ("%total", total)):
        caller.add_index(name, index)
    values = {
        "PARAMETERS": caller.text_of_parameters(),
        "TASKS": IMAGE_TASKS,
        "READ": _read(words.element, are_beside),
        "WORDS": FLAT.format(WORD),
        "LEAST": FLAT.format("i16"),
    }
    caller.call(found.op, library.symbol(_TEMPLATE, values), library)
    return made, least


def _read(of: str, are_beside: bool) -> str:
    """Lines for ``%pairs``, the elements of up to 32 words: side by side in memory, or in two planes."""
    if are_beside:
        return f"""%x_at = arith.muli %at, %2 : index
        %x_left = arith.muli %left, %2 : index
        {_read_some("%pairs", of, "%x_at", "%x_left", 64)}"""
    return f"""%plane = arith.muli %begin, %2 : index
        %at0 = arith.addi %plane, %i : index
        %at1 = arith.addi %at0, %size : index
        {_read_some("%half0", of, "%at0", "%left", 32)}
        {_read_some("%half1", of, "%at1", "%left", 32)}
        %pairs = vector.interleave %half0, %half1 : vector<32xi16> -> vector<64xi16>"""


def _read_some(to: str, of: str, at: str, left: str, count: int) -> str:
    """Lines for ``to``: the bits of ``left`` elements from ``at`` on, at most ``count``, and zeros."""
    vector, bits = f"vector<{count}x{of}>", f"vector<{count}xi1>"
    types = f"{FLAT.format(of)}, {bits}, {vector} into {vector}"
    return f"""{to}_none = arith.constant dense<0.0> : {vector}
        {to}_some = vector.create_mask {left} : {bits}
        {to}_read = vector.maskedload %x[{at}], {to}_some, {to}_none : {types}
        {to} = vector.bitcast {to}_read : {vector} to vector<{count}xi16>"""
