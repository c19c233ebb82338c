"""How many results a block has, of windows over an image, and what it reads."""

from collections.abc import Collection, Mapping, Sequence
from math import prod

from devscope.lowering.kernels.windowed import Windowed, strides_of

_UNKNOWN = 16
"""Elements of a window that are assumed where they are not known."""

_ROW_CYCLES, _VECTOR_CYCLES, _ELEMENT_CYCLES = 16, 10, 3
"""Of packing: for a row, and for each vector or element of it."""


def block_extents(
    found: Windowed, loops: Sequence[int], blocks: Mapping[int, int], most: int, most_elements: int
) -> dict[int, int]:
    """How many iterations of ``loops`` of the result a block has: all of the last ones, and parts of one.

    ``blocks``: those of other loops. ``most``: of a block; ``most_elements``: of its part of the image, if there
    are more than one of each.
    """
    made = {**blocks, **dict.fromkeys(loops, 1)}

    def fits(loop: int, count: int) -> bool:
        parts = {**made, loop: count}
        return prod(parts[each] for each in loops) <= most and elements_of_block(found, parts) <= most_elements

    for loop in reversed(loops):
        extent = found.extent(loop)
        if extent is not None and fits(loop, extent):
            made[loop] = max(extent, 1)
            continue
        count = 1
        while fits(loop, count + 1):
            count += 1
        if extent is not None:  # blocks of about the same size
            count = -(-extent // -(-extent // count))
        made[loop] = count
        break
    return made


def axes_of_block(found: Windowed, loops: Collection[int]) -> list[int]:
    """Those along which blocks with parts of ``loops`` have several elements of the image, or may have none."""
    return [
        number
        for number, axis in enumerate(found.axes)
        if axis.inner is not None or axis.outer in loops or axis.place.checked or axis.place.holes != 1
    ]


def elements_of_block(found: Windowed, blocks: Mapping[int, int]) -> int:
    """Of the part of an image that a block is computed from."""
    return prod(_sizes(found, blocks))


def packing_time(found: Windowed, blocks: Mapping[int, int], lanes: int) -> float:
    """Of the part of an image that a block is computed from, in cycles of a processor, roughly."""
    *others, last = _sizes(found, blocks)
    source = found.axes[-1].place.source
    by_vectors = source is not None and strides_of(found.image.value)[source] == 1
    row = _VECTOR_CYCLES * -(-last // lanes) if by_vectors else _ELEMENT_CYCLES * last
    return prod(others) * (_ROW_CYCLES + row)


def _sizes(found: Windowed, blocks: Mapping[int, int]) -> list[int]:
    """Of the part of an image that a block is computed from, along each axis."""
    sizes: list[int] = []
    for axis in found.axes:
        outer = 1 if axis.outer is None else blocks.get(axis.outer, 1)
        inner = 1 if axis.inner is None else found.extent(axis.inner)
        sizes.append((outer - 1) * axis.step + ((_UNKNOWN if inner is None else inner) - 1) * axis.dilation + 1)
    return sizes
