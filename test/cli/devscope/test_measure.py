"""Figures of a machine are possible ones, however the times come out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from devscope import measure
from devscope.errors import DeviceError
from devscope.runtime.drivers.opencl import opencl_devices

MIB = float(1 << 20)


def sampler(*attempts: Sequence[tuple[float, float]]):
    left = list(attempts)
    return lambda: left.pop(0) if len(left) > 1 else left[0]


def line(*attempts: Sequence[tuple[float, float]]) -> tuple[float, float]:
    return measure._line(sampler(*attempts), 1e12, "copies")


def test_a_line() -> None:
    rate, offset = line([(64.0, 1e-6 + 64e-10), (MIB, 1e-6 + MIB * 1e-10), (4 * MIB, 1e-6 + 4 * MIB * 1e-10)])
    assert rate == pytest.approx(1e10)
    assert offset == pytest.approx(1e-6)


def test_small_amounts_that_seem_to_take_no_time() -> None:
    rate, offset = line([(64.0, -1e-6), (MIB, MIB * 1e-10), (4 * MIB, 4 * MIB * 1e-10)])
    assert rate == pytest.approx(1e10)
    assert offset == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("large", [-1e-3, 0.0, 1e-9])
def test_impossible_samples_are_taken_again(large: float) -> None:
    """The difference of two times came out as nothing: 16 MiB in a nanosecond are 1.7e16 bytes a second."""
    bad, good = [(64.0, 1e-9), (16 * MIB, large)], [(64.0, 1e-6), (16 * MIB, 2e-3)]
    rate, _ = line(bad, bad, good, good)
    assert rate == pytest.approx(16 * MIB / 2e-3, rel=1e-2)
    with pytest.raises(DeviceError, match="copies could not be measured") as caught:
        line(bad)
    assert "measure on a machine that does nothing else" in caught.value.notes[0]


def test_times_that_still_change_are_taken_again() -> None:
    first, second, third = ([(64.0, 1e-6), (MIB, MIB / rate)] for rate in (1e9, 2e9, 2.05e9))
    assert line(first, second, third)[0] == pytest.approx(2.05e9, rel=1e-2)


def test_times_that_fall_with_the_amount_are_no_rate() -> None:
    with pytest.raises(DeviceError, match="could not be measured"):
        line([(64.0, 1e-3), (MIB, 1e-4), (4 * MIB, 1e-5)])


def test_a_product_alone() -> None:
    assert line([(1e6, 1e-3)]) == (pytest.approx(1e9), 0.0)


def test_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the times of a machine: 1 us a launch, 1e10 bytes/s, 1e11 flop/s; round trips are noisy at first."""

    class Loop:
        def __init__(self, device: str, body: str) -> None:
            self.trips, self.calls = "device_copy" in body, 0

        def seconds(self, size: int) -> float:
            self.calls += 1
            addition = 1e-6 + 12 * size * 1e-10
            copies = 2 * (2e-6 + 4 * size * 2e-10) if self.calls > 3 else -1e-9 * size
            return 2 * addition + copies if self.trips else addition

        def __enter__(self) -> Loop:
            return self

        def __exit__(self, *error: object) -> None:
            pass

    class Products(Loop):
        def __init__(self, device: str) -> None:
            super().__init__(device, "")

        def seconds(self, size: int = 0) -> float:
            return 1e-6 + 2 * measure.MATRIX**3 / 1e11

    monkeypatch.setattr(measure, "_Loop", Loop)
    monkeypatch.setattr(measure, "_Products", Products)
    machine = measure.measure_machine()
    for device in machine.devices.values():
        assert device.bandwidth == pytest.approx(1e10)
        assert device.flops == pytest.approx(1e11)
        assert device.launch == pytest.approx(1e-6)
    assert {pair[0] for pair in machine.links} >= {"cpu:0"}
    for link in machine.links.values():
        assert link.bandwidth == pytest.approx(5e9)
        assert link.latency == pytest.approx(2e-6)


def test_every_round_trip_copies_there_and_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the link would seem to be as fast as the least that counts."""
    for device in opencl_devices()[0]:
        monkeypatch.setattr(device, "shares_memory", False)
    with measure.round_trips("cpu:0", "opencl:0") as trips:
        trips.executable(np.zeros(16, np.float32), 10)
        counters = trips.executable.counters()
    assert counters.d2h.copies == 10
    assert counters.h2d.copies >= 10
