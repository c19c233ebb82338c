"""``devscope run``: compile a program and call one of its functions."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from devscope.cli.command_line import count
from devscope.cli.compile_options import (
    OPTIONS,
    add_compile_arguments,
    compile_options,
    device_mapping,
    print_warnings,
)
from devscope.cli.files import require_place
from devscope.errors import InputError, OptionError
from devscope.source import is_executable_file, require_readable

if TYPE_CHECKING:
    from devscope.runtime.executable import Executable
    from devscope.runtime.program import Entry

NAME = "run"
HELP = "compile a program, or load a .dsx file, and call a function"
EPILOG = """\
examples:
  devscope run model.mlir --random 0 --check
  devscope run model.mlir --entry predict --input images.npy --output logits.npz
  devscope run model.dsx --random 0 --devices cuda:0=opencl:0
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_compile_arguments(parser, "MLIR text or bytecode, or a .dsx file")
    add = parser.add_argument
    add("--entry", metavar="F", help="function to call (default: main, or the only public one)")
    inputs = parser.add_mutually_exclusive_group()
    add_input = inputs.add_argument
    add_input("--input", action="append", default=[], metavar="A.npy", help="an argument; repeat for more")
    random_help = "random arguments: floats are normally distributed, integers from 0 to 3"
    add_input("--random", type=count, metavar="SEED", help=random_help)
    size_help = "with --random: size of dynamic dimensions (default: 8)"
    add("--size", type=count, default=8, metavar="N", help=size_help)
    add("--output", metavar="OUT.npz", help="write the results (result0, result1, ...)")
    add("--check", action="store_true", help="compare with the same program built for the host alone")
    add("--no-cache", action="store_true", help="neither read nor write the cache of compiled programs")


def execute(arguments: argparse.Namespace) -> int:
    from devscope.api import only_entry
    from devscope.cli.arrays import check_against_host, print_results, save_results

    require_readable(arguments.file)
    file = Path(arguments.file)
    if arguments.output is not None:
        require_place(arguments.output)
    saved = is_executable_file(file)
    executable = _load(file, arguments) if saved else _compile(file, arguments)
    name = only_entry(executable) if arguments.entry is None else arguments.entry
    entry = executable.entry(name)
    values = _inputs(arguments, name, entry)
    results = _as_tuple(executable.run(name, *values))
    print_results(entry, results)
    if arguments.output is not None:
        save_results(arguments.output, entry, results)
    if arguments.check:
        check_against_host(file, compile_options(arguments), name, values, results)
    return 0


def _load(file: Path, arguments: argparse.Namespace) -> Executable:
    from devscope.api import load

    for option in (*OPTIONS, "check"):
        if option != "devices" and getattr(arguments, option.replace("-", "_")) not in (None, False, ""):
            message = f"--{option} does not go with a compiled program"
            raise OptionError(message, notes=[f"'{file}' is one: give its source"])
    return load(file, devices=device_mapping(arguments))


def _compile(file: Path, arguments: argparse.Namespace) -> Executable:
    from devscope.api import executable_for

    options = compile_options(arguments)
    executable = executable_for(file, options, device_mapping(arguments), not arguments.no_cache)
    print_warnings(executable.program)
    return executable


def _inputs(arguments: argparse.Namespace, name: str, entry: Entry) -> list[object]:
    from devscope.cli.arrays import random_array, read_array

    if arguments.random is not None:
        return [
            random_array((arguments.random, number), spec, arguments.size)
            for number, spec in enumerate(entry.inputs)
        ]
    if entry.inputs and not arguments.input:
        specs = ", ".join(f"{spec.name}: {spec}" if spec.name else str(spec) for spec in entry.inputs)
        raise InputError(
            f"'{name}' takes arguments: ({specs})",
            notes=["give --input A.npy once for each of them, or --random SEED"],
        )
    return [read_array(path) for path in arguments.input]


def _as_tuple(results: object) -> tuple[object, ...]:
    if isinstance(results, tuple):
        return results  # pyright: ignore[reportUnknownVariableType]
    return () if results is None else (results,)
