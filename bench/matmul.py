"""What the search for a partition makes of matmuls and models, beside numpy, torch and IREE; and beside devscope's
own ways: table order, generated code alone, a backend alone.

Candidates of `blas`, `onednn` and generated code are timed first (as `devscope profile` does), for each number of
threads by itself. Every side is a process of its own; they take turns, bursts of calls each (`_bursts.py`), and
the best call counts, by the clock. The ratio to a peer is the median of the ratios of rounds.

    python bench/matmul.py [--rows matmul MLP ...] [--threads 1 2] [--rounds 7] [--torch PYTHON] [--json FILE]

What is compared, and where torch may be: see `kernels.py`.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from _kernel_table import works
from _kernel_work import Work
from kernels import Side, amount, find_torch, ratios, sides_of, store

OURS = ("search", "eager", "generated", "blas", "onednn")
PEERS = ("numpy", "torch", "compile", "iree", "iree-dt")
ROWS = ("matmul 256", "matmul 512", "matmul 1024", "matmul 2048", "MLP", "convnet", "transformer block")
WITHIN = 1.05
"""What the search may take of the time of the best of devscope's other ways."""


def measured(
    work: Work, sides: Sequence[Side], rounds: int, seconds: float
) -> tuple[dict[Any, Any], dict[Any, str]]:
    """Per (kind, threads) the figures of all rounds; errors."""
    errors: dict[Any, str] = {}
    found: dict[Any, list[dict[str, float]]] = {}
    for side in sides:
        answer = side.ask(load=work.name)
        if "error" in answer:
            errors[side.kind, side.threads] = answer["error"]
    for number in range(rounds):
        for side in sides[number % len(sides) :] + sides[: number % len(sides)]:
            key = side.kind, side.threads
            if key in errors:
                continue
            answer = side.ask(burst=seconds)
            if "error" in answer:
                errors[key] = answer["error"]
            else:
                found.setdefault(key, []).append(answer)
    return {key: runs for key, runs in found.items() if len(runs) == rounds}, errors


def judged(work: Work, threads: int, found: dict[Any, Any]) -> dict[str, Any]:
    """A row: the best calls, the ratios to the best peer and to the best of our other ways."""
    figures = {
        kind: amount(work, median(run["wall"] for run in found[kind, threads]))
        for kind in (*OURS, *PEERS)
        if (kind, threads) in found
    }
    row: dict[str, Any] = {"name": work.name, "threads": threads, "unit": work.unit, "figures": figures}
    ours = found.get(("search", threads))
    if ours is None:
        return {**row, "met": False}
    to_peers = {kind: ratios(ours, found[kind, threads], "wall") for kind in PEERS if (kind, threads) in found}
    to_ours = {kind: ratios(ours, found[kind, threads], "wall") for kind in OURS[1:] if (kind, threads) in found}
    row["best"], row["ratio"] = min(to_peers.items(), key=lambda item: item[1], default=("", 0.0))
    row["next"], row["share"] = min(to_ours.items(), key=lambda item: item[1], default=("", 0.0))
    target = 1.2 if work.name.startswith("MLP") else 1.0
    return {**row, "met": row["ratio"] >= target and row["share"] * WITHIN >= 1}


def line(row: dict[str, Any]) -> str:
    digits = 3 if row["unit"] == "ms" else 1
    shown = [f"{row['figures'][kind]:.{digits}f}" if kind in row["figures"] else "" for kind in (*OURS, *PEERS)]
    ends = [
        f"{row.get('ratio', 0):.2f} ({row.get('best', '')})",
        f"{row.get('share', 0):.2f} ({row.get('next', '')})",
    ]
    cells = [row["name"], str(row["threads"]), row["unit"], *shown, *ends, "" if row["met"] else "missed"]
    return f"| {' | '.join(cells)} |"


def main() -> int:
    description, _, rest = (__doc__ or "").partition("\n")
    parser = argparse.ArgumentParser(
        description=description, epilog=rest, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", nargs="+", default=ROWS, help="beginnings of names of rows")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2], help="numbers of threads (default: 1 2)")
    parser.add_argument("--rounds", type=int, default=7, help="turns of every side (default: 7)")
    parser.add_argument("--seconds", type=float, default=0.2, help="of a turn (default: 0.2)")
    parser.add_argument("--torch", metavar="PYTHON", help="a Python that has torch 2.13 and numpy")
    parser.add_argument("--json", metavar="FILE", help="where to write all figures")
    options = parser.parse_args()
    torch = find_torch(options.torch)
    peers = [peer for peer in PEERS if torch or peer not in ("torch", "compile")]
    rows: list[dict[str, Any]] = []
    head = ["work", "threads", "unit", *OURS, *PEERS, "ratio to the best peer", "to our best other way", ""]
    print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}", flush=True)
    with tempfile.TemporaryDirectory() as directory:
        for number, work in enumerate(works().values()):
            # Not those of other layouts and types, whose names have a comma; the MLP's has one, too.
            is_other = "," in work.name and not work.name.startswith("MLP")
            if is_other or not any(work.name.startswith(row) for row in options.rows):
                continue
            store(directory, number, work)
            for threads in options.threads:
                pythons = {kind: torch or "" for kind in ("torch", "compile")}
                sides = [
                    Side(kind, threads, pythons.get(kind, sys.executable), directory, False)
                    for kind in (*OURS, *peers)
                ]
                found, errors = measured(work, sides_of(work, sides), options.rounds, options.seconds)
                for side in sides:
                    side.close()
                row = {
                    **judged(work, threads, found),
                    "errors": {kind: text for (kind, _), text in errors.items()},
                }
                rows.append(row)
                print(line(row), flush=True)
                for kind, text in row["errors"].items():
                    print(f"{work.name}, {kind}: {text.strip().splitlines()[0]}", file=sys.stderr)
            if options.json:
                Path(options.json).write_text(json.dumps(rows, indent=1) + "\n")
    missed = [row for row in rows if not row["met"]]
    print(
        f"{len(rows) - len(missed)} of {len(rows)} rows met: the best peer's speed (MLP: 1.2 times that), and "
        f"{WITHIN} of the time of devscope's best other way at most"
    )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
