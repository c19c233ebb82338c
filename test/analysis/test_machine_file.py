"""Machine descriptions: what is read back, and one message with file and key for whatever is wrong."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from devscope.analysis.machine import Device, Link, Machine, nominal_machine
from devscope.analysis.machine_file import machine_json, machine_toml, parse_machine, read_machine
from devscope.errors import OptionError

HOST = '[devices."cpu:0"]\nflops = 1e10\nbandwidth = 2e10\n'
DEVICE = '[devices."opencl:0"]\nflops = 1e12\nbandwidth = 2e11\n'
THERE = '[[links]]\nfrom = "cpu:0"\nto = "opencl:0"\nbandwidth = 1e10\n'
BACK = '[[links]]\nfrom = "opencl:0"\nto = "cpu:0"\nbandwidth = 1e10\n'
GOOD = HOST + DEVICE + THERE + BACK


def test_reads_all_keys(tmp_path: Path) -> None:
    file = tmp_path / "machine.toml"
    file.write_text(
        'format = 1\nhost = "cpu:0"\n[assume]\ndynamic_size = 7\ntrip_count = 3\n'
        + HOST
        + "launch = 1e-6\nmemory = 4096\ncores = 3\n"
        + DEVICE
        + THERE
        + "latency = 1e-5\n"
        + BACK
    )
    machine = read_machine(file)
    assert machine.devices["cpu:0"] == Device("cpu:0", 1e10, 2e10, 1e-6, 4096, 3)
    assert machine.devices["opencl:0"] == Device("opencl:0", 1e12, 2e11, 0.0, None)
    assert machine.links["cpu:0", "opencl:0"] == Link("cpu:0", "opencl:0", 1e10, 1e-5)
    assert (machine.dynamic_size, machine.trip_count, machine.source) == (7, 3, str(file))


@pytest.mark.parametrize("write", [machine_toml, machine_json])
def test_reads_what_is_written(write: object) -> None:
    assert callable(write)
    machine = nominal_machine(["opencl:0", "cuda:1"], "cpu:0")
    machine = replace(machine, devices={**machine.devices, "cuda:1": Device("cuda:1", 1e9, 1e9, cores=0)})
    read = parse_machine(write(machine), "m")
    assert (read.devices, read.links, read.host) == (machine.devices, machine.links, machine.host)


@pytest.mark.parametrize("write", [machine_toml, machine_json])
def test_shared_memory(write: object) -> None:
    assert callable(write)
    nominal = nominal_machine(["opencl:0", "opencl:1", "opencl:2"], "cpu:0")
    groups = (("opencl:0", "cpu:0"), ("opencl:0", "opencl:1", "opencl:2"))
    machine = parse_machine(write(Machine(nominal.devices, nominal.links, shared=groups)), "m")
    assert machine.shared == groups
    assert machine.share("cpu:0", "opencl:0")
    assert machine.share("opencl:2", "opencl:1")
    assert not machine.share("cpu:0", "opencl:1")
    assert len(machine.shared_pairs()) == 4
    assert frozenset({"opencl:2", "opencl:0"}) in machine.shared_pairs()
    assert not parse_machine(write(nominal), "m").shared


def test_rates_may_be_infinite() -> None:
    machine = parse_machine(GOOD.replace("flops = 1e12", "flops = inf"), "m")
    assert machine.compute_seconds("opencl:0", 1e9, 0.0) == 0.0
    assert parse_machine(machine_toml(machine), "m").devices["opencl:0"].flops == math.inf


def test_devices_without_a_link_copy_through_the_host() -> None:
    names = ("cpu:0", "opencl:0", "opencl:1")
    links = {(a, b): Link(a, b, 1e6, 1.0) for a in names for b in names if a != b and "cpu:0" in (a, b)}
    machine = Machine({name: Device(name, 1.0, 1.0) for name in names}, links)
    assert machine.copy_seconds("opencl:0", "opencl:1", 1e6) == pytest.approx(4.0)
    assert machine.copy_seconds("opencl:0", "cpu:0", 1e6) == pytest.approx(2.0)
    assert machine.copy_seconds("opencl:0", "opencl:0", 1e6) == 0.0


@pytest.mark.parametrize(
    ("text", "message", "note"),
    [
        ("a = 1\nflops = ", "m.toml:2:9: error: invalid value", "TOML or JSON"),
        ("{", "m.toml:1:2: error: expecting property name", "TOML or JSON"),
        ("[" * 100_000, "m.toml:1:3: error: invalid initial character", ""),
        ("{" + '"a":{' * 100_000, "m.toml:1:1: error: brackets are nested too deeply", ""),
        ("", "m.toml: devices: is missing", ""),
        ("[]", "m.toml:1:2: error: ", ""),
        ("devices = 3", "m.toml: devices: must be a table", ""),
        ("format = 2\n" + GOOD, "m.toml: format: must be 1", ""),
        (HOST + "cores = 0", """m.toml: devices."cpu:0".cores: must be a whole number of 1""", ""),
        (HOST + DEVICE + "cores = -1", """m.toml: devices."opencl:0".cores: must be a whole number of 0""", ""),
        (HOST + "cores = 1.5", """m.toml: devices."cpu:0".cores: must be a whole number of 1""", ""),
        ("speed = 2\n" + GOOD, "m.toml: speed: unknown key", "assume, devices, format, host, links, shared"),
        ('host = "cpu:1"\n' + GOOD, "m.toml: host: there is no device 'cpu:1'", "described are: cpu:0, opencl:0"),
        ("host = []\n" + GOOD, "m.toml: host: there is no device []", ""),
        (DEVICE, "m.toml: host: there is no device 'cpu:0'", ""),
        (GOOD.replace("cpu:0", "cpu"), 'm.toml: devices."cpu": is not the name of a device', "TYPE:NUMBER"),
        (GOOD.replace("opencl:0", "tpu:0"), "m.toml: devices.\"tpu:0\": unknown device type 'tpu'", "legal"),
        (GOOD + "latency = -1", "m.toml: links[1].latency: must be a number of seconds, 0 or more, not -1", ""),
        (GOOD + "latency = inf", "m.toml: links[1].latency: must be a number of seconds", ""),
        (GOOD + "latency = nan", "m.toml: links[1].latency: must be a number of seconds", ""),
        (GOOD + "price = 1", "m.toml: links[1].price: unknown key", "known here: bandwidth, from, latency, to"),
        (GOOD.replace("1e12", "-1e12"), 'm.toml: devices."opencl:0".flops: must be a number above 0', ""),
        (GOOD.replace("1e12", "0"), 'm.toml: devices."opencl:0".flops: must be a number above 0, not 0', ""),
        (GOOD.replace("1e12", "true"), 'm.toml: devices."opencl:0".flops: must be a number above 0', ""),
        (GOOD.replace("1e12", '"fast"'), "flops: must be a number above 0, not 'fast'", ""),
        (GOOD.replace("flops = 1e12\n", ""), 'm.toml: devices."opencl:0".flops: is missing', ""),
        (HOST + "memory = 0\n", 'm.toml: devices."cpu:0".memory: must be a number above 0', ""),
        (HOST + DEVICE + THERE, "m.toml: links: there is no link from opencl:0 to cpu:0", "every device needs"),
        (HOST + DEVICE, "m.toml: links: there is no link from cpu:0 to opencl:0", "every device needs"),
        (GOOD + BACK, "m.toml: links[2]: a second link from opencl:0 to cpu:0", ""),
        (GOOD.replace('to = "cpu:0"', 'to = "cpu:9"'), "m.toml: links[1].to: there is no device 'cpu:9'", ""),
        (GOOD.replace('to = "cpu:0"', "to = 3"), "m.toml: links[1].to: there is no device 3", ""),
        (GOOD.replace('to = "cpu:0"', 'to = "opencl:0"'), "m.toml: links[1]: links opencl:0 to itself", ""),
        ("links = 3\n" + HOST, "m.toml: links: must be an array of tables", ""),
        ("links = [3]\n" + HOST, "m.toml: links[0]: must be a table", ""),
        ("[assume]\ntrip_count = 0\n" + GOOD, "m.toml: assume.trip_count: must be a whole number of 1", ""),
        ("[assume]\ndynamic_size = 1.5\n" + GOOD, "m.toml: assume.dynamic_size: must be a whole number", ""),
        ("shared = 3\n" + GOOD, "m.toml: shared: must be an array of arrays of devices", ""),
        (
            'shared = ["cpu:0", "opencl:0"]\n' + GOOD,
            "m.toml: shared[0]: must be an array of two or more devices",
            "",
        ),
        ('shared = [["cpu:0"]]\n' + GOOD, "m.toml: shared[0]: must be an array of two or more", ""),
        ('shared = [["cpu:0", "opencl:1"]]\n' + GOOD, "shared[0]: there is no device 'opencl:1'", "cpu:0, "),
        ('shared = [["cpu:0", 1]]\n' + GOOD, "m.toml: shared[0]: there is no device 1", ""),
        ('shared = [["cpu:0", "cpu:0"]]\n' + GOOD, "m.toml: shared[0]: names cpu:0 twice", ""),
        ("[assume]\nsize = 1\n" + GOOD, "m.toml: assume.size: unknown key", "dynamic_size, trip_count"),
    ],
)
def test_errors(text: str, message: str, note: str) -> None:
    with pytest.raises(OptionError) as caught:
        parse_machine(text, "m.toml")
    assert message in str(caught.value)
    assert note in "; ".join(caught.value.notes)


def test_huge_numbers_are_numbers() -> None:
    data = {"devices": {"cpu:0": {"flops": 10**400, "bandwidth": 1}}}
    assert parse_machine(json.dumps(data), "m").devices["cpu:0"].flops == math.inf


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"cannot read the machine description .*: No such file"):
        read_machine(tmp_path / "absent.toml")
    with pytest.raises(OptionError, match=r"cannot read the machine description .*: Is a directory"):
        read_machine(tmp_path)
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(OptionError, match="is not UTF-8"):
        read_machine(tmp_path / "binary")
