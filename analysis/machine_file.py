"""Machine descriptions as files: TOML, or JSON of the same structure. ``docs/machine.md`` documents the format."""

import json
import math
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any, NoReturn

from devscope.analysis.machine import DYNAMIC_SIZE, TRIP_COUNT, Device, Link, Machine
from devscope.analysis.text_files import decoded, read_text
from devscope.dialects.target import check_device_type
from devscope.errors import MachineFileError, OptionError

FORMAT = 1

_WHAT = "the machine description"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*:(0|[1-9][0-9]*)")
_RATE, _SECONDS = "a number above 0", "a number of seconds, 0 or more"
_DEVICE = {"flops": _RATE, "bandwidth": _RATE, "launch": _SECONDS, "memory": _RATE}
_LINK = {"bandwidth": _RATE, "latency": _SECONDS}
_ASSUMED = {"dynamic_size": DYNAMIC_SIZE, "trip_count": TRIP_COUNT}
_TOP_KEYS = ("format", "host", "shared", "devices", "links", "assume")


def read_machine(path: str | os.PathLike[str]) -> Machine:
    """Read a description. Raises MachineFileError, with the file and the key, for anything that is wrong in it."""
    return parse_machine(machine_text(path), os.fspath(path))


def machine_text(path: str | os.PathLike[str]) -> str:
    """The text of a description. Raises MachineFileError when it cannot be read."""
    return read_text(path, _WHAT, MachineFileError)


def parse_machine(text: str, source: str) -> Machine:
    """As `read_machine`, for the text of a file called ``source``."""
    return _Reader(source).machine(decoded(text, source, MachineFileError, f"{_WHAT}: TOML or JSON"))


class _Reader:
    """Checks one decoded file; messages name it."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._devices: dict[str, Device] = {}

    def machine(self, data: object) -> Machine:
        table = self._table(data, "", _TOP_KEYS, {"devices"})
        if table.get("format", FORMAT) != FORMAT or isinstance(table.get("format"), bool):
            self._fail("format", f"must be {FORMAT}, the only format there is")
        if not isinstance(table["devices"], dict) or not table["devices"]:
            self._fail("devices", "must be a table with one table for each device")
        self._devices = {name: self._device(str(name), found) for name, found in table["devices"].items()}
        known = f"described are: {', '.join(self._devices)}"
        host = self._named("host", table.get("host", "cpu:0"), known)
        assumed = self._table(table.get("assume", {}), "assume", _ASSUMED)
        groups = enumerate(self._list(table, "shared", "an array of arrays of devices"))
        return Machine(
            self._devices,
            self._links(self._list(table, "links", "an array of tables"), host),
            host,
            source=self._source,
            shared=tuple(self._group(group, f"shared[{index}]", known) for index, group in groups),
            **{
                name: self._count(f"assume.{name}", assumed.get(name, default))
                for name, default in _ASSUMED.items()
            },
        )

    def _group(self, data: object, key: str, known: str) -> tuple[str, ...]:
        if not isinstance(data, list) or len(data) < 2:
            self._fail(key, "must be an array of two or more devices")
        for name in data:
            self._named(key, name, known)
            if data.count(name) > 1:
                self._fail(key, f"names {name} twice")
        return tuple(data)

    def _device(self, name: str, data: object) -> Device:
        key = f'devices."{name}"'
        if _NAME.fullmatch(name) is None:
            self._fail(key, "is not the name of a device", "write TYPE:NUMBER, such as opencl:0")
        try:
            check_device_type(name.partition(":")[0])
        except OptionError as error:
            self._fail(key, error.message, *error.notes)
        table = self._table(data, key, (*_DEVICE, "cores"), {"flops", "bandwidth"})
        least = int(name.startswith("cpu:"))
        cores = self._count(f"{key}.cores", table["cores"], least) if "cores" in table else None
        return Device(name, **self._quantities(table, key, _DEVICE), cores=cores)

    def _links(self, data: list[Any], host: str) -> dict[tuple[str, str], Link]:
        links: dict[tuple[str, str], Link] = {}
        for index, described in enumerate(data):
            link = self._link(described, f"links[{index}]")
            if (link.source, link.destination) in links:
                self._fail(f"links[{index}]", f"a second link from {link.source} to {link.destination}")
            links[link.source, link.destination] = link
        for name in self._devices:
            for source, destination in ((host, name), (name, host)):
                if name != host and (source, destination) not in links:
                    note = f"every device needs links to and from the host, {host}"
                    self._fail("links", f"there is no link from {source} to {destination}", note)
        return links

    def _link(self, data: object, key: str) -> Link:
        table = self._table(data, key, ("from", "to", *_LINK), {"from", "to", "bandwidth"})
        source, destination = (self._named(f"{key}.{end}", table[end]) for end in ("from", "to"))
        if source == destination:
            self._fail(key, f"links {source} to itself", "copies within a device take no link")
        return Link(source, destination, **self._quantities(table, key, _LINK))

    def _table(self, data: object, key: str, known: Iterable[str], required: Iterable[str] = ()) -> dict[str, Any]:
        if not isinstance(data, dict):
            self._fail(key, "must be a table")
        for name in data:
            if name not in known:
                self._fail(_join(key, str(name)), "unknown key", f"known here: {', '.join(sorted(known))}")
        for name in sorted(required):
            if name not in data:
                self._fail(_join(key, name), "is missing")
        return data

    def _list(self, table: dict[str, Any], key: str, legal: str) -> list[Any]:
        data = table.get(key, [])
        if not isinstance(data, list):
            self._fail(key, f"must be {legal}")
        return data

    def _named(self, key: str, name: object, *notes: str) -> str:
        """A device that the file describes."""
        if not isinstance(name, str) or name not in self._devices:
            self._fail(key, f"there is no device {name!r}", *notes)
        return name

    def _quantities(self, table: dict[str, Any], key: str, known: Mapping[str, str]) -> dict[str, float]:
        """The rates, which may be infinite, and the times, which may not, that a table has."""
        found = {name: _float(table[name]) for name in known if name in table}
        for name, number in found.items():
            if not (number > 0 if known[name] is _RATE else 0 <= number < math.inf):
                self._fail(_join(key, name), f"must be {known[name]}, not {table[name]!r}")
        return found

    def _count(self, key: str, value: object, least: int = 1) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            self._fail(key, f"must be a whole number of {least} or more, not {value!r}")
        return value

    def _fail(self, key: str, message: str, *notes: str) -> NoReturn:
        raise MachineFileError(": ".join(filter(None, (self._source, key, message))), notes=notes)


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
    data = _described(machine)
    devices = {f'[devices."{name}"]': device for name, device in data.pop("devices").items()}
    lines = [f"# {line}".rstrip() for line in comment.splitlines()]
    lines += [f"{key} = {json.dumps(value)}" for key, value in data.items() if key != "links"]
    for title, table in (*devices.items(), *(("[[links]]", link) for link in data["links"])):
        lines += ["", title, *(f"{key} = {_text(key, value)}" for key, value in table.items())]
    return "\n".join(lines) + "\n"


def machine_json(machine: Machine) -> str:
    """A description as JSON."""
    return json.dumps(_described(machine), indent=2) + "\n"


def _described(machine: Machine) -> dict[str, Any]:
    """What a file says of a machine: all that is measured."""
    devices = {
        device.name: {key: value for key, value in asdict(device).items() if key != "name" and value is not None}
        for device in machine.devices.values()
    }
    links = [
        {"from": link.source, "to": link.destination, "bandwidth": link.bandwidth, "latency": link.latency}
        for link in machine.links.values()
    ]
    shared = {"shared": machine.shared} if machine.shared else {}
    return {"format": FORMAT, "host": machine.host, **shared, "devices": devices, "links": links}


def _text(key: str, value: str | float) -> str:
    """As TOML writes floats, which need a point or an exponent; three digits are all that a measurement has."""
    if isinstance(value, str):
        return json.dumps(value)
    if key in ("memory", "cores"):
        return f"{value:.0f}"
    return f"{value:.3g}" if math.isinf(value) else f"{value:.2e}"
