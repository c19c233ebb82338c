"""What is said of a partition: who took what, at which cost, what others would need, and why others did not."""

from __future__ import annotations

import json

import pytest
from partitioned import Claimer, Mock, chain, partitioned
from partitioned import registered_kinds as registered_kinds

from devscope.cli.partition_tables import partition_text
from devscope.passes.device_partition import Partition
from devscope.patterns import op, wildcard

BYOC = Claimer(
    "byoc",
    [
        ("tanh", op("math.tanh", wildcard()), None),
        ("abs", op("math.absf", wildcard()), lambda match: "it is too short"),
        ("exps", op("math.exp", op("math.absf", op("math.exp", wildcard()))), None),
    ],
    merge=False,
)
NEAR = "'math.tanh' stands where 'math.exp' should be"
BODY = "  %0 = math.tanh %x : !t\n  %1 = math.absf %0 : !t\n  %r = math.exp %1 : !t\n"


@pytest.fixture(scope="module", params=["eager", "search"])
def found(request: pytest.FixtureRequest) -> Partition:
    costs = Mock({"byoc": 1.0, "cpu": 3.0})
    options = {"strategy": "search", "costs": costs, "depth": 1} if request.param == "search" else {}
    return partitioned(chain(BODY), [BYOC], **options)[1]


def test_why_others_did_not_take_it(found: Partition) -> None:
    assert [one.text for one in found.refusals] == [
        "<input>:3:8: byoc.abs does not take 'math.absf': it is too short",
        f"<input>:4:8: byoc.exps nearly matches 'math.exp': <input>:2:8: {NEAR}",
    ]
    table = partition_text(found, "<input>", 200)
    assert "it is too short" in table
    assert f"nearly matches: 2:8: {NEAR}" in table
    assert {one.message for one in found.refusals} <= {remark.message for remark in found.remarks()}


def test_costs_and_what_others_would_need(found: Partition) -> None:
    (row,) = (row for row in found.taken if row.by == "byoc.tanh")
    if found.strategy == "eager":  # nobody asks for costs
        assert (row.seconds, row.others, found.offers()) == (None, (), [])
        return
    assert (row.seconds, row.others) == (1.0, (("cpu:0", 3.0),))
    (line,) = (line for line in partition_text(found, "<input>", 200).splitlines() if "byoc.tanh" in line)
    assert line.split()[-6:] == ["1", "s", "mock", "cpu:0", "3", "s"]
    assert any("cpu:0 would need 3 s" in remark.message for remark in found.remarks())
    offers = [(one["by"], one["operations"], one["seconds"], one["chosen"]) for one in found.offers()]
    assert sorted(offers) == [
        ("byoc.tanh", ["math.tanh"], 1.0, True),
        ("cpu:0", ["math.absf"], 3.0, True),
        ("cpu:0", ["math.exp"], 3.0, True),
        ("cpu:0", ["math.tanh"], 3.0, False),
    ]


def test_for_programs(found: Partition) -> None:
    plain = json.loads(json.dumps(found.to_json()))
    assert plain["strategy"] == found.strategy
    assert [row["reason"] for row in plain["refusals"]] == [one.reason for one in found.refusals]
    assert [row["by"] for row in plain["taken"]] == [row.by for row in found.taken]
