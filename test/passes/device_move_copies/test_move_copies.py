"""Random programs with a copy in front of every use: they compute the same, and no path copies more."""

from __future__ import annotations

import os
import random

import numpy as np
from copy_counter import CopyCounter
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st
from module_text import generic, parse
from random_modules import Generator
from scattered_copies import scatter_copies
from xdsl.dialects import func, scf
from xdsl.dialects.builtin import Float32Type, IndexType, IntegerType, ModuleOp, TensorType, UnregisteredOp
from xdsl.ir import Block, Region

from devscope.dialects.device import DeviceCopyOp, ScopeAttr
from devscope.errors import PlanError
from devscope.passes.device_move_copies import move_copies
from devscope.passes.device_plan import PlanOptions, plan_module
from devscope.passes.device_verify import verify_module

EXAMPLES = int(os.environ.get("DEVSCOPE_TEST_PROGRAMS") or 24)
# No shrinking: modules are far from the choices that make them, so that it takes long and gains little.
profile = settings(
    max_examples=EXAMPLES,
    deadline=None,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=list(HealthCheck),
)


def planned(text: str, default: str, scattered: bool) -> ModuleOp | None:
    module = parse(text)
    try:
        plan_module(module, PlanOptions(ScopeAttr.parse_text(default), arguments="host"))
    except PlanError:
        return None
    if scattered:
        scatter_copies(module)
    module.verify()
    verify_module(module)
    return module


@profile
@given(
    rng=st.randoms(use_true_random=False),
    annotations=st.sampled_from((0.2, 0.5)),
    default=st.sampled_from(("cpu:0", "opencl:0")),
    scattered=st.booleans(),
)
def test_random_modules(rng: random.Random, annotations: float, default: str, scattered: bool) -> None:
    module = planned(Generator(rng, annotations).module(), default, scattered)
    if module is None:
        return
    note(str(module))
    before = [CopyCounter(module, seed) for seed in range(4)]
    results = [counter.run("main") for counter in before]
    move_copies(module)
    note(str(module))
    module.verify()
    verify_module(module)
    for counter, result in zip(before, results, strict=True):
        after = CopyCounter(module, before.index(counter))
        for left, right in zip(after.run("main"), result, strict=True):
            np.testing.assert_array_equal(left, right)
        assert after.copies <= counter.copies
    text = generic(module)
    assert not move_copies(module), "a second time there is nothing left to do"
    assert generic(module) == text


DEPTH = 1100
"""More than Python's stack would take."""


def test_deep_nests() -> None:
    """A copy in front of branches inside each other goes into the innermost; one in loops leaves them all."""
    for kind in ("if", "for"):
        entry = Block(arg_types=[IntegerType(1), IndexType(), TensorType(Float32Type(), [4])])
        flag, index, tensor = entry.args
        copy = DeviceCopyOp(tensor, ScopeAttr.get("cpu", 0), ScopeAttr.get("opencl", 0))
        use = UnregisteredOp.with_name("ml.use").create(operands=[copy.result])
        inner = Block([use, scf.YieldOp()], arg_types=[IndexType()] if kind == "for" else [])
        if kind == "for":
            inner.insert_op_before(copy, use)
        for _ in range(DEPTH):
            if kind == "if":
                inner = Block([scf.IfOp(flag, [], Region(inner)), scf.YieldOp()])
            else:
                inner = Block([scf.ForOp(index, index, index, [], inner), scf.YieldOp()], arg_types=[IndexType()])
        outermost = inner.first_op
        assert outermost is not None
        outermost.detach()
        entry.add_ops([copy, outermost] if kind == "if" else [outermost])
        entry.add_op(func.ReturnOp())
        module = ModuleOp([func.FuncOp("main", (entry.arg_types, []), Region(entry))])
        assert move_copies(module)
        assert not move_copies(module)
        assert copy.parent is (use.parent if kind == "if" else entry)
