"""The options that all commands share which compile a program."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from devscope.cli.arguments import count, parse_device_mapping
from devscope.errors import InputError
from devscope.memory_limits import checked_limits, parse_limits

if TYPE_CHECKING:
    from devscope.api import CompileOptions

_DEFAULT = "cpu:0"


def add_compile_arguments(parser: argparse.ArgumentParser, file_help: str = "MLIR text or bytecode") -> None:
    parser.add_argument("file", metavar="FILE", help=file_help)
    parser.add_argument(
        "--default",
        metavar="SCOPE",
        help=f"where operations go that no annotation reaches (default: {_DEFAULT})",
    )
    parser.add_argument(
        "--arguments",
        choices=("host", "open"),
        help="host (default): arguments and results of public functions are on the host; open: the plan decides",
    )
    parser.add_argument(
        "--completion",
        choices=("default", "min-cost"),
        help="how scopes are chosen that the program leaves open: by fixed rules (default), or for the least time",
    )
    parser.add_argument(
        "--machine",
        metavar="FILE",
        help="which devices share memory, and how fast they are, for --completion min-cost; devscope devices "
        "--measure writes it",
    )
    parser.add_argument(
        "--devices",
        default="",
        metavar="V=P,...",
        help="physical devices of virtual ones, such as cuda:0=opencl:0,opencl:1=cpu:0",
    )
    parser.add_argument(
        "--memory-limit",
        default="",
        metavar="V=SIZE,...",
        help="the most memory that values and constants may take on devices, such as opencl:0=64MiB",
    )
    parser.add_argument(
        "--storage",
        choices=("planned", "dynamic"),
        help="where buffers are: in places planned at compile time (default), or in memory allocated as it runs",
    )
    parser.add_argument(
        "--chunks",
        type=count,
        metavar="N",
        help="copy large data to devices, compute with it and copy results back in N parts (default: 1)",
    )


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
