"""Programs that are planned for the least time, executed."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import devscope
from devscope.analysis.machine_file import machine_toml, read_machine
from devscope.measure import measure_machine

pytestmark = pytest.mark.fuzz

SIZE = 192

#: A chain of products, whose result is then normalised by row; small vectors beside it.
PROGRAM = f"""
!m = tensor<{SIZE}x{SIZE}xf32>
!v = tensor<{SIZE}xf32>
func.func @main(%x: !m, %w: !m, %b: !v, %n: index) -> (!m, !v) {{
  %zero = arith.constant 0.0 : f32
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %e = tensor.empty() : !m
  %r = scf.for %i = %0 to %n step %1 iter_args(%y = %x) -> (!m) {{
    %f = linalg.fill ins(%zero : f32) outs(%e : !m) -> !m
    %p = linalg.matmul ins(%y, %w : !m, !m) outs(%f : !m) -> !m
    %q = linalg.matmul ins(%p, %w : !m, !m) outs(%f : !m) -> !m
    scf.yield %q : !m
  }}
  %s = arith.addf %b, %b : !v
  %t = arith.mulf %s, %b : !v
  return %r, %t : !m, !v
}}
"""

DESCRIPTION = """
[devices."cpu:0"]
flops = 1e9
bandwidth = 1e10

[devices."opencl:0"]
flops = 1e12
bandwidth = 1e11
launch = 1e-5

[[links]]
from = "cpu:0"
to = "opencl:0"
bandwidth = 5e9
latency = 1e-5

[[links]]
from = "opencl:0"
to = "cpu:0"
bandwidth = 5e9
latency = 1e-5
"""

FAST_HOST = DESCRIPTION.replace("flops = 1e9\nbandwidth = 1e10", "flops = 1e13\nbandwidth = 1e12")


def check(machine: Path, iterations: int) -> tuple[dict[str, set[str]], list[str]]:
    """Run the program, compare with numpy; the scopes per operation, and the copies."""
    rng = np.random.default_rng(int(os.environ["DEVSCOPE_TEST_SEED"]))
    x, w = (rng.standard_normal((SIZE, SIZE), np.float32) / np.float32(np.sqrt(SIZE)) for _ in range(2))
    b = rng.standard_normal(SIZE, np.float32)
    with devscope.compile(PROGRAM, completion="min-cost", machine=machine, cache=False) as executable:
        got, small = executable(x, w, b, iterations)
    want = x.astype(np.float64)
    for _ in range(2 * iterations):
        want = want @ w
    np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(small, (b + b) * b, rtol=1e-6)
    plan = devscope.plan(PROGRAM, completion="min-cost", machine=machine)
    scopes: dict[str, set[str]] = {}
    for placement in plan.placements:
        scopes.setdefault(placement.op, set()).add(placement.scope.short())
    return scopes, [f"{copy.src.short()}>{copy.dst.short()}" for copy in plan.copies]


def test_a_chain_of_products_moves_to_the_faster_device(tmp_path: Path) -> None:
    machine = tmp_path / "machine.toml"
    machine.write_text(DESCRIPTION)
    scopes, copies = check(machine, 3)
    assert scopes["linalg.matmul"] == {"opencl:0"}
    assert scopes["arith.addf"] == scopes["arith.mulf"] == {"cpu:0"}
    # The data goes there once and comes back once, around the loop.
    assert copies == ["cpu:0>opencl:0", "cpu:0>opencl:0", "opencl:0>cpu:0"]


def test_a_faster_host_keeps_everything(tmp_path: Path) -> None:
    machine = tmp_path / "machine.toml"
    machine.write_text(FAST_HOST)
    scopes, copies = check(machine, 2)
    assert set.union(*scopes.values()) == {"cpu:0"}
    assert copies == []


@pytest.mark.not_emulated
@pytest.mark.long
def test_a_measured_machine(tmp_path: Path) -> None:
    """Whatever the measurement says: the description is legal, the plan is one, and the numbers are right."""
    machine = tmp_path / "machine.toml"
    machine.write_text(machine_toml(measure_machine()))
    described = read_machine(machine)
    assert set(described.devices) >= {"cpu:0", "opencl:0"}
    # Any machine that runs this is between a thousandth and a million times a gigaflop.
    assert all(1e6 < device.flops < 1e15 for device in described.devices.values())
    assert all(1e6 < device.bandwidth < 1e15 for device in described.devices.values())
    check(machine, 2)


def test_the_description_is_part_of_the_key_of_the_cache(tmp_path: Path) -> None:
    machine = tmp_path / "machine.toml"
    machine.write_text(DESCRIPTION)
    rng = np.random.default_rng(0)
    values = rng.standard_normal((SIZE, SIZE), np.float32), np.eye(SIZE, dtype=np.float32)
    b = np.zeros(SIZE, np.float32)
    launches: list[int] = []
    for text in (DESCRIPTION, DESCRIPTION, FAST_HOST):
        machine.write_text(text)
        with devscope.compile(PROGRAM, completion="min-cost", machine=machine) as executable:
            executable(*values, b, 1)
            launches.append(sum(executable.counters().launches.values()))
    assert launches[0] == launches[1] > 0
    assert launches[2] == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"completion": "best"}, "'best' is not a way to complete a plan"),
        ({"machine": "absent.toml"}, "cannot read the machine description"),
        ({"machine": "absent.toml", "completion": "min-cost"}, "cannot read the machine description"),
    ],
)
def test_bad_options(options: dict[str, str], message: str) -> None:
    with pytest.raises(devscope.errors.OptionError, match=message):
        devscope.compile(PROGRAM, **options)
