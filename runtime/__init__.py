"""Runs compiled programs: devices, executables, saved files. Needs neither MLIR nor xDSL."""

from __future__ import annotations

from devscope.runtime.devices import driver_problems, list_devices
from devscope.runtime.drivers import DeviceInfo
from devscope.runtime.executable import Executable
from devscope.runtime.program import (
    ConstantSpec,
    DeviceSpec,
    Entry,
    KernelSpec,
    Program,
    TensorSpec,
)

__all__ = [
    "ConstantSpec",
    "DeviceInfo",
    "DeviceSpec",
    "Entry",
    "Executable",
    "KernelSpec",
    "Program",
    "TensorSpec",
    "driver_problems",
    "list_devices",
]
