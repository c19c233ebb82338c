"""All node tests of onnx on cpu:0 and opencl:0: ``run.py [--only SUBSTRING] [--jobs N] [--write] [TARGET...]``.

A target may also be ``mixed``: what computes is on both in turn.
Tests run in processes apart, so that one that ends badly is counted, too. ``--only @FILE``: names in a file.
``--write`` writes ``docs/conformance/onnx.md`` and the list of what is right.
"""

from __future__ import annotations

import argparse
import collections
import os
import select
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import node_tests
import report

TARGETS = ("cpu:0", "opencl:0")
_SECONDS = 120


def forked(names: list[str], target: str, jobs: int, log: Any = None) -> dict[str, str]:
    """The outcome of every test."""
    with ThreadPoolExecutor(jobs) as pool:
        parts = pool.map(lambda part: _survived(part, target, log), [names[k::jobs] for k in range(jobs)])
        return dict(sorted(item for part in parts for item in part.items()))


def _survived(names: list[str], target: str, log: Any) -> dict[str, str]:
    """Child processes, one after the other: the next goes on behind the test that ended the last."""
    found: dict[str, str] = {}
    left = names
    while left:
        status = _child(left, target, found, log)
        left = [name for name in names if name not in found]
        if left and status != _RENEW:
            found[left.pop(0)] = f"crash ends with status {status}" if status else f"crash takes {_SECONDS} s"
    return found


_RENEW = 77 << 8
_MOST = 150
"""Tests per process: programs and their kernels stay in memory."""


def _child(names: list[str], target: str, found: dict[str, str], log: Any) -> int:
    """Run tests in a process until it ends; returns its status."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        try:
            for name in names[:_MOST]:
                text = node_tests.outcome(node_tests.cases()[name], target)
                os.write(writer, f"{name}\t{text}\n".encode())
        finally:
            os._exit(77)
    os.close(writer)
    kept = b""
    with os.fdopen(reader, "rb", buffering=0) as pipe:
        while select.select([pipe], [], [], _SECONDS)[0]:
            data = pipe.read(1 << 16)
            if not data:
                return os.waitpid(child, 0)[1]
            *lines, kept = (kept + data).split(b"\n")
            for name, text in (line.decode(errors="replace").split("\t", 1) for line in lines):
                found[name] = text
                if log is not None:
                    log.write(f"{target}\t{name}\t{text}\n")
                    log.flush()
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return 0


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("targets", nargs="*", default=TARGETS)
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--log", help="what is done is kept in this file, and not done again")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    names = [name for name in node_tests.cases() if given.only in name]
    if given.only.startswith("@"):
        names = Path(given.only[1:]).read_text().split()
    preload()
    known: dict[str, dict[str, str]] = collections.defaultdict(dict)
    log = None
    if given.log:
        log = open(given.log, "a+")  # noqa: SIM115
        log.seek(0)
        for target, name, text in (line.rstrip("\n").split("\t", 2) for line in log):
            known[target][name] = text
    table: dict[str, dict[str, str]] = {}
    for target in given.targets:
        start = time.monotonic()
        left = [name for name in names if name not in known[target]]
        table[target] = found = dict(sorted({**known[target], **forked(left, target, given.jobs, log)}.items()))
        counts = collections.Counter(text.partition(" ")[0] or "right" for text in found.values())
        for name, text in found.items():
            if text and (len(names) < 200 or not text.startswith("refused")):
                print(f"  {name}: {text}")
        print(f"{target}: {dict(counts)} of {len(found)}, {time.monotonic() - start:.0f} s", flush=True)
    if given.write:
        report.write(table)
    elif gone := report.lost(table):
        sys.exit("\n".join(["no longer right:", *gone]))


def preload() -> None:
    """What children need, loaded once."""
    import onnx.reference

    import devscope
    import devscope.pipeline
    import devscope.runtime.executable

    assert onnx.reference is not None
    assert devscope is not None


if __name__ == "__main__":
    main()
