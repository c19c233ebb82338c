"""What all commands share that compile a program: options, the input file, warnings."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from devscope.cli.command_line import count
from devscope.compile_options import LEGAL, CompileOptions, checked_limits
from devscope.errors import InputError, OptionError
from devscope.source import is_executable_file, require_readable

if TYPE_CHECKING:
    from devscope.runtime.program import Program

OPTIONS = {
    "default": ("SCOPE", "where operations go that no annotation reaches (default: cpu:0)"),
    "arguments": (
        None,
        "host (default): arguments and results of public functions are on the host; open: the plan decides",
    ),
    "completion": (
        None,
        "how scopes are chosen that the program leaves open: by fixed rules (default), or for the least time",
    ),
    "machine": (
        "FILE",
        "which devices share memory, and how fast they are, for --completion min-cost; devscope devices --measure "
        "writes it",
    ),
    "devices": (
        "V=P,...",
        "physical devices of virtual ones, such as cuda:0=opencl:0,opencl:1=cpu:0; V alone is V=V",
    ),
    "memory-limit": (
        "V=SIZE,...",
        "the most memory that values and constants may take on devices, such as opencl:0=64MiB",
    ),
    "storage": (
        None,
        "where buffers are: in places planned at compile time (default), or in memory allocated as it runs",
    ),
    "chunks": ("N", "copy large data to devices, compute with it and copy results back in N parts (default: 1)"),
}
"""How each is shown, and what it is for."""


def add_compile_arguments(parser: argparse.ArgumentParser, file_help: str = "MLIR text or bytecode") -> None:
    parser.add_argument("file", metavar="FILE", help=file_help)
    for name, (metavar, text) in OPTIONS.items():
        type_ = count if name == "chunks" else str
        parser.add_argument(f"--{name}", metavar=metavar, help=text, choices=LEGAL.get(name), type=type_)


def compile_options(arguments: argparse.Namespace) -> CompileOptions:
    """How to compile, as the options say. Raises OptionError."""
    from devscope.api import target_overrides

    plain = ("default", "arguments", "completion", "machine", "storage", "chunks")
    given = {name: value for name in plain if (value := getattr(arguments, name)) is not None}
    targets = target_overrides(device_mapping(arguments))
    advice = "write DEVICE=SIZE, such as opencl:0=64MiB"
    limits = _parse_pairs(arguments.memory_limit or "", "is not a limit", advice, "has two limits, {} and {}")
    return CompileOptions(targets=targets, memory_limits=checked_limits(limits), **given)


def device_mapping(arguments: argparse.Namespace) -> dict[str, str]:
    """The value of ``--devices``. Raises OptionError.

    A device alone, ``cuda:0``, is mapped to itself.
    """
    from devscope.api import checked_mapping

    advice = "write VIRTUAL=PHYSICAL, such as cuda:0=opencl:0"
    given = (arguments.devices or "").split(",")
    text = ",".join(item if "=" in item else f"{item}={item}" for item in given if item.strip())
    return checked_mapping(_parse_pairs(text, "does not map a device", advice, "is mapped to both '{}' and '{}'"))


def _parse_pairs(text: str, refusal: str, advice: str, contradiction: str) -> dict[str, str]:
    """``cuda:0=opencl:0,opencl:1=cpu:0`` as a mapping. Raises OptionError."""
    pairs: dict[str, str] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        device, _, value = (part.strip() for part in item.partition("="))
        if not device or not value:
            raise OptionError(f"'{item}' {refusal}", notes=[advice])
        if pairs.setdefault(device, value) != value:
            raise OptionError(f"'{device}' {contradiction.format(pairs[device], value)}")
    return pairs


def require_source(path: str) -> Path:
    """The path of a program that has to be compiled. Raises InputError if it cannot be."""
    require_readable(path)
    if is_executable_file(Path(path)):
        raise InputError(
            f"'{path}' is a compiled program, or called like one", notes=["this command needs its source"]
        )
    return Path(path)


def print_warnings(program: Program) -> None:
    """Print to stderr what ``devscope plan`` warns of; a program from the cache still knows."""
    for text in program.report.get("plan", {}).get("warnings", ()):
        print(text, file=sys.stderr)
