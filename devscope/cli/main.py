"""``devscope``: build, plan and run programs, and list devices."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

from devscope.cli.arguments import Parser
from devscope.errors import DevscopeError

_EPILOG = """\
examples:
  devscope run model.mlir --random 0 --check
  devscope build model.mlir -o model.dsx
  devscope plan model.mlir --table
  devscope devices

'devscope COMMAND --help' shows a command's options.
"""


def make_parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="devscope",
        description="Runs one MLIR program on several devices.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)
    from devscope.cli import command_build, command_devices, command_lower, command_plan, command_run

    for module in (command_run, command_build, command_plan, command_lower, command_devices):
        command = commands.add_parser(
            module.NAME,
            help=module.HELP,
            description=module.HELP[0].upper() + module.HELP[1:] + ".",
            epilog=module.EPILOG,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        module.add_arguments(command)
        command.set_defaults(execute=module.execute)
    return parser


def main(argv: Sequence[str] | None = None) -> None:
    parser = make_parser()
    arguments = parser.parse_args(argv)
    if arguments.version:
        from devscope import __version__

        print(f"devscope {__version__}")
        return
    if arguments.command is None:
        parser.error("a command is missing: run, build, plan, lower or devices")
    execute: Callable[[argparse.Namespace], int] = arguments.execute
    try:
        status = execute(arguments)
        sys.stdout.flush()
    except DevscopeError as error:
        sys.stdout.flush()
        print(error, file=sys.stderr)
        status = 1
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output went away: nobody is left to be told
        status = 1
    except KeyboardInterrupt:
        status = 130
    sys.exit(status)


if __name__ == "__main__":
    main()
