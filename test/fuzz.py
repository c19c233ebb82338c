"""Runs all tests that draw random programs, with new seeds in every round, until one fails.

    make fuzz                until something fails, or ctrl-C
    make fuzz MINUTES=10     no new round after ten minutes
    make fuzz SEED=1703      one round, with this seed

A test is drawn from if it uses hypothesis or has the marker ``fuzz``. What failed is printed with the command that
repeats it, and with the line that makes a regression test of it.
"""

from __future__ import annotations

import os
import re
import secrets
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_FAILED = re.compile(r"^FAILED (\S+?)(?: - .*)?$", re.MULTILINE)
_EXAMPLE = re.compile(
    r"^E +(?:Failing test case|Falsifying example): \w+\(\n(.*?)^E +\)$", re.DOTALL | re.MULTILINE
)
_MARGIN = re.compile(r"^E +|  # or any other generated value", re.MULTILINE)


def main() -> int:
    minutes, seed = os.environ.get("MINUTES", ""), os.environ.get("SEED", "")
    end = time.monotonic() + float(minutes) * 60 if minutes else float("inf")
    rounds = 0
    try:
        while not rounds or (not seed and time.monotonic() < end):
            rounds += 1
            drawn = int(seed) if seed else secrets.randbits(32)
            print(f"round {rounds}: seed {drawn}", flush=True)
            output, status = _run(drawn)
            if status:
                print(output)
                _advise(drawn, output)
                return 1
    except KeyboardInterrupt:
        pass
    print(f"{rounds} rounds, nothing failed")
    return 0


def _run(seed: int) -> tuple[str, int]:
    variables = {"DEVSCOPE_TEST_SEED": str(seed), "DEVSCOPE_TEST_PROFILE": "fuzz"}
    marked = ["-m", "hypothesis or fuzz", "-n", "2", "--dist", "worksteal", f"--hypothesis-seed={seed}"]
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *marked, *sys.argv[1:]]
    process = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return process.stdout, process.returncode


def _advise(seed: int, output: str) -> None:
    tests = dict.fromkeys(_FAILED.findall(output))
    print("\nrepeat with:")
    for test in tests or ["test"]:
        print(
            f"  DEVSCOPE_TEST_PROFILE=fuzz DEVSCOPE_TEST_SEED={seed} {sys.executable} -m pytest"
            f" --hypothesis-seed={seed} '{test}'"
        )
    for match in _EXAMPLE.finditer(output):
        arguments = " ".join(_MARGIN.sub("", match[1]).split()).rstrip(",")
        print(f"paste above the test:\n  @example({arguments})")


if __name__ == "__main__":
    sys.exit(main())
