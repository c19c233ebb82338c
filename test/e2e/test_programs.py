"""Every program in ``programs/`` computes what numpy computes, wherever its work is placed.

``make fuzz`` draws new arguments. A failure prints the seed; ``DEVSCOPE_TEST_SEED=<seed>`` repeats it.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np
import pytest
import references  # noqa: F401  (registers the cases)
from emulation import set_order
from memory_check import assert_nothing_leaks
from program_case import CASES, TOLERANCES, Array, Case, rest, share

import devscope
from devscope.lowering.cpu import target as host_target
from devscope.runtime.executable import Executable

PROGRAMS = Path(__file__).parent / "programs"
pytestmark = pytest.mark.fuzz

SEED = int(os.environ["DEVSCOPE_TEST_SEED"])  # set in test/conftest.py

#: How a program with annotations for the device is run: all devices mapped to the host; the device as the
#: default; the host as the default; the plan free to keep arguments and results of entries on the device.
#: And the programs of each.
CONFIGURATIONS = {
    "host": share(CASES, 0),
    "opencl": share(CASES, 1),
    "open": share(CASES, 2),
    "mixed": rest(CASES, 1, 2),
}
PHYSICAL = {"host": "cpu:0", "cuda": "cuda:0"}

#: A result may be close to zero by chance where terms of the arguments' size cancel.
_SMALL = 0.1


def compile_for(configuration: str, name: str) -> Executable:
    path = PROGRAMS / f"{name}.mlir"
    text = path.read_text()
    used = [device for device in ("opencl:0", "opencl:1", "cuda:0") if _mentions(text, device)]
    physical = PHYSICAL.get(configuration, "opencl:0")
    return devscope.compile(
        path,
        default=physical if configuration in ("opencl", "cuda") else "cpu:0",
        arguments="open" if configuration == "open" else "host",
        devices={device: physical for device in used if device != physical},
    )


def _mentions(text: str, device: str) -> bool:
    kind, number = device.split(":")
    return f'"{kind}", {number}' in text


def check_result(value: object, expected: Array, result: str, tolerance: float | None) -> None:
    dtype, *scalar = result.split()
    assert isinstance(value, np.generic if scalar else np.ndarray)
    assert isinstance(value, np.generic | np.ndarray)
    assert value.dtype == expected.dtype
    assert value.shape == expected.shape
    if expected.dtype.kind != "f":
        np.testing.assert_array_equal(value, expected)
        return
    finite = expected[np.isfinite(expected)].astype(np.float64)
    magnitude = np.abs(finite).max(initial=_SMALL)
    allowed = (tolerance or TOLERANCES[dtype]) * magnitude
    np.testing.assert_allclose(
        np.asarray(value, np.float64), expected.astype(np.float64), rtol=0, atol=allowed, equal_nan=True
    )


def check_case(executable: Executable, case: Case, rng: np.random.Generator) -> list[Array]:
    """Returns the arguments of the last call."""
    arrays: list[Array] = []
    for sizes in case.sizes:
        arrays = [argument.array(rng, sizes) for argument in case.arguments]
        given = [array.copy() for array in arrays]
        values = executable.run(case.entry, *arrays)
        for array, copy in zip(arrays, given, strict=True):
            np.testing.assert_array_equal(array, copy, "the program changed its argument")
        values = values if isinstance(values, tuple) else () if values is None else (values,)
        expected = case.expected(arrays)
        assert len(values) == len(expected)
        for number, (value, wanted) in enumerate(zip(values, expected, strict=True)):
            try:
                check_result(value, wanted, case.results[number], case.tolerance)
            except AssertionError as error:
                error.add_note(f"{case.entry}, result {number}, sizes {dict(sizes)}")
                raise
    return arrays


def check_placement(executable: Executable, configuration: str, cases: list[Case]) -> None:
    """The results alone do not tell where they were computed."""
    kernels = sum(len(device.kernels) for device in executable.program.devices)
    if configuration == "host":
        assert kernels == 0
    elif any(case.device_work for case in cases):
        assert kernels > 0, "no work was placed on the device"


_RUNS = [
    (name, configuration)
    for name in sorted(CASES)
    for configuration, names in CONFIGURATIONS.items()
    if name in names and (configuration != "host" or all(case.on_host for case in CASES[name]))
]


@pytest.mark.sampled(7)
@pytest.mark.parametrize(("name", "configuration"), _RUNS)
def test_program(name: str, configuration: str) -> None:
    rng = np.random.default_rng([SEED, zlib.crc32(name.encode())])
    with compile_for(configuration, name) as executable:
        check_placement(executable, configuration, CASES[name])
        for case in CASES[name]:
            arrays = check_case(executable, case, rng)
            assert_nothing_leaks(executable, case.entry, arrays, only_host=configuration == "host")


@pytest.mark.parametrize("name", share(CASES, 3))
def test_program_on_cuda(
    name: str, cuda: Callable[[], AbstractContextManager[object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same, emulated: in order, and in an order that differs from program to program."""
    monkeypatch.setattr(host_target, "_level", lambda *_: 0)
    rng = np.random.default_rng([SEED, zlib.crc32(name.encode())])
    with cuda(), compile_for("cuda", name) as executable:
        check_placement(executable, "cuda", CASES[name])
        for order in (0, zlib.crc32(name.encode()) % 97):
            set_order(order)
            for case in CASES[name]:
                check_case(executable, case, rng)


def test_every_program_has_a_reference() -> None:
    assert sorted(path.stem for path in PROGRAMS.glob("*.mlir")) == sorted(CASES)
