"""``device-canonicalize`` keeps random planned modules planned, and adds no copies."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp

from devscope.dialects.context import make_context
from devscope.dialects.device import DeviceCopyOp
from devscope.errors import PlanError
from devscope.passes.device_canonicalize import DeviceCanonicalizePass
from devscope.passes.device_plan import plan_module
from devscope.passes.device_verify import verify_module


def copies(module: ModuleOp) -> int:
    return sum(isinstance(op, DeviceCopyOp) for op in module.walk())


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 10**6))
def test_a_planned_module_stays_planned(
    write_program: Callable[..., str], parse_program: Callable[[str], ModuleOp], seed: int
) -> None:
    module = parse_program(write_program(seed, placed=0.3))
    try:
        plan_module(module)
    except PlanError:
        return
    before = copies(module)
    DeviceCanonicalizePass().apply(make_context(), module)
    module.verify()
    verify_module(module)
    assert copies(module) <= before
    # There is nothing left to do.
    text = str(module)
    DeviceCanonicalizePass().apply(make_context(), module)
    assert str(module) == text
    # What was folded is no news for the planner: the plan holds.
    plan_module(module)
    assert copies(module) <= before
