"""The CUDA driver: the devices that NVIDIA's driver knows."""

import ctypes

from devscope.errors import DeviceError
from devscope.runtime.cuda_architectures import PTX_VERSIONS, architecture_of
from devscope.runtime.drivers import Device, Driver, Search
from devscope.runtime.drivers import cuda_api as api
from devscope.runtime.drivers.cuda_api import LIBRARY, CudaLibrary
from devscope.runtime.drivers.cuda_device import CudaDevice


class CudaDriver(Driver):
    type = "cuda"
    advice = f"CUDA devices need NVIDIA's driver ({LIBRARY}): install it, or compile the program for others"

    def devices(self) -> list[Device]:
        return list(cuda_devices()[0])

    def problems(self) -> list[str]:
        return list(cuda_devices()[1])


DRIVER = CudaDriver()


def cuda_devices() -> tuple[list[CudaDevice], list[str]]:
    """All CUDA devices that devscope has code for, in CUDA's order, and what was found but cannot be used.

    Raises :class:`DeviceError` in a process that was forked after there were some.
    """
    return search()


def _search() -> tuple[list[CudaDevice], list[str]]:
    try:
        loaded = ctypes.CDLL(LIBRARY)
    except OSError:
        return [], []  # a machine without NVIDIA's driver
    found: list[CudaDevice] = []
    problems: list[str] = []
    try:
        library = CudaLibrary(loaded)
        for number in range(library.device_count()):
            handle = library.integer("cuDeviceGet", number)
            device = _describe(library, number, handle)
            if isinstance(device, str):
                problems.append(device)
            else:
                found.append(device)
    except (DeviceError, OSError) as error:
        problems.append(f"CUDA: {error}")
    return found, problems


def _describe(library: CudaLibrary, number: int, handle: int) -> CudaDevice | str:
    """A device, or why it cannot be used."""

    def attribute(which: int) -> int:
        return library.integer("cuDeviceGetAttribute", which, handle)

    major, minor = attribute(api.COMPUTE_CAPABILITY_MAJOR), attribute(api.COMPUTE_CAPABILITY_MINOR)
    description = library.device_name(handle)
    architecture = architecture_of(major, minor)
    if architecture is None:
        return f"cuda:{number}: {description} is of compute capability {major}.{minor}, and {_FIRST} is needed"
    version = library.integer("cuDriverGetVersion")
    driver = f"CUDA {version // 1000}.{version % 1000 // 10}"
    return CudaDevice(
        name=f"cuda:{number}",
        type="cuda",
        description=description,
        platform=f"NVIDIA CUDA, compute capability {major}.{minor}",
        driver=driver,
        memory_bytes=library.total_memory(handle),
        max_workgroup_size=attribute(api.MAX_THREADS_PER_BLOCK),
        compute_units=attribute(api.MULTIPROCESSOR_COUNT),
        fp64=True,
        fp16=True,
        spirv_versions=(),
        local_memory_bytes=attribute(api.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
        base_alignment=256,
        identity="|".join([description, f"{major}.{minor}", driver]),
        library=library,
        handle=handle,
        architecture=architecture,
    )


_FIRST = ".".join(next(iter(PTX_VERSIONS)).removeprefix("sm_"))

search = Search(_search, lambda found: bool(found[0]))
