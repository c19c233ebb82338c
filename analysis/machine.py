"""What the compiler knows of a machine: how fast devices compute, and how fast data moves between them.

`machine_file` reads and writes the description; ``docs/machine.md`` explains it. Devices go by the names of
their scopes, ``opencl:0``. Needs no xDSL.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import combinations

from devscope.errors import OptionError

DYNAMIC_SIZE = 1024
"""Assumed size of dimensions that are known at run time only."""

TRIP_COUNT = 10
"""Assumed iterations of loops without constant bounds."""


@dataclass(frozen=True)
class Device:
    """``flops``: floating-point operations per second; ``bandwidth``: bytes per second of its memory;
    ``launch``: seconds before an operation begins; ``memory``: bytes, None when unknown; ``cores``: of the host's
    processor, those that the device computes with."""

    name: str
    flops: float
    bandwidth: float
    launch: float = 0.0
    memory: float | None = None
    cores: int | None = None


@dataclass(frozen=True)
class Link:
    """One direction between two devices: ``bandwidth`` in bytes per second, ``latency`` in seconds."""

    source: str
    destination: str
    bandwidth: float
    latency: float = 0.0


@dataclass(frozen=True)
class Machine:
    """Devices, and the links between them. The host has links to and from every other device."""

    devices: Mapping[str, Device]
    links: Mapping[tuple[str, str], Link]
    host: str = "cpu:0"
    dynamic_size: int = DYNAMIC_SIZE
    trip_count: int = TRIP_COUNT
    source: str = "the built-in description"
    """Where the description comes from, for messages."""
    shared: tuple[tuple[str, ...], ...] = ()
    """Groups of devices each of which reaches the memory of all others."""

    def share(self, one: str, other: str) -> bool:
        """Whether two devices reach each other's memory, as far as this machine says."""
        return any(one in group and other in group for group in self.shared)

    def shared_pairs(self) -> frozenset[frozenset[str]]:
        """The pairs of devices that reach each other's memory."""
        return frozenset(frozenset(pair) for group in self.shared for pair in combinations(group, 2))

    def compute_seconds(self, device: str, flops: float, bytes_: float) -> float:
        """How long an operation takes: the slower of computing and of moving its data, after the launch."""
        there = self.devices[device]
        return max(flops / there.flops, bytes_ / there.bandwidth) + there.launch

    def copy_seconds(self, source: str, destination: str, bytes_: float, elided: bool = False) -> float:
        """How long a copy takes; two devices without a link of their own copy through the host.

        If it may be ``elided``, devices that share memory only wait for each other: nothing moves.
        """
        if source == destination:
            return 0.0
        if elided and self.share(source, destination):
            bytes_ = 0.0
        link = self.links.get((source, destination))
        if link is not None:
            return link.latency + bytes_ / link.bandwidth
        legs = (self.links[source, self.host], self.links[self.host, destination])
        return sum(leg.latency + bytes_ / leg.bandwidth for leg in legs)

    def check_describes(self, devices: Iterable[str]) -> None:
        """Raise OptionError for a device that a program uses and this machine lacks."""
        missing = sorted(set(devices) - set(self.devices))
        if missing:
            raise OptionError(
                f"{self.source}: devices: there is no '{missing[0]}', which the program uses",
                notes=[f"described are: {', '.join(self.devices)}", f'add a table [devices."{missing[0]}"]'],
            )


NOMINAL: Mapping[str, Device] = {
    "cpu": Device("cpu", 5e10, 2e10, 1e-6),
    "opencl": Device("opencl", 1e12, 2e11, 1e-5),
    "cuda": Device("cuda", 1e13, 1e12, 5e-6),
    "rocm": Device("rocm", 1e13, 1e12, 5e-6),
}
"""Round figures of an ordinary device of each type, for programs that are planned without a description."""

_OTHER = Device("other", 1e12, 2e11, 1e-5)
_NOMINAL_BANDWIDTH, _NOMINAL_LATENCY = 1e10, 1e-5


def nominal_machine(names: Iterable[str], host: str) -> Machine:
    """A machine of nominal devices, in the order of ``names``, each linked to the host."""
    nominal = {name: NOMINAL.get(name.partition(":")[0], _OTHER) for name in dict.fromkeys([host, *names])}
    devices = {name: replace(device, name=name) for name, device in nominal.items()}
    pairs = [pair for name in devices if name != host for pair in ((host, name), (name, host))]
    links = {pair: Link(*pair, _NOMINAL_BANDWIDTH, _NOMINAL_LATENCY) for pair in pairs}
    return Machine(devices, links, host)


def with_devices(machine: Machine, names: Iterable[str]) -> Machine:
    """``machine``, and nominal figures of the devices among ``names`` that it lacks."""
    missing = [name for name in dict.fromkeys(names) if name not in machine.devices]
    if not missing:
        return machine
    nominal = nominal_machine(missing, machine.host)
    devices = {**nominal.devices, **machine.devices}
    return replace(machine, devices=devices, links={**nominal.links, **machine.links})


def duration(seconds: float) -> str:
    """Seconds for people: three digits."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size * 0.9995 or seconds == 0:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"
