"""``devscope``: build, plan and run programs, and list devices."""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress

from devscope.cli import command_build, command_devices, command_lower, command_plan, command_run
from devscope.cli.arguments import Parser
from devscope.cli.failures import INTERRUPTED, ignore_closed_output, report

_COMMANDS = (command_run, command_build, command_plan, command_lower, command_devices)

_EPILOG = """\
examples:
  devscope run model.mlir --random 0 --check
  devscope build model.mlir -o model.dsx
  devscope plan model.mlir --table
  devscope devices

'devscope COMMAND --help' shows a command's options.
"""


def make_parser() -> Parser:
    parser = Parser("devscope", "Runs one MLIR program on several devices.", _EPILOG)
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=argparse.ArgumentParser)
    for module in _COMMANDS:
        description = module.HELP[0].upper() + module.HELP[1:] + "."
        command = Parser(f"devscope {module.NAME}", description, module.EPILOG)
        module.add_arguments(command)
        command.add_argument("--traceback", action="store_true", help="with an error, show where it came from")
        command.set_defaults(execute=module.execute)
        _add_command(commands, module.NAME, module.HELP, command)
    return parser
