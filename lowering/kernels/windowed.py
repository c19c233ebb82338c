"""Operations that move a window over an image, on buffers, and text that their kernels share."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from devscope.lowering.interop.bindings import ir
from devscope.lowering.kernels.contraction_words import WORD, Words
from devscope.lowering.kernels.images import Image, ImageAxis
from devscope.lowering.kernels.index_text import Index, IndexText

FLAT = "memref<?x{}, strided<[1], offset: ?>>"
"""A buffer as one that is not ended, of elements of a type."""


@dataclass(frozen=True)
class Axis:
    """The index ``outer * step + inner * dilation`` along an axis, of loops of the result and of sums.

    ``repeats``: how many indices behind each other are of the same element, along an axis without a window.
    """

    outer: int | None
    step: int
    inner: int | None
    dilation: int
    place: ImageAxis
    repeats: int = 1


@dataclass(frozen=True)
class Element:
    """One of operand ``operand``; ``extend``: what makes it longer, or nothing; ``minus``: its zero point."""

    operand: int
    extend: str
    minus: Any | None


@dataclass
class Windowed:
    """``weights``: filters, or what says how large the windows of pooling are; ``w`` is None for the latter.

    ``element``: the type that is computed in. ``combine``: the operation on the result so far. ``loops``: how many
    there are. ``words``: how elements of one pixel, which image and filters have as words, are multiplied at once.
    """

    op: Any
    image: Image
    axes: list[Axis]
    weights: Any | None
    axes_of_weights: dict[int, int]
    result: Any
    axes_of_result: dict[int, int]
    element: str
    combine: str
    x: Element
    w: Element | None
    loops: int
    words: Words | None = None

    @property
    def packed(self) -> str:
        """The type of what is read in the innermost loop."""
        return WORD if self.words else self.element

    @property
    def sources(self) -> list[Any]:
        """The buffers that are read."""
        return [self.image.value, *([] if self.weights is None else [self.weights])]

    def axis_with(self, loop: int) -> int | None:
        """The axis of the image whose index ``loop`` is in."""
        return next((n for n, axis in enumerate(self.axes) if loop in (axis.outer, axis.inner)), None)

    def place_of(self, loop: int) -> tuple[int, int] | None:
        """An operand (0: image, 1: filters, 2: result) and an axis of it that is as large as the loop."""
        if loop in self.axes_of_weights:
            return 1, self.axes_of_weights[loop]
        if loop in self.axes_of_result:
            return 2, self.axes_of_result[loop]
        for axis in self.axes:
            if axis.inner == loop and axis.outer is None and axis.dilation == 1 and not axis.place.checked:
                return None if axis.place.source is None else (0, axis.place.source)
        return None

    def extent(self, loop: int) -> int | None:
        place = self.place_of(loop)
        if place is None:
            return None
        value = (self.image.value, self.weights, self.result)[place[0]]
        assert value is not None
        extent = ir.MemRefType(value.type).shape[place[1]]
        return None if extent == ir.ShapedType.get_dynamic_size() else extent

    def size(self, loops: Sequence[int]) -> int | None:
        total = 1
        for loop in loops:
            extent = self.extent(loop)
            if extent is None:
                return None
            total *= extent
        return total


def element_of(value: Any) -> str:
    return str(ir.MemRefType(value.type).element_type)


def strides_of(value: Any) -> list[int | None]:
    """None for those that are not known."""
    strides, _ = ir.MemRefType(value.type).get_strides_and_offset()
    dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
    return [None if stride == dynamic else stride for stride in strides]


def zero(element: str) -> str:
    return "0" if element.startswith("i") else "0.0"


def converted(to: str, value: str, element: str, of: str, shape: str, each: Element) -> list[str]:
    """Lines for ``to``: ``value``, a vector of elements of one type, as one of ``of`` less a zero point."""
    source, target = (f"vector<{shape}x{type_}>" for type_ in (element, of))
    name = f"{to}_long" if each.minus is not None else to
    if element == of:
        lines = [f"{name} = arith.bitcast {value} : {source} to {target}"]
    else:
        lines = [f"{name} = {each.extend or 'arith.extf'} {value} : {source} to {target}"]
    if each.minus is not None:
        point = "%zero_x" if each.operand == 0 else "%zero_w"
        lines += [
            f"{to}_point = vector.broadcast {point} : {of} to {target}",
            f"{to} = arith.subi {name}, {to}_point : {target}",
        ]
    return lines


def mask_text(text: IndexText, high: Index, low: Index | None, lanes: int) -> str:
    """A mask of lanes ``low`` to ``high``; None is all below ``high``."""
    type_ = f"vector<{lanes}xi1>"
    mask = text.define(f"vector.create_mask {text.value(high)} : {type_}")
    if low is None:
        return mask
    before, every = (
        text.define(f"vector.create_mask {text.value(low)} : {type_}"),
        text.define(f"arith.constant dense<true> : {type_}"),
    )
    return text.define(f"arith.andi {mask}, {text.define(f'arith.xori {before}, {every} : {type_}')} : {type_}")


def read_line(text: IndexText, buffer: str, at: Index, element: str, lanes: int, stride: Index) -> str:
    """Elements ``stride`` apart, from ``at`` on, of a buffer that is flat; those that are not ``%inside`` are not
    read."""
    type_, flat = f"vector<{lanes}x{element}>", FLAT.format(element)
    at = text.value(at)
    if stride == 0:
        one = text.define(f"memref.load {buffer}[{at}] : {flat}")
        return text.define(f"vector.broadcast {one} : {element} to {type_}")
    nothing = text.define(f"arith.constant dense<{zero(element)}> : {type_}")
    mask = f"vector<{lanes}xi1>"
    if stride == 1:
        types = f"{flat}, {mask}, {type_} into {type_}"
        return text.define(f"vector.maskedload {buffer}[{at}], %inside, {nothing} : {types}")
    index = f"vector<{lanes}xindex>"
    step = text.define(f"vector.broadcast {text.value(stride)} : index to {index}")
    lane = text.define(f"arith.muli {text.define(f'vector.step : {index}')}, {step} : {index}")
    types = f"{flat}, {index}, {mask}, {type_} into {type_}"
    return text.define(f"vector.gather {buffer}[{at}][{lane}], %inside, {nothing} : {types}")
