"""Functions of PyTorch that index, pad, scan and sort, and products of narrow types, beside torch itself.

Each is compiled by `devscope.compile(function, examples)` and called in turn with torch, in one process and with
as many threads. Before a time counts, results are compared with torch's. A turn is the best call of
``--seconds``, on one thread by processor time, on more by the clock; the ratio is the median of the ratios of
rounds.

    python bench/torch_functions.py [--rows gather sort ...] [--threads 1] [--rounds 5] [--seconds 0.2] [--small]

Target: torch's speed.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

Inputs = Callable[[Any, int], list[Any]]
"""Makes the arguments with torch, of sizes that are divided by a number."""


def _rows(torch: Any) -> dict[str, tuple[Callable[..., Any], Inputs]]:
    """By name: the function and its arguments, of 4096 x 1024 elements if nothing else is said."""
    functional = torch.nn.functional

    def matrix(_: Any, part: int) -> list[Any]:
        return [torch.randn(4096 // part, 1024 // part)]

    def places(dim: int | None) -> Inputs:
        """A matrix, indices of its rows (or of an element along ``dim`` for each), and as many values."""

        def make(_: Any, part: int) -> list[Any]:
            shape = [4096 // part, 1024 // part]
            index = torch.randint(0, shape[dim or 0], shape[:1] if dim is None else shape)
            return [torch.randn(shape), index, torch.randn(shape)]

        return make

    def images(_: Any, part: int) -> list[Any]:
        return [torch.randn(8, 64, 112 // part, 112 // part)]

    def factors(kind: str) -> Inputs:
        def make(_: Any, part: int) -> list[Any]:
            size = 1024 // part
            if kind == "i8":
                return [torch.randint(-128, 128, (size, size), dtype=torch.int8) for _ in range(2)]
            return [torch.randn(size, size).to(getattr(torch, kind)) for _ in range(2)]

        return make

    return {
        "gather along rows": (lambda x, i, _: x.gather(1, i), places(1)),
        "gather along columns": (lambda x, i, _: x.gather(0, i), places(0)),
        "embedding": (lambda x, i, _: functional.embedding(i, x), places(None)),
        "index_add": (lambda x, i, s: x.index_add(0, i, s), places(None)),
        "index_put, accumulated": (lambda x, i, s: x.index_put((i,), s, accumulate=True), places(None)),
        "scatter along rows": (lambda x, i, s: x.scatter(1, i, s), places(1)),
        "scatter along columns": (lambda x, i, s: x.scatter(0, i, s), places(0)),
        "scatter_add along rows": (lambda x, i, s: x.scatter_add(1, i, s), places(1)),
        "scatter_add along columns": (lambda x, i, s: x.scatter_add(0, i, s), places(0)),
        **{
            f"pad {mode} 8x64x112x112": (lambda x, mode=mode: functional.pad(x, (3, 3, 3, 3), mode), images)
            for mode in ("constant", "reflect", "replicate", "circular")
        },
        "cumsum along rows": (lambda x: x.cumsum(1), matrix),
        "cumsum along columns": (lambda x: x.cumsum(0), matrix),
        "topk 8 of rows": (lambda x: x.topk(8), matrix),
        "sort of rows": (lambda x: torch.sort(x, dim=1, stable=True), matrix),
        "matmul 1024, bf16": (lambda a, b: a @ b, factors("bfloat16")),
        "matmul 1024, i8 to i32": (lambda a, b: torch._int_mm(a, b), factors("i8")),
    }


def _listed(results: Any) -> list[Any]:
    return list(results) if isinstance(results, (tuple, list)) else [results]


def _agree(torch: Any, found: Any, expected: Any) -> bool:
    for ours, theirs in zip(_listed(found), _listed(expected), strict=True):
        ours = torch.as_tensor(ours.astype("float32") if theirs.is_floating_point() else ours)
        limit = 1e-2 if theirs.dtype == torch.bfloat16 else 1e-4
        apart = (ours.double() - theirs.double()).abs().max().item()
        if apart > limit * max(theirs.double().abs().max().item(), 1.0):
            return False
    return True


def _best(call: Callable[[], Any], seconds: float, clock: Callable[[], float]) -> float:
    best, end = float("inf"), time.perf_counter() + seconds
    while best == float("inf") or time.perf_counter() < end:
        begin = clock()
        call()
        best = min(best, clock() - begin)
    return best


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", nargs="+", help="beginnings of names of rows (default: all)")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.2, help="of a turn (default: 0.2)")
    parser.add_argument("--small", action="store_true", help="a sixteenth of every size: does it run?")
    options = parser.parse_args()
    os.environ["DEVSCOPE_THREADS"] = str(options.threads)
    import torch

    import devscope

    torch.set_num_threads(options.threads)
    torch.set_grad_enabled(False)
    torch.manual_seed(0)
    clock = time.process_time if options.threads == 1 else time.perf_counter
    missed = 0
    print(f"load {os.getloadavg()[0]:.1f}, {options.threads} threads")
    print("| function | devscope, ms | torch, ms | ratio | |\n|---|---|---|---|---|")
    for name, (function, inputs) in _rows(torch).items():
        if options.rows and not name.startswith(tuple(options.rows)):
            continue
        arguments = inputs(torch, 16 if options.small else 1)
        program = devscope.compile(function, tuple(arguments))
        if not _agree(torch, program(*arguments), function(*arguments)):
            print(f"| {name} | wrong | | | missed |", flush=True)
            missed += 1
            continue
        sides = (lambda: program(*arguments), lambda: function(*arguments))  # noqa: B023
        turns = [[_best(side, options.seconds, clock) for side in sides] for _ in range(options.rounds)]
        ours, theirs = (median(times) for times in zip(*turns, strict=True))
        ratio = median(b / a for a, b in turns)
        missed += ratio < 1
        mark = "missed" if ratio < 1 else ""
        print(f"| {name} | {1e3 * ours:.3f} | {1e3 * theirs:.3f} | {ratio:.2f} | {mark} |", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
