"""Chunks of rows whose number is known at run time only."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from delayed_queues import delayed_queues
from test_delayed_queues import two_devices

import devscope
from devscope.passes import device_chunk_copies
from devscope.runtime.executable import Executable

_HEAD = '#dev = #device.scope<"opencl", 0 : i64, "", "">\n'

_LAYER = (
    _HEAD
    + """
func.func @main(%x: tensor<?x6xf32>, %w: tensor<5x6xf32>, %y: tensor<?x5xf32>)
    -> (tensor<?x5xf32>, tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x6xf32>
  %e = tensor.empty(%n) : tensor<?x5xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x5xf32>) -> tensor<?x5xf32>
  %d = tensor.empty() : tensor<6x5xf32>
  %v = linalg.transpose ins(%w : tensor<5x6xf32>) outs(%d : tensor<6x5xf32>) permutation = [1, 0]
    {device.scope = #dev}
  %p = linalg.matmul {device.scope = #dev} ins(%x, %v : tensor<?x6xf32>, tensor<6x5xf32>)
    outs(%f : tensor<?x5xf32>) -> tensor<?x5xf32>
  %t = arith.mulf %p, %y {device.scope = #dev} : tensor<?x5xf32>
  %m = tensor.dim %y, %c0 : tensor<?x5xf32>
  %g = tensor.empty(%m) : tensor<?xf32>
  %h = linalg.fill ins(%zero : f32) outs(%g : tensor<?xf32>) -> tensor<?xf32>
  %s = linalg.reduce { arith.addf } ins(%t : tensor<?x5xf32>) outs(%h : tensor<?xf32>) dimensions = [1]
    {device.scope = #dev}
  return %t, %s : tensor<?x5xf32>, tensor<?xf32>
}
"""
)

#: Two arrays with numbers of rows of their own.
_SEPARATE = (
    _HEAD
    + """
func.func @main(%x: tensor<?x6xf32>, %y: tensor<?x6xf32>) -> (tensor<?x6xf32>, tensor<?x6xf32>) {
  %a = math.tanh %x {device.scope = #dev} : tensor<?x6xf32>
  %b = math.sin %y {device.scope = #dev} : tensor<?x6xf32>
  return %a, %b : tensor<?x6xf32>, tensor<?x6xf32>
}
"""
)

#: Every row is divided by the number of rows.
_COUNTED = (
    _HEAD
    + """
func.func @main(%x: tensor<?x6xf32>) -> tensor<?x6xf32> {
  %c0 = arith.constant 0 : index
  %t = math.tanh %x {device.scope = #dev} : tensor<?x6xf32>
  %n = tensor.dim %t, %c0 : tensor<?x6xf32>
  %i = arith.index_cast %n : index to i32
  %f = arith.sitofp %i : i32 to f32
  %s = tensor.splat %f[%n] : tensor<?x6xf32>
  %r = arith.divf %t, %s {device.scope = #dev} : tensor<?x6xf32>
  return %r : tensor<?x6xf32>
}
"""
)


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of a row, so that the data of tests is large enough."""
    monkeypatch.setattr(device_chunk_copies, "LEAST_BYTES", 1)


def compile_in_chunks(text: str, chunks: int) -> Executable:
    devices = {name: place for name, place in two_devices().items() if name == "opencl:0"}
    return devscope.compile(text, chunks=chunks, devices=devices, cache=False)


def uniform(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).uniform(-1, 1, shape).astype(np.float32)


def check_layer(executable: Executable, rows: int) -> None:
    x, w, y = uniform(rows, 6), uniform(5, 6), uniform(rows, 5)
    wanted = (x @ w.T) * y
    for value, expected in zip(executable(x, w, y), (wanted, wanted.sum(axis=1)), strict=True):
        np.testing.assert_allclose(value, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("chunks", [1, 3, 8])
def test_any_number_of_rows(chunks: int) -> None:
    with compile_in_chunks(_LAYER, chunks) as executable:
        for rows in (1, 2, 3, 7, 0, 8, 9, 40, 1):
            before = executable.counters().h2d.copies
            check_layer(executable, rows)
            made = math.ceil(rows / math.ceil(rows / chunks)) if rows else 0
            assert rows == 0 or executable.counters().h2d.copies - before == 1 + 2 * made


def test_delayed(memory: str) -> None:
    with compile_in_chunks(_LAYER, 4) as executable, delayed_queues(executable, 5) as delays:
        for rows in (11, 0, 1, 33):
            check_layer(executable, rows)
        assert delays.delayed > 0
        assert not any(executable.counters().live.values())


def test_rows_of_their_own() -> None:
    with compile_in_chunks(_SEPARATE, 3) as executable:
        x, y = uniform(5, 6), uniform(9, 6)
        for value, expected in zip(executable(x, y), (np.tanh(x), np.sin(y)), strict=True):
            np.testing.assert_allclose(value, expected, rtol=0, atol=1e-6)
        assert executable.counters().h2d.copies == 2


def test_number_of_rows_computed_with() -> None:
    with compile_in_chunks(_COUNTED, 3) as executable:
        for rows in (1, 7):
            x = uniform(rows, 6)
            np.testing.assert_allclose(executable(x), np.tanh(x) / rows, rtol=0, atol=1e-6)
        assert executable.counters().h2d.copies == 2
