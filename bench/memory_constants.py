"""Peak memory of compiling a module that holds 100 MiB of f32 constants.

Three forms of one module: MLIR bytecode, text with the hexadecimal form of dense constants (a file twice the
size), and text with dense resources. Every run is a fresh process that calls ``devscope.compile`` on the file
with an empty cache, and then its function once; the numbers are the peak of its resident memory as the kernel
counts it, pages of mapped files included. The baseline is the same for a module with one 4 KiB constant.

    python bench/memory_constants.py [--rounds 3] [--mib 100]
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from _processes import Case, build_directory, column, interleaved, script_case
from numpy.typing import NDArray

TARGET = 3.0
MIB = 1 << 20
WIDTH = 1024
#: Name of a form, suffix of its file.
FORMS = {"bytecode": ".mlirbc", "text, hexadecimal": ".mlir", "text, resources": ".resource.mlir"}


def peak_bytes() -> int:
    """Peak resident memory of this process. (``ru_maxrss`` would count what the parent had when it forked.)"""
    status = Path("/proc/self/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) * 1024


def child(file: str) -> None:
    """One run; prints its figures."""
    x = np.ones((1, WIDTH), np.float32)
    import devscope

    start = time.perf_counter()
    program = devscope.compile(Path(file))
    seconds = time.perf_counter() - start
    compiled = peak_bytes()
    result = program(x)
    figures = {"compiled": compiled, "called": peak_bytes(), "seconds": seconds, "result": float(np.sum(result))}
    print(json.dumps(figures))


def weights(count: int, width: int) -> list[NDArray[np.float32]]:
    generator = np.random.default_rng(0)
    return [(generator.standard_normal((WIDTH, width)) / WIDTH**0.5).astype(np.float32) for _ in range(count)]


def write_text(file: Path, arrays: list[NDArray[np.float32]], resources: bool) -> None:
    """``x @ w0 + x @ w1 + ...`` with every w a constant: one matmul accumulates onto the next."""
    width = arrays[0].shape[1]
    input_type, output_type, weight = (
        f"tensor<1x{WIDTH}xf32>",
        f"tensor<1x{width}xf32>",
        f"tensor<{WIDTH}x{width}xf32>",
    )
    with file.open("w") as out:
        out.write(f"func.func @main(%x: {input_type}) -> {output_type} {{\n")
        out.write(f"  %zero = arith.constant 0.0 : f32\n  %e = tensor.empty() : {output_type}\n")
        out.write(f"  %s0 = linalg.fill ins(%zero : f32) outs(%e : {output_type}) -> {output_type}\n")
        for n, array in enumerate(arrays):
            value = f"dense_resource<w{n}>" if resources else f'dense<"0x{array.tobytes().hex().upper()}">'
            out.write(f"  %w{n} = arith.constant {value} : {weight}\n")
            out.write(
                f"  %s{n + 1} = linalg.matmul ins(%x, %w{n} : {input_type}, {weight}) "
                f"outs(%s{n} : {output_type}) -> {output_type}\n"
            )
        out.write(f"  return %s{len(arrays)} : {output_type}\n}}\n")
        if resources:
            out.write("{-#\n  dialect_resources: {\n    builtin: {\n")
            rows = (f'      w{n}: "0x04000000{a.tobytes().hex().upper()}"' for n, a in enumerate(arrays))
            for n, row in enumerate(rows):
                out.write(row + ("\n" if n == len(arrays) - 1 else ",\n"))
            out.write("    }\n  }\n#-}\n")


def write_bytecode(text: Path, file: Path) -> None:
    from devscope.lowering.interop.parsing import bytecode, parse_file
    from devscope.lowering.interop.session import Session

    file.write_bytes(bytecode(parse_file(text, Session().context)))


def write_modules(name: str, arrays: list[NDArray[np.float32]]) -> dict[str, Path]:
    """The files of all forms of one module."""
    directory = build_directory("memory_constants")
    files = {form: directory / f"{name}{suffix}" for form, suffix in FORMS.items()}
    if not all(file.exists() for file in files.values()):
        write_text(files["text, hexadecimal"], arrays, resources=False)
        write_text(files["text, resources"], arrays, resources=True)
        write_bytecode(files["text, hexadecimal"], files["bytecode"])
    return files


def make_case(name: str, file: Path, cache: str) -> Case:
    return script_case(name, __file__, "--child", str(file), environment={"DEVSCOPE_CACHE_DIR": cache})


def measure(rounds: int, mib: int) -> bool:
    count = max(1, mib * MIB // (WIDTH * WIDTH * 4))
    constants = count * WIDTH * WIDTH * 4
    large = write_modules(f"constants-{mib}", weights(count, WIDTH))
    small = write_modules("constants-0", weights(1, 1))
    runs: dict[str, list[dict[str, Any]]] = {}
    for _ in range(rounds):  # an empty cache each time
        with tempfile.TemporaryDirectory() as cache:
            cases = [make_case("baseline", small["bytecode"], cache)]
            cases += [make_case(form, file, cache) for form, file in large.items()]
            for name, figures in interleaved(cases, 1).items():
                runs.setdefault(name, []).extend(figures)
    results = {figure["result"] for name, figures in runs.items() if name != "baseline" for figure in figures}
    if len(results) > 1:
        raise SystemExit(f"the forms of the module give different results: {sorted(results)}")
    base = statistics.median(column(runs["baseline"], "compiled"))
    print(f"\ncompiling {constants / MIB:.0f} MiB of f32 constants, {rounds} processes each, medians")
    headers = {"peak": 10, "peak - baseline": 18, "peak / constants": 18, "after a call": 19, "compile": 10}
    print(" " * 20 + "".join(f"{text:>{width}}" for text, width in headers.items()))
    met = True
    for name, figures in runs.items():
        peak, called, seconds = (
            statistics.median(column(figures, key)) for key in ("compiled", "called", "seconds")
        )
        ratio = f"{peak / constants:.2f}" if name != "baseline" else ""
        above = f"{(peak - base) / MIB:.0f} MiB" if name != "baseline" else ""
        print(f"{name:20}{peak / MIB:6.0f} MiB{above:>18}{ratio:>18}{called / MIB:15.0f} MiB{seconds:8.2f} s")
        met = met and peak <= TARGET * constants
    print(f"target: peak at most {TARGET:.0f} x the constants")
    return met


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3, help="processes per row (default: 3)")
    parser.add_argument("--mib", type=int, default=100, help="size of the constants (default: 100)")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child)
        return 0
    return 0 if measure(options.rounds, options.mib) else 1


if __name__ == "__main__":
    sys.exit(main())
