"""Handwritten digits on two devices: train, compile, run, and compare with numpy.

The network's first two layers run on opencl:0, the rest on the host. Exits with status 1 if devscope's
probabilities differ from numpy's by more than 1e-5 of their value, or if a single digit is read differently.

    python examples/digits/run.py
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from train import Digits, prepare

import devscope
from devscope.cli.command_plan import plan_text
from devscope.errors import DevscopeError
from devscope.runtime.executable import Executable

TOLERANCE = 1e-5
RUNS = 21

T = TypeVar("T")


def timed(action: Callable[[], T]) -> tuple[T, float]:
    """The result of ``action`` and the seconds it took."""
    start = time.perf_counter()
    result = action()
    return result, time.perf_counter() - start


def median_time(action: Callable[[], Any]) -> float:
    return sorted(timed(action)[1] for _ in range(RUNS))[RUNS // 2]


def relative_error(got: NDArray[Any], want: NDArray[Any]) -> float:
    """The largest error of an element, relative to that element."""
    return float(np.max(np.abs(got.astype(np.float64) - want) / np.abs(want)))


def compile_twice(model: Path) -> tuple[Executable, float, float]:
    """The program, seconds to compile it with nothing cached, and seconds to get it from the cache."""
    with tempfile.TemporaryDirectory() as empty:
        os.environ["DEVSCOPE_CACHE_DIR"] = empty
        _, cold = timed(lambda: devscope.compile(model))
        program, cached = timed(lambda: devscope.compile(model))
    return program, cold, cached


def show_plan(console: Console, model: Path) -> int:
    """Print the plan; returns how many copies stand in it."""
    console.rule("plan")
    plan = devscope.plan(model, arguments="host")
    print(plan_text(plan, str(model), console.width), end="")
    return len(plan.copies)


def show_times(console: Console, rows: list[tuple[str, float]]) -> None:
    console.rule("times")
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column()
    table.add_column(justify="right")
    for name, seconds in rows:
        table.add_row(name, f"{seconds * 1e3:,.1f} ms")
    console.print(table)


def show_copies(console: Console, program: Executable, planned: int) -> None:
    """What the executable counted in one call."""
    console.rule("copies in one call")
    counters = program.counters()
    table = Table(box=None, pad_edge=False)
    for column in ("from", "to", "copies", "bytes"):
        table.add_column(column, justify="right" if column in ("copies", "bytes") else "left")
    for (source, target), count in counters.copies.items():
        table.add_row(source, target, str(count.copies), f"{count.bytes:,}")
    console.print(table)
    launches = ", ".join(f"{n} on {device}" for device, n in counters.launches.items() if n)
    console.print(f"planned: {planned} copies; kernels launched: {launches}")


def check(console: Console, digits: Digits, got: NDArray[Any], guesses: NDArray[Any]) -> bool:
    """Compare with numpy and the labels; True if all is well."""
    want = digits.probabilities(digits.images)
    error = relative_error(got, want)
    numpy_guesses = want.argmax(axis=1)
    different = int(np.sum(guesses != numpy_guesses))
    console.rule("results")
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_row("held-out images", str(len(digits.labels)))
    table.add_row("accuracy of devscope", f"{np.mean(guesses == digits.labels):.2%}")
    table.add_row("accuracy of numpy", f"{np.mean(numpy_guesses == digits.labels):.2%}")
    table.add_row("digits read differently", str(different))
    table.add_row("max relative error", f"{error:.1e} (limit {TOLERANCE:.0e})")
    console.print(table)
    good = error <= TOLERANCE and different == 0
    console.print("[green]devscope agrees with numpy" if good else "[red]devscope DISAGREES with numpy")
    return good


def main() -> int:
    console = Console()
    (model, digits), preparing = timed(prepare)
    console.print(f"model: {os.path.relpath(model)} (64-128-64-10, weights inside)")
    program, cold, cached = compile_twice(model)
    planned = show_plan(console, model)
    (probabilities, guesses), first = timed(lambda: program(digits.images))
    program.reset_counters()
    program(digits.images)
    show_copies(console, program, planned)
    show_times(
        console,
        [
            ("train, or read what was trained", preparing),
            ("load the compiler, compile, nothing cached", cold),
            ("compile, from the cache", cached),
            ("first call", first),
            (f"call, median of {RUNS}", median_time(lambda: program(digits.images))),
            ("numpy, median", median_time(lambda: digits.probabilities(digits.images))),
        ],
    )
    return 0 if check(console, digits, probabilities, guesses) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except DevscopeError as error:
        print(error, file=sys.stderr)
        sys.exit(1)
