"""The OpenCL driver: the devices of all platforms, and their compute units.

Programs run on compute units side by side, each on its own core; they share a context, hence reach each other's
memory. They are polled: CPU drivers let a thread that waits do the device's work. Of a compute unit that would be
a second core, and the device's own one is idle until that thread waits again.
"""

import ctypes
from collections.abc import Iterator
from dataclasses import replace
from functools import cache, partial

from devscope.errors import DeviceError
from devscope.runtime.drivers import Device, Driver, Search
from devscope.runtime.drivers import opencl_api as cl
from devscope.runtime.drivers.opencl_api import SVM_FUNCTIONS, OpenCLLibrary
from devscope.runtime.drivers.opencl_device import OpenCLDevice, SharedContext
from devscope.runtime.drivers.opencl_libraries import load_libraries
from devscope.runtime.drivers.opencl_spir import EXTENSION, find_translator


class OpenCLDriver(Driver):
    type = "opencl"
    advice = "an OpenCL driver for the CPU comes with: pip install 'devscope[opencl]'"

    def devices(self) -> list[Device]:
        return list(opencl_devices()[0])

    def problems(self) -> list[str]:
        return list(opencl_devices()[1])

    def find(self, name: str) -> Device | None:
        parent, of_part, _ = name.partition(".")
        if not of_part:
            return super().find(name)
        opencl_devices()
        return next((unit for unit in _compute_units(parent) if unit.name == name), None)


DRIVER = OpenCLDriver()


def opencl_devices() -> tuple[list[OpenCLDevice], list[str]]:
    """All OpenCL devices that accept SPIR-V, and what went wrong while looking for them.

    The order is the same in every process: GPUs, accelerators, CPUs; within a type as the drivers list
    them. They are looked for once per process. Raises :class:`DeviceError` in one that was forked after that.
    """
    return _search()


def _find_all() -> tuple[list[OpenCLDevice], list[str]]:
    libraries, problems = load_libraries()
    found: list[OpenCLDevice] = []
    seen: set[tuple[str, ...]] = set()
    for library in libraries:
        try:
            for platform in library.handles("clGetPlatformIDs"):
                key = tuple(library.text("clGetPlatformInfo", platform, part) for part in _PLATFORM_KEY)
                # The loader may know the driver that was already loaded directly.
                if key not in seen:
                    found.extend(_devices_of(library, platform, problems))
                seen.add(key)
        except DeviceError as error:
            problems.append(f"{library.path}: {error.message}")
    found.sort(key=lambda device: _RANK.get(device.device_type, len(_RANK)))
    for index, device in enumerate(found):
        device.name = f"opencl:{index}"
    return found, problems


_search = Search(_find_all, lambda _: True)

_RANK = {cl.DEVICE_TYPE_GPU: 0, cl.DEVICE_TYPE_ACCELERATOR: 1, cl.DEVICE_TYPE_CPU: 2}
_PLATFORM_KEY = (cl.PLATFORM_NAME, cl.PLATFORM_VENDOR, cl.PLATFORM_VERSION)
_TYPE_MASK = cl.DEVICE_TYPE_GPU | cl.DEVICE_TYPE_ACCELERATOR | cl.DEVICE_TYPE_CPU


def _devices_of(library: OpenCLLibrary, platform: int, problems: list[str]) -> Iterator[OpenCLDevice]:
    for handle in library.handles("clGetDeviceIDs", platform, cl.DEVICE_TYPE_ALL):
        device = _describe(library, platform, handle)
        if device.translator is not None or (device.spirv_versions and device.create_with_il is not None):
            yield device
        else:
            problems.append(f"{device.platform}: {device.description} does not accept SPIR-V")


def _describe(library: OpenCLLibrary, platform: int, handle: int) -> OpenCLDevice:
    text = partial(library.text, "clGetDeviceInfo", handle)
    integer = partial(library.integer, "clGetDeviceInfo", handle)
    platform_name = library.text("clGetPlatformInfo", platform, cl.PLATFORM_NAME)
    platform_version = library.text("clGetPlatformInfo", platform, cl.PLATFORM_VERSION)
    unified = integer(cl.DEVICE_HOST_UNIFIED_MEMORY) != 0
    fine_grained = integer(cl.DEVICE_SVM_CAPABILITIES) & cl.DEVICE_SVM_FINE_GRAIN_BUFFER
    partitions = library.info("clGetDeviceInfo", handle, cl.DEVICE_PARTITION_PROPERTIES)
    versions = [word.removeprefix("SPIR-V_") for word in text(cl.DEVICE_IL_VERSION).split()]
    translator = None
    if not versions and EXTENSION in text(cl.DEVICE_EXTENSIONS).split():
        translator = find_translator(platform_version)
    return OpenCLDevice(
        name="opencl",
        type="opencl",
        description=text(cl.DEVICE_NAME),
        platform=f"{platform_name}, {platform_version}",
        driver=text(cl.DRIVER_VERSION),
        memory_bytes=integer(cl.DEVICE_GLOBAL_MEM_SIZE),
        max_workgroup_size=integer(cl.DEVICE_MAX_WORK_GROUP_SIZE),
        compute_units=integer(cl.DEVICE_MAX_COMPUTE_UNITS),
        fp64=integer(cl.DEVICE_DOUBLE_FP_CONFIG) != 0,
        fp16=integer(cl.DEVICE_HALF_FP_CONFIG) != 0,
        spirv_versions=tuple(version for version in versions if version[:1].isdigit()),
        local_memory_bytes=integer(cl.DEVICE_LOCAL_MEM_SIZE),
        base_alignment=integer(cl.DEVICE_MEM_BASE_ADDR_ALIGN) // 8,
        identity="|".join([platform_name, platform_version, text(cl.DEVICE_NAME), text(cl.DRIVER_VERSION)]),
        library=library,
        create_with_il=library.create_with_il(platform),
        handle=handle,
        device_type=integer(cl.DEVICE_TYPE) & _TYPE_MASK,
        shares_memory=bool(unified and fine_grained and all(map(library.address, SVM_FUNCTIONS))),
        partitionable=cl.DEVICE_PARTITION_EQUALLY in memoryview(partitions).cast("q"),
        shared_context=SharedContext(library, [handle]),
        translator=translator,
    )


@cache
def _compute_units(parent_name: str) -> list[OpenCLDevice]:
    """``opencl:0.1`` is the second compute unit of ``opencl:0``. Raises :class:`DeviceError`."""
    parent = next((device for device in opencl_devices()[0] if device.name == parent_name), None)
    if parent is None or (not parent.partitionable and parent.compute_units > 1):
        return []
    if parent.compute_units == 1:
        return [replace(parent, name=f"{parent_name}.0")]
    properties = (ctypes.c_ssize_t * 3)(cl.DEVICE_PARTITION_EQUALLY, 1, 0)
    units = parent.library.handles("clCreateSubDevices", parent.handle, properties)
    shared = SharedContext(parent.library, units)
    part = replace(parent, compute_units=1, shared_context=shared, polled=True)
    return [replace(part, handle=handle, name=f"{parent_name}.{index}") for index, handle in enumerate(units)]
