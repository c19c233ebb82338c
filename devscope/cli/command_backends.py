"""``devscope backends``: which backends there are."""

import argparse

NAME = "backends"
HELP = "list the backends that programs can be compiled with"
EPILOG = """\
examples:
  devscope backends
  devscope run model.mlir --random 0 --backend blas
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    pass


def execute(arguments: argparse.Namespace) -> int:
    from devscope.backends.registry import backend_names, get_backend
    from devscope.errors import DevscopeError

    names = backend_names()
    for name in names:
        try:
            backend = get_backend(name)
        except DevscopeError as error:
            print(f"{name}: {error.message}")
            continue
        options = ", ".join(f"{option} ({spec.type.__name__})" for option, spec in backend.options.items())
        print(
            f"{name}: for devices of type '{backend.device_type}'" + (f"; options: {options}" if options else "")
        )
        print(f"  patterns: {', '.join(row[0] for row in backend.patterns) or 'none'}")
    if not names:
        print("no backends are installed")
    return 0
