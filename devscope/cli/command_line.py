"""What the command lines of all of devscope's tools share: how options are read, and how a run ends."""

import argparse
import os
import sys
import warnings
from collections.abc import Callable
from typing import Any, NoReturn

from devscope.errors import DevscopeError

_INTERRUPTED = 130
"""Status after ctrl-C, as shells count it: 128 and the number of the signal."""

_DEFECT = "this is a defect of devscope: please report it with the input; --traceback shows where it happened"


class Parser(argparse.ArgumentParser):
    """Reports bad options as one message and status 1, like every other user error.

    argparse on its own would print the usage and exit with status 2. Options cannot be abbreviated, so that new
    ones break no scripts; the epilog is printed as it was written.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False, **settings)

    def error(self, message: str) -> NoReturn:
        self.exit(1, f"error: {message}\n  note: options are listed by: {self.prog} --help\n")


def count(text: str) -> int:
    """An option's value that is a whole number, 0 or more."""
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number of 0 or more")
    return int(text)


def run_tool(execute: Callable[[], int], traceback: bool) -> int:
    """The exit status: that of ``execute``, or what goes with the exception that it raises."""
    warnings.showwarning = _print_warning
    try:
        status = execute()
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # The reader of our output went away (`| head`). What is left in Python's buffer goes nowhere: Python would
        # complain about it when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return _INTERRUPTED
    except Exception as error:
        sys.stdout.flush()
        return report(error, traceback)


def _print_warning(message: Warning | str, *where: Any) -> None:
    """Where in Python's code a warning was made is nothing to a user."""
    sys.stderr.write(f"warning: {message}\n")


def report(error: Exception, traceback: bool) -> int:
    """Print what went wrong, with Python's traceback in front on request; returns the exit status.

    Errors that bad input can cause are `DevscopeError`s; anything else is a defect, and says so.
    """
    if traceback:
        from traceback import print_exception

        print_exception(error)
    if isinstance(error, DevscopeError):
        text = str(error)
    elif isinstance(error, MemoryError):
        text = f"error: out of memory: {error}".removesuffix(": ")
    else:
        first = (str(error).splitlines() or ["no message"])[0]
        text = f"error: internal error: {type(error).__name__}: {first}\n  note: {_DEFECT}"
    sys.stderr.write(f"{text}\n")
    return 1
