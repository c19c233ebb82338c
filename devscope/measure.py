"""Measures the devices of this machine, by compiling and running programs: the figures of a machine description.

Every figure is the slope of the time over the amount of work, so what a call costs by itself drops out: loops run
a few and many times, chains of matrix products have one and several links. Each time is the best of several: other
work of the machine only adds to it. A slope that no machine has is measured again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from devscope.analysis.machine import Device, Link, Machine
from devscope.api import compile
from devscope.errors import DeviceError
from devscope.runtime.devices import list_devices, memory_groups
from devscope.runtime.drivers import DeviceInfo
from devscope.runtime.executable import Executable

MATRIX = 512
"""Size of the matrices whose product is timed."""

LARGE, SMALL = 1 << 22, 16
"""Elements of large and small tensors of f32."""

MOST_FLOPS, MOST_BANDWIDTH = 1e16, 1e14
"""Ten times what the fastest devices have: what is measured as more is noise."""

_BYTES = 4
_CHAIN = 2
_REPEATS = 2
_ATTEMPTS = 5
_SAME = 0.1
_LEAST_SHARE = 0.1
"""Of a round trip, copies take at least this share, and so of a chain of products the later ones."""

_CACHED = 4
"""Copies are at most so much faster than the memory, where caches help."""

_LONG_ENOUGH = 0.05
"""Seconds that a loop must take to be timed."""

_MOST_ITERATIONS = 1 << 20
_SIZES = (SMALL, LARGE)


def measure_machine() -> Machine:
    """Measure the host and every other device. Takes a few seconds per device; nothing is cached.

    Raises DevscopeError when a device cannot run programs, and DeviceError when what is measured cannot be: the
    machine does other work.
    """
    first, *others = list_devices()
    host = first.name
    devices: dict[str, Device] = {}
    links: dict[tuple[str, str], Link] = {}
    with _Loop(host, _ADD) as on_host:
        devices[host] = _measure_device(first, on_host)
        for info in others:
            with _Loop(info.name, _ADD) as additions:
                devices[info.name] = _measure_device(info, additions)
                most = _CACHED * max(devices[host].bandwidth, devices[info.name].bandwidth)
                bandwidth, latency = _measure_link(host, info.name, (additions, on_host), most)
            for pair in ((host, info.name), (info.name, host)):
                links[pair] = Link(*pair, bandwidth, latency)
    return Machine(devices, links, host, source="this machine", shared=tuple(memory_groups()))


def _measure_device(info: DeviceInfo, additions: _Loop) -> Device:
    # Two tensors are read, one is written.
    bandwidth, launch = _line(
        lambda: [(3 * size * _BYTES, additions.seconds(size)) for size in _SIZES],
        MOST_BANDWIDTH,
        f"the memory of '{info.name}'",
    )
    with _Products(info.name) as products:
        flops, _ = _line(
            lambda: [(2 * MATRIX**3, _rest(products.seconds(), launch))],
            MOST_FLOPS,
            f"matrix products on '{info.name}'",
        )
    return Device(info.name, flops, bandwidth, launch, float(info.memory_bytes) or None)


def round_trips(host: str, device: str) -> _Loop:
    """Each iteration adds on a device, then on the host: without that, nothing would be copied inside the loop."""
    return _Loop(host, _ROUND_TRIP.format(scope=_scope(device), host=_scope(host)))


def _measure_link(host: str, device: str, additions: Sequence[_Loop], most: float) -> tuple[float, float]:
    """Bandwidth and latency of one direction: half of a round trip, less the operations that stand in it."""

    def seconds(size: int) -> float:
        alone = sum(loop.seconds(size) for loop in additions)
        return max(_rest(trips.seconds(size), alone) / 2, size * _BYTES / most)

    with round_trips(host, device) as trips:
        return _line(
            lambda: [(size * _BYTES, seconds(size)) for size in _SIZES],
            MOST_BANDWIDTH,
            f"copies between '{host}' and '{device}'",
        )


def _rest(whole: float, part: float) -> float:
    """What is left of a time without ``part``; on a busy machine, that can have taken longer when it was alone."""
    return max(whole - part, _LEAST_SHARE * whole)


def _line(sample: Callable[[], Sequence[tuple[float, float]]], most: float, what: str) -> tuple[float, float]:
    """The rate per second, and the seconds of nothing, of the line through (amount, seconds) of samples.

    Neither is negative. Samples are taken again, each the least time that was seen so far, until the rate hardly
    changes; it does not count while it is above ``most``, or the largest amount seems to take no time. Raises
    DeviceError when that goes on.
    """
    found: list[tuple[float, float]] = []
    for _ in range(_ATTEMPTS):
        samples = sample()
        timed = [(amount, seconds) for amount, seconds in samples if seconds > 0]
        if not timed or timed[-1][0] != samples[-1][0]:
            continue
        # Relative errors count, so that small amounts are not drowned by large ones.
        rows = [(float(len(samples) > 1) / seconds, amount / seconds) for amount, seconds in timed]
        (offset, slope), _ = nnls(np.array(rows), np.ones(len(rows)))
        if slope * most < 1:
            continue
        found.append((float(1 / slope), float(offset)))
        if len(found) > 1 and abs(found[-1][0] / found[-2][0] - 1) < _SAME:
            break
    if found:
        return found[-1]
    raise DeviceError(
        f"{what} could not be measured: the times contradict each other",
        notes=["measure on a machine that does nothing else, or write its figures by hand: see docs/machine.md"],
    )


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
    %back = "device.device_copy"(%there) {{src = {scope}, dst = {host}}} : (!t) -> !t
    %f = tensor.empty(%size) : !t
    %y = linalg.add {{device.scope = {host}}} ins(%back, %a : !t, !t) outs(%f : !t) -> !t"""

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


class _Loop:
    """A loop on a device with tensors of any size; gives the least seconds of one iteration that it has seen."""

    def __init__(self, device: str, body: str) -> None:
        text = _LOOP.format(scope=_scope(device), body=body)
        self.executable = _compile(text, "tensor<?xf32>", device)
        self._least: dict[int, float] = {}
        self._many: dict[int, int] = {}
        """How many iterations take long enough, by size."""

    def seconds(self, size: int) -> float:
        found = self._iteration(size)
        self._least[size] = min(found, self._least.get(size, found))
        return self._least[size]

    def _iteration(self, size: int) -> float:
        data: NDArray[np.float32] = np.zeros(size, np.float32)

        def run(iterations: int) -> float:
            return _best(lambda: self.executable(data, iterations))

        few, many = 1, self._many.get(size, 9)
        short = run(few)
        long = run(many)
        while long - short < _LONG_ENOUGH and many < _MOST_ITERATIONS:
            many *= 8
            long = run(many)
        self._many[size] = many
        return max(long - short, 0.0) / (many - few)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.executable.close()


class _Products:
    """Matrix products on a device; gives the least seconds of one that it has seen."""

    def __init__(self, device: str) -> None:
        self._data: NDArray[np.float32] = np.zeros((MATRIX, MATRIX), np.float32)
        self._least: dict[int, float] = {}
        self._chains: dict[int, Executable] = {}
        for count in (1, 1 + _CHAIN):
            values = ["%a", *(f"%p{number}" for number in range(1, count))]
            body = "\n".join(_PRODUCT.format(next=number, value=value) for number, value in enumerate(values, 1))
            text = _PRODUCTS.format(scope=_scope(device), body=body, count=count)
            self._chains[count] = _compile(text, f"tensor<{MATRIX}x{MATRIX}xf32>", device)
            self._chains[count](self._data)

    def seconds(self) -> float:
        for count, chain in self._chains.items():
            found = _best(lambda chain=chain: chain(self._data))
            self._least[count] = min(found, self._least.get(count, found))
        return _rest(self._least[1 + _CHAIN], self._least[1]) / _CHAIN

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for chain in self._chains.values():
            chain.close()
