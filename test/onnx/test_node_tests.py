"""A sample of the tests of single operators that are right; `make onnx` runs all."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("onnx")


def load(name: str) -> Any:
    """A module of this folder, which is no package."""
    spec = importlib.util.spec_from_file_location(f"onnx_{name}", Path(__file__).parent / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


node_tests, report, magika_files = load("node_tests"), load("report"), load("magika_files")
RIGHT = report.read_list()


@pytest.mark.parametrize("target", ["cpu:0", "opencl:0"])
def test_sample(target: str) -> None:
    names = [name for name, targets in RIGHT.items() if target in targets and "attention" not in name][::640]
    found = {name: node_tests.outcome(node_tests.cases()[name], target) for name in names}
    assert not {name: text for name, text in found.items() if text}


@pytest.mark.long
def test_all_are_lowered_or_refused() -> None:
    """Without compiling them: what is not refused becomes MLIR, and there is a reason in a line else."""
    from devscope.frontends.onnx.lower import lower
    from devscope.frontends.onnx.prepare import prepare
    from devscope.frontends.onnx.types import Refused

    reasons: dict[str, str] = {}
    for name, case in node_tests.cases().items():
        try:
            lower(prepare(case.model), {})
        except Refused as refused:
            reasons[name] = str(refused)
    assert all(text and "\n" not in text for text in reasons.values())
    assert len(node_tests.cases()) - len(reasons) >= 1700


def test_magika() -> None:
    same, most = magika_files.compare(10, "cpu:0")
    assert same == 10
    assert most < 1e-4
