"""Loops of copies in, device work and copies out compute what numpy does, whatever order things happen in."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from delayed_queues import delayed_queues
from test_delayed_queues import two_devices

import devscope

_HEAD = """
#dev = #device.scope<"opencl", 0 : i64, "", "">
#other = #device.scope<"opencl", 1 : i64, "", "">
#host = #device.scope<"cpu", 0 : i64, "", "">
"""

#: The device's result of each slice, and the slice itself, enter a sum on the host and rows of a second result.
SLICES = (
    _HEAD
    + """
func.func @main(%x: tensor<9x{size}xf32>) -> (tensor<{size}xf32>, tensor<9x{size}xf32>) {{
  %c0 = arith.constant {first} : index
  %cs = arith.constant {step} : index
  %cn = arith.constant 9 : index
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<{size}xf32>
  %a = linalg.fill ins(%zero : f32) outs(%e : tensor<{size}xf32>) -> tensor<{size}xf32>
  %w = tensor.empty() : tensor<9x{size}xf32>
  %o = linalg.fill ins(%zero : f32) outs(%w : tensor<9x{size}xf32>) -> tensor<9x{size}xf32>
  %r:2 = scf.for %i = %c0 to %cn step %cs iter_args(%sum = %a, %rows = %o)
      -> (tensor<{size}xf32>, tensor<9x{size}xf32>) {{
    %s = tensor.extract_slice %x[%i, 0] [1, {size}] [1, 1] : tensor<9x{size}xf32> to tensor<{size}xf32>
    %t = math.tanh %s {{device.scope = #dev}} : tensor<{size}xf32>
    %u = math.sin %s {{device.scope = #other}} : tensor<{size}xf32>
    %m = arith.mulf %t, %u {{device.scope = #dev}} : tensor<{size}xf32>
    %n = arith.addf %m, %s {{device.scope = #host}} : tensor<{size}xf32>
    %p = arith.addf %sum, %n {{device.scope = #host}} : tensor<{size}xf32>
    %q = tensor.insert_slice %n into %rows[%i, 0] [1, {size}] [1, 1]
      : tensor<{size}xf32> into tensor<9x{size}xf32>
    scf.yield %p, %q : tensor<{size}xf32>, tensor<9x{size}xf32>
  }}
  return %r#0, %r#1 : tensor<{size}xf32>, tensor<9x{size}xf32>
}}
"""
)


#: Bounds and the size of slices are arguments. Carried are tensors of the host and of a device, and a scalar.
DYNAMIC = (
    _HEAD
    + """
func.func @main(%x: tensor<?x?xf32>, %start: tensor<?x?xf32>, %first: {index}, %end: {index}, %step: {index})
    -> (tensor<?xf32>, tensor<?x?xf32>, tensor<?xf32>, {index}) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %none = arith.constant 0 : {index}
  %m = tensor.dim %x, %c1 : tensor<?x?xf32>
  %a = tensor.extract_slice %start[0, 0] [1, %m] [1, 1] : tensor<?x?xf32> to tensor<?xf32>
  %d = math.cos %a {{device.scope = #dev}} : tensor<?xf32>
  %r:4 = scf.for %k = %first to %end step %step
      iter_args(%sum = %a, %rows = %start, %before = %d, %count = %none)
      -> (tensor<?xf32>, tensor<?x?xf32>, tensor<?xf32>, {index}) {suffix} {{
    %i = {to_index}
    %s = tensor.extract_slice %x[%i, 0] [1, %m] [1, 1] : tensor<?x?xf32> to tensor<?xf32>
    %t = math.tanh %s {{device.scope = #dev}} : tensor<?xf32>
    %b = "device.device_copy"(%before) {{src = #dev, dst = #host}} : (tensor<?xf32>) -> tensor<?xf32>
    %u = arith.mulf %t, %b {{device.scope = #host}} : tensor<?xf32>
    %v = math.sin %s {{device.scope = #other}} : tensor<?xf32>
    %n = arith.addf %u, %v {{device.scope = #host}} : tensor<?xf32>
    %p = arith.addf %sum, %n {{device.scope = #host}} : tensor<?xf32>
    %q = tensor.insert_slice %n into %rows[%i, 0] [1, %m] [1, 1] : tensor<?xf32> into tensor<?x?xf32>
    %c = arith.addi %count, %k : {index}
    scf.yield %p, %q, %t, %c : tensor<?xf32>, tensor<?x?xf32>, tensor<?xf32>, {index}
  }}
  return %r#0, %r#1, %r#2, %r#3 : tensor<?xf32>, tensor<?x?xf32>, tensor<?xf32>, {index}
}}
"""
)

#: The last slice is shorter where the step does not divide. What is copied out depends on what came before.
REST = (
    _HEAD
    + """
func.func @main(%x: tensor<?xf32>, %start: tensor<?xf32>, %step: index, %most: f32) -> (tensor<?xf32>, f32) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %end = tensor.dim %x, %c0 : tensor<?xf32>
  %r:2 = scf.for %i = %c0 to %end step %step iter_args(%all = %start, %sum = %zero) -> (tensor<?xf32>, f32) {
    %left = arith.subi %end, %i : index
    %n = arith.minsi %left, %step : index
    %s = tensor.extract_slice %x[%i] [%n] [1] : tensor<?xf32> to tensor<?xf32>
    %t = math.tanh %s {device.scope = #dev} : tensor<?xf32>
    %l = tensor.dim %t, %c0 : tensor<?xf32>
    %more = arith.cmpf olt, %sum, %most : f32
    %k:2 = scf.if %more -> (tensor<?xf32>, f32) {
      %q = tensor.insert_slice %t into %all[%i] [%l] [1] : tensor<?xf32> into tensor<?xf32>
      %e = tensor.extract %t[%c0] : tensor<?xf32>
      %a = math.absf %e : f32
      %p = arith.addf %sum, %a : f32
      scf.yield %q, %p : tensor<?xf32>, f32
    } else {
      scf.yield %all, %sum : tensor<?xf32>, f32
    }
    scf.yield %k#0, %k#1 : tensor<?xf32>, f32
  }
  return %r#0, %r#1 : tensor<?xf32>, f32
}
"""
)


def reference(x: Any, first: int, step: int) -> tuple[Any, Any]:
    wide = x.astype(np.float64)
    rows = np.zeros_like(wide)
    rows[first::step] = (np.tanh(wide) * np.sin(wide) + wide)[first::step]
    return rows.sum(axis=0), rows


@pytest.mark.parametrize(("first", "step", "size"), [(0, 1, 67), (1, 3, 67), (0, 2, 1), (7, 1, 1), (8, 1, 67)])
def test_slices(first: int, step: int, size: int) -> None:
    rng = np.random.default_rng(first)
    text = SLICES.format(size=size, first=first, step=step)
    with devscope.compile(text, devices=two_devices(), cache=False) as executable:
        for seed in range(3):
            x = rng.standard_normal((9, size), np.float32)
            with delayed_queues(executable, seed) as delays:
                for scale in (1, 2, 3):
                    inputs = x * scale
                    for value, wanted in zip(executable(inputs), reference(inputs, first, step), strict=True):
                        np.testing.assert_allclose(value, wanted, rtol=0, atol=1e-4)
                assert delays.delayed > 0
                assert not any(executable.counters().live.values())


def _check(executable: Any, inputs: tuple[Any, ...], wanted: tuple[Any, ...]) -> None:
    for value, expected in zip(executable(*inputs), wanted, strict=True):
        np.testing.assert_allclose(value, expected, rtol=0, atol=1e-4)


def dynamic_reference(x: Any, start: Any, bounds: tuple[int, int, int]) -> tuple[Any, ...]:
    rows, total, before = start.astype(np.float64), start[0].astype(np.float64), np.cos(start[0])
    for i in range(*bounds):
        rows[i] = np.tanh(x[i]) * before + np.sin(x[i])
        total += rows[i]
        before = np.tanh(x[i])
    return total, rows, before, sum(range(*bounds))


@pytest.mark.parametrize("index", ["index", "i32"])
@pytest.mark.parametrize("place", ["device", "host"])
def test_bounds_at_run_time(index: str, place: str) -> None:
    """Loops of no, one, two and more iterations, of one executable."""
    text = DYNAMIC.format(
        index=index,
        suffix="" if index == "index" else f": {index}",
        to_index="arith.addi %k, %c0 : index" if index == "index" else "arith.index_cast %k : i32 to index",
    )
    rng = np.random.default_rng(5)
    devices = {"opencl:0": "cpu:0", "opencl:1": "cpu:0"} if place == "host" else two_devices()
    with devscope.compile(text, devices=devices, cache=False) as executable:
        for number, first, step in itertools.product((0, 1, 2, 7), (0, 2), (1, 2, 3)):
            for end in {first + number * step, first + number * step - (step - 1) * (number > 0)}:
                x, start = (rng.standard_normal((25, 5), np.float32) for _ in range(2))
                wanted = dynamic_reference(x, start, (first, end, step))
                _check(executable, (x, start, first, end, step), wanted)
        x, start = (rng.standard_normal((3, 5), np.float32) for _ in range(2))
        for bounds in ((3, 1, 1), (2, -4, 2), (-5, -5, 9)):
            _check(executable, (x, start, *bounds), dynamic_reference(x, start, bounds))


def test_nothing_begins_without_iterations() -> None:
    text = DYNAMIC.format(index="index", suffix="", to_index="arith.addi %k, %c0 : index")
    x, start = np.ones((4, 5), np.float32), np.ones((4, 5), np.float32)
    with devscope.compile(text, devices=two_devices(), cache=False) as executable:
        counted = []
        for end in (1, 2, 3, 1):
            before = executable.counters()
            executable(x, start, 1, end, 1)
            after = executable.counters()
            counted.append(sum(after.launches.values()) - sum(before.launches.values()))
    assert counted == [1, 3, 5, 1]  # one launch before the loop


def rest_reference(x: Any, start: Any, step: int, most: float) -> tuple[Any, float]:
    rows, total = start.astype(np.float64), 0.0
    for i in range(0, len(x), step):
        if total < most:
            rows[i : i + step] = np.tanh(x[i : i + step])
            total += abs(np.tanh(x[i]))
    return rows, total


def test_slices_of_different_sizes() -> None:
    rng = np.random.default_rng(6)
    with devscope.compile(REST, cache=False) as executable, delayed_queues(executable, 1) as delays:
        for size, step, slices in itertools.product((0, 1, 6, 7, 29), (1, 3, 7, 40), (0, 1, 99)):
            x, start = (rng.uniform(0.5, 2, size).astype(np.float32) for _ in range(2))
            steps = np.abs(np.tanh(x[::step].astype(np.float64)))
            most = float(np.float32(steps[:slices].sum() + 0.1 * (slices > 0)))
            _check(executable, (x, start, step, np.float32(most)), rest_reference(x, start, step, most))
        assert delays.delayed > 0
        assert not any(executable.counters().live.values())


def test_bounds_at_run_time_delayed(memory: str) -> None:
    text = DYNAMIC.format(index="index", suffix="", to_index="arith.addi %k, %c0 : index")
    with devscope.compile(text, devices=two_devices(), cache=False) as executable:
        for seed in range(3):
            rng = np.random.default_rng(seed)
            with delayed_queues(executable, seed) as delays:
                for number in (7, 0, 2, 1, 7):
                    x, start = (rng.standard_normal((8, 33), np.float32) for _ in range(2))
                    bounds = (1, 1 + number, 1)
                    _check(executable, (x, start, *bounds), dynamic_reference(x, start, bounds))
                assert delays.delayed > 0
                assert not any(executable.counters().live.values())
