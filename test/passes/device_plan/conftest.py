"""Fixtures of the planner's tests."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp

sys.path.insert(0, str(Path(__file__).parent))

from module_text import parse
from planned import Planned, plan


@pytest.fixture(name="plan")
def plan_fixture() -> Callable[..., Planned]:
    return plan


@pytest.fixture(name="parse")
def parse_fixture() -> Callable[[str], ModuleOp]:
    return parse
