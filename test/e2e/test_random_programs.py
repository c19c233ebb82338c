"""Programs made up at random compute what numpy computes, whatever is placed where.

``make fuzz`` draws new programs. A failure prints the seed and the program; ``DEVSCOPE_TEST_SEED=<seed>`` repeats
it.
"""

from __future__ import annotations

import os

import numpy as np
import pytest
from memory_check import assert_nothing_leaks
from random_program import Generator

from devscope.api import CompileOptions, build
from devscope.runtime.executable import Executable

pytestmark = pytest.mark.fuzz

SEED = int(os.environ["DEVSCOPE_TEST_SEED"])  # set in test/conftest.py
PROGRAMS = int(os.environ.get("DEVSCOPE_TEST_PROGRAMS") or 24)

#: Default scope, treatment of arguments.
CONFIGURATIONS = (("cpu:0", "host"), ("opencl:0", "host"), ("cpu:0", "open"), ("opencl:0", "open"))


def check_program(number: int) -> None:
    rng = np.random.default_rng([SEED, number])
    program = Generator(rng).program()
    default, arguments = CONFIGURATIONS[number % len(CONFIGURATIONS)]
    try:
        built = build(program.text, CompileOptions(default, arguments))
        with Executable(built, {device.name: "opencl:0" for device in built.devices}) as executable:
            for rows, steps in ((1, 0), (5, 1), (3, 3)):
                x, y = rng.uniform(-1, 1, (2, rows, 4))
                given = (x, y, float(rng.uniform(-1, 1)), bool(rng.integers(2)), steps)
                copies = x.copy(), y.copy()
                values = executable(*given)
                for array, copy in zip(given, copies, strict=False):
                    np.testing.assert_array_equal(array, copy, "the program changed its argument")
                wanted = program.run(*given)
                values = values if isinstance(values, tuple) else (values,)
                for value, expected in zip(values, wanted, strict=True):
                    np.testing.assert_allclose(value, expected, rtol=1e-9, atol=1e-9)
            assert_nothing_leaks(executable, "main", [np.asarray(g) for g in given], only_host=False)
    except BaseException as error:
        error.add_note(f"program {number} with DEVSCOPE_TEST_SEED={SEED}, {default=}, {arguments=}")
        error.add_note(program.text)
        raise


@pytest.mark.parametrize("number", range(PROGRAMS))
def test_random_program(number: int) -> None:
    check_program(number)
