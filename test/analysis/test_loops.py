"""How often the regions of affine and StableHLO control flow run."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from xdsl.dialects.builtin import ModuleOp

from devscope.analysis.loops import trip_count, trips

BODY = "({ ^bb0(%i: index): affine.yield })"


def affine_for(lower: str, upper: str, operands: str = "") -> str:
    types = ", ".join("index" for _ in operands.split(",") if operands)
    sizes = f"{len(operands.split(',')) if operands else 0}"
    return (
        f'"affine.for"({operands}) <{{lowerBoundMap = affine_map<{lower}>, upperBoundMap = affine_map<{upper}>,'
        f" step = 3 : index, operandSegmentSizes = array<i32: 0, {sizes}, 0>}}> {BODY} : ({types}) -> ()"
    )


@pytest.mark.parametrize(
    ("text", "times"),
    [
        (affine_for("() -> (2)", "() -> (12)"), 4.0),
        (affine_for("() -> (0)", "()[s0] -> (s0)", "%n"), 10.0),
        (affine_for("() -> (0)", "()[s0] -> (s0, 6)", "%n"), 10.0),
        (
            """"affine.parallel"() <{lowerBoundsMap = affine_map<() -> (0, 1)>,
              upperBoundsMap = affine_map<() -> (4, 9)>, steps = [1 : i64, 2 : i64], reductions = []}>
              ({ ^bb0(%i: index, %j: index): affine.yield }) : () -> ()""",
            16.0,
        ),
        ('"stablehlo.while"(%t) ({ ^bb0(%x: !t): }, { ^bb1(%x: !t): }) : (!t) -> !t', 10.0),
        ('"stablehlo.if"(%t) ({}, {}) : (!t) -> ()', 0.5),
        ('"stablehlo.case"(%t) ({}, {}, {}, {}) : (!t) -> ()', 0.25),
    ],
    ids=["for", "dynamic", "minimum", "parallel", "while", "if", "case"],
)
def test_trips(text: str, times: float, parse_program: Callable[[str], ModuleOp]) -> None:
    module = parse_program(f"func.func @main(%n: index, %t: !t) {{ {text} func.return }}")
    (op,) = (op for op in module.walk() if op.regions and op.parent_op() is not None and op.name != "func.func")
    assert trips(op, 10) == times


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (affine_for("() -> (2)", "() -> (12)"), 4),
        (affine_for("() -> (0)", "()[s0] -> (s0)", "%n"), None),
        ('"stablehlo.while"(%t) ({ ^bb0(%x: !t): }, { ^bb1(%x: !t): }) : (!t) -> !t', None),
        ('"stablehlo.if"(%t) ({}, {}) : (!t) -> ()', None),
    ],
)
def test_only_constant_bounds_have_a_trip_count(
    text: str, count: int | None, parse_program: Callable[[str], ModuleOp]
) -> None:
    module = parse_program(f"func.func @main(%n: index, %t: !t) {{ {text} func.return }}")
    (op,) = (op for op in module.walk() if op.regions and op.parent_op() is not None and op.name != "func.func")
    assert trip_count(op) == count
