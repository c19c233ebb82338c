"""Every example runs, agrees with numpy, and says so with its exit status."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*/run.py"))


def run(script: Path, *, cache: Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """The example in a process of its own, started away from the repository, with nothing compiled before."""
    environment = {**os.environ, "DEVSCOPE_CACHE_DIR": str(cache)}
    return subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=False, cwd=cwd, env=environment
    )


def test_there_are_examples() -> None:
    assert {script.parent.name for script in SCRIPTS} >= {"convnet", "digits", "loop", "two_functions"}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.parent.name)
def test_example(script: Path, tmp_path: Path) -> None:
    done = run(script, cache=tmp_path / "cache", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "max relative error" in done.stdout
    assert done.stderr == ""
    if script.parent.name == "digits":  # a layer is one kernel: with its fill, and with what follows the product
        assert "kernels launched: 2 on opencl:0" in done.stdout


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["convnet", "loop", "two_functions"])
def test_disagreement_is_an_error(name: str, tmp_path: Path) -> None:
    """A model that computes something else: status 1."""
    folder = tmp_path / name
    folder.mkdir()
    (folder / "run.py").write_text((EXAMPLES / name / "run.py").read_text())
    model = (EXAMPLES / name / "model.mlir").read_text()
    wrong = model.replace("arith.addf", "arith.subf").replace("math.tanh", "math.sin")
    assert wrong != model
    (folder / "model.mlir").write_text(wrong)
    done = run(folder / "run.py", cache=tmp_path / "cache", cwd=tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_the_list_names_every_example() -> None:
    text = (EXAMPLES / "README.md").read_text()
    missing = [script.parent.name for script in SCRIPTS if f"examples/{script.parent.name}/run.py" not in text]
    assert not missing
