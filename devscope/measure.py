"""Measures the devices of this machine, by compiling and running programs: the figures of a machine description.

Every figure is the slope of the time over the amount of work, so what a call costs by itself drops out: loops run
a few and many times. Each time is the best of several.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from devscope.analysis.machine import Device, Link, Machine
from devscope.api import compile
from devscope.runtime.devices import list_devices, memory_groups
from devscope.runtime.drivers import DeviceInfo
from devscope.runtime.executable import Executable

MATRIX = 512
"""Size of the matrices whose product is timed."""

LARGE, SMALL = 1 << 22, 16
"""Elements of large and small tensors of f32."""

_BYTES = 4
_REPEATS = 3
_LONG_ENOUGH = 0.05
"""Seconds that a loop must take to be timed."""

_MOST_ITERATIONS = 1 << 20
_LEAST = 1e-9
"""Seconds; what is measured as less is noise."""


def measure_machine() -> Machine:
    """Measure the host and every other device. Takes a few seconds per device; nothing is cached.

    Raises DevscopeError when a device cannot run programs.
    """
    infos = list_devices()
    host = infos[0].name
    devices = {info.name: _measure_device(info) for info in infos}
    links: dict[tuple[str, str], Link] = {}
    for info in infos[1:]:
        bandwidth, latency = _measure_link(host, devices[info.name])
        for pair in ((host, info.name), (info.name, host)):
            links[pair] = Link(*pair, bandwidth, latency)
    return Machine(devices, links, host, source="this machine", shared=tuple(memory_groups()))


def _measure_device(info: DeviceInfo) -> Device:
    launch, large = _loop_seconds(info.name, _ADD, _VECTOR, (SMALL,), (LARGE,))
    large = max(large - launch, _LEAST)
    (matrix,) = _loop_seconds(info.name, _PRODUCT, _MATRIX, (MATRIX, MATRIX))
    matrix = max(matrix - launch, _LEAST)
    # Two tensors are read, one is written.
    return Device(
        info.name, 2 * MATRIX**3 / matrix, 3 * LARGE * _BYTES / large, launch, float(info.memory_bytes) or None
    )


def _measure_link(host: str, device: Device) -> tuple[float, float]:
    """Bandwidth and latency of one direction: half of a round trip, less the operation that stands in it."""
    round_trip = _ROUND_TRIP.format(scope=_scope(device.name), host=_scope(host))
    trips = _loop_seconds(host, round_trip, _VECTOR, (SMALL,), (LARGE,))
    computing = [device.launch + 3 * size * _BYTES / device.bandwidth for size in (SMALL, LARGE)]
    latency, large = (max(trip - work, 0.0) / 2 for trip, work in zip(trips, computing, strict=True))
    return LARGE * _BYTES / max(large - latency, _LEAST), latency


_LOOP = """
func.func @main(%a: !t {{device.scope = {scope}}}, %n: index) -> (!t {{device.scope = {scope}}}) {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r = scf.for %i = %zero to %n step %one iter_args(%x = %a) -> (!t) {{
{body}
    scf.yield %y : !t
  }}
  func.return %r : !t
}}
"""

_ADD = """\
    %size = tensor.dim %a, %zero : !t
    %e = tensor.empty(%size) : !t
    %y = linalg.add ins(%x, %a : !t, !t) outs(%e : !t) -> !t"""

_ROUND_TRIP = """\
    %size = tensor.dim %a, %zero : !t
    %e = tensor.empty(%size) : !t
    %there = linalg.add {{device.scope = {scope}}} ins(%x, %a : !t, !t) outs(%e : !t) -> !t
    %y = "device.device_copy"(%there) {{src = {scope}, dst = {host}}} : (!t) -> !t"""

_PRODUCT = """\
    %e = tensor.empty() : !t
    %o = arith.constant 0.0 : f32
    %f = linalg.fill ins(%o : f32) outs(%e : !t) -> !t
    %y = linalg.matmul ins(%x, %a : !t, !t) outs(%f : !t) -> !t"""

_VECTOR, _MATRIX = "tensor<?xf32>", f"tensor<{MATRIX}x{MATRIX}xf32>"


def _scope(device: str) -> str:
    kind, _, number = device.partition(":")
    return f'#device.scope<"{kind}", {number} : i64, "", "">'


def _best(call: Callable[[], Any]) -> float:
    """Seconds of the fastest of several calls."""
    times: list[float] = []
    for _ in range(_REPEATS):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return min(times)


def _loop_seconds(device: str, body: str, type_: str, *shapes: tuple[int, ...]) -> list[float]:
    """Seconds of one iteration of a loop with ``body``, on tensors of each shape."""
    text = _LOOP.format(scope=_scope(device), body=body).replace("!t", type_)
    with compile(text, default=device, arguments="open", cache=False) as executable:
        return [_iteration_seconds(executable, np.zeros(shape, np.float32)) for shape in shapes]


def _iteration_seconds(executable: Executable, data: NDArray[np.float32]) -> float:
    def run(iterations: int) -> float:
        return _best(lambda: executable(data, iterations))

    few, many = 1, 9
    short = run(few)
    long = run(many)
    while long - short < _LONG_ENOUGH and many < _MOST_ITERATIONS:
        many *= 8
        long = run(many)
    return max(long - short, 0.0) / (many - few)
