"""docs/planner.md is right: its table of rules is that of the code, its tests exist.

After a change of the table: ``DEVSCOPE_UPDATE_DOCS=1 pytest test/passes/test_planner_doc.py``.
"""

from __future__ import annotations

import inspect
import os
import re
from functools import partial
from pathlib import Path
from typing import Any

from devscope.dialects.op_facts import DIALECTS, OPERATIONS
from devscope.passes.device_plan.rules import RULES, Row, compute, row_of

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "planner.md"
START, END = "<!-- rules: written by test/passes/test_planner_doc.py -->", "<!-- end of rules -->"


def rule_and_operands(row: Row) -> tuple[Any, tuple[int, ...]]:
    """A row's rule, and the operands that it has on the host."""
    if isinstance(row.rule, partial):
        return row.rule.func, tuple(sorted(row.rule.keywords["host_operands"]))
    return row.rule, ()


def table() -> str:
    """Operations by rule, less those that follow the rule of their dialect."""
    groups: dict[tuple[Any, tuple[int, ...]], list[str]] = {}
    for name in dict.fromkeys((*OPERATIONS, *RULES)):
        row = row_of(name)
        assert row is not None
        if rule_and_operands(row) != (compute.compute, ()):
            groups.setdefault(rule_and_operands(row), []).append(f"`{name}`")
    lines = ["| operations | rule | what it says |", "|---|---|---|"]
    for (rule, operands), names in sorted(groups.items(), key=lambda group: group[0][0] is compute.compute):
        text = inspect.getdoc(rule)
        assert text is not None
        said = " ".join(text.split("\n\n")[0].split()).replace("``", "`").replace("|", "\\|")
        if operands:
            said = f"the same, operand {', '.join(map(str, operands))} on the host"
        lines.append(f"| {' '.join(names)} | `{rule.__name__}` | {said} |")
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
    rows = {name: row_of(f"{name}.anything") for name in DIALECTS}
    rules = {name: row.rule for name, row in rows.items() if row is not None}
    assert rules == {**dict.fromkeys(DIALECTS, compute.compute), "vector": compute.registers}


def test_the_tests_that_it_names_exist() -> None:
    folder = ROOT / "test" / "passes" / "device_plan"
    rows = [line for line in page().split("\n") if re.match(r"\| \d+ ", line)]
    assert [int(re.findall(r"\d+", row)[0]) for row in rows] == list(range(1, 22))
    for row in rows:
        for name, cases in re.findall(r"`([\w./]+\.(?:mlir|py))`(?:: ([\w, ]+))?", row.split(" | ")[-1]):
            text = (folder / name).read_text(encoding="utf-8")
            for case in filter(None, cases.split(", ")):
                assert case.strip(" |") in text, f"{case} in {name}"
