"""One large array through a device, as a whole and in chunks: how much of its copies hides behind computing.

A program copies an array to the device, computes so many steps with every element there, and copies the result
back: without ``chunks``, and with several numbers of them. Beside it, the same program with one step, which is
little more than its copies. Host and device have one core each, as in ``overlap.py``. Variants alternate; results
are compared with numpy's before a time counts.

    python bench/chunks.py [--rounds 100] [--steps 40] [--chunks 2,4,8,16]
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np

import devscope

ROWS, COLUMNS = 256, 1 << 14
DEVICES = {"opencl:0": "opencl:0.0"}


def program(steps: int) -> str:
    """``steps`` times v = v * 0.999 + 0.001 in every element."""
    tensor = f"tensor<{ROWS}x{COLUMNS}xf32>"
    lines = "\n".join(f"    %v{i + 1} = math.fma %v{i}, %a, %b : f32" for i in range(steps))
    return f"""
#dev = #device.scope<"opencl", 0 : i64, "", "">
#map = affine_map<(i, j) -> (i, j)>
func.func @main(%x: {tensor}) -> {tensor} {{
  %a = arith.constant 0.999 : f32
  %b = arith.constant 0.001 : f32
  %e = tensor.empty() : {tensor}
  %r = linalg.generic {{indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}}
    ins(%x : {tensor}) outs(%e : {tensor}) attrs = {{device.scope = #dev}} {{
  ^bb0(%v0: f32, %unused: f32):
{lines}
    linalg.yield %v{steps} : f32
  }} -> {tensor}
  return %r : {tensor}
}}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description="one large array through a device, as a whole and in chunks")
    parser.add_argument("--rounds", type=int, default=100, help="runs of each variant (default: 100)")
    parser.add_argument("--steps", type=int, default=40, help="computing per element (default: 40)")
    parser.add_argument("--chunks", default="2,4,8,16", help="numbers of chunks (default: 2,4,8,16)")
    options = parser.parse_args()
    numbers = [1, *(int(number) for number in options.chunks.split(","))]
    x = np.random.default_rng(0).random((ROWS, COLUMNS), np.float32)
    variants = {
        f"{number} chunks" if number > 1 else "as a whole": devscope.compile(
            program(options.steps), devices=DEVICES, chunks=number, cache=False
        )
        for number in numbers
    }
    wanted = x.astype(np.float64)
    for _ in range(options.steps):
        wanted = wanted * 0.999 + 0.001
    for executable in variants.values():
        np.testing.assert_allclose(executable(x), wanted, rtol=1e-3)
    variants["copies (one step, as a whole)"] = devscope.compile(program(1), devices=DEVICES, cache=False)
    times: dict[str, list[float]] = {name: [] for name in variants}
    for number in range(options.rounds + 2):
        for name, executable in variants.items():
            start = time.perf_counter()
            executable(x)
            if number >= 2:
                times[name].append(time.perf_counter() - start)
    print(f"{x.nbytes >> 20} MiB in and out, {options.steps} steps")
    whole = min(times["as a whole"])
    for name, values in times.items():
        best, median = min(values), statistics.median(values)
        print(f"  {name:32} {best * 1e3:8.2f} ms (median {median * 1e3:.2f}), {best / whole:.3f} of the whole")


if __name__ == "__main__":
    main()
