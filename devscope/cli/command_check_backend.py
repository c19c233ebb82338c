"""``devscope check-backend``: the conformance suite for backends."""

import argparse

NAME = "check-backend"
HELP = "run the conformance suite for a backend"
EPILOG = """\
examples:
  devscope check-backend blas
  devscope check-backend onednn:finite=true   with an option
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME[:OPTION=VALUE,...]", help="the backend, see devscope backends")


def execute(arguments: argparse.Namespace) -> int:
    from devscope.backend_check import check_backend

    failed = 0
    for outcome in check_backend(arguments.name):
        failed += bool(outcome.problem)
        print(
            f"FAILED  {outcome.what}: {outcome.problem}" if outcome.problem else f"ok      {outcome.what}",
            flush=True,
        )
    print(f"{failed} failed" if failed else "all is well")
    return 1 if failed else 0
