"""``devscope build``: compile a program into a file."""

from __future__ import annotations

import argparse
from pathlib import Path

from devscope.cli.compile_options import add_compile_arguments, compile_options, require_source
from devscope.cli.files import require_place
from devscope.cli.plan_warnings import print_warnings

NAME = "build"
HELP = "compile a program into a .dsx file that runs without MLIR"
EPILOG = """\
example:
  devscope build model.mlir -o model.dsx --devices cuda:0=opencl:0
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_compile_arguments(parser)
    parser.add_argument("-o", "--output", metavar="OUT", help="default: FILE with the suffix .dsx")


def execute(arguments: argparse.Namespace) -> int:
    from devscope.api import build
    from devscope.runtime.file_format import save_program

    file = require_source(arguments.file)
    output = Path(arguments.output) if arguments.output is not None else file.with_suffix(".dsx")
    require_place(output)
    program = build(file, compile_options(arguments))
    print_warnings(program)
    save_program(program, output)
    return 0
