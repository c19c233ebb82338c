"""Results stay the same when every queue is delayed at random: nothing relies on the order things happen to have.

``opencl:0`` and ``opencl:1`` run on a core each where the driver divides the device, else on the same device.
"""

from __future__ import annotations

import zlib

import numpy as np
import pytest
import references  # noqa: F401  (registers the cases)
from delayed_queues import delayed_queues
from program_case import CASES, share
from test_programs import PROGRAMS, SEED, check_case

import devscope
from devscope.runtime.drivers.opencl import opencl_devices

pytestmark = pytest.mark.fuzz

#: Calls of each entry; arguments of a call must not reach the results of the one before.
_CALLS = 3


def two_devices() -> dict[str, str]:
    """Where the virtual devices run."""
    divided = opencl_devices()[0][0].partitionable and opencl_devices()[0][0].compute_units > 1
    return {"opencl:0": "opencl:0.0", "opencl:1": "opencl:0.1"} if divided else {"opencl:1": "opencl:0"}


def used_devices(text: str) -> list[str]:
    return [name for name in ("opencl:0", "opencl:1", "cuda:0") if '"{}", {}'.format(*name.split(":")) in text]


#: The others run on the host alone.
_PROGRAMS = sorted(name for name in CASES if used_devices((PROGRAMS / f"{name}.mlir").read_text()))


@pytest.mark.parametrize("name", share(_PROGRAMS, 0))
def test_program(name: str, memory: str) -> None:
    rng = np.random.default_rng([SEED, zlib.crc32(name.encode())])
    path = PROGRAMS / f"{name}.mlir"
    places = {"cuda:0": "opencl:0", **two_devices()}
    devices = {device: places[device] for device in used_devices(path.read_text()) if device in places}
    # Every other program as one that keeps its arguments on devices.
    arguments = "host" if zlib.crc32(name.encode()) % 2 else "open"
    with (
        devscope.compile(path, arguments=arguments, devices=devices) as executable,
        delayed_queues(executable, SEED),
    ):
        for case in CASES[name]:
            for _ in range(_CALLS):
                check_case(executable, case, rng)
