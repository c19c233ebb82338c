"""Writes what `run.py` found: a table for people, and the list of tests that are right, which only grows."""

from __future__ import annotations

import collections
import re
import sys
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "docs" / "conformance"
LIST = FOLDER / "onnx_node_tests.txt"
TABLE = FOLDER / "onnx.md"

_HEAD = """# ONNX

`make onnx` runs all tests of single operators that come with the package onnx ({version}), on `cpu:0` and on
`opencl:0`, and compares with their results, within their tolerances. Every test that is right is in
[onnx_node_tests.txt](onnx_node_tests.txt), with the targets; `make onnx` fails when one of them is no longer.

| target | right | refused | wrong | crash | of |
|---|---|---|---|---|---|
{rows}

Models are compiled as they come, so that operands which say a shape or an axis are computed at run time, as far
as the model declares the shape of the result ([onnx.md](../onnx.md)). A target with fewer tests
than another was not run on all of them.

## Wrong

{wrong}

(What the tests `test_dft_inverse...` want is in f64, with the rounding errors of f32: an exact zero is not right.)

## Refused, with the reason

| tests | reason | such as |
|---|---|---|
{reasons}
"""


def read_list() -> dict[str, list[str]]:
    """The targets on which a test is right, by its name."""
    lines = LIST.read_text().splitlines() if LIST.exists() else []
    return {name: targets for name, *targets in map(str.split, lines)}


def lost(table: dict[str, dict[str, str]]) -> list[str]:
    """What was right and is not."""
    return [
        f"{name} on {target}: {table[target][name]}"
        for name, targets in read_list().items()
        for target in targets
        if table.get(target, {}).get(name)
    ]


def write(table: dict[str, dict[str, str]]) -> None:
    import onnx

    if gone := lost(table):
        sys.exit("\n".join(["no longer right:", *gone]))
    names = sorted({name for found in table.values() for name in found})
    right = {name: [target for target in table if table[target].get(name) == ""] for name in names}
    LIST.write_text("".join(f"{name} {' '.join(targets)}\n" for name, targets in right.items() if targets))
    rows: list[str] = []
    reasons: dict[str, list[str]] = collections.defaultdict(list)
    for target, found in table.items():
        counts = collections.Counter(text.partition(" ")[0] or "right" for text in found.values())
        kinds = " | ".join(str(counts[kind]) for kind in ("right", "refused", "wrong", "crash"))
        rows.append(f"| `{target}` | {kinds} | {len(found)} |")
        for name, text in found.items():
            if text.startswith("refused"):
                reasons[_reason(text)].append(name)
    lines = [
        f"| {len(set(found))} | {reason} | `{found[0]}` |"
        for reason, found in sorted(reasons.items(), key=lambda item: (-len(set(item[1])), item[0]))
    ]
    wrong = [
        f"* `{name}` on `{target}`: {text}"
        for target, found in table.items()
        for name, text in found.items()
        if text.startswith(("wrong", "crash"))
    ]
    parts = {"rows": rows, "reasons": lines, "wrong": wrong or ["None."]}
    texts = {name: "\n".join(part) for name, part in parts.items()}
    TABLE.write_text(_HEAD.format(version=onnx.__version__, **texts))


def _reason(text: str) -> str:
    reason = text.removeprefix("refused ").removeprefix("cannot import '<ONNX model>': ")
    reason = re.sub(r"(input|dimension|result|of) '[^']*'", r"\1 '...'", reason)
    return re.sub(r"\d+", "N", reason).replace("|", "\\|")[:160]
