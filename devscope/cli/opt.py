"""``devscope-opt``: passes of devscope, xDSL and MLIR over an MLIR file."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import NoReturn

from devscope.errors import DevscopeError

_DESCRIPTION = "Reads MLIR, runs passes of devscope, xDSL and MLIR on it, prints it."
_EPILOG = """\
example:
  devscope-opt model.mlir -p 'canonicalize,device-plan{default=opencl:0 arguments=host},device-verify'

passes:
  A name means devscope's pass of that name, else xDSL's, else MLIR's; a prefix decides: xdsl.cse, mlir.cse.
  Options: name{key=value key="quoted value"}. Anything with parentheses is MLIR's: func.func(cse),
  mlir(cse,func.func(linalg-fuse-elementwise-ops)), builtin.module(...). See also --list-passes.
"""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        # One message and status 1, like every other user error; argparse prints the usage and exits with 2.
        self.exit(1, f"error: {message}\n  note: options are listed by: {self.prog} --help\n")


def make_parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="devscope-opt",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("file", nargs="?", default="-", metavar="FILE", help="MLIR text or bytecode; '-' (default): stdin")
    add("-p", "--pass-pipeline", default="", metavar="PIPELINE", help="passes to run, separated by commas")
    add("-o", "--output", default="-", metavar="OUT", help="where to write; '-' (default): stdout")
    add(
        "--split-input-file",
        action="store_true",
        help="parts between lines '// -----' are modules of their own",
    )
    add("--verify-diagnostics", action="store_true", help="check '// expected-error {{...}}' and its kin")
    add("--print-op-generic", "--mlir-print-op-generic", action="store_true", help="print the generic form")
    add("--print-debuginfo", "--mlir-print-debuginfo", action="store_true", help="print locations")
    add("--print-ir-before-all", "--mlir-print-ir-before-all", action="store_true", help="on stderr")
    add("--print-ir-after-all", "--mlir-print-ir-after-all", action="store_true", help="on stderr")
    add("--no-scope-aliases", action="store_true", help="print #device.scope<...> in full at every use")
    add("--emit-bytecode", action="store_true", help="write MLIR bytecode instead of text")
    add("--timing", "--mlir-timing", action="store_true", help="wall time per pass, on stderr")
    add("--list-passes", action="store_true", help="list all passes and exit")
    add("--traceback", action="store_true", help="with an error, show where in the tool it came from")
    add(
        "--allow-unregistered-dialect",
        action="store_true",
        help="accepted for mlir-opt's sake: unregistered dialects are always allowed",
    )
    add("--version", action="store_true", help="print versions and exit")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns the exit status: 0, or 1 after an error message on stderr."""
    arguments = make_parser().parse_args(argv)
    try:
        # The imports stand here so that --help and a wrong command line answer at once.
        if arguments.version:
            from devscope.cli.listing import version_text

            sys.stdout.write(version_text())
            return 0
        if arguments.list_passes:
            from devscope.cli.listing import pass_listing

            sys.stdout.write(pass_listing())
            return 0
        from devscope.cli.opt_driver import run

        return run(arguments)
    except DevscopeError as error:
        return _fail(arguments, error, str(error))
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        text = f"error: internal error: {type(error).__name__}: {error}\n  note: --traceback shows where"
        return _fail(arguments, error, text)


def _fail(arguments: argparse.Namespace, error: Exception, text: str) -> int:
    if arguments.traceback:
        import traceback

        traceback.print_exception(error)
    sys.stderr.write(f"{text}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
