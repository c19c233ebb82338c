"""``devscope``: build, plan and run programs, and list devices."""

import io
import os
import sys
from collections.abc import Sequence

from devscope.cli import (
    command_backends,
    command_build,
    command_cache,
    command_check_backend,
    command_devices,
    command_inspect,
    command_lower,
    command_new_backend,
    command_plan,
    command_profile,
    command_run,
    command_tune,
)
from devscope.cli.command_line import Parser, run_tool, watch_output
from devscope.cli.guard import guarded, works_on

_COMMANDS = (
    command_run,
    command_build,
    command_plan,
    command_lower,
    command_inspect,
    command_devices,
    command_tune,
    command_profile,
    command_backends,
    command_new_backend,
    command_check_backend,
    command_cache,
)

_EPILOG = """\
examples:
  devscope run model.mlir --random 0 --check
  devscope build model.mlir -o model.dsx
  devscope plan model.mlir --table
  devscope devices

'devscope COMMAND --help' shows a command's options.
"""


def make_parser() -> tuple[Parser, list[Parser]]:
    """The parser, and those of the commands."""
    parser = Parser(prog="devscope", description="Runs one MLIR program on several devices.", epilog=_EPILOG)
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)
    found: list[Parser] = []
    for module in _COMMANDS:
        command = commands.add_parser(
            module.NAME,
            help=module.HELP,
            description=module.HELP[0].upper() + module.HELP[1:] + ".",
            epilog=module.EPILOG,
        )
        module.add_arguments(command)
        command.add_argument("--traceback", action="store_true", help="with an error, show where it came from")
        command.set_defaults(execute=module.execute, parser=command)
        found.append(command)
    return parser, found


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns the exit status: 0, or 1 after one error message on stderr (2: wrong options)."""
    for stream in (sys.stdout, sys.stderr):
        # Names in programs can have any character; a terminal that lacks one must not end the command.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if argv is None:
        watch_output()
        return guarded(lambda: main(sys.argv[1:]))
    return run_tool(lambda: _execute(argv), "--traceback" in argv)


def _execute(words: Sequence[str]) -> int:
    parser, commands = make_parser()
    if words and os.path.isfile(words[0]) and words[0] not in (module.NAME for module in _COMMANDS):
        parser.error(f"'{words[0]}' is no command", [f"did you mean: devscope run {words[0]}"])
    arguments, unknown = parser.parse_known_args(words)
    named: Parser = getattr(arguments, "parser", parser)
    named.refuse_unknown(unknown, commands)
    if arguments.version:
        from devscope import __version__

        print(f"devscope {__version__}")
        return 0
    if arguments.command is None:
        parser.error(f"a command is missing: {', '.join(module.NAME for module in _COMMANDS)}")
    if getattr(arguments, "file", None) is not None:
        works_on(arguments.file)
    return arguments.execute(arguments)


if __name__ == "__main__":
    sys.exit(main())
