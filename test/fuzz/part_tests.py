"""The tests that draw random programs, with a new seed: those that use hypothesis, or have the mark ``fuzz``."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

from outcome import Outcome

ROOT = Path(__file__).resolve().parent.parent.parent
_RANDOM = re.compile(r"^@given|^@profile|mark\.fuzz", re.MULTILINE)
_SUMMARY = re.compile(r"(\d+) passed")


@cache
def files() -> list[Path]:
    return sorted(p for p in (ROOT / "test").rglob("test_*.py") if _RANDOM.search(p.read_text()))


def check(seed: int, folder: Path) -> Outcome:
    """Of one file, whichever the seed says."""
    path = files()[seed % len(files())]
    variables = {"DEVSCOPE_TEST_SEED": str(seed), "DEVSCOPE_TEST_PROFILE": "fuzz", "DEVSCOPE_TEST_WHOLE": "1"}
    variables["DEVSCOPE_CACHE_DIR"] = str(folder / "cache")
    marked = ["-m", "hypothesis or fuzz", f"--hypothesis-seed={seed}", f"--basetemp={folder / 'tmp'}"]
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *marked, str(path.relative_to(ROOT))]
    process = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    (folder / "output").write_text(process.stdout + process.stderr)
    words = " ".join(f"{name}={value}" for name, value in variables.items() if "CACHE" not in name)
    (folder / "command").write_text(f"{words} {' '.join([*command[:5], *marked[:3], command[-1]])}\n")
    if process.returncode:
        failed = [line for line in process.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
        return Outcome("wrong", f"{path.name}: {failed[0] if failed else f'status {process.returncode}'}")
    passed = _SUMMARY.search(process.stdout)
    return Outcome("right", trials=int(passed[1]) if passed else 1)
