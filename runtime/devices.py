"""Physical devices of this machine, and which of them a program's virtual devices run on."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from devscope.errors import DeviceNotFoundError, OptionError
from devscope.runtime.drivers.opencl import OpenCLDevice, opencl_devices
from devscope.runtime.drivers.opencl_parts import compute_unit
from devscope.runtime.format_bytes import format_bytes


@dataclass(frozen=True)
class DeviceInfo:
    """What ``devscope devices`` prints about one physical device.

    ``memory_bytes``: 0 when unknown. ``max_workgroup_size``: 0 where there are no workgroups.
    ``spirv_versions``: accepted versions of SPIR-V, empty for devices that do not take it.
    """

    name: str
    type: str
    description: str
    platform: str
    driver: str
    memory_bytes: int
    max_workgroup_size: int
    compute_units: int
    fp64: bool
    fp16: bool
    spirv_versions: tuple[str, ...]

    def describe(self) -> str:
        """One line for people."""
        facts = [f"{self.compute_units} compute units", format_bytes(self.memory_bytes), self.platform]
        if self.driver:
            facts.append(f"driver {self.driver}")
        if self.max_workgroup_size:
            facts.append(f"workgroups up to {self.max_workgroup_size}")
        floats = [name for name, there in (("fp64", self.fp64), ("fp16", self.fp16)) if there]
        if floats:
            facts.append(" ".join(floats))
        if self.spirv_versions:
            facts.append(f"SPIR-V up to {self.spirv_versions[-1]}")
        return f"{self.name}: {self.description} ({', '.join(facts)})"

    def to_json(self) -> dict[str, Any]:
        """All fields, for ``json.dumps``."""
        return asdict(self)


@dataclass(frozen=True)
class PhysicalDevice:
    """A device that programs can run on; ``opencl`` is set for devices of type opencl."""

    name: str
    type: str
    opencl: OpenCLDevice | None = None


HOST = PhysicalDevice("cpu:0", "cpu")


def list_devices() -> list[DeviceInfo]:
    """The physical devices of this machine: ``cpu:0``, then ``opencl:0``, ``opencl:1``, ..."""
    return [_host_info(), *(_opencl_info(device) for device in opencl_devices()[0])]


def driver_problems() -> list[str]:
    """Drivers and devices that were found but cannot be used, one line each."""
    return list(opencl_devices()[1])


def resolve_devices(
    virtual: Mapping[str, str], mapping: Mapping[str, str] | None = None
) -> dict[str, PhysicalDevice]:
    """Gives every virtual device of a program a physical one.

    ``virtual`` maps the program's devices to the device type that their code was compiled for, which need
    not be their own: ``{"cuda:0": "opencl"}``. A device that ``mapping`` does not name runs on the physical
    device of the same name. Several virtual devices may share a physical one. ``opencl:0.1`` is the second compute
    unit of ``opencl:0`` alone, where the driver can divide the device.

    Raises :class:`OptionError` for a mapping that names a device the program does not use, or a device of
    another type than the code was compiled for; :class:`DeviceNotFoundError` when a device is not there.
    """
    mapping = mapping or {}
    unused = sorted(set(mapping) - set(virtual))
    if unused:
        raise OptionError(
            f"the device mapping names '{unused[0]}', which the program does not use",
            notes=[f"the program uses: {', '.join(virtual)}"],
        )
    return {name: _find(name, compiled_for, mapping.get(name, name)) for name, compiled_for in virtual.items()}


def _find(virtual: str, compiled_for: str, physical: str) -> PhysicalDevice:
    if not isinstance(physical, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise OptionError(f"'{virtual}' is mapped to {physical!r}, which is not the name of a device")
    if physical != virtual and _type_of(physical) != compiled_for:
        raise OptionError(
            f"'{virtual}' cannot run on '{physical}': its code was compiled for device type '{compiled_for}'",
            notes=[f"map it to a device of type '{compiled_for}', or compile the program for '{physical}'"],
        )
    # Programs that use the host alone must not pay for loading drivers.
    if physical == HOST.name and compiled_for == "cpu":
        return HOST
    device = _physical_devices(compiled_for).get(physical) or _compute_unit(physical, compiled_for)
    if device is None:
        raise _missing(virtual, compiled_for, physical)
    return device


def _physical_devices(device_type: str) -> dict[str, PhysicalDevice]:
    if device_type == "cpu":
        return {HOST.name: HOST}
    if device_type == "opencl":
        return {device.name: PhysicalDevice(device.name, "opencl", device) for device in opencl_devices()[0]}
    return {}


def _compute_unit(name: str, device_type: str) -> PhysicalDevice | None:
    if device_type != "opencl" or "." not in name:
        return None
    unit = compute_unit(name)
    return None if unit is None else PhysicalDevice(name, "opencl", unit)


def _missing(virtual: str, compiled_for: str, physical: str) -> DeviceNotFoundError:
    there = [HOST.name, *(device.name for device in opencl_devices()[0])]
    notes = [f"this machine has: {', '.join(there)}"]
    usable = [name for name in there if _type_of(name) == compiled_for]
    if usable:
        notes.append(f"to run it on another device, pass devices={{'{virtual}': '{usable[0]}'}}")
    elif compiled_for == "opencl":
        notes.append("an OpenCL driver for the CPU comes with: pip install 'devscope[opencl]'")
    else:
        notes.append(f"compile the program for a device that is there, not for '{compiled_for}'")
    notes.extend(driver_problems())
    wanted = f"'{virtual}'" if virtual == physical else f"'{virtual}' (mapped to '{physical}')"
    return DeviceNotFoundError(f"the program needs device {wanted}, which this machine does not have", notes=notes)


def _type_of(name: str) -> str:
    return name.partition(":")[0]


def _host_info() -> DeviceInfo:
    pages, page_size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return DeviceInfo(
        name=HOST.name,
        type="cpu",
        description=_cpu_name(),
        platform=os.uname().machine,
        driver="",
        memory_bytes=pages * page_size,
        max_workgroup_size=0,
        compute_units=os.cpu_count() or 1,
        fp64=True,
        fp16=True,
        spirv_versions=(),
    )


def _cpu_name() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                key, _, value = line.partition(":")
                if key.strip() == "model name":
                    return value.strip()
    except OSError:
        pass
    return os.uname().machine


def _opencl_info(device: OpenCLDevice) -> DeviceInfo:
    return DeviceInfo(
        name=device.name,
        type="opencl",
        description=device.description,
        platform=f"{device.platform_name}, {device.platform_version}",
        driver=device.driver_version,
        memory_bytes=device.memory_bytes,
        max_workgroup_size=device.max_workgroup_size,
        compute_units=device.compute_units,
        fp64=device.fp64,
        fp16=device.fp16,
        spirv_versions=device.spirv_versions,
    )
