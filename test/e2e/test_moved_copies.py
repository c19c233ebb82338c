"""How many copies calls make with and without ``device-move-copies``, and that they compute the same."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from random_program import Generator
from test_delayed_queues import two_devices
from xdsl.dialects.builtin import ModuleOp

from devscope.api import CompileOptions, build
from devscope.errors import LoweringError, PlanError
from devscope.passes import device_move_copies
from devscope.passes.device_move_copies import move_copies
from devscope.runtime.executable import Executable

sys.path.append(str(Path(__file__).parents[1] / "passes" / "device_move_copies"))

from scattered_copies import scatter_copies

pytestmark = pytest.mark.fuzz

SEED = int(os.environ["DEVSCOPE_TEST_SEED"])  # set in test/conftest.py
NUMBER = int(os.environ.get("DEVSCOPE_TEST_PROGRAMS") or 6)
PROGRAM = Path(__file__).parent / "programs" / "moved_copies.mlir"

Change = Callable[[ModuleOp], object]


def left_alone(module: ModuleOp) -> None:
    """In place of the pass."""


def scattered(module: ModuleOp) -> None:
    scatter_copies(module)


def scattered_and_moved(module: ModuleOp) -> None:
    scatter_copies(module)
    move_copies(module)


def compiled(change: Change, source: Any, default: str = "cpu:0") -> Executable:
    """A program whose planned module was changed."""
    again = move_copies if change in (move_copies, scattered_and_moved) else left_alone
    changes = iter((change, again))  # of the planned module, and of the split one
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(device_move_copies, "move_copies", lambda module: next(changes)(module))
        built = build(source, CompileOptions(default, "host"))
    places = two_devices()
    return Executable(built, {device.name: places.get(device.name, "opencl:0") for device in built.devices})


def run(executable: Executable, entry: str, *arguments: Any) -> tuple[tuple[Any, ...], int]:
    """The results of a call, and its copies between devices."""
    executable.reset_counters()
    values = executable.run(entry, *arguments)
    counted = executable.counters().copies.items()
    copies = sum(count.copies for (source, target), count in counted if source != target)
    return values if isinstance(values, tuple) else (values,), copies


@pytest.fixture(scope="module")
def plain_and_moved() -> Iterator[tuple[Executable, Executable]]:
    source = PROGRAM.read_text()
    with compiled(left_alone, source) as plain, compiled(move_copies, source) as moved:
        yield plain, moved


@pytest.mark.parametrize(
    ("entry", "numbers", "before", "after"),
    [
        # A loop of no iteration copies in and out once.
        ("carried", (0,), 0, 2),
        ("carried", (1,), 2, 2),
        ("carried", (3,), 18, 2),
        # The condition reads one element in each iteration and once more.
        ("passed_round", (0, True), 1 + 1, 3 + 1),
        ("passed_round", (1, True), 2 + 3 + 2, 3 + 2),
        ("passed_round", (4, False), 5 + 4 * 3 + 5, 3 + 5),
        ("switched", (0,), 2, 2),
        ("switched", (1,), 2, 2),
        ("switched", (2,), 2, 0),
        # What only one side of a branch needs is copied there.
        ("mixed", (3, True), 13, 13),
        ("mixed", (3, False), 13, 10),
    ],
)
def test_copies_of_a_call(
    entry: str,
    numbers: tuple[int, ...],
    before: int,
    after: int,
    plain_and_moved: tuple[Executable, Executable],
) -> None:
    tensors = 1 if entry in ("carried", "switched") else 2
    arrays = np.random.default_rng(SEED).uniform(-1, 1, (tensors, 67)).astype(np.float32)
    (plain, copies), (moved, fewer) = (run(program, entry, *arrays, *numbers) for program in plain_and_moved)
    for value, expected in zip(moved, plain, strict=True):
        np.testing.assert_allclose(value, expected, rtol=0, atol=1e-6)
    assert (copies, fewer) == (before, after)


@pytest.mark.parametrize("number", range(NUMBER))
def test_random_programs(number: int) -> None:
    """Programs with a copy in front of every use; their loops run, since those that do not may have more."""
    rng = np.random.default_rng([SEED, number, 6])
    program = Generator(rng, busy=True).program()
    text, given = program.text, program.inputs(rng, 3, 2)
    default = ("cpu:0", "opencl:0")[number % 2]
    try:
        with compiled(scattered, text, default) as executable:
            plain, copies = run(executable, "main", *given)
        with compiled(scattered_and_moved, text, default) as executable:
            moved, fewer = run(executable, "main", *given)
        for value, expected in zip(moved, plain, strict=True):
            np.testing.assert_allclose(value, expected, rtol=1e-12, atol=1e-12)
        assert fewer <= copies
    except (PlanError, LoweringError):
        return  # what is refused copies nothing
    except BaseException as error:
        error.add_note(f"program {number} with DEVSCOPE_TEST_SEED={SEED}, {default=}")
        error.add_note(text)
        raise
