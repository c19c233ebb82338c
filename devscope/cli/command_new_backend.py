"""``devscope new-backend``: a project for a backend."""

import argparse
from pathlib import Path

NAME = "new-backend"
HELP = "write a project for a new backend, which works as it is"
EPILOG = """\
examples:
  devscope new-backend acme
  pip install -e devscope-acme && devscope check-backend acme
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="of the backend: lower-case letters, digits and '_'")
    parser.add_argument("-o", "--output", metavar="DIR", help="where to write it (default: devscope-NAME)")


def execute(arguments: argparse.Namespace) -> int:
    from devscope.backend_skeleton import write_skeleton

    folder = Path(arguments.output or f"devscope-{arguments.name}")
    for path in write_skeleton(arguments.name, folder):
        print(path)
    print(f"now: pip install -e {folder}; devscope check-backend {arguments.name}")
    return 0
