"""docs/planner.md is right: its table of rules is that of the code, its examples run, its tests exist.

After a change of the table: ``DEVSCOPE_UPDATE_DOCS=1 pytest test/passes/test_planner_doc.py``.
"""

from __future__ import annotations

import inspect
import os
import re
from pathlib import Path

import pytest

from devscope.dialects import host_operands
from devscope.passes.plan import compute_rules, constraints
from devscope.passes.plan.constraints import DIALECTS, TABLE, Row

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "planner.md"
START, END = "<!-- rules: written by test/passes/test_planner_doc.py -->", "<!-- end of rules -->"


def rule_and_operands(row: Row) -> tuple[object, tuple[int, ...]]:
    """A row's rule, and the operands that it has on the host."""
    captured = inspect.getclosurevars(row.rule).nonlocals
    if "host_operands" in captured:
        return captured["rule"], tuple(sorted(captured["host_operands"]))
    return row.rule, ()


def table() -> str:
    groups: dict[tuple[object, tuple[int, ...]], list[str]] = {}
    for name, row in TABLE.items():
        groups.setdefault(rule_and_operands(row), []).append(f"`{name}`")
    lines = ["| operations | rule | what it says |", "|---|---|---|"]
    for (rule, operands), names in groups.items():
        text = inspect.getdoc(rule)
        assert text is not None
        said = " ".join(text.split("\n\n")[0].split()).replace("``", "`").replace("|", "\\|")
        if operands:
            said = f"the same, operand {', '.join(map(str, operands))} on the host"
        lines.append(f"| {' '.join(names)} | `{rule.__name__}` | {said} |")  # pyright: ignore[reportAttributeAccessIssue]
    return "\n".join(lines)


def page() -> str:
    return PAGE.read_text(encoding="utf-8")


def test_the_table_of_rules_is_current() -> None:
    head, rest = page().split(START)
    old, tail = rest.split(END)
    new = f"\n\n{table()}\n\n"
    if os.environ.get("DEVSCOPE_UPDATE_DOCS"):
        PAGE.write_text(head + START + new + END + tail, encoding="utf-8")
        old = new
    assert old == new, "run this test with DEVSCOPE_UPDATE_DOCS=1"


def test_the_dialects_are_current() -> None:
    (sentence,) = re.findall(r"one of the\s+dialects (.*?) follow `compute`", page(), re.DOTALL)
    assert re.findall(r"`(\w+)`", sentence) == list(DIALECTS)
    assert all(row.rule is compute_rules.compute for row in DIALECTS.values())


def examples() -> list[tuple[str, str]]:
    return re.findall(r"```python\n(.*?)```\n+```text\n(.*?)```", page(), re.DOTALL)


@pytest.mark.parametrize("number", range(2))
def test_examples_run(number: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    # What plugins register is taken back.
    monkeypatch.setattr(constraints, "TABLE", dict(TABLE))
    for name in ("_QUERIES", "_SHAPES"):
        monkeypatch.setattr(host_operands, name, getattr(host_operands, name).copy())
    code, expected = examples()[number]
    exec(compile(code, str(PAGE), "exec"), {"__name__": "example"})
    assert capsys.readouterr().out == expected
    assert len(examples()) == 2


def test_the_tests_that_it_names_exist() -> None:
    folder = ROOT / "test" / "passes" / "plan"
    rows = [line for line in page().split("\n") if re.match(r"\| \d+ ", line)]
    assert [int(re.findall(r"\d+", row)[0]) for row in rows] == list(range(1, 22))
    for row in rows:
        for name, cases in re.findall(r"`([\w./]+\.(?:mlir|py))`(?:: ([\w, ]+))?", row.split(" | ")[-1]):
            text = (folder / name).read_text(encoding="utf-8")
            for case in filter(None, cases.split(", ")):
                assert case.strip(" |") in text, f"{case} in {name}"


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([\w./]+)\)", page()):
        assert (PAGE.parent / target).exists(), target


def test_verifier_and_planner_have_the_same_operands_on_the_host() -> None:
    """They share no code, so this is said twice."""
    queries = {name for name, row in TABLE.items() if row.rule is compute_rules.inspect}
    shapes = {name: operands for name, row in TABLE.items() if (operands := rule_and_operands(row)[1])}
    assert {name for name in TABLE if host_operands.is_query(name)} == queries
    assert {name: tuple(host_operands.host_operands(name)) for name in shapes} == shapes
    assert not [name for name in TABLE if host_operands.host_operands(name) and name not in shapes]
