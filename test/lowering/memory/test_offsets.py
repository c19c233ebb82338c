"""Placement of blocks: legal always, and close to what is possible."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
import pytest

from devscope.lowering.memory.offsets import Block, peak, place, profile

SEED = int(os.environ["DEVSCOPE_TEST_SEED"])  # set in test/conftest.py


def random_blocks(seed: Sequence[int], count: int) -> list[Block]:
    rng = np.random.default_rng(seed)
    firsts = rng.integers(0, 3 * count, count)
    return [
        Block(int(size), int(first), int(first + length))
        for size, first, length in zip(
            rng.integers(1, 5000, count), firsts, rng.integers(0, 3 + count // 4, count), strict=True
        )
    ]


def assert_legal(blocks: list[Block], offsets: list[int], end: int, alignment: int) -> None:
    for offset, block in zip(offsets, blocks, strict=True):
        assert offset >= 0
        assert offset % alignment == 0
        assert offset + block.size <= end
    for number, (offset, block) in enumerate(zip(offsets, blocks, strict=True)):
        for other_offset, other in zip(offsets[:number], blocks[:number], strict=True):
            apart_in_time = block.last < other.first or other.last < block.first
            apart = offset + block.size <= other_offset or other_offset + other.size <= offset
            assert apart_in_time or apart, f"{block} at {offset}, {other} at {other_offset}"


@pytest.mark.fuzz
@pytest.mark.parametrize("number", range(40))
def test_places_are_legal_and_near_the_bound(number: int) -> None:
    blocks = random_blocks([SEED, number], 1 + number * 3)
    alignment = (1, 64, 512)[number % 3]
    offsets, end = place(blocks, alignment)
    assert_legal(blocks, offsets, end, alignment)
    bound = peak(blocks, alignment)
    assert peak(blocks) <= bound
    assert end <= 1.25 * bound


def test_peak_by_definition() -> None:
    blocks = random_blocks([7], 30)
    moments = range(max(block.last for block in blocks) + 1)
    live = [sum(b.size for b in blocks if b.first <= moment <= b.last) for moment in moments]
    assert peak(blocks) == max(live)
    assert all(live[moment] == count for moment, count in profile(blocks) if moment in moments)


def test_nothing_to_place() -> None:
    assert place([], 64) == ([], 0)
    assert peak([]) == 0


def test_a_hole_is_filled_by_what_fits_best() -> None:
    # Two holes stay while the others live: 300 and 200 bytes. The short blocks of 200 and 300 bytes go there.
    sizes = [(300, 0, 1), (400, 0, 9), (200, 0, 1), (500, 0, 9), (200, 3, 4), (300, 3, 4)]
    blocks = [Block(*size) for size in sizes]
    _, end = place(blocks, 1)
    assert end == 1400
