"""Every function of ``math`` is as accurate as docs/accuracy.md says, where ``bench/accuracy.py`` tries it."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from torch_mlir.dialects import math as dialect

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

import accuracy

import devscope

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "accuracy.md"


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("target", "type_"), accuracy.COLUMNS)
def test_errors_and_special_values(target: str, type_: str) -> None:
    for name, found in accuracy.accuracies(target, type_, points=200).items():
        assert found.wrong == [], name
        assert found.ulp <= accuracy.limit_of(name), found.worst


def test_every_operation_is_tried() -> None:
    """Integers are tried in test/e2e/test_integers.py."""
    classes = [getattr(dialect, name) for name in dir(dialect) if name.endswith("Op")]
    names = {class_.OPERATION_NAME.removeprefix("math.") for class_ in classes}
    tried = {name.partition(".")[0] for name in (*accuracy.RESULTS, *accuracy.PREDICATES)}
    assert names - tried == {"absi", "ctlz", "ctpop", "cttz", "ipowi"}


def test_the_table_has_every_function() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    for name in (*accuracy.RESULTS, *accuracy.PREDICATES):
        assert f"| {name} |" in text


def test_vectors_on_the_host() -> None:
    names = ("expm1", "log1p", "tanh")
    body = "\n".join(
        f"%{name} = math.{name} %v : vector<2xf32>\n%r{name} = vector.extract %{name}[1] : f32 from vector<2xf32>"
        for name in names
    )
    text = f"""
        func.func @main(%x: f32, %y: f32) -> (f32, f32, f32) {{
          %v = vector.from_elements %x, %y : vector<2xf32>
          {body}
          return %rexpm1, %rlog1p, %rtanh : f32, f32, f32
        }}
    """
    y = np.float32(1e-9)
    assert devscope.run(text, np.float32(1), y) == (y, y, y)
