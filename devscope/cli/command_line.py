"""What the command lines of all of devscope's tools share: how options are read, and how a run ends."""

import argparse
import io
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NoReturn

from devscope.errors import DevscopeError, InputError, OptionError, UserFileError

FAILED, USAGE = 1, 2
"""Statuses: of any failure, and of one whose cause is the command line itself, as argparse and click count."""

_INTERRUPTED = 130
"""Status after ctrl-C, as shells count it: 128 and the number of the signal."""

_DEFECT = "this is a defect of devscope: please report it with the input; --traceback shows where it happened"


class _Once(argparse.Action):
    """Stores a value. argparse on its own would let the last of several win in silence."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option: str | None = None,
    ) -> None:
        given = vars(namespace).setdefault("given", set[str]())
        if option is not None and self.dest in given:
            raise argparse.ArgumentError(self, "it is given twice")
        given.add(self.dest)
        setattr(namespace, self.dest, values)


class Parser(argparse.ArgumentParser):
    """Reports bad options as one message and status 2, without the usage, which argparse would print first.

    Options cannot be abbreviated, so that new ones break no scripts, and are given once, but for lists; the epilog
    is printed as it was written.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False, **settings)
        self.register("action", None, _Once)
        self.register("action", "store", _Once)

    def print_help(self, file: Any = None) -> None:
        """As argparse does, which hides that nothing could be written."""
        (file or sys.stdout).write(self.format_help())

    def error(self, message: str, notes: Sequence[str] = ()) -> NoReturn:
        found = [*notes, f"options are listed by: {self.prog} --help"]
        self.exit(USAGE, "\n".join([f"error: {message}", *(f"  note: {note}" for note in found), ""]))

    def refuse_unknown(self, unknown: Sequence[str], elsewhere: Sequence[argparse.ArgumentParser] = ()) -> None:
        """End the run if there are ``unknown`` arguments; ``elsewhere``: other commands, which may have them."""
        if not unknown:
            return
        import difflib

        notes: list[str] = []
        for name in (argument.partition("=")[0] for argument in unknown if argument.startswith("-")):
            owners = [other.prog for other in elsewhere if name in _options(other)]
            close = difflib.get_close_matches(name, _options(self), n=1, cutoff=0.7)
            if owners:
                notes.append(f"'{name}' has no effect on '{self.prog}'; it is an option of: {', '.join(owners)}")
            elif close:
                notes.append(f"did you mean '{close[0]}'?")
        self.error(f"unrecognized arguments: {' '.join(unknown)}", notes)


def _options(parser: argparse.ArgumentParser) -> list[str]:
    # argparse has no other way to ask.
    return list(parser._option_string_actions)  # pyright: ignore[reportPrivateUsage]


def count(text: str) -> int:
    """An option's value that is a whole number, 0 or more."""
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number of 0 or more")
    return int(text)


def run_tool(execute: Callable[[], int], traceback: bool) -> int:
    """The exit status: that of ``execute``, or what goes with the exception that it raises."""
    warnings.showwarning = _print_warning
    try:
        if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison]
            raise InputError("cannot write to standard output: it is closed")
        try:
            status = execute()
        except SystemExit:  # of argparse, after --help
            sys.stdout.flush()
            raise
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # The reader of our output went away (`| head`).
        _forget_output()
        return 0
    except KeyboardInterrupt:
        # At once: what would be released on the way out waits for the work that devices are in.
        with suppress(OSError, ValueError, AttributeError):
            sys.stdout.flush()  # pyright: ignore[reportOptionalMemberAccess]
        with suppress(OSError, ValueError, AttributeError):
            print("interrupted", file=sys.stderr, flush=True)
        os._exit(_INTERRUPTED)
    except Exception as error:
        failure = _output_failure()
        if failure is not None:
            _forget_output()
        if failure is None or isinstance(failure, BrokenPipeError):
            return report(error, traceback)
        return report(InputError(f"cannot write to standard output: {failure.strerror or failure}"), traceback)


def _print_warning(message: Warning | str, *where: Any) -> None:
    """Where in Python's code a warning was made is nothing to a user."""
    with suppress(OSError, AttributeError):
        sys.stderr.write(f"warning: {message}\n")


class _Output(io.FileIO):
    """Standard output that remembers why it could not be written: other files fail with the same errors."""

    failure: OSError | None = None

    def write(self, data: Any) -> int | None:
        try:
            return super().write(data)
        except OSError as error:
            self.failure = error
            raise


def watch_output() -> None:
    """Has standard output, which is that of the process, remember its failures."""
    old = sys.stdout
    if not isinstance(old, io.TextIOWrapper):  # closed
        return
    raw = _Output(old.fileno(), "wb", closefd=False)
    buffer = io.BufferedWriter(raw) if isinstance(old.buffer, io.BufferedWriter) else raw
    plain = {"line_buffering": old.line_buffering, "write_through": old.write_through}
    sys.stdout = io.TextIOWrapper(buffer, old.encoding, old.errors, **plain)  # pyright: ignore[reportArgumentType]


def _output_failure() -> OSError | None:
    """What is wrong with standard output, if anything is."""
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison]
        return None
    try:
        sys.stdout.flush()
    except OSError as failure:
        return failure
    buffer = getattr(sys.stdout, "buffer", None)
    raw = getattr(buffer, "raw", buffer)
    return raw.failure if isinstance(raw, _Output) else None


def _forget_output() -> None:
    """What is left in Python's buffer goes nowhere: Python would complain about it when it ends."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def report(error: Exception, traceback: bool) -> int:
    """Print what went wrong, with Python's traceback in front on request; returns the exit status.

    Errors that bad input can cause are `DevscopeError`s; anything else is a defect, and says so.
    """
    if isinstance(error, DevscopeError):
        text = error.text(flags=True)
    elif isinstance(error, MemoryError):
        text = f"error: out of memory: {error}".removesuffix(": ")
    else:
        first = (str(error).splitlines() or ["no message"])[0]
        text = f"error: internal error: {type(error).__name__}: {first}\n  note: {_DEFECT}"
    with suppress(OSError, AttributeError):  # standard error is full, or closed
        if traceback:
            from traceback import print_exception

            print_exception(error)
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()
    return USAGE if _is_usage(error) else FAILED


def _is_usage(error: Exception) -> bool:
    """Whether it is the command line that is wrong, and not what stands in a file."""
    if not isinstance(error, OptionError) or isinstance(error, UserFileError):
        return False
    from devscope.cli.pass_syntax import PIPELINE_FILE

    return error.location is None or error.location.file == PIPELINE_FILE
