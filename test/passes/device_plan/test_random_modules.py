"""Random modules: what plans, verifies, plans again to the same bytes, and means what it meant."""

from __future__ import annotations

import os
import random
import re

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st
from interpreter import Interpreter
from module_text import generic, parse
from random_modules import Generator
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp

from devscope.analysis.function_values import has_function_values
from devscope.analysis.manager import AnalysisManager
from devscope.analysis.symbols import Symbols
from devscope.dialects.device import ScopeAttr
from devscope.errors import PlanError
from devscope.passes.device_defunctionalize import DeviceDefunctionalizePass
from devscope.passes.device_plan import PlanOptions, plan_module
from devscope.passes.device_verify import verify_module

SEED = int(os.environ["DEVSCOPE_TEST_SEED"])  # set in test/conftest.py
EXAMPLES = int(os.environ.get("DEVSCOPE_TEST_PROGRAMS") or 12)
# No shrinking: modules are far from the choices that make them, so that it takes long and gains little.
profile = settings(
    max_examples=EXAMPLES,
    deadline=None,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=list(HealthCheck),
)
annotations_ = st.sampled_from((0.0, 0.2, 0.5))
defaults = st.sampled_from(("cpu:0", "opencl:0"))
treatments = st.sampled_from(("open", "host"))


def locate(module: ModuleOp) -> None:
    """Give every operation a position."""
    for line, op in enumerate(module.walk(), 1):
        op.location = FileLineColLoc(StringAttr("random.mlir"), IntAttr(line), IntAttr(1))


@profile
@given(st.randoms(use_true_random=False), annotations_, defaults, treatments)
def test_plans_or_explains(plan, rng, annotations: float, default: str, arguments: str) -> None:
    """`plan` also checks that the outcome verifies, prints and parses, and plans again to the same bytes."""
    text = Generator(rng, annotations).module()
    note(text)
    error = None
    try:
        planned = plan(text, default, arguments)
    except PlanError as raised:
        error = raised
    if error is not None:
        # Only contradictory demands are errors, and both are shown.
        assert re.search(r"must be on \S+ and on \S+", error.message), error
        assert sum("because" in str(note) for note in error.notes) >= 2
        located = parse(text)
        locate(located)
        with pytest.raises(PlanError) as caught:
            plan_module(located, PlanOptions(ScopeAttr.parse_text(default), arguments=arguments))
        assert caught.value.location is not None
        return
    pairs = {(copy.operation.operands[0], copy.dst) for copy in planned.plan.copies}
    assert len(pairs) == len(planned.plan.copies) == len(planned.copies())
    assert all(copy.required_by for copy in planned.plan.copies)
    assert all(placement.reason for placement in planned.plan.placements)
    before = Interpreter(parse(text), 1)
    wanted = before.run("main")
    for _ in range(2):
        after = Interpreter(planned.module, 1)
        for left, right in zip(wanted, after.run("main"), strict=True):
            np.testing.assert_array_equal(left, right)
        assert before.calls == after.calls
        # Once more without function values.
        DeviceDefunctionalizePass().run(AnalysisManager(planned.module))
        planned.module.verify()
        verify_module(planned.module)
        assert not has_function_values(Symbols(planned.module))


def outcome(text: str, default: str, arguments: str) -> dict[str, str]:
    """The functions of the planned module by name; what is wrong with it when it cannot be planned."""
    module = parse(text)
    try:
        plan_module(module, PlanOptions(ScopeAttr.parse_text(default), arguments=arguments))
    except PlanError as error:
        return {"error": re.sub(r"\W.*", "", error.message)}
    return {op.sym_name.data: generic(op) for op in module.ops if isinstance(op, FuncOp)}


NEW_NAMES = {"external": "zero", "apply": "f9", "u0": "z0", "u1": "a1", "f0": "y1", "f1": "y0", "main": "entry"}
"""Some come after where they were before, some the other way round."""


def rename(text: str, names: dict[str, str]) -> str:
    """``text`` with other names of functions, and of the values that are called %v in it or %w."""
    text = re.sub(r"%([vw])(?=\d)", lambda match: "%w" if match[1] == "v" else "%v", text)
    pattern = rf"(?<=[@\"])({'|'.join(names)})(?=[^a-z0-9])"
    return re.sub(pattern, lambda match: names[match[1]], text)


@profile
@given(st.randoms(use_true_random=False), annotations_, defaults, treatments)
@pytest.mark.long
def test_order_and_names_do_not_matter(rng, annotations: float, default: str, arguments: str) -> None:
    functions = Generator(rng, annotations).functions()
    expected = outcome("\n".join(functions), default, arguments)
    rng.shuffle(functions)
    shuffled = "\n".join(functions)
    assert outcome(shuffled, default, arguments) == expected
    back = {new: old for old, new in NEW_NAMES.items()}
    renamed = outcome(rename(shuffled, NEW_NAMES), default, arguments)
    assert {rename(f"@{name}:", back)[1:-1]: rename(text, back) for name, text in renamed.items()} == expected


@pytest.mark.fuzz
@pytest.mark.parametrize("arguments", ["open", "host"])
@pytest.mark.parametrize("seed", range(SEED, SEED + 8))
def test_without_annotations_nothing_is_copied(plan, seed: int, arguments: str) -> None:
    text = Generator(random.Random(seed), 0.0).module()
    assert plan(text, arguments=arguments).copies() == []
