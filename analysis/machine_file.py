"""Machine descriptions as files: TOML, or JSON of the same structure. ``docs/machine.md`` documents the format."""

from __future__ import annotations

import json
import math
import os
import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NoReturn

from devscope.analysis.machine import DYNAMIC_SIZE, TRIP_COUNT, Device, Link, Machine
from devscope.dialects.target import check_device_type
from devscope.errors import OptionError

FORMAT = 1

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*:(0|[1-9][0-9]*)")
_DEVICE_KEYS = {"flops", "bandwidth", "launch", "memory"}
_LINK_KEYS = {"from", "to", "bandwidth", "latency"}
_TOP_KEYS = {"format", "host", "shared", "devices", "links", "assume"}
_ASSUME_KEYS = {"dynamic_size", "trip_count"}


def read_machine(path: str | os.PathLike[str]) -> Machine:
    """Read a description. Raises OptionError, with the file and the key, for anything that is wrong in it."""
    return parse_machine(machine_text(path), os.fspath(path))


def machine_text(path: str | os.PathLike[str]) -> str:
    """The text of a description. Raises OptionError when it cannot be read."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        reason = error.strerror or str(error)
        raise OptionError(f"cannot read the machine description '{os.fspath(path)}': {reason}") from None
    except UnicodeDecodeError:
        raise OptionError(f"the machine description '{os.fspath(path)}' is not UTF-8 text") from None


def parse_machine(text: str, source: str) -> Machine:
    """As `read_machine`, for the text of a file called ``source``."""
    return _Reader(source).machine(_decode(text, source))


def _decode(text: str, source: str) -> object:
    try:
        # No TOML file begins with a brace.
        return json.loads(text) if text.lstrip().startswith("{") else tomllib.loads(text)
    except (json.JSONDecodeError, tomllib.TOMLDecodeError) as error:
        raise OptionError(f"{source}: {error}", notes=["a machine description is TOML or JSON"]) from None
    except RecursionError:
        raise OptionError(f"{source}: nested too deeply for a machine description") from None


class _Reader:
    """Checks one decoded file; messages name it."""

    def __init__(self, source: str) -> None:
        self._source = source

    def machine(self, data: object) -> Machine:
        table = self._table(data, "", _TOP_KEYS, {"devices"})
        if table.get("format", FORMAT) != FORMAT or isinstance(table.get("format"), bool):
            self._fail("format", f"must be {FORMAT}, the only format there is")
        devices = self._devices(table["devices"])
        host = table.get("host", "cpu:0")
        if not isinstance(host, str) or host not in devices:
            self._fail("host", f"there is no device {host!r}", [f"described are: {', '.join(devices)}"])
        assume = self._table(table.get("assume", {}), "assume", _ASSUME_KEYS)
        return Machine(
            devices,
            self._links(table.get("links", []), devices, host),
            host,
            self._count(assume, "dynamic_size", DYNAMIC_SIZE),
            self._count(assume, "trip_count", TRIP_COUNT),
            self._source,
            self._shared(table.get("shared", []), devices),
        )

    def _shared(self, data: object, devices: dict[str, Device]) -> tuple[tuple[str, ...], ...]:
        if not isinstance(data, list):
            self._fail("shared", "must be an array of arrays of devices")
        return tuple(self._group(group, f"shared[{index}]", devices) for index, group in enumerate(data))

    def _group(self, data: object, key: str, devices: dict[str, Device]) -> tuple[str, ...]:
        if not isinstance(data, list) or len(data) < 2:
            self._fail(key, "must be an array of two or more devices")
        for name in data:
            if not isinstance(name, str) or name not in devices:
                self._fail(key, f"there is no device {name!r}", [f"described are: {', '.join(devices)}"])
            if data.count(name) > 1:
                self._fail(key, f"names {name} twice")
        return tuple(data)

    def _devices(self, data: object) -> dict[str, Device]:
        if not isinstance(data, dict) or not data:
            self._fail("devices", "must be a table with one table for each device")
        return {name: self._device(str(name), described) for name, described in data.items()}

    def _device(self, name: str, data: object) -> Device:
        key = f'devices."{name}"'
        if _NAME.fullmatch(name) is None:
            self._fail(key, "is not the name of a device", ["write TYPE:NUMBER, such as opencl:0"])
        try:
            check_device_type(name.partition(":")[0])
        except OptionError as error:
            self._fail(key, error.message, error.notes)
        table = self._table(data, key, _DEVICE_KEYS, {"flops", "bandwidth"})
        return Device(
            name,
            self._number(table, key, "flops", positive=True),
            self._number(table, key, "bandwidth", positive=True),
            self._number(table, key, "launch") if "launch" in table else 0.0,
            self._number(table, key, "memory", positive=True) if "memory" in table else None,
        )

    def _links(self, data: object, devices: dict[str, Device], host: str) -> dict[tuple[str, str], Link]:
        if not isinstance(data, list):
            self._fail("links", "must be an array of tables")
        links: dict[tuple[str, str], Link] = {}
        for index, described in enumerate(data):
            link = self._link(described, f"links[{index}]", devices)
            if (link.source, link.destination) in links:
                self._fail(f"links[{index}]", f"a second link from {link.source} to {link.destination}")
            links[link.source, link.destination] = link
        for name in devices:
            for pair in ((host, name), (name, host)):
                if name != host and pair not in links:
                    self._fail(
                        "links",
                        f"there is no link from {pair[0]} to {pair[1]}",
                        [f"every device needs links to and from the host, {host}"],
                    )
        return links

    def _link(self, data: object, key: str, devices: dict[str, Device]) -> Link:
        table = self._table(data, key, _LINK_KEYS, {"from", "to", "bandwidth"})
        for end in ("from", "to"):
            if not isinstance(table[end], str) or table[end] not in devices:
                self._fail(f"{key}.{end}", f"there is no device {table[end]!r}")
        if table["from"] == table["to"]:
            self._fail(key, f"links {table['from']} to itself", ["copies within a device take no link"])
        return Link(
            table["from"],
            table["to"],
            self._number(table, key, "bandwidth", positive=True),
            self._number(table, key, "latency") if "latency" in table else 0.0,
        )

    def _table(self, data: object, key: str, known: set[str], required: Iterable[str] = ()) -> dict[str, Any]:
        if not isinstance(data, dict):
            self._fail(key, "must be a table")
        for name in data:
            if name not in known:
                self._fail(_join(key, str(name)), "unknown key", [f"known here: {', '.join(sorted(known))}"])
        for name in sorted(required):
            if name not in data:
                self._fail(_join(key, name), "is missing")
        return data

    def _number(self, table: dict[str, Any], key: str, name: str, positive: bool = False) -> float:
        """A rate, ``positive`` and possibly infinite, or a time, 0 or more and finite."""
        value = table[name]
        number = _float(value)
        if not (number > 0 if positive else 0 <= number < math.inf):
            legal = "a number above 0" if positive else "a number of seconds, 0 or more"
            self._fail(_join(key, name), f"must be {legal}, not {value!r}")
        return number

    def _count(self, table: dict[str, Any], name: str, default: int) -> int:
        value = table.get(name, default)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            self._fail(f"assume.{name}", f"must be a whole number of 1 or more, not {value!r}")
        return value

    def _fail(self, key: str, message: str, notes: Iterable[str] = ()) -> NoReturn:
        raise OptionError(
            f"{self._source}: {key}: {message}" if key else f"{self._source}: {message}", notes=[*notes]
        )


def _float(value: object) -> float:
    """NaN for what is no number."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _join(key: str, name: str) -> str:
    return f"{key}.{name}" if key else name


def machine_toml(machine: Machine, comment: str = "") -> str:
    """A description as TOML; ``comment`` goes on top, line by line."""
    lines = [f"# {line}".rstrip() for line in comment.splitlines()]
    lines += [f"format = {FORMAT}", f'host = "{machine.host}"']
    if machine.shared:
        lines += [f"shared = {json.dumps(machine.shared)}"]
    for device in machine.devices.values():
        lines += ["", f'[devices."{device.name}"]', f"flops = {_text(device.flops)}"]
        lines += [f"bandwidth = {_text(device.bandwidth)}", f"launch = {_text(device.launch)}"]
        lines += [f"memory = {device.memory:.0f}"] if device.memory is not None else []
    for link in machine.links.values():
        lines += ["", "[[links]]", f'from = "{link.source}"', f'to = "{link.destination}"']
        lines += [f"bandwidth = {_text(link.bandwidth)}", f"latency = {_text(link.latency)}"]
    return "\n".join(lines) + "\n"


def machine_json(machine: Machine) -> str:
    """A description as JSON."""
    devices = {
        device.name: {
            "flops": device.flops,
            "bandwidth": device.bandwidth,
            "launch": device.launch,
            **({"memory": device.memory} if device.memory is not None else {}),
        }
        for device in machine.devices.values()
    }
    links = [
        {"from": link.source, "to": link.destination, "bandwidth": link.bandwidth, "latency": link.latency}
        for link in machine.links.values()
    ]
    shared = {"shared": machine.shared} if machine.shared else {}
    data = {"format": FORMAT, "host": machine.host, **shared, "devices": devices, "links": links}
    return json.dumps(data, indent=2) + "\n"


def _text(number: float) -> str:
    """As TOML writes floats, which need a point or an exponent; three digits are all that a measurement has."""
    return f"{number:.3g}" if math.isinf(number) else f"{number:.2e}"
