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


def reference(x: Any, first: int, step: int) -> tuple[Any, Any]:
    wide = x.astype(np.float64)
    rows = np.zeros_like(wide)
    rows[first::step] = (np.tanh(wide) * np.sin(wide) + wide)[first::step]
    return rows.sum(axis=0), rows


@pytest.mark.parametrize(("first", "step"), [(0, 1), (1, 3), (0, 2), (7, 1), (8, 1)])
def test_slices(first: int, step: int) -> None:
    rng = np.random.default_rng(first)
    for size, seed in itertools.product((1, 67), range(3)):
        text = SLICES.format(size=size, first=first, step=step)
        x = rng.standard_normal((9, size), np.float32)
        with (
            devscope.compile(text, devices=two_devices(), cache=False) as executable,
            delayed_queues(executable, seed) as delays,
        ):
            for scale in (1, 2, 3):
                for value, wanted in zip(executable(x * scale), reference(x * scale, first, step), strict=True):
                    np.testing.assert_allclose(value, wanted, rtol=0, atol=1e-4)
            assert delays.delayed > 0
            assert not any(executable.counters().live.values())
