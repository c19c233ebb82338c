"""Which devices of this machine reach each other's memory."""

from __future__ import annotations

from collections.abc import Mapping

from devscope.errors import DeviceError
from devscope.runtime.drivers import Device, drivers
from devscope.runtime.program import Program


def memory_groups() -> list[tuple[str, ...]]:
    """Groups of devices of this machine, as machine descriptions have them: the host and one, or devices."""
    (host, *_), *others = [found.devices() for found in drivers()]
    devices = [device for of_type in others for device in of_type]
    groups: list[tuple[str, ...]] = []
    groups.extend((host.name, device.name) for device in devices if device.shares_memory_with(host))
    left = devices
    while left:
        first = left[0]
        near = tuple(device.name for device in left if device is first or device.shares_memory_with(first))
        left = [device for device in left if device.name not in near]
        if len(near) > 1:
            groups.append(near)
    return groups


def check_shared_memory(program: Program, physical: Mapping[str, Device]) -> None:
    """Raise DeviceError for a pair of devices that must reach each other's memory and do not."""
    slots = program.slots()
    for low, high in program.shared:
        names = slots[low].name, slots[high].name
        one, other = (physical[name] for name in names)
        if not one.shares_memory_with(other):
            raise DeviceError(
                f"the program was compiled for '{names[0]}' and '{names[1]}' that reach each other's memory; "
                f"{one.label} and {other.label} do not",
                notes=[
                    "run it on devices that do, or compile it with a machine description in which no group of "
                    "'shared' has both, or without one"
                ],
            )
