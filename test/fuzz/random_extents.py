"""Extents of random programs that are computed as they run: index values, each named in the types that have it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from random_values import Environment, scalar

if TYPE_CHECKING:
    from random_program import Block, Generator

INDEX = scalar("index")
Extent = int | str


def spelt(extent: Extent) -> str:
    return f"%{extent}" if isinstance(extent, str) else str(extent)


def size(e: Environment, extent: Extent) -> int:
    return e.sizes([extent])[0]


def opaque(g: Generator, block: Block, value: int) -> str:
    """An index of this value that is computed from an argument: n - n + value."""
    zero = g.emit(block, INDEX, "arith.subi %n, %n : index", lambda _: np.int64(0), hidden=True)
    constant = g.constant_scalar(block, INDEX, value)[0]
    return g.emit(block, INDEX, f"arith.maxsi {zero}, {constant} : index", lambda _: np.int64(value), hidden=True)


def computed(
    g: Generator, block: Block, name: str, x: Extent, y: Extent, function: Callable[[int, int], int]
) -> str:
    """The extent that ``arith.<name>`` makes of two others."""
    names = [f"%{v}" if isinstance(v, str) else g.constant_scalar(block, INDEX, v)[0] for v in (x, y)]
    text = f"arith.{name} {', '.join(names)} : index"
    made = g.emit(block, INDEX, text, lambda e: np.int64(function(size(e, x), size(e, y))), hidden=True)
    return made.removeprefix("%")


def total(g: Generator, block: Block, extents: Sequence[Extent]) -> Extent:
    """Their sum."""
    known = sum(e for e in extents if isinstance(e, int))
    found: Extent = known
    for extent in extents:
        if isinstance(extent, str):
            found = extent if found == 0 else computed(g, block, "addi", found, extent, lambda x, y: x + y)
    return found


def size_of(g: Generator, block: Block, extents: Sequence[Extent]) -> Extent:
    """Their product, of which the generator knows what it is a product of."""
    known = math.prod(e for e in extents if isinstance(e, int))
    dynamic = [e for e in extents if isinstance(e, str)]
    if not dynamic or (known == 1 and len(dynamic) == 1):
        return dynamic[0] if dynamic else known
    found: Extent = dynamic[0]
    for extent in [*dynamic[1:], *([known] if known != 1 else [])]:
        found = computed(g, block, "muli", found, extent, lambda x, y: x * y)
    g.factors[str(found)] = list(extents)
    return found


@dataclass
class Slice:
    """Text of offsets, sizes and strides, the shape, and the numpy index of a slice of a tensor."""

    offsets: list[str] = field(default_factory=list[str])
    sizes: list[str] = field(default_factory=list[str])
    strides: list[str] = field(default_factory=list[str])
    shape: list[Extent] = field(default_factory=list[Extent])
    index: list[Callable[[Environment], slice]] = field(default_factory=list[Callable[[Environment], slice]])

    def text(self) -> str:
        return " ".join(f"[{', '.join(part)}]" for part in (self.offsets, self.sizes, self.strides))

    def add(
        self, offset: Extent, extent: Extent, stride: int, stride_text: str = "", offset_text: str = ""
    ) -> None:
        self.offsets.append(offset_text or spelt(offset))
        self.sizes.append(spelt(extent))
        self.strides.append(stride_text or str(stride))
        self.shape.append(extent)

        def index(e: Environment) -> slice:
            first, count = size(e, offset), size(e, extent)
            return slice(first, first + (count - 1) * stride + 1 if count else first, stride)

        self.index.append(index)


def slice_of(g: Generator, block: Block, shape: Sequence[Extent]) -> Slice:
    """Inside of a tensor of this shape, which has no dimension that is known to be empty."""
    found = Slice()
    for extent in shape:
        if isinstance(extent, str) and g.chance(0.5):
            found.add(0, extent, 1)
        elif isinstance(extent, str) or g.chance(0.15):
            _dynamic_part(g, block, extent, found)
        else:
            _static_part(g, block, extent, found)
    return found


def _static_part(g: Generator, block: Block, extent: int, found: Slice) -> None:
    count, stride = g.integer(0 if g.chance(0.1) else 1, extent + 1), 1
    if count and extent >= 2 * count and g.chance(0.5):
        stride = g.integer(1, extent // count + 1)
    offset = g.integer(0, extent - max(count - 1, 0) * stride)
    offset_text = ""
    if g.chance(0.3):
        offset_text = g.constant_scalar(block, INDEX, offset)[0]
        if g.chance(0.5):  # which the compiler cannot know
            offset_text = opaque(g, block, offset)
    found.add(offset, count, stride, opaque(g, block, stride) if g.chance(0.1) else "", offset_text)


def _dynamic_part(g: Generator, block: Block, extent: Extent, found: Slice) -> None:
    """From a place in front of the last on, all of the rest or some of it; nothing of an empty dimension."""
    offset: Extent = 0
    rest = extent
    if g.chance(0.6):
        last = computed(g, block, "subi", extent, 1, lambda x, y: x - y)
        inside = computed(g, block, "maxsi", last, 0, max)
        offset = computed(g, block, "minsi", inside, g.integer(0, 4), min)
        rest = computed(g, block, "subi", extent, offset, lambda x, y: x - y)
    stride = g.pick((1, 1, 1, 2, 3))
    if stride > 1:
        rest = computed(g, block, "ceildivsi", rest, stride, lambda x, y: -(-x // y))
    if isinstance(rest, int) or g.chance(0.6):
        rest = computed(g, block, "minsi", rest, g.pick(("n", "m", 1, 2, 5)), min)
    found.add(offset, rest, stride, opaque(g, block, stride) if g.chance(0.2) else "")
