"""How the command lines end when something goes wrong: one message on stderr, and a status."""

from __future__ import annotations

import os
import sys

from devscope.errors import DevscopeError

INTERRUPTED = 130
"""Status after ctrl-C, as shells count it: 128 and the number of the signal."""

_DEFECT = "this is a defect of devscope: please report it with the input; --traceback shows where it happened"


def report(error: Exception, traceback: bool = False) -> int:
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


def ignore_closed_output() -> int:
    """After the reader of our output went away (``| head``); returns the exit status.

    What is left in Python's buffer goes nowhere: Python would complain about it when it ends.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
