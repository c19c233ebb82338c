"""State that programs keep on a device from call to call: it does not pass through the host."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import devscope
from devscope.errors import ExecutionError, InputError, LoweringError, PlanError

T = "tensor<1024xf32>"
TEXT = f"""
func.func @main(%x: {T}, %where: index, %total: {T}, %count: {T}) -> ({T}, {T}, {T})
    attributes {{device.state = @main.at_first}} {{
  %c1024 = arith.constant 1024 : index
  %inside = arith.cmpi slt, %where, %c1024 : index
  %0 = arith.addf %x, %total {{device.scope = #device.scope<"opencl", 0 : i64, "", "">}} : {T}
  %1 = arith.addf %0, %0 {{device.scope = #device.scope<"opencl", 0 : i64, "", "">}} : {T}
  cf.assert %inside, "not inside"
  return %1, %0, %0 : {T}, {T}, {T}
}}
func.func @main.at_first() -> ({T}, {T}) {{
  %0 = arith.constant dense<2.0> : {T}
  %1 = arith.constant dense<3.0> : {T}
  return %0, %1 : {T}, {T}
}}
func.func @other(%x: {T}) -> {T} {{
  %0 = math.exp %x {{device.scope = #device.scope<"opencl", 0 : i64, "", "">}} : {T}
  return %0 : {T}
}}
"""
X = np.arange(1024, dtype=np.float32)


@pytest.fixture
def exe() -> Any:
    with devscope.compile(TEXT, cache=False) as executable:
        yield executable


def test_calls_find_what_earlier_ones_left(exe: Any) -> None:
    assert [spec.name for spec in exe.entry("main").inputs] == ["x", "where"]
    assert len(exe.entry("main").outputs) == 1
    total = np.full(1024, 2, np.float32)
    for number in range(4):
        total = total + X
        np.testing.assert_array_equal(exe(X, 0), 2 * total)
        if number == 1:
            exe.run("other", X)
    state = exe.state()
    assert list(state) == ["total", "count"]
    np.testing.assert_array_equal(state["total"], total)
    np.testing.assert_array_equal(state["count"], total)
    exe.reset()
    np.testing.assert_array_equal(exe.state()["count"], np.full(1024, 3, np.float32))
    np.testing.assert_array_equal(exe(X, 0), 2 * (X + 2))


def test_it_is_not_copied_to_the_host_or_from_it(exe: Any) -> None:
    for _ in range(3):
        exe(X, 0)
    exe.reset_counters()
    for _ in range(5):
        exe(X, 0)
    counters = exe.counters()
    for moved in (counters.h2d, counters.d2h):
        assert (moved.copies, moved.bytes) == (5, 5 * X.nbytes)
    assert not any(counters.driver_allocations.values())
    assert not any(counters.live.values())


def test_it_is_counted(exe: Any) -> None:
    memory = exe.memory()
    assert (memory["cpu:0"]["state"], memory["opencl:0"]["state"]) == (0, 2 * 2 * X.nbytes)
    on_host = devscope.compile(TEXT.replace("opencl", "cpu"), cache=False)
    assert on_host.memory()["cpu:0"]["state"] == 2 * 2 * X.nbytes
    with pytest.raises(PlanError, match="'opencl:0' needs") as raised:
        devscope.compile(TEXT, memory_limits={"opencl:0": 3 * X.nbytes}, cache=False)
    assert any("16.0 KiB (16384 bytes) of state" in note.text for note in raised.value.notes)


def test_a_call_that_fails_leaves_it_as_it_was(exe: Any) -> None:
    exe(X, 0)
    for _ in range(2):
        with pytest.raises(ExecutionError, match="not inside"):
            exe(X, 5000)
        with pytest.raises(InputError):
            exe(X[:3], 0)
    np.testing.assert_array_equal(exe.state()["total"], X + 2)
    np.testing.assert_array_equal(exe(X, 0), 2 * (2 * X + 2))


def test_a_file_has_what_it_is_at_first(exe: Any, tmp_path: Path) -> None:
    exe(X, 0)
    exe.save(tmp_path / "a.dsx")
    with devscope.load(tmp_path / "a.dsx") as loaded:
        np.testing.assert_array_equal(loaded.state()["total"], np.full(1024, 2, np.float32))
        np.testing.assert_array_equal(loaded(X, 0), 2 * (X + 2))


def test_threads_take_turns(exe: Any) -> None:
    ones = np.ones(1024, np.float32)

    def work() -> None:
        for _ in range(20):
            exe(ones, 0)
            exe.run("other", ones)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_array_equal(exe.state()["total"], np.full(1024, 62, np.float32))


def test_what_it_is_at_first_must_fit() -> None:
    wrong = TEXT.replace("device.state = @main.at_first", "device.state = @other")
    with pytest.raises(LoweringError, match="says nothing of @main"):
        devscope.compile(wrong, cache=False)
