"""Measures the devices of this machine, by compiling and running programs: the figures of a machine description.

Every figure is the slope of the time over the amount of work, so what a call costs by itself drops out: loops run
a few and many times, chains of matrix products have one and several links. Each time is the best of several.
"""

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
_CHAIN = 4
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
    launch, large = _loop_seconds(info.name, _ADD)
    large = max(large - launch, _LEAST)
    matrix = max(_product_seconds(info.name) - launch, _LEAST)
    # Two tensors are read, one is written.
    return Device(
        info.name, 2 * MATRIX**3 / matrix, 3 * LARGE * _BYTES / large, launch, float(info.memory_bytes) or None
    )


def _measure_link(host: str, device: Device) -> tuple[float, float]:
    """Bandwidth and latency of one direction: half of a round trip, less the operation that stands in it."""
    trips = _loop_seconds(host, _ROUND_TRIP.format(scope=_scope(device.name), host=_scope(host)))
    computing = [device.launch + 3 * size * _BYTES / device.bandwidth for size in (SMALL, LARGE)]
    latency, large = (max(trip - work, 0.0) / 2 for trip, work in zip(trips, computing, strict=True))
    return LARGE * _BYTES / max(large - latency, _LEAST), latency


_LOOP = """
func.func @main(%a: !t {{device.scope = {scope}}}, %n: index) -> (!t {{device.scope = {scope}}}) {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %size = tensor.dim %a, %zero : !t
  %r = scf.for %i = %zero to %n step %one iter_args(%x = %a) -> (!t) {{
    %e = tensor.empty(%size) : !t
{body}
    scf.yield %y : !t
  }}
  func.return %r : !t
}}
"""

_ADD = "    %y = linalg.add ins(%x, %a : !t, !t) outs(%e : !t) -> !t"

_ROUND_TRIP = """\
    %there = linalg.add {{device.scope = {scope}}} ins(%x, %a : !t, !t) outs(%e : !t) -> !t
    %y = "device.device_copy"(%there) {{src = {scope}, dst = {host}}} : (!t) -> !t"""

_PRODUCTS = """
func.func @main(%a: !t {{device.scope = {scope}}}) -> (!t {{device.scope = {scope}}}) {{
  %e = tensor.empty() : !t
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%e : !t) -> !t
{body}
  func.return %p{count} : !t
}}
"""

_PRODUCT = "  %p{next} = linalg.matmul ins({value}, %a : !t, !t) outs(%f : !t) -> !t"


def _scope(device: str) -> str:
    kind, _, number = device.partition(":")
    return f'#device.scope<"{kind}", {number} : i64, "", "">'


def _compile(text: str, type_: str, device: str) -> Executable:
    return compile(text.replace("!t", type_), default=device, arguments="open", cache=False)


def _best(call: Callable[[], Any]) -> float:
    """Seconds of the fastest of several calls."""
    times: list[float] = []
    for _ in range(_REPEATS):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return min(times)


def _loop_seconds(device: str, body: str) -> tuple[float, float]:
    """Seconds of one iteration, with small and with large tensors."""
    text = _LOOP.format(scope=_scope(device), body=body)
    with _compile(text, "tensor<?xf32>", device) as executable:
        return _iteration_seconds(executable, SMALL), _iteration_seconds(executable, LARGE)


def _iteration_seconds(executable: Executable, size: int) -> float:
    data: NDArray[np.float32] = np.zeros(size, np.float32)

    def run(iterations: int) -> float:
        return _best(lambda: executable(data, iterations))

    few, many = 1, 9
    short = run(few)
    long = run(many)
    while long - short < _LONG_ENOUGH and many < _MOST_ITERATIONS:
        many *= 8
        long = run(many)
    return max(long - short, 0.0) / (many - few)


def _product_seconds(device: str) -> float:
    """Seconds of one matrix product."""
    data: NDArray[np.float32] = np.zeros((MATRIX, MATRIX), np.float32)
    seconds: list[float] = []
    for count in (1, 1 + _CHAIN):
        values = ["%a", *(f"%p{number}" for number in range(1, count))]
        body = "\n".join(_PRODUCT.format(next=number, value=value) for number, value in enumerate(values, 1))
        text = _PRODUCTS.format(scope=_scope(device), body=body, count=count)
        with _compile(text, f"tensor<{MATRIX}x{MATRIX}xf32>", device) as executable:
            executable(data)
            seconds.append(_best(lambda executable=executable: executable(data)))
    return max(seconds[1] - seconds[0], 0.0) / _CHAIN
