"""JAX programs by devscope, by jax.jit and by IREE: from source to the first result, and what a call takes.

The programs are those of `_jax_programs.py`. A first result is that of a fresh process. The clock starts when
Python and numpy are there and the inputs are made; the import of JAX is the same for all, and ratios are
shown with and without it (``traced``: the function is there, the compiler is not). devscope's cache is off;
one more column is from its cache.

Calls are made by two processes that take turns, one with devscope and one with jax.jit, on all cores; a turn
is the best of the calls of ``--seconds``. Arguments of devscope are numpy's arrays; those of jax.jit are JAX's,
made before, and a call ends when its results are there (``block_until_ready``).

    python bench/ways_in.py [--programs mlp ...] [--rounds 7] [--seconds 0.1] [--part first|calls]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

import numpy as np
from _processes import Case, column, interleaved, median_ratio, script_case, spread

COMPILERS = ("devscope", "jax", "iree")
CACHED = "devscope, cached"
NAMES = ("mlp", "lstm", "attention", "solver", "fft_filter")
TARGET_FIRST = 1.0
"""Of the better of the peers' seconds to a first result, for each program."""
TARGET_CALL = 1.0
"""Of jax.jit's speed, for these programs."""
CALLS_WITH_TARGET = ("mlp", "attention")
TOLERANCE = 1e-4
"""Of the greatest magnitude of a result."""
SETTLE = 0.03
"""Seconds before a turn: threads of the turn before may spin so long for more work."""


class Refused(Exception):
    """A peer cannot compile the program."""


Result = Any
"""A tree of arrays."""


def with_devscope(function: Callable[..., Result], arguments: Sequence[Any]) -> Callable[[], Result]:
    import devscope

    program = devscope.compile(function, arguments)
    return lambda: program(*arguments)


def with_jax(function: Callable[..., Result], arguments: Sequence[Any]) -> Callable[[], Result]:
    import jax

    staged, here = jax.jit(function), jax.device_put(arguments)
    return lambda: jax.block_until_ready(staged(*here))


def with_iree(function: Callable[..., Result], arguments: Sequence[Any]) -> Callable[[], Result]:
    """IREE's compiler in this process, for this CPU, of the StableHLO that JAX exports."""
    import iree.runtime
    import jax
    from iree.compiler.api import Output, Session, Source

    exported = jax.export.export(jax.jit(function), platforms=("cpu",))(*arguments)
    session = Session()
    session.set_flags(
        "--iree-hal-target-backends=llvm-cpu", "--iree-llvmcpu-target-cpu=host", "--iree-input-type=stablehlo"
    )
    invocation = session.invocation()
    source = Source.wrap_buffer(session, exported.mlir_module().encode() + b"\0")
    if not invocation.parse_source(source) or not invocation.execute():
        raise Refused("IREE cannot compile the program")
    output = Output.open_membuffer()
    invocation.output_vm_bytecode(output)
    module = iree.runtime.load_vm_flatbuffer(bytes(output.map_memory()), driver="local-task")
    kept = [leaf for n, leaf in enumerate(jax.tree.leaves(tuple(arguments))) if n in exported.module_kept_var_idx]
    return lambda: module.main(*kept)


MAKE = {"devscope": with_devscope, "jax": with_jax, "iree": with_iree}


def leaves(result: Result) -> list[Any]:
    import jax

    return [np.asarray(leaf) for leaf in jax.tree.leaves(result)]


def check(found: Sequence[Any], expected: Sequence[Any]) -> None:
    """Raises SystemExit for a wrong result."""
    for one, two in zip(found, expected, strict=True):
        error = np.max(np.abs(one - two)) / max(np.max(np.abs(two)), 1e-30)
        if one.shape != two.shape or not error <= TOLERANCE:
            raise SystemExit(f"wrong result: relative error {error:.1e}")


def first(compiler: str, name: str) -> dict[str, Any]:
    """One first result, checked."""
    start = time.perf_counter()
    import jax
    import jax.export

    imported = time.perf_counter()
    import _jax_programs

    function, arguments = getattr(_jax_programs, name)(False)
    made = time.perf_counter()
    try:
        result = [np.asarray(leaf) for leaf in jax.tree.leaves(MAKE[compiler](function, arguments)())]
    except Refused:
        return {}
    seconds = time.perf_counter() - made
    check(result, leaves(jax.jit(function)(*arguments)))
    return {"seconds": seconds + imported - start, "traced": seconds}


def serve(compiler: str, name: str) -> None:
    """Call the program for as many seconds as each line of standard input says; answer with the best call's."""
    import _jax_programs
    import jax

    function, arguments = getattr(_jax_programs, name)(False)
    call = MAKE[compiler](function, arguments)
    check(leaves(call()), leaves(jax.jit(function)(*arguments)))
    for line in sys.stdin:
        until, best = time.perf_counter() + float(line), float("inf")
        while (before := time.perf_counter()) < until:
            call()
            best = min(best, time.perf_counter() - before)
        print(json.dumps(best), flush=True)


def _case(side: str, compiler: str, name: str, cache: str) -> Case:
    return script_case(side, __file__, "--first", compiler, name, environment={"DEVSCOPE_CACHE_DIR": cache})


def first_results(names: Sequence[str], rounds: int) -> bool:
    """Print the comparison; True if all targets are met."""
    print(f"source to first result, medians of {rounds} processes; ratios to the better peer, by rounds")
    print(f"{'':12}" + "".join(f"{side:>26}" for side in (*COMPILERS, CACHED)) + "  ratio  without JAX's import")
    met = True
    for name in names:
        with tempfile.TemporaryDirectory() as warm:
            cached = _case(CACHED, "devscope", name, warm)
            interleaved([cached], 1)  # fill the cache
            cases = [*(_case(compiler, compiler, name, "off") for compiler in COMPILERS), cached]
            runs = interleaved(cases, rounds)
        ratios: dict[str, float] = {}
        for key in ("seconds", "traced"):
            ours, *theirs = (times for compiler in COMPILERS if (times := column(runs[compiler], key)))
            better = [min(times) for times in zip(*theirs, strict=True)]
            ratios[key] = median_ratio(ours, better)
        times = {side: column(runs[side], "seconds") for side in (*COMPILERS, CACHED)}
        figures = "".join(f"{spread(found) if found else 'refused':>26}" for found in times.values())
        print(f"{name:12}{figures}  {ratios['seconds']:5.2f}  {ratios['traced']:5.2f}", flush=True)
        met &= ratios["seconds"] <= TARGET_FIRST
    print(f"target: at most {TARGET_FIRST}")
    return met


def calls(names: Sequence[str], rounds: int, seconds: float) -> bool:
    """Print the comparison; True if all targets are met."""
    print(f"\na call, best of {seconds} s, medians of {rounds} turns; ratio: jax.jit's time / devscope's")
    met = True
    for name in names:
        sides = [
            subprocess.Popen(
                [sys.executable, __file__, "--serve", compiler, name],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for compiler in ("devscope", "jax")
        ]
        times: list[list[float]] = [[], []]
        for number in range(rounds + 1):
            for side, found in zip(sides, times, strict=True):
                assert side.stdin
                assert side.stdout
                time.sleep(SETTLE)
                print(seconds, file=side.stdin, flush=True)
                answer = side.stdout.readline()
                if not answer:
                    raise SystemExit(f"{name}: a side ended")
                if number:  # the first turn warms up
                    found.append(json.loads(answer))
        for side in sides:
            side.communicate()
        ratio = median_ratio(times[1], times[0])
        ours, theirs = (f"{1e3 * median(found):8.3f} ms" for found in times)
        print(f"{name:12} devscope {ours}   jax.jit {theirs}   ratio {ratio:.2f}", flush=True)
        met &= ratio >= TARGET_CALL or name not in CALLS_WITH_TARGET
    print(f"target: {TARGET_CALL} for {' and '.join(CALLS_WITH_TARGET)}")
    return met


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--programs", nargs="+", choices=NAMES, default=NAMES)
    parser.add_argument("--rounds", type=int, default=7, help="processes, or turns, of each side (default: 7)")
    parser.add_argument("--seconds", type=float, default=0.1, help="of a turn of calls (default: 0.1)")
    parser.add_argument("--part", choices=("first", "calls"), help="default: both")
    parser.add_argument("--first", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--serve", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.first:
        print(json.dumps(first(*options.first)))
        return 0
    if options.serve:
        serve(*options.serve)
        return 0
    print(f"load {os.getloadavg()[0]:.1f}")
    met = options.part == "calls" or first_results(options.programs, options.rounds)
    if options.part != "first":
        met &= calls(options.programs, options.rounds, options.seconds)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
