"""What checks of a running program cost: nanoseconds per element without and with ``checks="on"``.

Each number is the median over calls; the programs take turns.

    python bench/checks.py [--repeats 15] [--devices cpu:0,opencl:0]
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np

import devscope
from devscope.runtime.executable import Executable

ELEMENTS = 1 << 22

DIVIDE = """
func.func @main(%x: tensor<?xi32>, %y: tensor<?xi32>) -> tensor<?xi32> {
  %0 = arith.divsi %x, %y : tensor<?xi32>
  return %0 : tensor<?xi32>
}
"""
GATHER = """
func.func @main(%t: tensor<?xi32>, %i: tensor<?xi32>) -> tensor<?xi32> {
  %0 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      outs(%i : tensor<?xi32>) {
  ^bb0(%id: i32):
    %x = arith.index_cast %id : i32 to index
    %v = tensor.extract %t[%x] : tensor<?xi32>
    linalg.yield %v : i32
  } -> tensor<?xi32>
  return %0 : tensor<?xi32>
}
"""
ADD = """
func.func @main(%x: tensor<?xi32>, %y: tensor<?xi32>) -> tensor<?xi32> {
  %0 = arith.addi %x, %y : tensor<?xi32>
  return %0 : tensor<?xi32>
}
"""


def seconds(executable: Executable, *arguments: object) -> float:
    start = time.perf_counter()
    executable(*arguments)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--devices", default="cpu:0,opencl:0")
    options = parser.parse_args()
    x = np.arange(ELEMENTS, dtype=np.int32)
    y = np.random.default_rng(0).integers(1, ELEMENTS, ELEMENTS, np.int32)
    for device in options.devices.split(","):
        for name, source in (("add", ADD), ("gather", GATHER), ("divide", DIVIDE)):
            programs = [devscope.compile(source, default=device, checks=on) for on in ("off", "on")]
            times: list[list[float]] = [[], []]
            for number in range(options.repeats + 1):
                for program, found in zip(programs, times, strict=True):
                    found.append(seconds(program, x, y)) if number else program(x, y)
            off, on = (statistics.median(found) / ELEMENTS * 1e9 for found in times)
            print(f"{device:9} {name:7} off {off:6.2f} ns   on {on:6.2f} ns")


if __name__ == "__main__":
    main()
