"""From source text to the first result, in a fresh process: devscope beside IREE.

The program is an MLP, 64 x (784-1024-1024-10) with relu, in f32 (see _mlp.py). Every run is a process of its own;
the clock starts before the first import of the compiler (Python and numpy are there, the inputs are made) and
stops when the result is there as a numpy array. Both compilers get the same text, both compile for this CPU.

    python bench/first_result.py [--rounds 7] [--weights arguments|constants] [--stages]
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import _mlp
import numpy as np
from _processes import Case, build_directory, column, interleaved, median_ratio, script_case, spread
from _stages import Stages

TARGET_RATIO = 0.6
TARGET_CACHED = 0.5
TOLERANCE = 1e-4

Result = np.ndarray[Any, Any]


def run_devscope(text: str, inputs: list[Any]) -> Result:
    import devscope

    return devscope.compile(text)(*inputs)


def run_iree(text: str, inputs: list[Any]) -> Result:
    """IREE's compiler in this process, which is faster than its command line, then its runtime."""
    import iree.runtime
    from iree.compiler.api import Output, Session, Source

    session = Session()
    session.set_flags("--iree-hal-target-backends=llvm-cpu", "--iree-llvmcpu-target-cpu=host")
    invocation = session.invocation()
    if not invocation.parse_source(Source.wrap_buffer(session, text.encode() + b"\0")):
        raise SystemExit("IREE cannot parse the program")
    if not invocation.execute():
        raise SystemExit("IREE cannot compile the program")
    output = Output.open_membuffer()
    invocation.output_vm_bytecode(output)
    module = iree.runtime.load_vm_flatbuffer(bytes(output.map_memory()), driver="local-task")
    return np.asarray(module.main(*inputs))


COMPILERS: dict[str, Callable[[str, list[Any]], Result]] = {"devscope": run_devscope, "iree": run_iree}


def child(compiler: str, file: str, stages: bool) -> None:
    """One run; prints its figures."""
    constants = "constants" in Path(file).name
    inputs: list[Any] = [_mlp.batch(), *([] if constants else _mlp.parameters())]
    text = Path(file).read_text()
    watch = Stages()
    start = time.perf_counter()
    if stages:
        gc.disable()  # as during a compilation, which here finds its modules imported
        watch.watch_imports()
        watch.watch_stages()
        gc.enable()
    result = COMPILERS[compiler](text, inputs)
    seconds = time.perf_counter() - start
    want = _mlp.reference(_mlp.batch(), _mlp.parameters())
    error = float(np.max(np.abs(result - want)) / np.max(np.abs(want)))
    if not error <= TOLERANCE:
        raise SystemExit(f"wrong result: relative error {error:.1e}")
    print(json.dumps({"seconds": seconds, "stages": watch.seconds}))


def write_programs(weights: str) -> dict[str, str]:
    """The program for the host alone and with its first two layers on opencl:0; names -> files."""
    directory = build_directory("first_result")
    files = {"host": directory / f"mlp-{weights}.mlir", "mixed": directory / f"mlp-{weights}-mixed.mlir"}
    for (name, file), layers in zip(files.items(), (0, 2), strict=True):
        del name
        file.write_text(_mlp.module_text(weights == "constants", layers))
    return {name: str(file) for name, file in files.items()}


def make_case(name: str, compiler: str, file: str, cache: str, *options: str) -> Case:
    arguments = ("--child", compiler, "--file", file, *options)
    return script_case(name, __file__, *arguments, environment={"DEVSCOPE_CACHE_DIR": cache})


def measure(weights: str, rounds: int) -> bool:
    """Print the comparison; True if both targets are met."""
    files = write_programs(weights)
    with tempfile.TemporaryDirectory() as warm:
        cases = [
            make_case("IREE", "iree", files["host"], "off"),
            make_case("devscope, host", "devscope", files["host"], "off"),
            make_case("devscope, 2 layers on opencl:0", "devscope", files["mixed"], "off"),
            make_case("devscope, host, from its cache", "devscope", files["host"], warm),
            make_case("devscope, mixed, from its cache", "devscope", files["mixed"], warm),
        ]
        interleaved(cases[3:], 1)  # fill the cache
        runs = interleaved(cases, rounds)
    print(
        f"\nMLP 64 x (784-1024-1024-10), weights as {weights}: "
        f"source text -> first result, {rounds} processes each"
    )
    print(f"{'':34}{'median (range)':26}{'whole process':16}ratio to IREE")
    iree = column(runs["IREE"], "seconds")
    for name, figures in runs.items():
        seconds = column(figures, "seconds")
        whole = spread(column(figures, "process")).split(" (")[0]
        print(f"{name:34}{spread(seconds):26}{whole:16}{median_ratio(seconds, iree):.2f}")
    ratio = median_ratio(column(runs["devscope, host"], "seconds"), iree)
    cached = max(
        sorted(column(runs[f"devscope, {kind}, from its cache"], "seconds"))[rounds // 2]
        for kind in ("host", "mixed")
    )
    print(
        f"host / IREE {ratio:.2f} (target: at most {TARGET_RATIO}), "
        f"slowest from cache {cached:.2f} s (target: at most {TARGET_CACHED})"
    )
    return ratio <= TARGET_RATIO and cached <= TARGET_CACHED


def show_stages(weights: str, rounds: int) -> None:
    """Print where devscope's time goes; the watching itself costs a few per cent."""
    files = write_programs(weights)
    cases = [make_case(name, "devscope", file, "off", "--stages") for name, file in files.items()]
    runs = interleaved(cases, rounds)
    print(f"\nwhere the time goes, median ms of {rounds} processes (weights as {weights})")
    print(f"{'':20}" + "".join(f"{name:>10}" for name in files))
    stages = [stage for name in files for stage in runs[name][0]["stages"]]
    for stage in dict.fromkeys(stages):
        times = [sorted(run["stages"].get(stage, 0.0) for run in runs[name])[rounds // 2] for name in files]
        print(f"{stage:20}" + "".join(f"{1e3 * seconds:10.1f}" for seconds in times))
    totals = [sorted(column(runs[name], "seconds"))[rounds // 2] for name in files]
    print(f"{'total':20}" + "".join(f"{1e3 * seconds:10.1f}" for seconds in totals))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7, help="processes per row (default: 7)")
    parser.add_argument("--weights", choices=("arguments", "constants", "both"), default="both")
    parser.add_argument("--stages", action="store_true", help="show where devscope's time goes, and nothing else")
    parser.add_argument("--child", choices=tuple(COMPILERS), help=argparse.SUPPRESS)
    parser.add_argument("--file", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child, options.file, options.stages)
        return 0
    kinds = ("arguments", "constants") if options.weights == "both" else (options.weights,)
    if options.stages:
        for weights in kinds:
            show_stages(weights, options.rounds)
        return 0
    return 0 if all([measure(weights, options.rounds) for weights in kinds]) else 1


if __name__ == "__main__":
    sys.exit(main())
