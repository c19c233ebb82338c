"""Which devices of this machine reach each other's memory."""

from __future__ import annotations

from collections.abc import Mapping

from devscope.errors import DeviceError
from devscope.runtime.devices import HOST, PhysicalDevice
from devscope.runtime.drivers.opencl import opencl_devices
from devscope.runtime.program import Program


def share_memory(one: PhysicalDevice, other: PhysicalDevice) -> bool:
    """Whether each of two devices uses the other's memory as its own.

    The host does where a device offers fine-grained shared virtual memory, devices of one OpenCL context do.
    """
    if one.opencl is None or other.opencl is None:
        return all(device.opencl is None or device.opencl.shares_memory for device in (one, other))
    return one.opencl.shared_context is other.opencl.shared_context


def memory_groups() -> list[tuple[str, ...]]:
    """Groups of devices of this machine, as machine descriptions have them: the host and one, or devices."""
    devices = opencl_devices()[0]
    groups = [(HOST.name, device.name) for device in devices if device.shares_memory]
    contexts: dict[int, list[str]] = {}
    for device in devices:
        contexts.setdefault(id(device.shared_context), []).append(device.name)
    return [*groups, *(tuple(names) for names in contexts.values() if len(names) > 1)]


def check_shared_memory(program: Program, physical: Mapping[str, PhysicalDevice]) -> None:
    """Raise DeviceError for a pair of devices that must reach each other's memory and do not."""
    slots = program.slots()
    for low, high in program.shared:
        names = slots[low].name, slots[high].name
        one, other = (physical[name] for name in names)
        if not share_memory(one, other):
            raise DeviceError(
                f"the program was compiled for '{names[0]}' and '{names[1]}' that reach each other's memory; "
                f"{_both(one, other)} do not",
                notes=[
                    "run it on devices that do, or compile it with a machine description in which no group of "
                    "'shared' has both, or without one"
                ],
            )


def _both(*devices: PhysicalDevice) -> str:
    return " and ".join("the host" if device.opencl is None else device.opencl.label for device in devices)
