"""What all commands share that compile a program: options, the input file, warnings."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from devscope.cli.arguments import count, parse_device_mapping, parse_limits
from devscope.errors import InputError
from devscope.memory_limits import checked_limits

if TYPE_CHECKING:
    from devscope.api import CompileOptions
    from devscope.runtime.program import Program

_DEFAULT = "cpu:0"


def add_compile_arguments(parser: argparse.ArgumentParser, file_help: str = "MLIR text or bytecode") -> None:
    def add(name: str, metavar: str | None, help: str, **settings: Any) -> None:
        parser.add_argument(name, metavar=metavar, help=help, **settings)

    add("file", "FILE", file_help)
    add("--default", "SCOPE", f"where operations go that no annotation reaches (default: {_DEFAULT})")
    add(
        "--arguments",
        None,
        "host (default): arguments and results of public functions are on the host; open: the plan decides",
        choices=("host", "open"),
    )
    add(
        "--completion",
        None,
        "how scopes are chosen that the program leaves open: by fixed rules (default), or for the least time",
        choices=("default", "min-cost"),
    )
    add(
        "--machine",
        "FILE",
        "which devices share memory, and how fast they are, for --completion min-cost; devscope devices --measure "
        "writes it",
    )
    devices = "physical devices of virtual ones, such as cuda:0=opencl:0,opencl:1=cpu:0; V alone is V=V"
    add("--devices", "V=P,...", devices, default="")
    limits = "the most memory that values and constants may take on devices, such as opencl:0=64MiB"
    add("--memory-limit", "V=SIZE,...", limits, default="")
    add(
        "--storage",
        None,
        "where buffers are: in places planned at compile time (default), or in memory allocated as it runs",
        choices=("planned", "dynamic"),
    )
    chunks = "copy large data to devices, compute with it and copy results back in N parts (default: 1)"
    add("--chunks", "N", chunks, type=count)


def device_mapping(arguments: argparse.Namespace) -> dict[str, str]:
    """The value of ``--devices``. Raises OptionError."""
    from devscope.api import checked_mapping

    return checked_mapping(parse_device_mapping(arguments.devices))


def compile_options(arguments: argparse.Namespace) -> CompileOptions:
    """How to compile, as the options say. Raises OptionError."""
    from devscope.api import CompileOptions, target_overrides

    return CompileOptions(
        _DEFAULT if arguments.default is None else arguments.default,
        arguments.arguments or "host",
        target_overrides(device_mapping(arguments)),
        arguments.completion or "default",
        arguments.machine,
        checked_limits(parse_limits(arguments.memory_limit)),
        arguments.storage or "planned",
        1 if arguments.chunks is None else arguments.chunks,
    )


def require_file(path: str) -> Path:
    """The path of an input file; raises InputError if it cannot be read."""
    from devscope.source import require_readable

    require_readable(path)
    return Path(path)


def require_source(path: str) -> Path:
    """As `require_file`, for a program that has to be compiled."""
    from devscope.source import is_executable_file

    file = require_file(path)
    if is_executable_file(file):
        raise InputError(
            f"'{path}' is a compiled program, or called like one", notes=["this command needs its source"]
        )
    return file


def print_warnings(program: Program) -> None:
    """Print to stderr what ``devscope plan`` warns of; a program from the cache still knows."""
    for text in program.report.get("plan", {}).get("warnings", ()):
        print(text, file=sys.stderr)
