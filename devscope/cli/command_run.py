"""``devscope run``: compile a program and call one of its functions."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from devscope.cli.command_line import count
from devscope.cli.compile_options import (
    OPTIONS,
    PROGRAM_FILE,
    add_compile_arguments,
    compile_options,
    device_mapping,
    is_compiled,
    is_given,
    name_of,
    print_warnings,
    require_output,
)
from devscope.cli.files import program_file, program_source
from devscope.errors import InputError, OptionError
from devscope.runtime.threads import thread_count
from devscope.source import PipedSource

if TYPE_CHECKING:
    from devscope.runtime.executable import Executable
    from devscope.runtime.program import Entry, TensorSpec

NAME = "run"
HELP = "compile a program, or load a .dsx file, and call a function"
EPILOG = """\
examples:
  devscope run model.mlir --random 0 --check
  devscope run model.mlir --entry predict --input images.npy --output logits.npz
  devscope run model.dsx --random 0 --devices cuda:0=opencl:0
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_compile_arguments(parser, f"{PROGRAM_FILE}, a compiled program (.dsx)")
    add = parser.add_argument
    add("--entry", metavar="F", help="function to call (default: main, or the only public one)")
    inputs = parser.add_mutually_exclusive_group()
    add_input = inputs.add_argument
    add_input(
        "--input",
        action="append",
        default=[],
        metavar="A.npy",
        help="an argument, from a file of numpy.save, or '-' from standard input; repeat for more",
    )
    random_help = "random arguments: floats are normally distributed, integers from 0 to 3"
    add_input("--random", type=count, metavar="SEED", help=random_help)
    size_help = "with --random: size of dynamic dimensions (default: 8)"
    add("--size", type=count, metavar="N", help=size_help)
    add("-o", "--output", metavar="OUT.npz", help="write the results (result0, result1, ...)")
    add("--check", action="store_true", help="compare with the same program built for the host alone")
    key_help = "load a .dsx file only if this public key signed it; repeat for more keys"
    add("--trusted-key", action="append", metavar="KEY.pub", help=key_help)
    threads_help = "the most threads that the call uses on the host (default: the cores of this process)"
    add("--threads", type=count, metavar="N", help=threads_help)
    add("--no-cache", action="store_true", help="neither read nor write the cache of compiled programs")


def execute(arguments: argparse.Namespace) -> int:
    from devscope.cli.arrays import comparison, print_results, reference_results, save_results

    _refuse_what_has_no_effect(arguments)
    if arguments.output is not None:
        require_output(arguments, arguments.output)
    thread_count(arguments.threads)
    call = _Call(arguments)
    source = program_source(arguments.file)
    executable = (_load if is_compiled(source) else _compile)(source, arguments, call)
    expected: tuple[object, ...] = ()
    if arguments.check:
        expected = reference_results(source, compile_options(arguments), call.name, call.values)
    entry = executable.entries[call.name]
    results = executable.run_arrays(call.name, call.values)
    if arguments.output is not None:
        save_results(arguments.output, entry, results)
    lines, difference = comparison(entry, results, expected) if arguments.check else ([], None)
    program = executable.program
    is_of_others = program.report.get("backends") or any(device.kernels for device in program.devices)
    if arguments.check and results and not is_of_others:
        lines.insert(0, "check: nothing runs on a device: this compares the host's code with itself")
    try:
        print_results(entry, results)
        for line in lines:
            print(line)
    except BrokenPipeError:  # `| head`, which is no reason to keep a difference back
        if difference is None:
            raise
    if difference is not None:
        raise difference
    return 0


def _refuse_what_has_no_effect(arguments: argparse.Namespace) -> None:
    if arguments.size is not None and arguments.random is None:
        raise OptionError("--size has no effect without --random")
    if arguments.output == "-":
        raise OptionError("--output would write among the results that are printed", notes=["name a file"])
    if arguments.output is not None and arguments.output.endswith(".npy"):
        raise OptionError("--output writes all results to one .npz file", notes=["name it OUT.npz"])
    if [arguments.file, *arguments.input].count("-") > 1:
        raise OptionError("standard input can be read once only: '-' is given more than once")


class _Call:
    """The function to call and its arguments, which are checked before anything is lowered."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        from devscope.cli.arrays import read_array

        self._arguments = arguments
        self.values: list[object] = [read_array(path) for path in arguments.input]
        self.name = ""

    def prepare(self, entries: Mapping[str, Entry], closed: Collection[str]) -> None:
        """Choose the entry; raise InputError if it cannot be called with these arguments."""
        from devscope.api import chosen_entry
        from devscope.runtime.arguments import ArgumentList

        if self.name:
            return
        name = chosen_entry(entries, self._arguments.entry, closed)
        specs = entries[name].inputs
        if self._arguments.size is not None and all(None not in spec.shape for spec in specs):
            shown = ", ".join(f"{spec.name}: {spec}" for spec in specs)
            print(
                f"warning: --size has no effect: the sizes of what '{name}' takes are fixed ({shown})",
                file=sys.stderr,
            )
        if self._arguments.random is not None:
            self.values = self._random(specs)
        elif specs and not self.values:
            shown = ", ".join(f"{spec.name}: {spec}" for spec in specs)
            raise InputError(
                f"'{name}' takes arguments: ({shown})",
                notes=["give --input A.npy once for each of them, or --random SEED"],
            )
        ArgumentList(name, entries[name])(self.values)
        self.name = name

    def _random(self, specs: Sequence[TensorSpec]) -> list[object]:
        from devscope.agreement import random_array

        size = 8 if self._arguments.size is None else self._arguments.size
        return [random_array((self._arguments.random, number), spec, size) for number, spec in enumerate(specs)]


def _load(source: Path | PipedSource, arguments: argparse.Namespace, call: _Call) -> Executable:
    from devscope.api import load

    for option in (*OPTIONS, "check"):
        if option != "devices" and is_given(arguments, option):
            message = f"--{option} does not go with a compiled program"
            raise OptionError(message, notes=[f"'{name_of(source)}' is one: give its source"])
    with program_file(source) as file:
        mapping, keys = device_mapping(arguments), arguments.trusted_key
        settings = {"cache": not arguments.no_cache, "threads": arguments.threads}
        executable = load(file, devices=mapping, trusted_keys=keys, **settings)
    call.prepare(executable.entries, executable.program.report.get("closed", ()))
    return executable


def _compile(source: Path | PipedSource, arguments: argparse.Namespace, call: _Call) -> Executable:
    from devscope.api import executable_for

    if arguments.trusted_key is not None:
        raise OptionError("--trusted-key goes with a .dsx file")
    options, mapping = compile_options(arguments), device_mapping(arguments)
    executable = executable_for(source, options, mapping, not arguments.no_cache, arguments.threads, call.prepare)
    print_warnings(executable.program)
    return executable
