"""Hands trials to processes, counts what comes of them, and keeps what fails: see docs/testing.md."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import secrets
import selectors
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from outcome import BAD, GOOD, Outcome

FUZZ = Path(__file__).resolve().parent
ROOT = FUZZ.parent.parent

PARTS = {"programs": 120.0, "modules": 120.0, "files": 60.0, "faults": 120.0, "kills": 180.0, "tests": 1200.0}
"""The parts, and the seconds of the processor after which a trial counts as hanging."""
_WAITING = 5
"""How many times as long a trial may take that waits: for another process, or for the processor."""
KEPT = ROOT / "build" / "fuzz"
TRIALS_PER_PROCESS = 300
SHRUNK = 3
"""How many failures are made smaller; others are with test/fuzz/shrink.py."""
_REPORT = 30.0


@dataclass
class Score:
    """What came of the trials of one part."""

    counts: Counter[str] = field(default_factory=Counter[str])
    reasons: Counter[str] = field(default_factory=Counter[str])
    spent: float = 0.0


class Worker:
    """A process that runs trials, one at a time; a new one after it has died."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.log = folder, folder.with_name(f"{folder.name}.log")
        self.process: subprocess.Popen[str] | None = None
        self.part, self.seed, self.began, self.used, self.trials = "", 0, 0.0, 0.0, 0

    def start(self, part: str, seed: int) -> None:
        if self.process is None:
            environment = os.environ | {"DEVSCOPE_CACHE_DIR": "off", "PYTHONHASHSEED": "0"}
            with open(self.log, "w") as log:
                self.process = subprocess.Popen(
                    [sys.executable, str(FUZZ / "worker.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                    stderr=log, text=True, env=environment, cwd=ROOT, start_new_session=True)  # fmt: skip
        self.part, self.seed, self.began, self.used = part, seed, time.monotonic(), self._processor_time()
        self.trials += 1
        request = json.dumps({"part": part, "seed": seed, "folder": str(self.folder)})
        assert self.process.stdin is not None
        self.process.stdin.write(request + "\n")
        self.process.stdin.flush()

    def answer(self) -> Outcome:
        """Of a process that has written one or ended."""
        assert self.process is not None
        assert self.process.stdout is not None
        if line := self.process.stdout.readline():
            if self.trials >= TRIALS_PER_PROCESS:
                self.end()
            return Outcome(**json.loads(line))
        status = self.process.wait()
        self.end()
        name = signal.Signals(-status).name if status < 0 else f"status {status}"
        return Outcome("crash", f"the process ended with {name}{self._where()}")

    def _where(self) -> str:
        """The innermost Python function, which faulthandler writes."""
        lines = [line.strip() for line in self.log.read_text(errors="replace").splitlines()]
        return next((f": {line}" for line in lines if line.startswith("File ")), "")

    def late(self) -> bool:
        elapsed, limit = time.monotonic() - self.began, PARTS[self.part]
        return elapsed > limit and (elapsed > _WAITING * limit or self._processor_time() - self.used > limit)

    def _processor_time(self) -> float:
        """Seconds that this process and those that it has started have taken; it leads a session."""
        assert self.process is not None
        ticks = 0
        for path in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):  # one that has just ended
                fields = path.read_text().rpartition(")")[2].split()
                if fields[3] == str(self.process.pid):
                    ticks += sum(map(int, fields[11:15]))
        return ticks / os.sysconf("SC_CLK_TCK")

    def end(self) -> None:
        if self.process is not None:
            if self.process.poll() is None:
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None
        self.trials = 0


class Fuzzer:
    def __init__(self, parts: list[str], jobs: int, seed: int, once: bool, end: float) -> None:
        self.scores = {part: Score() for part in parts}
        self.next_seed = dict.fromkeys(parts, seed)
        self.seed, self.once, self.end = seed, once, end
        self.jobs = min(jobs, len(parts)) if once else jobs
        self.failures: list[Path] = []

    def run(self) -> None:
        KEPT.mkdir(parents=True, exist_ok=True)
        workers = [Worker(KEPT / f"worker{os.getpid()}-{number}") for number in range(self.jobs)]
        idle, reported = list(workers), time.monotonic()
        with selectors.DefaultSelector() as selector:
            try:
                while True:
                    while idle and (part := self._next_part()):
                        worker = idle.pop()
                        worker.start(part, self.next_seed[part])
                        self.next_seed[part] += 1
                        assert worker.process is not None
                        assert worker.process.stdout is not None
                        selector.register(worker.process.stdout, selectors.EVENT_READ, worker)
                    if len(idle) == len(workers):
                        return
                    for key, _ in selector.select(timeout=1.0):
                        selector.unregister(key.fileobj)
                        self._finish(key.data, key.data.answer())
                        idle.append(key.data)
                    for worker in [w for w in workers if w not in idle and w.late()]:
                        assert worker.process is not None
                        selector.unregister(worker.process.stdout)  # pyright: ignore[reportArgumentType]
                        self._finish(
                            worker, Outcome("hang", f"no end after {time.monotonic() - worker.began:.0f} s")
                        )
                        worker.end()
                        idle.append(worker)
                    if time.monotonic() - reported > _REPORT:
                        reported = time.monotonic()
                        print(self._line(), flush=True)
            finally:
                for worker in workers:
                    worker.end()
                    shutil.rmtree(worker.folder, ignore_errors=True)
                    worker.log.unlink(missing_ok=True)

    def _next_part(self) -> str | None:
        """The one that has had the least time: a trial of some takes seconds, of others minutes."""
        if self.once:
            return next((part for part in self.scores if self.next_seed[part] == self.seed), None)
        if time.monotonic() > self.end:
            return None
        return min(self.scores, key=lambda part: self.scores[part].spent)

    def _finish(self, worker: Worker, outcome: Outcome) -> None:
        score = self.scores[worker.part]
        score.spent += time.monotonic() - worker.began
        score.counts[outcome.kind] += outcome.trials
        if outcome.kind == "refused":
            score.reasons[outcome.reason] += 1
        if self.once or outcome.kind in BAD:
            print(f"{worker.part} {worker.seed}: {outcome.kind}: {outcome.message}", flush=True)
        if outcome.kind in BAD:
            self._keep(worker, outcome)

    def _keep(self, worker: Worker, outcome: Outcome) -> None:
        place = KEPT / f"{worker.part}-{worker.seed}"
        shutil.rmtree(place, ignore_errors=True)
        if worker.folder.exists():
            shutil.copytree(worker.folder, place, symlinks=True)
        place.mkdir(exist_ok=True)
        command = f"make fuzz PART={worker.part} SEED={worker.seed}"
        (place / "README").write_text(f"{outcome.kind}: {outcome.message}\nrepeat with: {command}\n")
        if worker.log.exists() and outcome.kind in ("crash", "hang"):
            shutil.copy(worker.log, place / "log")
        print(f"  kept in {place.relative_to(ROOT)}, repeat with: {command}", flush=True)
        self.failures.append(place)

    def _line(self) -> str:
        texts = [
            f"{part}: " + ", ".join(f"{score.counts[kind]} {kind}" for kind in (*GOOD, *BAD) if score.counts[kind])
            for part, score in self.scores.items()
        ]
        return f"[{time.strftime('%H:%M:%S')}] " + "; ".join(texts)

    def table(self) -> str:
        lines = [f"{'part':10}{'trials':>9}" + "".join(f"{kind:>11}" for kind in (*GOOD, *BAD))]
        for part, score in self.scores.items():
            counts = "".join(f"{score.counts[kind]:>11}" for kind in (*GOOD, *BAD))
            lines.append(f"{part:10}{score.counts.total():>9}{counts}")
        for part, score in self.scores.items():
            common = score.reasons.most_common(15)
            lines += [f"\nrefused most in {part}:"] if common else []
            lines += [f"{count:>6}  {reason}" for reason, count in common]
        return "\n".join(lines)


def main() -> int:
    """Runs trials as the command line says. The status: 1 when one failed, else 0."""
    parser = argparse.ArgumentParser(prog="test/fuzz")
    parser.add_argument("--minutes", type=float, default=float(os.environ.get("MINUTES") or "inf"))
    parser.add_argument("--seed", type=int, default=int(os.environ.get("SEED") or -1))
    parser.add_argument("--part", default=os.environ.get("PART") or ",".join(PARTS))
    parser.add_argument("--jobs", type=int, default=int(os.environ.get("JOBS") or os.cpu_count() or 1))
    arguments = parser.parse_args()
    parts = arguments.part.split(",")
    if unknown := [part for part in parts if part not in PARTS]:
        parser.error(f"no part {', '.join(unknown)}; legal: {', '.join(PARTS)}")
    # A shell's job in the background ignores Ctrl-C, and what it starts inherits that: mutated programs that go on
    # for ever would not be ended.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    once = arguments.seed >= 0
    seed = arguments.seed if once else secrets.randbits(31)
    fuzzer = Fuzzer(parts, arguments.jobs, seed, once, time.monotonic() + 60 * arguments.minutes)
    try:
        fuzzer.run()
    except KeyboardInterrupt:
        print()
    print(fuzzer.table())
    for place in fuzzer.failures[:SHRUNK]:
        subprocess.run([sys.executable, str(FUZZ / "shrink.py"), str(place)], cwd=ROOT, check=False)
    return 1 if fuzzer.failures else 0
