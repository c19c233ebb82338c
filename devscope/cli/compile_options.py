"""What all commands share that compile a program: options, the input file, warnings."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from devscope.cli.command_line import count
from devscope.cli.files import program_source, require_other_file, require_place
from devscope.compile_options import LEGAL, CompileOptions, checked_limits
from devscope.errors import InputError, OptionError
from devscope.source import PipedSource, is_executable_file

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
    "checks": (None, "on: indices and divisions are checked as the program runs (default: off)"),
    "schedules": (
        "FILE",
        "rows that say how kernels of the host are made, before the built-in ones; devscope tune writes them",
    ),
    "backend": (
        "NAME[:OPTION=VALUE,...]",
        "a backend that is offered the program, such as blas; repeat for more, first ones first",
    ),
    "partition": (
        None,
        "who takes what: whoever comes first (eager, default), or so that it takes the least time (search)",
    ),
    "place": (
        "RULES",
        "where operations go: a TOML file of rules, PATTERN=DEVICE, or auto; repeat for more, first ones first",
    ),
    "costs": ("FILE", "what operations take, for --partition search; devscope profile measures it"),
    "chunks": ("N", "copy large data to devices, compute with it and copy results back in N parts (default: 1)"),
}
"""How each is shown, and what it is for."""


PLAN_OPTIONS = ("default", "arguments", "completion", "machine", "backend", "partition", "costs", "place")
"""Those that a plan depends on."""

PROGRAM_FILE = "MLIR or StableHLO, as text or bytecode, an ONNX model (.onnx), an exported PyTorch program (.pt2)"
"""What a file to compile may be, as the help of commands says."""

_LISTS = ("devices", "memory-limit", "backend", "place")
"""Options that may be given several times."""


def add_compile_arguments(
    parser: argparse.ArgumentParser, file_help: str = PROGRAM_FILE, names: Iterable[str] = OPTIONS
) -> None:
    parser.add_argument("file", metavar="FILE", help=f"{file_help}; '-': from standard input")
    add_compile_options(parser, names)


def add_compile_options(parser: argparse.ArgumentParser, names: Iterable[str]) -> None:
    for name in names:
        metavar, text = OPTIONS[name]
        if name in _LISTS:
            parser.add_argument(f"--{name}", metavar=metavar, help=text, action="append")
        else:
            type_ = count if name == "chunks" else str
            parser.add_argument(f"--{name}", metavar=metavar, help=text, choices=LEGAL.get(name), type=type_)


def is_given(arguments: argparse.Namespace, option: str) -> bool:
    """Whether an option stands on the command line."""
    return getattr(arguments, option.replace("-", "_"), None) not in (None, False)


def compile_options(arguments: argparse.Namespace) -> CompileOptions:
    """How to compile, as the options say. Raises OptionError."""
    from devscope.api import target_overrides

    plain = ("default", "arguments", "completion", "machine", "storage", "chunks", "checks", "schedules")
    plain = (*plain, "partition", "costs")
    given = {name: value for name in plain if (value := getattr(arguments, name, None)) is not None}
    if (backends := getattr(arguments, "backend", None)) is not None:
        given["backends"] = tuple(backends)
    if (place := getattr(arguments, "place", None)) is not None:
        given["place"] = [_rules(text) for text in place]
    targets = target_overrides(device_mapping(arguments))
    advice = "write DEVICE=SIZE, such as opencl:0=64MiB"
    limits = _parse_pairs(_items(arguments, "memory_limit"), "is not a limit", advice, "has two limits, {} and {}")
    return CompileOptions(targets=targets, memory_limits=checked_limits(limits), **given)


def _rules(text: str) -> object:
    """A value of ``--place``: what is a file is no pattern."""
    pattern, equals, device = text.rpartition("=")
    if not equals or os.path.exists(text):
        return text
    if not pattern.strip():
        raise OptionError(f"'{text}' has no pattern", notes=["write PATTERN=DEVICE, such as 'layer1.*=opencl:0'"])
    return {pattern.strip(): device.strip()}


def device_mapping(arguments: argparse.Namespace) -> dict[str, str]:
    """The value of ``--devices``. Raises OptionError.

    A device alone, ``cuda:0``, is mapped to itself.
    """
    from devscope.api import checked_mapping

    advice = "write VIRTUAL=PHYSICAL, such as cuda:0=opencl:0"
    items = [item if "=" in item or not item else f"{item}={item}" for item in _items(arguments, "devices")]
    return checked_mapping(_parse_pairs(items, "does not map a device", advice, "is mapped to both '{}' and '{}'"))


def _items(arguments: argparse.Namespace, name: str) -> list[str]:
    """What stands between the commas; a comma at an end is nothing."""
    texts = getattr(arguments, name, None) or []
    return [item.strip() for text in texts for item in (text.strip(", ") or text).split(",")]


def _parse_pairs(items: Sequence[str], refusal: str, advice: str, contradiction: str) -> dict[str, str]:
    """``cuda:0=opencl:0`` and ``opencl:1=cpu:0`` as a mapping. Raises OptionError."""
    pairs: dict[str, str] = {}
    for item in items:
        device, _, value = (part.strip() for part in item.partition("="))
        if not device or not value:
            raise OptionError(f"'{item}' {refusal}", notes=[advice])
        if pairs.setdefault(device, value) != value:
            raise OptionError(f"'{device}' {contradiction.format(pairs[device], value)}")
    return pairs


def require_source(path: str) -> Path | PipedSource:
    """A program that has to be compiled. Raises InputError if it cannot be."""
    source = program_source(path)
    if is_compiled(source):
        raise InputError(
            f"'{name_of(source)}' is a compiled program, or called like one",
            notes=["this command needs its source; to run it: devscope run FILE.dsx"],
        )
    return source


_READ = ("file", "input", "machine", "schedules", "costs", "place", "sign_with", "trusted_key")
"""Arguments that name files which a command reads."""


def require_output(arguments: argparse.Namespace, output: str | Path) -> None:
    """Raise InputError when a command cannot write its output, OptionError when it would be over what it reads."""
    require_place(output)
    for name in _READ:
        value = getattr(arguments, name, None)
        require_other_file(output, value if isinstance(value, list) else [value])


def is_compiled(source: Path | PipedSource) -> bool:
    """Whether a command's program is compiled already. Raises InputError."""
    return source.is_executable if isinstance(source, PipedSource) else is_executable_file(source)


def name_of(source: Path | PipedSource) -> str:
    """A command's program in messages and positions."""
    return source.name if isinstance(source, PipedSource) else str(source)


def print_warnings(program: Program) -> None:
    """Print to stderr what ``devscope plan`` warns of; a program from the cache still knows."""
    for text in program.report.get("plan", {}).get("warnings", ()):
        print(text, file=sys.stderr)
