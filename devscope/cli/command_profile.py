"""``devscope profile``: measure what backends and devices take for the operations of a program."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager

from devscope.cli.compile_options import (
    PROGRAM_FILE,
    add_compile_options,
    compile_options,
    require_output,
    require_source,
)
from devscope.errors import OptionError

NAME = "profile"
HELP = "measure what backends and devices take for the operations of a program"
EPILOG = """\
What was measured on this machine before is not measured again.

examples:
  devscope profile model.mlir --backend blas -o costs.json
  devscope run model.mlir --random 0 --backend blas --partition search --costs costs.json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("file", metavar="FILE", help=f"{PROGRAM_FILE}; '-': from standard input")
    add("-o", "--output", metavar="COSTS.json", required=True, help="write, or add to, this file")
    add("--again", action="store_true", help="measure anew what stands there")
    add_compile_options(parser, ["default", "arguments", "machine", "backend"])


def execute(arguments: argparse.Namespace) -> int:
    from pathlib import Path

    from devscope.analysis.machine import duration
    from devscope.cli.files import write_output
    from devscope.passes.device_partition.cost_file import costs_json, read_costs

    require_output(arguments, arguments.output)
    known = read_costs(arguments.output) if Path(arguments.output).exists() else []
    arguments.partition = "search"
    source, options = require_source(arguments.file), compile_options(arguments)
    from devscope.profile import Profiler, merged

    profiler = Profiler(source, options)
    if not profiler.subjects:
        raise OptionError("nothing in the program can be timed", notes=["give --backend"])
    found, timed, new = [], 0, 0
    try:
        measured = [] if arguments.again else known
        with _progress(len(profiler.subjects)) as show:
            for subject, row, was_known in profiler.measured(measured):
                if row is not None:
                    found.append(row)
                    timed += math.isfinite(row.seconds)
                    new += math.isfinite(row.seconds) and not was_known
                show(subject.name, row.seconds if row is not None else None)
        candidates = len(found)
        for name, row, _ in profiler.wholes([*measured, *found]):
            if row is not None:
                found.append(row)
                print(f"{name}: {duration(row.seconds)}", file=sys.stderr)
    finally:  # also of what Ctrl-C ends
        if found:
            write_output(arguments.output, costs_json(merged(known, found)))
    for name, reason in profiler.left_out:
        print(f"not timed: {name}: {reason}", file=sys.stderr)
    wholes = f", {len(found) - candidates} partitions as a whole" if len(found) > candidates else ""
    print(f"{arguments.output}: {timed} candidates, {new} of them measured now{wholes}, on {profiler.machine}")
    return 0


@contextmanager
def _progress(count: int) -> Generator[Callable[[str, float | None], None]]:
    """A bar on a terminal, else a line for each candidate."""
    from devscope.analysis.machine import duration

    done = 0

    def line(name: str, seconds: float | None) -> None:
        nonlocal done
        done += 1
        shown = "-" if seconds is None or math.isinf(seconds) else duration(seconds)
        print(f"{done} of {count}: {name}: {shown}", file=sys.stderr)

    if not sys.stderr.isatty():
        yield line
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.description}", markup=False),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=count)
        yield lambda name, seconds: bar.update(task, advance=1, description=name)
