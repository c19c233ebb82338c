"""``devscope build``: compile a program into a file."""

import argparse
from collections.abc import Mapping
from pathlib import Path

from devscope.cli.compile_options import (
    add_compile_arguments,
    compile_options,
    device_mapping,
    print_warnings,
    require_output,
    require_source,
)
from devscope.errors import OptionError
from devscope.source import PipedSource

NAME = "build"
HELP = "compile a program into a .dsx file that runs without MLIR, or a library for C"
EPILOG = """\
examples:
  devscope build model.mlir -o model.dsx --devices cuda:0=opencl:0
  devscope build model.mlir --sign-with ~/.ssh/id_ed25519
  devscope build model.mlir --memory --memory-limit opencl:0=64MiB
  devscope build model.mlir --shared -o libmodel.so      with model.h, for C: needs a C compiler
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_compile_arguments(parser)
    parser.add_argument("-o", "--output", metavar="OUT", help="default: FILE with the suffix .dsx")
    shared_help = (
        "write a shared library for C and C++, with a header, which runs without Python (docs/ways-in.md)"
    )
    parser.add_argument("--shared", action="store_true", help=shared_help)
    parser.add_argument("--sign-with", metavar="KEY", help="sign the file with this private key (docs/trust.md)")
    parser.add_argument("--memory", action="store_true", help="print how much memory the program takes")


def execute(arguments: argparse.Namespace) -> int:
    from devscope.api import build, runtime_mapping
    from devscope.runtime.devices import refuse_unused
    from devscope.runtime.file_format import save_program

    source = require_source(arguments.file)
    if arguments.output == "-":
        raise OptionError("a compiled program is not written to standard output", notes=["name a file"])
    if arguments.output is not None:
        output = Path(arguments.output)
    elif isinstance(source, PipedSource):
        raise OptionError(f"'{source.name}' has no name to make that of the output of", notes=["give --output"])
    else:
        output = source.with_name(f"lib{source.stem}.so") if arguments.shared else source.with_suffix(".dsx")
    if output.suffix == (".dsx" if arguments.shared else ".so"):
        how = "with" if arguments.shared else "without"
        raise OptionError(
            f"--output {output} does not go {how} --shared",
            notes=["a program is .dsx, a library for C libNAME.so"],
        )
    if arguments.shared and arguments.sign_with is not None:
        raise OptionError("--sign-with has no effect on a shared library", notes=["a .dsx file can be signed"])
    require_output(arguments, output if arguments.output is None else arguments.output)
    program = build(source, compile_options(arguments))
    mapping = device_mapping(arguments)
    refuse_unused(runtime_mapping(program, mapping), [device.name for device in program.devices])
    for virtual, physical in mapping.items():
        if (
            not arguments.shared
            and virtual != physical
            and virtual.partition(":")[0] == physical.partition(":")[0]
        ):
            raise OptionError(
                f"--devices {virtual}={physical} has no effect on what is built",
                notes=[f"both are of one type: give it to the run of '{output}'"],
            )
    print_warnings(program)
    if arguments.shared:
        from devscope.runtime.library import write_library

        write_library(program, output, mapping)
    else:
        save_program(program, output, arguments.sign_with)
    if arguments.memory:
        from devscope.cli.tables import output_width

        print(memory_text(program.report["memory"], output_width()), end="")
    return 0


def memory_text(devices: Mapping[str, Mapping[str, int]], width: int) -> str:
    """The part of a program's report on memory as a table."""
    from devscope.cli.tables import Column, table_text

    titles = ("planned", "lower bound", "constants", "state", "values", "unplanned")
    columns = [Column("device"), *(Column(title, right=True) for title in titles)]
    keys = [title.replace(" ", "_") for title in titles]
    rows = [(name, *(f"{found[key]:,}" for key in keys)) for name, found in devices.items()]
    return table_text(columns, rows, width)
