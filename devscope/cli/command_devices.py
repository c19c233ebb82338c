"""``devscope devices``: what this machine has."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from devscope.runtime.devices import DeviceInfo

NAME = "devices"
HELP = "list the devices of this machine"
EPILOG = """\
examples:
  devscope devices
  devscope devices --json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def execute(arguments: argparse.Namespace) -> int:
    from devscope.runtime.devices import driver_problems, list_devices

    devices, problems = list_devices(), driver_problems()
    if arguments.json:
        found = [device.to_json() for device in devices]
        print(json.dumps({"devices": found, "problems": problems}, indent=2))
        return 0
    for device in devices:
        print("\n".join(_lines(device)))
    for problem in problems:
        print(f"not usable: {problem}")
    return 0


def _lines(device: DeviceInfo) -> list[str]:
    """The name and what it is, then one fact a line."""
    from devscope.runtime.format_bytes import format_bytes

    floats = [name for name, there in (("fp16", device.fp16), ("fp64", device.fp64)) if there]
    facts = {
        "platform": device.platform,
        "driver": device.driver,
        "compute units": str(device.compute_units),
        "memory": format_bytes(device.memory_bytes) if device.memory_bytes else "",
        "workgroups": f"up to {device.max_workgroup_size} work items" if device.max_workgroup_size else "",
        "floats": " ".join(("fp32", *floats)),
        "SPIR-V": f"up to {device.spirv_versions[-1]}" if device.spirv_versions else "",
    }
    return [
        f"{device.name}  {device.description}",
        *(f"  {name:<14} {value}" for name, value in facts.items() if value),
    ]
