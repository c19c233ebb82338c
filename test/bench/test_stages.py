"""The scripts of ``bench/`` name functions of devscope as text, which no import checks."""

from __future__ import annotations

import importlib
import operator
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

from _stages import STAGES


@pytest.mark.parametrize(("stage", "module", "path"), STAGES)
def test_stages_are_there(stage: str, module: str, path: str) -> None:
    assert callable(operator.attrgetter(path)(importlib.import_module(module))), stage
