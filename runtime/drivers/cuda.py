"""CUDA devices: none yet. Programs are compiled for them, but nothing loads NVIDIA's driver or runs kernels."""

from devscope.errors import option_note
from devscope.runtime.drivers import Device, Driver


class CudaDriver(Driver):
    type = "cuda"
    advice = option_note(
        "devscope compiles for CUDA, but does not run that yet: compile the program for another device, such as",
        "devices",
        {"cuda:0": "opencl:0"},
    )

    def devices(self) -> list[Device]:
        return []


DRIVER = CudaDriver()
