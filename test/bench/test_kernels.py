"""``bench/kernels.py``: its programs are valid, its smallest run works, and its targets are judged as they say."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from torch_mlir.ir import Context, Module

import devscope

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

import _kernel_peer
import kernels
from _kernel_table import works


def test_programs_are_valid() -> None:
    with Context():
        for name, work in works(small=True).items():
            if work.group != "mlp":  # megabytes of constants, which first_result.py shares
                assert Module.parse(work.text()).operation.verify(), name


def test_small_run(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    rows = ["matmul 128, A", "conv depthwise", "mean pooling", "argmax", "layer norm"]
    options = ["--small", "--rounds", "2", "--seconds", "0.001", "--threads", "1", "--peers", "numpy"]
    command = [sys.executable, str(Path(kernels.__file__)), *options, "--json", str(file), "--rows", *rows]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    found = json.loads(file.read_text())["rows"]
    assert {row["name"].split()[0] for row in found} == {"matmul", "conv", "mean", "argmax", "layer"}
    for row in found:
        assert row["errors"] == {}
        assert row["figures"]["devscope"] > 0
        assert ("ratio" in row) == works(True)[row["name"]].numpy_is_peer
        assert ("bandwidth" in row) == (row["unit"] == "GB/s")
    assert (done.returncode == 0) == all(row["met"] for row in found)


def test_device_run(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    options = ["--small", "--rounds", "1", "--seconds", "0.001", "--peers", "numpy", "--device", "opencl:0"]
    command = [sys.executable, str(Path(kernels.__file__)), *options, "--json", str(file)]
    done = subprocess.run([*command, "--rows", "matmul 128, B"], capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    found = json.loads(file.read_text())["rows"]
    assert [row["name"].split()[0] for row in found] == ["matmul"]
    for row in found:
        assert row["errors"] == {}
        assert row["figures"]["device"] > 0
        assert row["to_host"] > 0
        assert row["met"] == (row["to_host"] >= 0.8 and row["ratio"] >= row["target"])


def test_the_loop_of_a_device_repeats_the_work() -> None:
    work = works(True)["argmax 256x256, axis 1"]
    arrays = work.inputs()
    program = devscope.compile(_kernel_peer.looped(work.text()), default="opencl:0")
    loop = _kernel_peer.Loop(program, arrays, "opencl:0")
    once, more = loop.launches(0), loop.launches(6)
    assert once > 0
    assert more == 7 * once
    assert (loop(2) == work.numpy(None, *arrays)()).all()


class OfFiveForCopies(_kernel_peer.Loop):
    """Takes a second for an iteration and five for copies."""

    def launches(self, more: int) -> int:
        return more

    def _time(self, more: int) -> float:
        return 5.0 + more


@pytest.mark.parametrize("bursts", [False, True])
def test_the_time_of_an_iteration_is_without_copies(bursts: bool) -> None:
    assert OfFiveForCopies(None, [], "opencl:0").best_times(0.0, bursts) == {"wall": 1.0}


def test_a_device_is_judged_by_host_code_and_by_peers_where_they_are_targets() -> None:
    table = works(True)
    found: dict[Any, Any] = {("device", 2): runs(1.0), ("devscope", 2): runs(0.9), ("numpy", 2): runs(0.9)}
    row = kernels.judge_device(table["softmax 256x256"], 2, found)
    assert (row["to_host"], row["ratio"], row["best"], row["met"]) == (0.9, 0.9, "numpy", True)
    assert not kernels.judge_device(table["matmul 128"], 2, found)["met"]
    found["numpy", 2] = runs(1.1)
    assert kernels.judge_device(table["matmul 128"], 2, found)["met"]
    found["devscope", 2] = runs(0.7)
    assert not kernels.judge_device(table["matmul 128"], 2, found)["met"]


def runs(*seconds: float) -> list[dict[str, float]]:
    return [{"wall": s, "cpu": s} for s in seconds]


@pytest.mark.parametrize(("ours", "met"), [((2.0, 2.0, 9.0), True), ((2.0, 5.0, 9.0), False)])
def test_ratio_is_to_the_best_peer_and_the_median_of_rounds(ours: tuple[float, ...], met: bool) -> None:
    work = works(True)["matmul 128"]
    found: dict[Any, Any] = {
        ("devscope", 1): runs(*ours),
        ("numpy", 1): runs(3.0, 3.0, 3.0),
        ("torch", 1): runs(4.0, 4.0, 1.0),
    }
    row = kernels.judge(work, 1, found)
    assert row["best"] == "numpy"
    assert row["ratio"] == 3.0 / ours[1]
    assert row["met"] == met


def test_a_missing_figure_is_a_missed_target() -> None:
    work = works(True)["matmul 128"]
    assert not kernels.judge(work, 1, {("numpy", 1): runs(1.0)})["met"]


def test_second_thread_and_bandwidth() -> None:
    table = works(True)
    found: dict[Any, Any] = {("devscope", 1): runs(1.8), ("devscope", 2): runs(1.0)}
    assert kernels.judge(table["matmul 128"], 2, found)["met"]
    found["devscope", 1] = runs(1.6)
    row = kernels.judge(table["matmul 128"], 2, found)
    assert row["speed_up"] == 1.6
    assert not row["met"]
    transpose = table["transpose 256x256"]
    copied = transpose.amount / (2 * kernels.COPIED)
    row = kernels.judge(transpose, 1, {("devscope", 1): runs(copied), ("copy", "numpy", 1): runs(0.5)})
    assert row["bandwidth"] == 0.5
    assert not row["met"]
