"""Data that goes to devices, through their work and back in chunks gives the same results."""

from __future__ import annotations

import math

import numpy as np
import pytest
from chunk_programs import BY_ROWS, NOT_BY_ROWS, ChunkProgram
from delayed_queues import delayed_queues
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_delayed_queues import two_devices

import devscope
from devscope.errors import OptionError
from devscope.passes import device_chunk_copies
from devscope.runtime.executable import Executable

pytestmark = pytest.mark.sampled(5)

_ON_HOST = {"opencl:0": "cpu:0", "opencl:1": "cpu:0"}


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of a row, so that the data of tests is large enough."""
    monkeypatch.setattr(device_chunk_copies, "LEAST_BYTES", 1)


def compile_in_chunks(program: ChunkProgram, n: int, m: int, chunks: int, host: bool = False) -> Executable:
    places = _ON_HOST if host else two_devices()
    used = {name: place for name, place in places.items() if "#other" in program.body or name == "opencl:0"}
    return devscope.compile(program.text(n, m), devices=used, chunks=chunks, cache=False)


def check(executable: Executable, program: ChunkProgram, n: int, m: int, seed: int = 0) -> None:
    arguments = program.arguments(n, m, seed)
    results, wanted = executable(*arguments), program.reference(*(a.astype(np.float64) for a in arguments))
    pairs = zip(results, wanted, strict=True) if isinstance(wanted, tuple) else [(results, wanted)]
    for value, expected in pairs:
        np.testing.assert_allclose(value, expected, rtol=0, atol=1e-5 * max(1, np.abs(expected).max()))


def copies_in(executable: Executable) -> int:
    return executable.counters().h2d.copies


def made(rows: int, chunks: int) -> int:
    """How many chunks rows fall into."""
    return math.ceil(rows / math.ceil(rows / chunks))


@pytest.mark.parametrize(
    ("name", "rows", "chunks"),
    [(name, *sizes) for name in sorted(BY_ROWS) for sizes in ((7, 3), (3, 8))]
    + [("elementwise", *sizes) for sizes in ((8, 4), (10, 4), (5, 1), (1, 4))],
)
def test_by_rows(name: str, rows: int, chunks: int) -> None:
    """As many chunks as there should be, and what all of them need only once."""
    program = BY_ROWS[name]
    with compile_in_chunks(program, rows, 6, chunks) as executable:
        check(executable, program, rows, 6)
        by_rows = sum(shape[:1] == ("n",) for shape in program.shapes) + ("#other" in program.body)
        assert copies_in(executable) == len(program.whole) + by_rows * made(rows, chunks)


@pytest.mark.parametrize("name", sorted(NOT_BY_ROWS))
def test_not_by_rows(name: str) -> None:
    program = NOT_BY_ROWS[name]
    with compile_in_chunks(program, 3, 3, 3) as executable:
        check(executable, program, 3, 3)
        chunked = executable.counters().copies
    with compile_in_chunks(program, 3, 3, 1) as executable:
        check(executable, program, 3, 3)
        assert chunked == executable.counters().copies


@pytest.mark.parametrize("name", sorted(BY_ROWS))
def test_devices_that_are_the_host_copy_nothing(name: str) -> None:
    program = BY_ROWS[name]
    with compile_in_chunks(program, 7, 5, 3, host=True) as executable:
        check(executable, program, 7, 5)


@pytest.mark.parametrize("name", sorted(BY_ROWS))
def test_delayed(name: str, memory: str) -> None:
    program = BY_ROWS[name]
    with compile_in_chunks(program, 11, 9, 4) as executable, delayed_queues(executable, 3) as delays:
        for seed in range(3):
            check(executable, program, 11, 9, seed)
        assert delays.delayed > 0
        assert not any(executable.counters().live.values())


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from(sorted(BY_ROWS)),
    rows=st.integers(1, 40),
    columns=st.integers(2, 12),
    chunks=st.integers(1, 50),
)
def test_any_shape(name: str, rows: int, columns: int, chunks: int) -> None:
    program = BY_ROWS[name]
    with compile_in_chunks(program, rows, columns, chunks) as executable:
        check(executable, program, rows, columns)


def test_small_data_is_copied_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many chunks as are large enough, in and out together: here, 16 KiB a row."""
    monkeypatch.setattr(device_chunk_copies, "LEAST_BYTES", 64 << 10)
    program = BY_ROWS["two_devices"]
    for rows, chunks in ((4, 1), (8, 2), (15, 4), (64, 8)):
        with compile_in_chunks(program, rows, 2048, 9) as executable:
            check(executable, program, rows, 2048)
            assert copies_in(executable) == 2 * chunks


@pytest.mark.parametrize("chunks", [0, -1])
def test_number_of_chunks(chunks: int) -> None:
    with pytest.raises(OptionError, match="number of chunks"):
        devscope.compile("module {}", chunks=chunks)


def test_data_that_stays_on_the_device() -> None:
    """A result that the device needs as a whole, too."""
    rng = np.random.default_rng(2)
    text = """
#dev = #device.scope<"opencl", 0 : i64, "", "">
func.func @main(%x: tensor<6x4xf32>) -> (tensor<6x4xf32>, tensor<4xf32>) {
  %z = arith.constant dense<0.0> : tensor<4xf32>
  %t = math.tanh %x {device.scope = #dev} : tensor<6x4xf32>
  %r = linalg.reduce { arith.addf } ins(%t : tensor<6x4xf32>) outs(%z : tensor<4xf32>) dimensions = [0]
    {device.scope = #dev}
  return %t, %r : tensor<6x4xf32>, tensor<4xf32>
}
"""
    x = rng.uniform(-1, 1, (6, 4)).astype(np.float32)
    with devscope.compile(text, chunks=3, cache=False) as executable:
        t, r = executable(x)
        np.testing.assert_allclose(t, np.tanh(x), atol=1e-6)
        np.testing.assert_allclose(r, np.tanh(x).sum(axis=0), atol=1e-5)
        assert copies_in(executable) == 1
