"""``devscope tune``: search the schedules that make a program fast on this machine."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from devscope.cli.command_line import count
from devscope.cli.compile_options import (
    OPTIONS,
    PROGRAM_FILE,
    add_compile_options,
    compile_options,
    device_mapping,
    require_output,
    require_source,
)
from devscope.errors import InputError, OptionError

if TYPE_CHECKING:
    from devscope.lowering.kernels.table import Row
    from devscope.runtime.cache import DiskCache
    from devscope.runtime.executable import Executable
    from devscope.tune import Found, Progress, Tuner

NAME = "tune"
HELP = "search the schedules that make a program fast on this machine"
EPILOG = """\
What is found is kept in the user's cache, and used by all that is compiled on this machine from then on.

examples:
  devscope tune model.mlir
  devscope tune model.mlir --size 128 --time-limit 600 -o schedules.toml
  devscope tune --show
"""

_SECONDS = 120

_LONGEST = 10**9
"""Seconds, which are decades: whole numbers may be too large for clocks."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("file", metavar="FILE", nargs="?", help=f"{PROGRAM_FILE}; '-': from standard input")
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--show", action="store_true", help="print where the schedules of this machine are, and them"
    )
    what.add_argument("--clear", action="store_true", help="remove the schedules of this machine")
    add("-o", "--output", metavar="OUT.toml", help="write what is found, for --schedules")
    add(
        "--time-limit",
        type=count,
        metavar="S",
        default=_SECONDS,
        help=f"seconds that the search may take (default: {_SECONDS})",
    )
    add("--entry", metavar="F", help="function to call (default: main, or the only public one)")
    add(
        "--size", type=count, metavar="N", help="size of dynamic dimensions; without it, what has some is left out"
    )
    add(
        "--threads",
        type=count,
        metavar="N",
        help="the most threads of a call (default: the cores of this process)",
    )
    add_compile_options(parser, [name for name in OPTIONS if name != "schedules"])


def execute(arguments: argparse.Namespace) -> int:
    from devscope.runtime.cache import DIRECTORY_VARIABLE, open_cache

    store = open_cache()
    if not (arguments.show or arguments.clear):
        return _tune(arguments, store)
    if arguments.file is not None:
        raise OptionError(f"--{'show' if arguments.show else 'clear'} does not go with a program")
    if store is None:
        raise OptionError(f"the cache is off: {DIRECTORY_VARIABLE} says so")
    text = store.load_schedules()
    if text is None:
        print(f"{store.schedules_path}: nothing was tuned on this machine")
    elif arguments.clear:
        store.remove_schedules()
        print(f"{store.schedules_path}: removed")
    else:
        print(f"{store.schedules_path}:\n\n{text}", end="")
    return 0


def _tune(arguments: argparse.Namespace, store: DiskCache | None) -> int:
    if arguments.file is None:
        raise OptionError("a program is missing", notes=["write devscope tune FILE, or give --show or --clear"])
    if store is None and arguments.output is None:
        raise OptionError("the cache is off, so nothing that is found would be kept", notes=["give --output"])
    if arguments.output is not None:
        require_output(arguments, arguments.output)
    if store is not None:
        store.require_writable()
    from devscope.runtime.threads import thread_count

    threads = thread_count(arguments.threads)
    source, options, mapping = (
        require_source(arguments.file),
        compile_options(arguments),
        device_mapping(arguments),
    )
    from devscope.tune import Tuner

    tuner = Tuner(source, options, mapping, threads)
    call = _Call(tuner, arguments)
    left_out = [each for each in tuner.classes if each.dynamic and arguments.size is None]
    classes = [each for each in tuner.classes if each not in left_out]
    for each in left_out:
        print(f"{each.operation}: left out: give --size for sizes that are not known")
    if not tuner.classes:
        raise InputError("the program has no kernels: there is nothing to tune")
    found: list[Found] = []
    with _progress() as progress:
        for each in tuner.tune(classes, call, min(arguments.time_limit, _LONGEST), progress):
            found.append(each)
    for each in found:
        print(_line(each))
        for problem in each.problems:
            print(f"  not taken: {problem}", file=sys.stderr)
    _keep(found, arguments.output, store, threads)
    if tuner.interrupted:
        raise KeyboardInterrupt
    return 0


def _keep(found: list[Found], output: str | None, store: DiskCache | None, threads: int) -> None:
    from devscope.cli.files import write_output
    from devscope.tune import merged

    comment = f"{threads} {'thread' if threads == 1 else 'threads'}"
    if output is not None:
        write_output(output, merged("", found, comment))
    if store is not None and any(each.gain > 1 for each in found):
        store.update_schedules(lambda old: merged(old, found, comment))
        print(f"kept in {store.schedules_path}")


def _line(found: Found) -> str:
    from devscope.lowering.kernels.schedule_report import named_sizes

    if found.gain == 1:
        return f"{found.of.operation}: nothing faster than {found.of.now.place}; {found.tried} tried"
    row = f"{found.row.template} with {named_sizes(found.row.numbers)}"
    return f"{found.of.operation}: {found.gain:.2f} times as fast, {found.tried} tried: {row}"


class _Call:
    """Calls a program of a tuner's with random arguments, the same each time."""

    def __init__(self, tuner: Tuner, arguments: argparse.Namespace) -> None:
        from devscope.agreement import random_array
        from devscope.api import chosen_entry

        self._name = chosen_entry(tuner.entries, arguments.entry, tuner.closed)
        size = 8 if arguments.size is None else arguments.size
        specs = tuner.entries[self._name].inputs
        self._values = [random_array((0, number), spec, size) for number, spec in enumerate(specs)]

    def __call__(self, executable: Executable) -> Any:
        return executable.run_arrays(self._name, self._values)


@contextmanager
def _progress() -> Generator[Progress]:
    """A bar on a terminal, else a line for each class of operations."""
    if not sys.stderr.isatty():
        yield _Lines()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = BarColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        yield _Bar(bar)


class _Lines:
    def begin(self, what: str, number: int, count: int) -> None:
        print(f"{number + 1} of {count}: {what}", file=sys.stderr, flush=True)

    def tried(self, row: Row, ratio: float | None) -> None:
        pass


class _Bar:
    def __init__(self, bar: Any) -> None:
        self._bar, self._task, self._tried = bar, bar.add_task("", total=1), 0
        self._before, self._count = 0, 1

    def begin(self, what: str, number: int, count: int) -> None:
        self._before, self._count, self._tried = number, count, 0
        self._bar.console.print(f"{number + 1} of {count}: {what}", markup=False, highlight=False)
        self._show()

    def tried(self, row: Row, ratio: float | None) -> None:
        self._tried += 1
        self._show()

    def _show(self) -> None:
        # How many rows a search tries is not known before.
        part = self._tried / (self._tried + 20)
        self._bar.update(
            self._task, completed=(self._before + part) / self._count, description=f"{self._tried} tried"
        )
