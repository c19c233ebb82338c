"""The host as a device."""

import contextlib
import os
import re
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import Any

from devscope.errors import DeviceError
from devscope.runtime.drivers import Device, DeviceProgram, Driver


class Host(Device):
    """``cpu:0``."""

    def __init__(self) -> None:
        self.name, self.type = "cpu:0", "cpu"
        self.platform, self.driver = os.uname().machine, ""
        self.memory_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        self.compute_units = os.cpu_count() or 1
        self.max_workgroup_size = self.local_memory_bytes = 0
        self.base_alignment = 1
        self.fp64 = self.fp16 = True
        self.spirv_versions = ()
        self.identity = ""

    # Looked up when asked for: programs need not know.
    @cached_property
    def description(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        with contextlib.suppress(OSError):
            text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
            if found := re.search(r"^model name\s*: (.*)$", text, re.MULTILINE):
                return found[1].strip()
        return os.uname().machine

    @property
    def label(self) -> str:
        return "the host"

    def shares_memory_with(self, other: Device) -> bool:
        return other is self or other.shares_memory_with(self)

    def error_name(self, status: int) -> str:
        return "out of host memory" if status == 1 else f"error {status}"

    def build(self, binary: bytes, cached: bytes | None) -> tuple[DeviceProgram, bytes | None]:
        raise DeviceError("the host's code is no device binary")

    def open(self, record: Any, made: ExitStack) -> None:
        pass


HOST = Host()


class HostDriver(Driver):
    type = "cpu"

    def devices(self) -> list[Device]:
        return [HOST]


DRIVER = HostDriver()
