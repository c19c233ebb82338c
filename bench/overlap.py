"""Whether devices and the host work at the same time, and whether copies hide behind computing.

Two things are measured, with one core for the host and one compute unit of the device (``opencl:0.0``).

* halves: a program whose two independent halves run on the host and on the device. Beside it, the halves as two
  programs: called by two threads at the same time (calls run native code without Python's lock), and one
  after the other. Target: at most 1.05 times the two threads.
* loop: copy in, compute, copy out, for slices of an array. Beside it, the loop's copies alone (the device writes
  one element of each slice) and its computing alone. Target: of the shorter of the two, at least 80 % is hidden.

Variants alternate. The best of many short rounds counts: both cores are needed at the same time, and other jobs of
the machine take one away for milliseconds. Results are compared with numpy's before a time counts.

    python bench/overlap.py [--rounds 200]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import devscope
from devscope.runtime.executable import Executable

TARGET_RATIO, TARGET_HIDDEN = 1.05, 0.8
ELEMENTS, STEPS = 1 << 17, 400
"""Of a half: so many elements go through so many multiplications and additions each."""
SLICES, SLICE = 64, 1 << 16
DEVICES = {"opencl:0": "opencl:0.0"}
HEADER = '#dev = #device.scope<"opencl", 0 : i64, "", "">\n#map = affine_map<(d0) -> (d0)>\n'


def polynomial(value: str, result: str, size: int, steps: int, place: str) -> str:
    """``steps`` times v = v * 0.999 + 0.001 in every element."""
    tensor = f"tensor<{size}xf32>"
    lines = [f"    %v{i + 1} = math.fma %v{i}, %a, %b : f32" for i in range(steps)]
    body = "\n".join(["  ^bb0(%v0: f32, %unused: f32):", *lines, f"    linalg.yield %v{steps} : f32"])
    return (
        f"  %e{result} = tensor.empty() : {tensor}\n"
        f'  %{result} = linalg.generic {{indexing_maps = [#map, #map], iterator_types = ["parallel"]}}'
        f" ins(%{value} : {tensor}) outs(%e{result} : {tensor}) {place} {{\n{body}\n  }} -> {tensor}\n"
    )


CONSTANTS = "  %a = arith.constant 0.999 : f32\n  %b = arith.constant 0.001 : f32\n"
ON_DEVICE = "attrs = {device.scope = #dev}"


def both_halves(host: int, device: int) -> str:
    tensor = f"tensor<{ELEMENTS}xf32>"
    return (
        f"{HEADER}func.func @main(%x: {tensor}, %y: {tensor}) -> ({tensor}, {tensor}) {{\n{CONSTANTS}"
        + polynomial("x", "h", ELEMENTS, host, "")
        + polynomial("y", "d", ELEMENTS, device, ON_DEVICE)
        + f"  return %h, %d : {tensor}, {tensor}\n}}\n"
    )


def one_half(steps: int, place: str) -> str:
    tensor = f"tensor<{ELEMENTS}xf32>"
    return (
        f"{HEADER}func.func @main(%x: {tensor}) -> {tensor} {{\n{CONSTANTS}"
        + polynomial("x", "r", ELEMENTS, steps, place)
        + f"  return %r : {tensor}\n}}\n"
    )


def touch(value: str, result: str, size: int) -> str:
    return f"  %{result} = tensor.insert %b into %{value}[%c0] {{device.scope = #dev}} : tensor<{size}xf32>\n"


def loop(steps: int, copies: bool) -> str:
    """Slices of ``x`` through the device; without ``copies``, the first slice every time, which stays there.

    With no ``steps``, the device writes one element of each slice and computes nothing.
    """
    whole, tensor = f"tensor<{SLICES}x{SLICE}xf32>", f"tensor<{SLICE}xf32>"
    cut = f"tensor.extract_slice %x[{{}}, 0] [1, {SLICE}] [1, 1] : {whole} to {tensor}"
    work = polynomial("s", "d", SLICE, steps, ON_DEVICE) if steps else touch("s", "d", SLICE)
    head = (
        f"{HEADER}func.func @main(%x: {whole}) -> {whole if copies else tensor} {{\n{CONSTANTS}"
        "  %c0 = arith.constant 0 : index\n  %c1 = arith.constant 1 : index\n"
        f"  %n = arith.constant {SLICES} : index\n  %out = tensor.empty() : {whole}\n"
    )
    if copies:
        return (
            f"{head}  %r = scf.for %i = %c0 to %n step %c1 iter_args(%o = %out) -> ({whole}) {{\n"
            f"  %s = {cut.format('%i')}\n{work}"
            f"  %p = tensor.insert_slice %d into %o[%i, 0] [1, {SLICE}] [1, 1] : {tensor} into {whole}\n"
            f"  scf.yield %p : {whole}\n  }}\n  return %r : {whole}\n}}\n"
        )
    return (
        f"{head}  %first = {cut.format('%c0')}\n"
        f"  %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %first) -> ({tensor}) {{\n{work}"
        f"  scf.yield %d : {tensor}\n  }}\n  return %r : {tensor}\n}}\n"
    )


def reference(values: Any, steps: int) -> Any:
    result = values.astype(np.float64)
    for _ in range(steps):
        result = result * 0.999 + 0.001
    return result


def build(text: str) -> Executable:
    devices = DEVICES if "attrs = {device" in text else {}
    return devscope.compile(text, devices=devices, cache=False)


def seconds(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def at_the_same_time(*calls: Callable[[], Any]) -> None:
    others = [threading.Thread(target=call) for call in calls[1:]]
    for thread in others:
        thread.start()
    calls[0]()
    for thread in others:
        thread.join()


def rounds(variants: dict[str, Callable[[], Any]], count: int) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in variants}
    for number in range(count + 2):
        for name, call in variants.items():
            taken = seconds(call)
            if number >= 2:
                times[name].append(taken)
    return times


def show(times: dict[str, list[float]]) -> None:
    for name, values in times.items():
        print(f"  {name:32} {min(values) * 1e3:8.2f} ms (median {statistics.median(values) * 1e3:.2f})")


def balanced(x: Any) -> tuple[int, int]:
    """Steps for host and device that take them about equally long."""
    host, device = build(one_half(STEPS, "")), build(one_half(STEPS, ON_DEVICE))
    times = rounds({"host": lambda: host(x), "device": lambda: device(x)}, 100)
    ratio = min(times["device"]) / min(times["host"])
    return (STEPS, round(STEPS / ratio)) if ratio > 1 else (round(STEPS * ratio), STEPS)


def measure_halves(count: int) -> bool:
    rng = np.random.default_rng(0)
    x, y = (rng.random(ELEMENTS, np.float32) for _ in range(2))
    steps = balanced(x)
    both = build(both_halves(*steps))
    host, device = build(one_half(steps[0], "")), build(one_half(steps[1], ON_DEVICE))
    for results in (both(x, y), (host(x), device(y))):
        for result, values, number in zip(results, (x, y), steps, strict=True):
            np.testing.assert_allclose(result, reference(values, number), rtol=1e-3)
    times = rounds(
        {
            "one program": lambda: both(x, y),
            "two threads": lambda: at_the_same_time(lambda: device(y), lambda: host(x)),
            "one after the other": lambda: (device(y), host(x)),
        },
        count,
    )
    print(f"halves ({steps[0]} steps on the host, {steps[1]} on the device)")
    show(times)
    ratio = min(times["one program"]) / min(times["two threads"])
    print(f"  one program / two threads: {ratio:.3f} (target: at most {TARGET_RATIO})")
    return ratio <= TARGET_RATIO


def measure_loop(count: int, steps: int) -> bool:
    rng = np.random.default_rng(1)
    x = rng.random((SLICES, SLICE), np.float32)
    whole, copies, computing = build(loop(steps, True)), build(loop(0, True)), build(loop(steps, False))
    np.testing.assert_allclose(whole(x), reference(x, steps), rtol=1e-3)
    times = rounds(
        {
            "copies and computing": lambda: whole(x),
            "copies": lambda: copies(x),
            "computing": lambda: computing(x),
        },
        count,
    )
    print(f"loop ({SLICES} slices of {SLICE >> 8} KiB, {steps} steps each)")
    show(times)
    together, copying, work = (min(values) for values in times.values())
    hidden = (copying + work - together) / min(copying, work)
    print(f"  hidden of the shorter: {hidden:.1%} (target: at least {TARGET_HIDDEN:.0%})")
    return hidden >= TARGET_HIDDEN


def main() -> int:
    parser = argparse.ArgumentParser(description="overlap of devices, host and copies")
    parser.add_argument("--rounds", type=int, default=200, help="runs of each variant (default: 200)")
    parser.add_argument("--loop-steps", type=int, default=40, help="computing per slice (default: 40)")
    options = parser.parse_args()
    good = measure_halves(options.rounds)
    return 0 if measure_loop(options.rounds, options.loop_steps) and good else 1


if __name__ == "__main__":
    sys.exit(main())
