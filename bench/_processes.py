"""Fresh processes, taken in turn: what every benchmark here measures with."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Case:
    """One thing to measure: a command whose last line of output is a JSON object of figures."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict[str, str])


def environment() -> dict[str, str]:
    """Without the wish that Python writes no bytecode: all processes but the first would compile sources, too."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def script_case(name: str, script: str, *arguments: str, environment: Mapping[str, str] | None = None) -> Case:
    """A case that runs a Python script with this interpreter."""
    return Case(name, [sys.executable, script, *arguments], environment or {})


def run_case(case: Case) -> dict[str, Any]:
    """The figures of one run, with ``process``: seconds from its start to its end."""
    start = time.perf_counter()
    done = subprocess.run(
        list(case.command), env={**environment(), **case.environment}, capture_output=True, text=True, check=False
    )
    seconds = time.perf_counter() - start
    if done.returncode:
        raise SystemExit(f"{case.name} failed:\n{done.stderr}")
    return {**json.loads(done.stdout.splitlines()[-1]), "process": seconds}


def interleaved(cases: Sequence[Case], rounds: int) -> dict[str, list[dict[str, Any]]]:
    """``rounds`` runs of every case, one of each per round: what disturbs the machine then disturbs all alike."""
    runs: dict[str, list[dict[str, Any]]] = {case.name: [] for case in cases}
    for number in range(rounds):
        for case in cases:
            _progress(f"round {number + 1}/{rounds}: {case.name}")
            runs[case.name].append(run_case(case))
    _progress("")
    return runs


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r{text:<70}\r", end="", file=sys.stderr, flush=True)


def column(runs: Sequence[Mapping[str, Any]], key: str) -> list[float]:
    """One figure of all runs that have it."""
    return [float(run[key]) for run in runs if key in run]


def spread(values: Sequence[float], unit: str = "s", digits: int = 2) -> str:
    """Median and range, as text."""
    median = statistics.median(values)
    return f"{median:.{digits}f} {unit} ({min(values):.{digits}f}-{max(values):.{digits}f})"


def median_ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """The median of the ratios of runs of one round."""
    return statistics.median(a / b for a, b in zip(ours, theirs, strict=True))


def repository() -> Path:
    return Path(__file__).resolve().parents[1]


def build_directory(name: str) -> Path:
    """A directory for generated files, outside of what git tracks."""
    directory = repository() / "build" / "bench" / name
    directory.mkdir(parents=True, exist_ok=True)
    return directory
