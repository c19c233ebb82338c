"""What executables allocate, and when: counted by the runtime, and by the C library for host memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from memory_check import assert_nothing_leaks

import devscope
from devscope.api import CompileOptions, build
from devscope.errors import DeviceError, OptionError, PlanError
from devscope.runtime.executable import Executable

CPU = '#device.scope<"cpu", 0 : i64, "", "">'
HEAD = '#dev = #device.scope<"opencl", 0 : i64, "", "">\n'


def layers(name: str, width: int, count: int, scope: str = "#dev") -> str:
    """``@name``: tanh(x @ x) again and again, on a square matrix."""
    type_ = f"tensor<{width}x{width}xf32>"
    lines = [f"func.func @{name}(%x0: {type_}) -> {type_} {{"]
    for n in range(count):
        lines += [
            f"  %z{n} = arith.constant {n}.0 : f32",
            f"  %e{n} = tensor.empty() : {type_}",
            f"  %i{n} = linalg.fill ins(%z{n} : f32) outs(%e{n} : {type_}) -> {type_}",
            f"  %m{n} = linalg.matmul {{device.scope = {scope}}} ins(%x{n}, %x0 : {type_}, {type_}) "
            f"outs(%i{n} : {type_}) -> {type_}",
            f"  %x{n + 1} = math.tanh %m{n} {{device.scope = {scope}}} : {type_}",
        ]
    return "\n".join([*lines, f"  return %x{count} : {type_}", "}\n"])


def expected(x: np.ndarray, count: int) -> np.ndarray:
    value = x
    for n in range(count):
        value = np.tanh(value @ x + n)
    return value


def matrix(width: int) -> np.ndarray:
    return (np.random.default_rng(width).standard_normal((width, width)) / width).astype(np.float32)


@pytest.mark.not_emulated
def test_a_steady_state_allocates_nothing() -> None:
    x = matrix(64)
    with devscope.compile(HEAD + layers("main", 64, 5), cache=False) as executable:
        np.testing.assert_allclose(executable(x), expected(x, 5), rtol=1e-4)
        first = executable.counters()
        for _ in range(20):
            executable(x)
        later = executable.counters()
        assert later.allocations["opencl:0"] == first.allocations["opencl:0"]
        assert later.driver_allocations == first.driver_allocations
        assert first.driver_allocations["opencl:0"] == 1  # the arena
        assert set(later.live.values()) == {0}
        planned = executable.memory()["opencl:0"]
        assert planned["unplanned"] == 0
        assert planned["lower_bound"] <= planned["planned"] == 3 * 64 * 64 * 4


@pytest.mark.not_emulated
def test_entries_share_an_arena_that_grows() -> None:
    text = HEAD + layers("small", 16, 3) + layers("large", 64, 3)
    with devscope.compile(text, cache=False) as executable:
        for name, width in (("small", 16), ("large", 64), ("small", 16), ("large", 64)):
            x = matrix(width)
            np.testing.assert_allclose(executable.run(name, x), expected(x, 3), rtol=1e-4)
        arena = next(arena for arena in executable.program.arenas if arena.slot)
        assert arena.needed["small"] < arena.needed["large"]
        assert executable.counters().driver_allocations["opencl:0"] == 2


def test_constants_are_copied_once() -> None:
    weights = matrix(32)
    rows = ", ".join(f"[{', '.join(map(str, row))}]" for row in weights.tolist())
    type_ = "tensor<32x32xf32>"
    text = f"""{HEAD}func.func @main(%x: {type_}) -> {type_} {{
  %w = arith.constant dense<[{rows}]> : {type_}
  %0 = arith.addf %x, %w {{device.scope = #dev}} : {type_}
  return %0 : {type_}
}}
"""
    x = matrix(32)
    with devscope.compile(text, cache=False) as executable:
        for _ in range(5):
            np.testing.assert_allclose(executable(x), x + weights, rtol=1e-6)
        assert executable.counters().h2d.copies == 5 + 1
        assert executable.memory()["opencl:0"]["constants"] == weights.nbytes


def test_places_are_buffers_of_their_own_where_a_device_cannot_have_parts() -> None:
    program = build(HEAD + layers("main", 32, 4))
    arena = next(arena for arena in program.arenas if arena.slot)
    arena.alignment = 1  # less than any device asks for
    x = matrix(32)
    with Executable(program) as executable:
        for _ in range(3):
            np.testing.assert_allclose(executable(x), expected(x, 4), rtol=1e-4)
        made = executable.counters().driver_allocations["opencl:0"]
        assert made == len(arena.places) > 1


@pytest.mark.parametrize("scope", [CPU, "#dev"])
def test_saved_programs_keep_their_plan(tmp_path: Path, scope: str) -> None:
    x = matrix(32)
    program = build(HEAD + layers("main", 32, 4, scope))
    with Executable(program) as executable:
        executable.save(tmp_path / "saved.dsx")
    with devscope.load(tmp_path / "saved.dsx") as loaded:
        assert loaded.program.arenas == program.arenas
        assert loaded.memory() == program.report["memory"]
        np.testing.assert_allclose(loaded(x), expected(x, 4), rtol=1e-4)


def test_host_calls_take_no_memory() -> None:
    x = matrix(48)
    with devscope.compile(layers("main", 48, 5, CPU), cache=False) as executable:
        assert executable.memory()["cpu:0"]["unplanned"] == 1  # the result
        assert_nothing_leaks(executable, "main", [x], only_host=True)


def bytes_with_large_pages() -> int:
    """Of the memory of this process, what large pages were asked for."""
    total = size = 0
    for line in Path("/proc/self/smaps").read_text().splitlines():
        key, *values = line.split()
        if key == "Size:":
            size = int(values[0]) << 10
        total += size * (key == "VmFlags:" and "hg" in values)
    return total


@pytest.mark.not_emulated
def test_large_pages_of_memory_that_a_device_shares() -> None:
    x = np.ones(3 << 20, np.float32)
    with devscope.compile(
        """
func.func @main(%x: tensor<3145728xf32>) -> f32 {
  %c7 = arith.constant 7 : index
  %0 = math.tanh %x : tensor<3145728xf32>
  %1 = tensor.extract %0[%c7] : tensor<3145728xf32>
  return %1 : f32
}
""",
        default="opencl:0",
        cache=False,
    ) as executable:
        before = bytes_with_large_pages()
        executable(x)
        has_any = Path("/sys/kernel/mm/transparent_hugepage/enabled").exists()
        assert bytes_with_large_pages() - before >= x.nbytes * has_any


def test_an_arena_that_does_not_fit() -> None:
    text = """
func.func @huge(%x: tensor<4xf32>) -> f32 {
  %c0 = arith.constant 0 : index
  %v = tensor.extract %x[%c0] : tensor<4xf32>
  %big = tensor.splat %v : tensor<1125899906842624xf32>
  %r = tensor.extract %big[%c0] : tensor<1125899906842624xf32>
  return %r : f32
}
func.func @small(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = math.tanh %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""
    x = np.ones(4, np.float32)
    with devscope.compile(text, cache=False) as executable:
        if any(max(arena.needed.values()) >= 1 << 50 for arena in executable.program.arenas):
            with pytest.raises(DeviceError, match=r"cpu:0 \(host\): allocating .* failed: out of host memory"):
                executable.run("huge", x)
        np.testing.assert_allclose(executable.run("small", x), np.tanh(x), rtol=1e-6)


def test_limits() -> None:
    text = HEAD + layers("main", 64, 4)
    planned = build(text).report["memory"]["opencl:0"]["planned"]
    build(text, CompileOptions(memory_limits={"opencl:0": planned}))
    with pytest.raises(PlanError) as caught:
        devscope.compile(text, memory_limits={"opencl:0": planned - 1}, cache=False)
    message = str(caught.value)
    assert f"'opencl:0' needs 48.0 KiB ({planned} bytes) of memory" in message
    assert message.count("live then: 64x64xf32, 16.0 KiB (16384 bytes)") == 3
    with pytest.raises(PlanError, match="'cpu:0' needs"):
        build(layers("main", 64, 4, CPU), CompileOptions(memory_limits={"cpu:0": 1}))


def test_bad_limits() -> None:
    text = HEAD + layers("main", 8, 1)
    for limit in ("much", "-1", "1 XiB", "9" * 400, -5, True):
        with pytest.raises(OptionError, match="is not an amount of memory"):
            devscope.compile(text, memory_limits={"opencl:0": limit})
    with pytest.raises(OptionError, match="the memory limits name 'opencl:7', which the program does not use"):
        devscope.compile(text, memory_limits={"opencl:7": "1GiB"}, cache=False)
    with pytest.raises(OptionError, match="'static' is not a way to get storage"):
        devscope.compile(text, storage="static")
