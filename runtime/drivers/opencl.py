"""The OpenCL driver: the devices of all platforms, and their compute units."""

from __future__ import annotations

from devscope.runtime.drivers import Device, Driver
from devscope.runtime.drivers.opencl_device import opencl_devices
from devscope.runtime.drivers.opencl_parts import compute_unit


class OpenCLDriver(Driver):
    type = "opencl"
    advice = "an OpenCL driver for the CPU comes with: pip install 'devscope[opencl]'"

    def devices(self) -> list[Device]:
        return list(opencl_devices()[0])

    def problems(self) -> list[str]:
        return list(opencl_devices()[1])

    def find(self, name: str) -> Device | None:
        if "." not in name:
            return super().find(name)
        return compute_unit(name)


DRIVER = OpenCLDriver()
