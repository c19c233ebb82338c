"""Runs trials that it is told of, line by line on standard input, and says what came of each.

It may die or hang: what it was told last is then the reason, and its folder has the files.
"""

from __future__ import annotations

import contextlib
import faulthandler
import importlib
import json
import os
import shutil
import sys
import warnings
from dataclasses import asdict
from pathlib import Path

import search_path  # noqa: F401
from outcome import Check, Outcome, from_error


def run_trial(part: str, seed: int, folder: Path) -> Outcome:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    check: Check = importlib.import_module(f"part_{part}").check
    try:
        return check(seed, folder)
    except Exception as error:  # of the fuzzer itself
        return from_error(error)


def main() -> None:
    warnings.simplefilter("ignore")
    # What programs print must not be mistaken for answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    faulthandler.enable()
    for line in sys.stdin:
        request = json.loads(line)
        outcome = run_trial(request["part"], request["seed"], Path(request["folder"]))
        with contextlib.suppress(BrokenPipeError):
            print(json.dumps(asdict(outcome)), file=answers, flush=True)


if __name__ == "__main__":
    main()
