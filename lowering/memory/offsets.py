"""Places blocks of memory that are needed during intervals of time: no two that overlap in both share a byte."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np


class Block(NamedTuple):
    """``size`` bytes, at least one, needed from ``first`` to ``last``, both included."""

    size: int
    first: int
    last: int


def place(blocks: Sequence[Block], alignment: int) -> tuple[list[int], int]:
    """An offset for each block, a multiple of ``alignment``, and the end of the last byte used.

    Best fit, with the blocks taken by decreasing size; where that leaves holes, other orders are tried too. The
    problem is NP-hard (dynamic storage allocation); `peak` bounds it from below.
    """
    bound = peak(blocks, alignment)
    best: tuple[list[int], int] | None = None
    for key in _ORDERS if len(blocks) <= _FEW else _ORDERS[:1]:
        offsets = _fit(blocks, sorted(range(len(blocks)), key=lambda n: key(blocks[n])), alignment)
        end = max((offset + block.size for offset, block in zip(offsets, blocks, strict=True)), default=0)
        if best is None or end < best[1]:
            best = offsets, end
        if best[1] <= bound:
            break
    assert best is not None
    return best


#: Up to this many blocks, other orders are worth their time.
_FEW = 1000

_ORDERS: tuple[Callable[[Block], tuple[int, ...]], ...] = (
    lambda block: (-block.size, block.first),
    lambda block: (-block.size * (block.last - block.first + 1), block.first),
    lambda block: (block.first - block.last, -block.size),
    lambda block: (block.first, -block.size),
)


def peak(blocks: Iterable[Block], alignment: int = 1) -> int:
    """The most bytes that are needed at one moment; no placement takes less."""
    return max((size for _, size in profile(blocks, alignment)), default=0)


def profile(blocks: Iterable[Block], alignment: int = 1) -> list[tuple[int, int]]:
    """The moments at which the bytes needed change, and these bytes from then on."""
    changes: dict[int, int] = {}
    for block in blocks:
        size = _up(block.size, alignment)
        changes[block.first] = changes.get(block.first, 0) + size
        changes[block.last + 1] = changes.get(block.last + 1, 0) - size
    moments: list[tuple[int, int]] = []
    live = 0
    for moment in sorted(changes):
        live += changes[moment]
        moments.append((moment, live))
    return moments


def _fit(blocks: Sequence[Block], order: Sequence[int], alignment: int) -> list[int]:
    offsets = np.zeros(len(blocks), np.int64)
    # What was placed so far, in the order of its placement.
    starts, ends, firsts, lasts = (np.zeros(len(blocks), np.int64) for _ in range(4))
    for count, number in enumerate(order):
        block = blocks[number]
        near = np.flatnonzero((firsts[:count] <= block.last) & (lasts[:count] >= block.first))
        near = near[np.argsort(starts[near], kind="stable")]
        offset = _best_gap(starts[near], ends[near], block.size)
        offsets[number] = starts[count] = offset
        ends[count] = offset + _up(block.size, alignment)
        firsts[count], lasts[count] = block.first, block.last
    return [int(offset) for offset in offsets]


def _best_gap(starts: np.ndarray, ends: np.ndarray, size: int) -> int:
    """Start of the smallest gap that holds ``size`` bytes; behind everything if there is none."""
    if not len(starts):
        return 0
    reached = np.maximum.accumulate(ends)
    gap_starts = np.concatenate(([0], reached[:-1]))
    gaps = starts - gap_starts
    fitting = np.flatnonzero(gaps >= size)
    if not len(fitting):
        return int(reached[-1])
    return int(gap_starts[fitting[np.argmin(gaps[fitting])]])


def _up(size: int, alignment: int) -> int:
    return -(-size // alignment) * alignment
