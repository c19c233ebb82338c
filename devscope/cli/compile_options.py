"""The options that ``run``, ``build`` and ``plan`` share."""

from __future__ import annotations

import argparse
from pathlib import Path

from devscope.api import CompileOptions, target_overrides
from devscope.cli.arguments import parse_device_mapping
from devscope.errors import InputError


def add_compile_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="MLIR text or bytecode")
    parser.add_argument(
        "--default",
        default="cpu:0",
        metavar="SCOPE",
        help="where operations go that no annotation reaches (default: cpu:0)",
    )
    parser.add_argument(
        "--arguments",
        default="host",
        choices=("host", "open"),
        help="host (default): arguments and results of public functions are on the host; "
        "open: the plan decides",
    )
    parser.add_argument(
        "--devices",
        default="",
        metavar="V=P,...",
        help="physical devices of virtual ones, such as cuda:0=opencl:0,opencl:1=cpu:0",
    )


def compile_options(arguments: argparse.Namespace) -> CompileOptions:
    mapping = parse_device_mapping(arguments.devices)
    return CompileOptions(arguments.default, arguments.arguments, target_overrides(mapping))


def require_file(path: str) -> Path:
    """The path of an input file; raises InputError if it cannot be read."""
    file = Path(path)
    try:
        with file.open("rb"):
            return file
    except OSError as error:
        raise InputError(f"cannot read '{path}': {error.strerror or error}") from None
