"""``devscope-opt``: passes of devscope, xDSL and MLIR over an MLIR file."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from devscope.cli.arguments import Parser
from devscope.cli.failures import INTERRUPTED, report

_DESCRIPTION = "Reads MLIR, runs passes of devscope, xDSL and MLIR on it, prints it."
_EPILOG = """\
example:
  devscope-opt model.mlir -p 'canonicalize,device-plan{default=opencl:0 arguments=host},device-verify'

passes:
  A name means devscope's pass of that name, else xDSL's, else MLIR's; a prefix decides: xdsl.cse, mlir.cse.
  Options: name{key=value key="quoted value"}. Anything with parentheses is MLIR's: func.func(cse),
  mlir(cse,func.func(linalg-fuse-elementwise-ops)), builtin.module(...). See also --list-passes.
"""


def make_parser() -> argparse.ArgumentParser:
    parser = Parser(prog="devscope-opt", description=_DESCRIPTION, epilog=_EPILOG)
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
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        return report(error, arguments.traceback)


if __name__ == "__main__":
    sys.exit(main())
