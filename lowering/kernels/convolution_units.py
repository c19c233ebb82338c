"""How a convolution is cut into units of work: blocks of pixels, each with a part of the filters.

Where all sizes are known, a model of what a unit takes says which way several numbers of threads are done soonest;
else there are as many blocks as a convolution of any size may need.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heapreplace
from math import prod

from devscope.lowering.kernels.block_sizes import block_extents, elements_of_block, packing_time
from devscope.lowering.kernels.index_text import Index, IndexText
from devscope.lowering.kernels.table import Row
from devscope.lowering.kernels.windowed import Windowed

_THREADS = (1, 2, 4, 8, 16)

_FEW = 8
"""Blocks of sums in registers that packing a part of the image is worth for."""

_UNITS = 4
"""Of work, at least, that a convolution of unknown sizes is cut into, if it is large."""

_WORK = 1 << 20
"""Multiplications of a part of the filters, at least."""

_STEP_CYCLES = 1.0
"""Of a step of the sums, beside those of products, one for a vector."""

_BEGIN_CYCLES = 12000.0
"""Until all threads have begun with the next tasks."""

_SHARED = 3
"""Times ``elements``: what is packed before all tasks, which share it, is to stay in the caches, too."""

_LESS = 2
"""Rows by which blocks of sums in registers may be smaller than the table's."""


@dataclass(frozen=True)
class Units:
    """``blocks``: how many pixels of each loop a block has; ``number``: of blocks; ``parts``: of the filters;
    both None if they are to be found at run time. ``rows``: of a block of sums in registers."""

    blocks: dict[int, int]
    number: int | None
    parts: int | None
    rows: int


@dataclass(frozen=True)
class Sizes:
    """``images``: parts of the result that have no block in common, batches and phases; None is unknown."""

    images: int | None
    filters: int | None
    sums: int | None


def units(found: Windowed, chain: Sequence[int], sizes: Sizes, row: Row, packs: bool) -> Units:
    """``chain``: the loops of pixels. ``packs``: whether parts of the image are packed."""
    numbers = row.numbers
    rows, most = numbers["rows"], numbers["elements"]
    pixels = found.size(chain)
    if not (pixels and sizes.images and sizes.filters and sizes.sums):
        few = _FEW * rows
        if pixels is not None and sizes.images is not None:
            few = min(max(few, sizes.images * pixels // numbers["tasks"]), numbers["pixels"])
        return Units(block_extents(found, chain, {}, few, most), None, None, rows)
    panels = -(-sizes.filters // numbers["columns"])
    most_parts = max(1, min(panels, sizes.images * pixels * sizes.filters * sizes.sums // _WORK))
    extents = [found.extent(loop) or 1 for loop in chain]
    vectors = numbers["columns"] // numbers["lanes"]

    def candidates() -> Iterator[tuple[float, Units]]:
        known: set[tuple[int, ...]] = set()
        for count in (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32):
            at_most = max(min(-(-pixels // count), numbers["pixels"]), min(-(-_FEW // panels) * rows, pixels))
            blocks = block_extents(found, chain, {}, at_most, most)
            extent = tuple(blocks.values())
            if extent in known:
                continue
            known.add(extent)
            number = (sizes.images or 1) * prod(
                -(-whole // blocks[loop]) for loop, whole in zip(chain, extents, strict=True)
            )
            inside = prod(extent)
            packing = packing_time(found, blocks, numbers["lanes"]) if packs else 0
            fits = not packs or number * elements_of_block(found, blocks) <= _SHARED * most
            for registers in range(rows, max(rows - _LESS, 1) - 1, -1):
                tiles = -(-inside // registers)
                of_panel = tiles * (registers * vectors + _STEP_CYCLES) * (sizes.sums or 1)
                for parts in _parts(panels, most_parts if fits else 1):
                    unit = of_panel * -(-panels // parts)
                    first = packing * number if packs and parts > 1 else 0
                    taken = _time(unit if first else unit + packing, number * parts, numbers["tasks"], first)
                    yield taken, Units(blocks, number, parts, registers)

    return min(candidates(), key=lambda each: each[0])[1]


def _parts(panels: int, most: int) -> list[int]:
    """Numbers of parts, each the least with its number of panels."""
    return sorted({-(-panels // -(-panels // parts)) for parts in range(1, min(most, 16) + 1)})


def _time(unit: float, count: int, tasks: int, first: float) -> float:
    """Until ``first`` and then ``count`` units are done, each of which takes ``unit``, added up for different
    numbers of threads."""
    workers = min(count, tasks)
    each, left = divmod(count, workers)
    work = [each + 1] * left + [each] * (workers - left)
    total = 0.0
    for threads in _THREADS:
        busy = [0] * threads
        heapify(busy)
        for one in work:
            heapreplace(busy, busy[0] + one)
        total += max(busy) * unit
        if first:
            total += first / min(threads, tasks) + (_BEGIN_CYCLES if threads > 1 else 0)
    return total


def parts_at_run_time(text: IndexText, blocks: Index, panels: Index, work: Index) -> Index:
    """Of the filters, for tasks of their own: each packs the block's part of the image again."""
    wanted = text.ceildiv(_UNITS, text.max(blocks, 1))
    return text.max(text.min(text.min(wanted, panels), text.div(work, _WORK)), 1)
