"""The cases of Collage's own tests (TVM, test_pass_collage_partition.py), in devscope's terms.

``relu`` is math.tanh here, ``byoc`` a backend that takes relu, add and concatenate; it merges. ``cpu`` is
generated code.
"""

from __future__ import annotations

import pytest
from partitioned import Claimer, Mock, chain, partitioned
from partitioned import registered_kinds as registered_kinds

from devscope.patterns import elementwise, op, wildcard

BYOC = Claimer(
    "byoc",
    [
        ("relu", op("math.tanh", wildcard()), None),
        ("add", elementwise("add", wildcard(), wildcard()), None),
        ("concatenate", op("tensor.concat", wildcard(), wildcard()), None),
    ],
)


def relu(result: str, operand: str) -> str:
    return f"  {result} = math.tanh {operand} : !t\n"


def absolute(result: str, operand: str) -> str:
    return f"  {result} = math.absf {operand} : !t\n"


def add(result: str, one: str, other: str) -> str:
    return f"  {result} = arith.addf {one}, {other} : !t\n"


def takers(
    text: str, byoc: float, cpu: float, depth: int = 1, backend_depth: int = 1, **options: object
) -> list[str]:
    """Who takes what: ``byoc: math.tanh math.tanh``, by the first operation."""
    costs = Mock({"byoc": byoc, "cpu": cpu})
    _, found = partitioned(
        text, [BYOC], strategy="search", costs=costs, depth=depth, backend_depth=backend_depth, **options
    )
    rows = sorted(found.taken, key=lambda row: row.called or "~")
    return [f"{row.by.partition('.')[0]}: {' '.join(o.partition('.')[2] for o in row.operations)}" for row in rows]


@pytest.mark.parametrize(("byoc", "cpu", "by"), [(2, 1, "cpu:0"), (1, 2, "byoc")])
def test_single_operation(byoc: float, cpu: float, by: str) -> None:
    text, _ = partitioned(
        chain(relu("%r", "%x")), [BYOC], strategy="search", costs=Mock({"byoc": byoc, "cpu": cpu})
    )
    assert ("call @f_byoc_relu" in text) == (by == "byoc")
    assert ('device.composite = "byoc.relu"' in text) == (by == "byoc")


@pytest.mark.parametrize("depth", [1, 3])
def test_diamond_valid_topology(depth: int) -> None:
    body = relu("%0", "%x") + absolute("%1", "%0") + relu("%2", "%1") + add("%r", "%1", "%2")
    rows = takers(chain(body), byoc=1, cpu=2, backend_depth=depth)
    assert sorted(rows) == ["byoc: tanh", "byoc: tanh addf", "cpu:0: absf"]


@pytest.mark.parametrize(
    ("depth", "expected"),
    [(1, ["byoc: tanh tanh tanh"]), (2, ["byoc: tanh", "cpu:0: tanh tanh"]), (3, ["cpu:0: tanh tanh tanh"])],
)
def test_depth_of_generated_code(depth: int, expected: list[str]) -> None:
    body = relu("%0", "%x") + relu("%1", "%0") + relu("%r", "%1")
    assert takers(chain(body), byoc=99, cpu=100, depth=depth) == expected


@pytest.mark.parametrize(
    ("depth", "expected"),
    [
        (1, ["cpu:0: tanh", "cpu:0: tanh", "cpu:0: tanh"]),
        (2, ["byoc: tanh tanh", "cpu:0: tanh"]),
        (3, ["byoc: tanh tanh tanh"]),
    ],
)
def test_depth_of_a_backend(depth: int, expected: list[str]) -> None:
    body = relu("%0", "%x") + relu("%1", "%0") + relu("%r", "%1")
    assert takers(chain(body), byoc=100, cpu=99, backend_depth=depth) == expected


@pytest.mark.parametrize(("byoc", "cpu", "depths"), [(99, 100, (2, 1)), (100, 99, (1, 2))])
def test_of_equal_costs_the_larger_is_first(byoc: float, cpu: float, depths: tuple[int, int]) -> None:
    """At depth 2 of the two tests above; Collage has the single one first, which costs the same."""
    body = relu("%0", "%x") + relu("%1", "%0") + relu("%r", "%1")
    costs = Mock({"byoc": byoc, "cpu": cpu})
    limits = {"depth": depths[0], "backend_depth": depths[1]}
    text, found = partitioned(chain(body), [BYOC], strategy="search", costs=costs, **limits)
    caller = text.partition("return")[0]
    assert ("call" in caller.splitlines()[-2]) == (depths == (2, 1))
    assert found.decisions[0].seconds == pytest.approx(min(byoc, cpu) + 1.9 * max(byoc, cpu))


def test_results_as_a_tuple() -> None:
    body = relu("%0", "%x") + relu("%1", "%0") + absolute("%2", "%x")
    text, _ = partitioned(
        chain(body, "%0, %1, %2", 3), [BYOC], strategy="search", costs=Mock({"byoc": 1, "cpu": 2})
    )
    assert "%0:2 = call @f_byoc_region(%arg0)" in text
    assert "math.absf %arg0" in text


def test_intermediate_tuple() -> None:
    """There it keeps the concatenation apart; here an operation takes several values by itself."""
    body = relu("%0", "%x") + relu("%1", "%0")
    body += "  %c = tensor.concat dim(0) %0, %1 : (!t, !t) -> tensor<16xf32>\n"
    body += "  %r = tensor.extract_slice %c[4] [8] [1] : tensor<16xf32> to !t\n"
    assert takers(chain(body), byoc=1, cpu=2, depth=3, backend_depth=5) == ["byoc: tanh tanh concat"]


def test_fusion_benefit() -> None:
    """Five operations of a backend that by themselves would all cost more there."""
    body = relu("%0", "%x") + relu("%1", "%0") + absolute("%2", "%x") + relu("%3", "%2") + add("%4", "%1", "%3")
    body += relu("%5", "%4") + absolute("%r", "%5")
    expected = ["byoc: tanh tanh tanh addf tanh", "cpu:0: absf", "cpu:0: absf"]
    assert takers(chain(body), byoc=6, cpu=5, backend_depth=5) == expected


def test_double_residual() -> None:
    """``abs`` stands between: what it needs and what needs it are no one region."""
    body = relu("%0", "%x") + absolute("%1", "%0") + add("%2", "%0", "%1") + add("%r", "%1", "%2")
    rows = takers(chain(body), byoc=1, cpu=2, depth=4, backend_depth=4)
    assert sorted(rows) == ["byoc: addf addf", "byoc: tanh", "cpu:0: absf"]


def test_pruning_heuristic() -> None:
    costs = Mock({"byoc": 1, "cpu": 2})
    body = relu("%0", "%x") + relu("%1", "%0") + add("%2", "%0", "%1") + add("%r", "%1", "%2")
    partitioned(chain(body), [BYOC], strategy="search", costs=costs, depth=4, backend_depth=4, prune=True)
    assert [(one.spec.name, len(one.nodes)) for one in costs.asked] == [("byoc", 4), ("cpu:0", 4)]
