"""Tables of a target: which schedule an operation gets."""

from __future__ import annotations

import pytest

from devscope.lowering import mlir_util
from devscope.lowering.interop.session import Session
from devscope.lowering.pipelines import pipeline
from devscope.lowering.target import GridSchedule, KernelTarget, Rule, choose, find_target, target_names

RULES = (
    Rule("half", ["linalg.exp"], element="f16"),
    Rule("static", ["linalg.exp"], static=True),
    Rule("wide", ["linalg.exp"], options={"wide": True}),
    Rule("any"),
)


@pytest.mark.parametrize(
    ("type_", "options", "expected"),
    [
        ("tensor<4xf16>", {}, "half"),
        ("tensor<?xf16>", {}, "half"),
        ("tensor<4xf32>", {"wide": True}, "static"),
        ("tensor<?xf32>", {"wide": True}, "wide"),
        ("tensor<?xf32>", {"wide": False}, "any"),
    ],
)
def test_the_first_rule_that_holds(type_: str, options: dict[str, bool], expected: str) -> None:
    module = Session().parse(
        f"func.func @f(%x: {type_}) -> {type_} {{\n"
        f"  %0 = linalg.exp ins(%x : {type_}) outs(%x : {type_}) -> {type_}\n  return %0 : {type_}\n}}"
    )
    op = next(op for op in mlir_util.walk(module.operation) if op.name == "linalg.exp")
    assert choose(RULES, op, options) == expected
    assert choose(RULES[:3], module.operation, options) is None


def test_the_targets_that_come_with_devscope() -> None:
    assert {"cpu", "cuda", "opencl"} <= set(target_names())
    assert find_target("tpu") is None
    opencl = find_target("opencl")
    assert isinstance(opencl, KernelTarget)
    assert opencl.name == opencl.kind.device_type == "opencl"
    assert GridSchedule().with_options({"workgroup": 32}).tiles([None]) == [32]


def test_pipelines_are_text_with_comments_and_values() -> None:
    text = pipeline("gpu/map_to_grid", tiles="4,64")
    assert "parallel-loop-tile-sizes=4,64 " in text
    assert "//" not in text
