"""A fixed share of what ``make fuzz`` does: it runs for as long as asked, with new seeds."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from driver import Worker
from outcome import GOOD, Outcome
from random_values import difference

SEED = int(os.environ["DEVSCOPE_TEST_SEED"])  # set in test/conftest.py
SHARES = {"programs": 2, "modules": 4, "files": 5, "faults": 1, "kills": 1}


@pytest.mark.parametrize("parts", [("programs",), ("modules", "files", "faults", "kills")], ids="-".join)
def test_nothing_fails(parts: tuple[str, ...], tmp_path: Path) -> None:
    worker = Worker(tmp_path / "trial")
    try:
        for part in parts:
            for seed in range(SEED, SEED + SHARES[part]):
                worker.start(part, seed)
                outcome = worker.answer()
                assert outcome.kind in GOOD, f"{outcome.message}: make fuzz PART={part} SEED={seed}"
    finally:
        worker.end()


def test_a_process_that_dies_is_a_crash(tmp_path: Path) -> None:
    worker = Worker(tmp_path / "trial")
    worker.start("files", 0)
    assert worker.process is not None
    worker.process.kill()
    assert worker.answer().kind == "crash"
    assert worker.process is None


def test_messages_are_counted_together() -> None:
    one, other = (Outcome("refused", f"operand {n} of 'a.{n}' is on opencl:{n}") for n in (1, 2))
    assert one.reason == other.reason


@pytest.mark.parametrize(
    ("found", "noisy", "right"),
    [
        (1.0, [1.0], True),
        (1.0 + 2**-23, [1.0], False),
        (1.0 + 2**-23, [1.0 + 2**-22], True),
        (-4.0, [1.5], False),
        (np.nan, [1.0], False),
        (np.nan, [np.nan], True),
        (np.inf, [1.0], False),
    ],
)
def test_results_differ_as_far_as_errors_explain(found: float, noisy: list[float], right: bool) -> None:
    problem = difference(np.float32(found), np.float32(1), np.float32(noisy), "f32")
    assert (problem is None) == right


def test_signs_of_zeros_are_compared() -> None:
    assert difference(np.float32(-0.0), np.float32(0.0), [np.float32(0.0)], "f32")
    assert not difference(np.float32(-0.0), np.float32(0.0), [np.float32(-0.0)], "f32")
