"""Tile sizes of kernels."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from devscope.lowering.target import GridSchedule

TRIP_COUNTS = st.lists(st.none() | st.integers(0, 5000), min_size=1, max_size=6)


@given(TRIP_COUNTS)
def test_a_workgroup_never_exceeds_its_limit(counts: list[int | None]) -> None:
    tiles = GridSchedule(workgroup=256, innermost=64).tiles(counts)
    assert len(tiles) == len(counts)
    assert all(tile >= 1 for tile in tiles)
    assert math.prod(tiles) <= 256


def test_dynamic_loops_fill_the_workgroup() -> None:
    schedule = GridSchedule(workgroup=256, innermost=64)
    assert schedule.tiles([None]) == [256]
    assert schedule.tiles([None, None]) == [4, 64]
    assert schedule.tiles([None, None, None, None]) == [1, 1, 4, 64]


def test_short_loops_give_their_share_to_the_next() -> None:
    schedule = GridSchedule(workgroup=256, innermost=64)
    assert schedule.tiles([None, 10]) == [16, 16]
    assert schedule.tiles([100, 1]) == [128, 1]
    assert schedule.tiles([3]) == [4]
