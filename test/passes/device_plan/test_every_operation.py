"""Operations of every row of the facts, on values of every kind in any place: plans hold, and broken ones do not.

The context knows none of the operations, so that any operands and results will do.
"""

from __future__ import annotations

import os
import random

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.parser import Parser

from devscope.analysis.scope_analysis import ScopeAnalysis
from devscope.analysis.value_kinds import HOST, kind_of
from devscope.dialects.context import make_planning_context
from devscope.dialects.device import SCOPE_ATTR, DeviceCopyOp, ScopeAttr
from devscope.dialects.names import op_name
from devscope.dialects.op_facts import DIALECTS, OPERATIONS, facts, facts_of
from devscope.errors import PlanError, VerifyError
from devscope.passes.device_plan import PlanOptions, plan_module
from devscope.passes.device_verify import verify_module

SEED = int(os.environ["DEVSCOPE_TEST_SEED"])  # set in test/conftest.py
PLACES = ("cpu:0", "opencl:0", "opencl:1", "opencl:1@fast")
NAMES = [
    *(name for name in OPERATIONS if facts(name).control is None and not name.startswith(("device.", "cf."))),
    *(f"{dialect}.any" for dialect in DIALECTS),
    "foo.any",
]
TENSOR, BOX, MEMREF, VECTOR, SCALAR = "tensor<4xf32>", "!foo.box", "memref<4xf32>", "vector<4xf32>", "f32"
TYPES = (TENSOR, TENSOR, TENSOR, BOX, MEMREF, VECTOR, SCALAR)


def program(rng: random.Random, names: list[str]) -> str:
    """One operation per name, on what stands before, in functions and loops."""
    made = [(f"%a{index}", type_) for index, type_ in enumerate((*TYPES, TENSOR))]
    arguments = ", ".join(f"{value}: {type_}{_attributes(rng, type_, 0.3)}" for value, type_ in made)
    lines: list[str] = []
    for index, name in enumerate(names):
        kinds = (TENSOR, SCALAR) if rng.random() < 0.7 else TYPES
        usable = [pair for pair in made if pair[1] in kinds]
        operands = [rng.choice(usable) for _ in range(rng.choice((1, 2, 2, 3)))]
        if facts(name).rematerialised:
            operands = [pair for pair in operands if pair[1] == SCALAR]
        result = rng.choice(kinds)
        scope = _attributes(rng, TENSOR, 0.4)
        types = ", ".join(type_ for _, type_ in operands)
        values = ", ".join(value for value, _ in operands)
        lines.append(f'%{index} = "{name}"({values}){scope} : ({types}) -> {result}')
        made.append((f"%{index}", result))
        if result == TENSOR and rng.random() < 0.2:
            lines.append(
                f'%l{index} = "scf.for"(%n, %n, %n, %{index}) ({{\n^bb0(%i{index}: index, %c{index}: {TENSOR}):\n'
                f'%b{index} = "{rng.choice(NAMES)}"(%c{index}, {operands[0][0] if operands else "%a0"})'
                f"{_attributes(rng, TENSOR, 0.4)} : "
                f"({TENSOR}, {operands[0][1] if operands else TENSOR}) -> {TENSOR}\n"
                f'"scf.yield"(%b{index}) : ({TENSOR}) -> ()\n}}) : (index, index, index, {TENSOR}) -> {TENSOR}'
            )
            made.append((f"%l{index}", TENSOR))
    results = [rng.choice([pair for pair in made if pair[1] == TENSOR]) for _ in range(2)]
    returned = ", ".join(value for value, _ in results)
    body = "\n".join(lines)
    return (
        f"func.func @main({arguments}, %n: index) -> ({TENSOR}, {TENSOR}) {{\n{body}\n"
        f"func.return {returned} : {TENSOR}, {TENSOR}\n}}"
    )


def _attributes(rng: random.Random, type_: str, share: float) -> str:
    if type_ in (SCALAR, VECTOR) or rng.random() > share:
        return ""
    return f" {{device.scope = {ScopeAttr.parse_text(rng.choice(PLACES))}}}"


def parsed(text: str) -> ModuleOp:
    return Parser(make_planning_context(), text).parse_module()


def placed(module: ModuleOp) -> list[Operation]:
    """Operations that use data where they are, and say so."""
    analysis = ScopeAnalysis(module)
    (function,) = (op for op in module.ops if isinstance(op, FuncOp))
    return [
        op
        for op in function.body.walk()
        if analysis.executes(op)
        and not isinstance(op, DeviceCopyOp)
        and any(
            kind_of(value.type) != HOST
            for index, value in enumerate(op.operands)
            if index not in facts_of(op).host_operands
        )
    ]


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", range(SEED, SEED + 60))
def test_plans_hold_and_broken_ones_are_refused(seed: int) -> None:
    rng = random.Random(seed)
    text = program(rng, rng.sample(NAMES, 8))
    module = parsed(text)
    default = ScopeAttr.parse_text(rng.choice(PLACES))
    try:
        plan_module(module, PlanOptions(default=default, arguments=rng.choice(("open", "host"))))
    except PlanError:
        return  # What is no tensor is asked for in two places.
    verify_module(module)
    again = str(module)
    plan_module(module, PlanOptions(default=default))
    assert str(module) == again
    if not (candidates := placed(module)):
        return
    op = rng.choice(candidates)
    op.attributes[SCOPE_ATTR] = ScopeAttr.get("cuda", 3)
    with pytest.raises(VerifyError):
        verify_module(module)
    assert op_name(op)
