"""The example of a vendor's package: a device with memory of its own, and its conformance."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import devscope
from devscope.backend_check import check_backend
from devscope.cli.main import main
from devscope.errors import DeviceError, LoweringError
from devscope.runtime.plugins import register_runtime

EXAMPLE = Path(__file__).parents[2] / "examples/backends/vanilla"
sys.path.append(str(EXAMPLE))

from installed import offer  # noqa: E402
from vanilla.backend import Vanilla  # noqa: E402
from vanilla.runtime import Accelerator, VanillaRuntime  # noqa: E402


@pytest.fixture(scope="module", autouse=True)
def registered(registries: None) -> None:  # pyright: ignore[reportUnusedParameter]
    devscope.register_backend(Vanilla)
    register_runtime(VanillaRuntime)


TWO = """
func.func @main(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %z = arith.constant dense<0.0> : tensor<4x4xf32>
  %w = arith.constant dense<[[1.,2.,3.,4.],[1.,2.,3.,5.],[1.,2.,3.,6.],[7.,2.,3.,5.]]> : tensor<4x4xf32>
  %r = linalg.matmul ins(%a, %b : tensor<4x4xf32>, tensor<4x4xf32>) outs(%z : tensor<4x4xf32>) -> tensor<4x4xf32>
  %s = linalg.matmul ins(%r, %w : tensor<4x4xf32>, tensor<4x4xf32>) outs(%z : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %s : tensor<4x4xf32>
}
"""


@pytest.mark.long
def test_conformance(tmp_path: Path) -> None:
    offer(EXAMPLE, tmp_path)
    outcomes = list(check_backend("vanilla"))
    assert [outcome for outcome in outcomes if outcome.problem] == []
    assert len(outcomes) > 20


def test_data_stays_on_the_device() -> None:
    executable = devscope.compile(TWO, backends=["vanilla"], cache=False)
    a = np.arange(16, dtype=np.float32).reshape(4, 4)
    for _ in range(2):
        executable(a, a)
    counters = executable.counters()
    assert counters.launches["vanilla:0"] == 4
    assert (counters.h2d.copies, counters.d2h.copies) == (2 * 2 + 1, 2)  # the constant goes there once


def test_a_device_error_has_words(monkeypatch: pytest.MonkeyPatch) -> None:
    executable = devscope.compile(TWO, backends=["vanilla"], cache=False)
    monkeypatch.setattr(Accelerator, "capacity", 0)
    a = np.zeros((4, 4), np.float32)
    with pytest.raises(DeviceError, match=r"vanilla:0 \(Vanilla.*\): allocating 64 bytes failed: out of memory"):
        executable(a, a)
    monkeypatch.undo()
    np.testing.assert_array_equal(executable(a, a), a)


def test_other_code_on_its_device_is_refused() -> None:
    scope = '#device.scope<"vanilla", 0 : i64, "", "">'
    text = f"""func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
      %0 = math.exp %x {{device.scope = {scope}}} : tensor<4xf32>
      return %0 : tensor<4xf32>
    }}"""
    with pytest.raises(
        LoweringError, match=r"'math\.exp' is on vanilla:0, but backend 'vanilla' did not claim it"
    ):
        devscope.compile(text, backends=["vanilla"], cache=False)


def test_a_predicate_sees_the_options() -> None:
    assert not devscope.compile(TWO, backends=["vanilla:bank=3"], cache=False).program.devices


@pytest.mark.long
def test_profile(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What it takes is timed on its device, copies aside; and not again."""
    costs = tmp_path / "costs.json"
    command = ["profile", str(EXAMPLE / "model.mlir"), "-o", str(costs), "--backend", "vanilla"]
    for measured in (13, 0):
        assert main(command) == 0
        printed = capsys.readouterr()
        assert f"13 candidates, {measured} of them measured now" in printed.out
        assert "not timed" not in printed.err
    rows = json.loads(costs.read_text())["cost"]
    timed = {row["pattern"]: row["seconds"] for row in rows if row["where"] == "vanilla"}
    assert timed.keys() == {"vanilla.matmul", "vanilla.dense"}
    assert all(seconds > 0 for seconds in timed.values())
