"""``devscope devices``: what this machine has, and how fast it is."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from devscope.errors import InputError, OptionError

if TYPE_CHECKING:
    from devscope.analysis.machine import Machine
    from devscope.runtime.cache import DiskCache
    from devscope.runtime.drivers import DeviceInfo

NAME = "devices"
HELP = "list the devices of this machine, or measure them"
EPILOG = """\
examples:
  devscope devices
  devscope devices --json
  devscope devices --measure --output machine.toml      for --completion min-cost --machine machine.toml
  devscope devices --measure --keep                     for --place auto
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--measure",
        action="store_true",
        help="run programs on every device for some seconds, and print a machine description",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="with --measure: write the description there; as JSON to a name that ends in .json",
    )
    parser.add_argument(
        "--keep", action="store_true", help="with --measure: keep the description with the cache, for --place auto"
    )


def execute(arguments: argparse.Namespace) -> int:
    if arguments.measure:
        return _measure(arguments)
    if arguments.output is not None or arguments.keep:
        raise OptionError(f"--{'keep' if arguments.keep else 'output'} goes with --measure")
    return _list(arguments.json)


def _measure(arguments: argparse.Namespace) -> int:
    from devscope.cli.files import require_place, write_output

    output = arguments.output or "-"
    require_place(output)
    from devscope.measure import measure_machine

    as_json = arguments.json or output.endswith(".json")
    store = _cache() if arguments.keep else None
    if store is not None:
        store.require_writable()
    machine = measure_machine()
    if store is not None:
        store.store_machine(_description(machine, False))
        print(f"kept in {store.machine_path}")
    if arguments.output is not None or not arguments.keep:
        write_output(output, _description(machine, as_json))
    return 0


def _cache() -> DiskCache:
    from devscope.runtime.cache import open_cache

    store = open_cache()
    if store is None:
        raise InputError("there is no cache to keep it in", notes=["DEVSCOPE_CACHE_DIR is 'off'"])
    return store


def _description(machine: Machine, as_json: bool) -> str:
    from devscope.analysis.machine_file import machine_json, machine_toml

    if as_json:
        return machine_json(machine)
    return machine_toml(machine, "Measured by: devscope devices --measure\nflop/s, bytes/s and seconds, for f32")


def _list(as_json: bool) -> int:
    from devscope.runtime.devices import backend_devices, driver_problems, list_devices

    devices, problems = list_devices(), driver_problems()
    brought, not_usable = backend_devices()
    devices += brought
    problems += not_usable
    if as_json:
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
