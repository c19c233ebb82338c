"""Host code beside numpy, torch and IREE: matmuls, convolutions, rows, elementwise operations and whole models.

Every side is a process of its own for every number of threads, all of them there during the whole run: one turn of
each per round, so that what else the machine does disturbs all alike. A turn is the best of the calls of
``--seconds``; on one thread by processor time, on more by the clock. The ratio to a peer is the median of the
ratios of rounds, and a row's that to the best peer. Before a time counts, results are compared with numpy's.

    python bench/kernels.py [--rows matmul conv ...] [--threads 1 2] [--rounds 5] [--seconds 0.1] [--bursts]
                            [--avx2] [--small] [--peers numpy torch compile cuda iree iree-dt] [--torch PYTHON]
                            [--json FILE] [--device opencl:0]

Peers keep the memory of results: numpy and torch write to arrays that are there (``out=``), and their allocator
gives nothing back to the system; inputs of IREE are on its device, whose allocator caches. devscope's caller drops
each result. IREE runs at -O3 for this CPU, `iree-dt` with
data tiling and microkernels too; `compile` is torch.compile, a peer of the whole models. Rows that memory limits
have a second target: a share of the bandwidth of copying 64 MiB, done in turn with them.

On a busy machine, ``--bursts``: calls are in bursts under real-time priority (`_bursts.py`), by the clock.

With ``--device`` the work is on a device of the same cores, beside devscope's host code and the peers, all on as
many threads as the process has cores. Inputs and results stay on the device: a loop in the program repeats the
work, and the table has the time of an iteration by the clock: launches count, copies to and from the host do not.
So it does for devscope's host code there. The peer
of ``cuda:0`` is torch on that GPU, and the rows are those that fill one, too, of the group `large`.

Torch may live in an environment of its own; PYTHON is its interpreter (default: $DEVSCOPE_TORCH_PYTHON, else this
one, else that of build/bench/torch). Without one, it is left out. To make one:

    python -m venv build/bench/torch && build/bench/torch/bin/pip install torch==2.13.0 numpy
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from _kernel_table import works
from _kernel_work import COPIED, Work
from _processes import repository

PEERS = {
    "numpy": "numpy",
    "torch": "torch",
    "compile": "t.compile",
    "cuda": "t.CUDA",
    "iree": "IREE",
    "iree-dt": "IREE dt",
}
OF_TORCH = ("torch", "compile", "cuda")
SIDES = ("device", "devscope", *PEERS)
TARGET_OF_HOST = 0.8
"""Of the speed of devscope's host code, for a device."""
DEVICE_TARGETS = ("matmul", "batch", "conv", "elementwise")
"""Groups of rows in which a device has to be as fast as the best peer."""
TARGET_BANDWIDTH = 0.8
TARGET_SPEED_UP = 1.7
"""Of two threads against one, where cores are the limit."""
BUSY = 0.5
"""A load average from which the machine is called busy."""

KEEP = {"MALLOC_MMAP_THRESHOLD_": "4294967296", "MALLOC_TRIM_THRESHOLD_": "4294967296"}
"""For peers, whose large results are fresh pages for every call otherwise: up to four times as slow."""
AVX2 = {
    "OPENBLAS_CORETYPE": "HASWELL",
    "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
    "ATEN_CPU_CAPABILITY": "avx2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "MKL_ENABLE_INSTRUCTIONS": "AVX2",
}
"""What keeps peers to its instructions."""
SETTLE = 0.03
"""Seconds before a turn of several threads: those of the turn before may spin so long for more work."""

Figures = dict[str, float]


class Side:
    """A process that computes when it is told to; one that dies is started again for the next work."""

    def __init__(
        self,
        kind: str,
        threads: int,
        python: str,
        directory: str,
        small: bool,
        device: str | None = None,
        avx2: bool = False,
    ) -> None:
        self.kind, self.threads = kind, threads
        script = str(Path(__file__).with_name("_kernel_peer.py"))
        self._command = [python, script, kind, str(threads), directory, *(["--small"] if small else [])]
        self._command += ["--device", device] if device else []
        self._command += ["--cpu", "x86-64-v3"] if avx2 else []
        names = ("DEVSCOPE_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
        self._environment = {
            **{name: value for name, value in os.environ.items() if name != "OPENBLAS_CORETYPE"},
            **dict.fromkeys(names, str(threads)),
            **(KEEP if kind in PEERS else {}),
            **(AVX2 if avx2 else {}),
            "DEVSCOPE_CACHE_DIR": f"{directory}/devscope",
            "TORCHINDUCTOR_CACHE_DIR": f"{directory}/inductor",
        }
        self._process: subprocess.Popen[str] | None = None

    def ask(self, **request: Any) -> dict[str, Any]:
        """The answer; one with ``error`` where the process ends instead."""
        if self._process is None:
            self._process = subprocess.Popen(
                self._command,
                env=self._environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
        assert self._process.stdin
        assert self._process.stdout
        try:
            print(json.dumps(request), file=self._process.stdin, flush=True)
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if line:
            return json.loads(line)
        status = self._process.wait()
        self._process = None
        return {"error": f"the process ended with status {status}"}

    def close(self) -> None:
        if self._process and self._process.stdin:
            self._process.stdin.close()
            self._process.wait()


def find_torch(option: str | None) -> str | None:
    """The interpreter that has torch, or None, with a line that says so."""
    default = repository() / "build" / "bench" / "torch" / "bin" / "python"
    named = option or os.environ.get("DEVSCOPE_TORCH_PYTHON")
    for python in [named] if named else [sys.executable, str(default)]:
        try:
            done = subprocess.run([python, "-c", "import torch, numpy"], capture_output=True, check=False)
        except OSError:
            continue
        if done.returncode == 0:
            return python
    print(f"no torch: figures without it. How to get it: {Path(__file__).name} --help")
    return None


def store(directory: str, number: int, work: Work) -> None:
    """Inputs and numpy's result, which all sides read."""
    arrays = work.inputs()
    result = work.numpy(None, *arrays)()
    result = result.astype(np.float32) if work.group == "models" else np.asarray(result)
    np.savez(Path(directory) / f"{number}.npz", *arrays, result=result)


def sides_of(work: Work, sides: Sequence[Side]) -> list[Side]:
    """Those that compute ``work``."""
    left_out = {"numpy": work.numpy_is_peer, "compile": work.compiled}
    return [side for side in sides if left_out.get(side.kind, True)]


def measure(
    work: Work, sides: Sequence[Side], rounds: int, seconds: float, bursts: bool = False
) -> tuple[dict[Any, Any], dict[Any, str]]:
    """Per (kind, threads), the figures of all rounds; ("copy", kind, threads) where bandwidth matters; errors."""
    errors: dict[Any, str] = {}
    found: dict[Any, list[Figures]] = {}
    for side in sides:
        answer = side.ask(load=work.name)
        if "error" in answer:
            errors[side.kind, side.threads] = answer["error"]
    running = [side for side in sides if (side.kind, side.threads) not in errors]
    for number in range(rounds):
        for side in running[number % len(running) :] + running[: number % len(running)] if running else []:
            key = side.kind, side.threads
            if side.threads > 1:
                time.sleep(SETTLE)
            answer = side.ask(burst=seconds) if bursts else side.ask(seconds=seconds)
            if "error" in answer:
                errors[key] = answer["error"]
                continue
            found.setdefault(key, []).append(answer)
            # Memory is copied by the side that can: torch copies with threads.
            if work.unit == "GB/s" and side.kind in ("torch", "numpy"):
                copied = side.ask(copy=seconds, **({"burst": seconds} if bursts else {}))
                found.setdefault(("copy", side.kind, side.threads), []).append(copied)
    return {key: figures for key, figures in found.items() if len(figures) == rounds}, errors


def clock(threads: int) -> str:
    """One thread is timed by what it takes of a processor, which others on the machine disturb least."""
    return "cpu" if threads == 1 else "wall"


def ratios(ours: Sequence[Figures], theirs: Sequence[Figures], key: str) -> float:
    """How many times as fast as they we are: the median of the rounds."""
    return median(b[key] / a[key] for a, b in zip(ours, theirs, strict=True))


def amount(work: Work, seconds: float) -> float:
    """In the row's unit."""
    return 1e3 * seconds if work.unit == "ms" else work.amount / seconds * 1e-9


def judge_device(work: Work, threads: int, found: dict[Any, Any]) -> dict[str, Any]:
    """A row of a device: medians per side, the ratios to the best peer and to devscope's host code."""
    row = _row(work, threads, found, "wall")
    row["target"] = 1.0 if work.group in DEVICE_TARGETS else 0.0
    ours, host = (found.get((kind, threads)) for kind in ("device", "devscope"))
    met = False
    if ours and host:
        row["to_host"] = ratios(ours, host, "wall")
        met = row["to_host"] >= TARGET_OF_HOST
    if ours and _compare(row, threads, found, ours, "wall"):
        met &= row["ratio"] >= row["target"]
    row["met"] = met
    return row


def _row(work: Work, threads: int, found: dict[Any, Any], key: str) -> dict[str, Any]:
    figures = {
        kind: amount(work, median(run[key] for run in found[kind, threads]))
        for kind in SIDES
        if (kind, threads) in found
    }
    return {"name": work.name, "threads": threads, "unit": work.unit, "target": work.target, "figures": figures}


def _compare(row: dict[str, Any], threads: int, found: dict[Any, Any], ours: Sequence[Figures], key: str) -> bool:
    """Enter the ratio to the best peer in ``row``; False without peers."""
    to_peers = {kind: ratios(ours, found[kind, threads], key) for kind in row["figures"] if kind in PEERS}
    if to_peers:
        row["best"], row["ratio"] = min(to_peers.items(), key=lambda item: item[1])
    return bool(to_peers)


def judge(work: Work, threads: int, found: dict[Any, Any]) -> dict[str, Any]:
    """A row: medians per side, the ratio to the best peer, the share of bandwidth, the speed-up by threads."""
    key = clock(threads)
    row = _row(work, threads, found, key)
    ours = found.get(("devscope", threads))
    met = ours is not None
    if ours:
        if _compare(row, threads, found, ours, key):
            met &= row["ratio"] >= work.target
        copies = [runs for name, runs in found.items() if name[0] == "copy" and name[-1] == threads]
        if copies:
            copied = 2 * COPIED
            fastest = min(copies, key=lambda runs: median(run[key] for run in runs))
            row["bandwidth"] = ratios(ours, fastest, key) * work.amount / copied
            met &= not work.bandwidth or row["bandwidth"] >= TARGET_BANDWIDTH
        alone = found.get(("devscope", 1))
        if threads == 2 and alone:
            row["speed_up"] = ratios(ours, alone, "wall")
            met &= not work.scales or row["speed_up"] >= TARGET_SPEED_UP
    row["met"] = met
    return row


def columns(device: bool) -> dict[str, int]:
    """Of the table, and their widths; it is markdown too."""
    return {
        "work": 59,
        "threads": 7,
        "unit": 7,
        **({"device": 8} if device else {}),
        "devscope": 8,
        **dict.fromkeys(PEERS.values(), 9),
        "ratio": 5,
        "to": 9,
        **({"to host": 7} if device else {"copy": 5, "speed-up": 8}),
        "": 6,
    }


def show_line(cells: Sequence[str], device: bool) -> None:
    parts = [
        cell.ljust(width) if name in ("work", "unit", "to", "") else cell.rjust(width)
        for cell, (name, width) in zip(cells, columns(device).items(), strict=True)
    ]
    print(f"| {' | '.join(parts)} |", flush=True)


def show_head(device: bool) -> None:
    show_line(list(columns(device)), device)
    show_line(["-" * width for width in columns(device).values()], device)


def show(row: dict[str, Any], device: bool) -> None:
    digits = 3 if row["unit"] == "ms" else 1
    sides = SIDES if device else SIDES[1:]
    figures = [f"{row['figures'][kind]:.{digits}f}" if kind in row["figures"] else "" for kind in sides]
    ratio, *shares = [
        f"{row[key]:.2f}" if key in row else ""
        for key in ("ratio", *(("to_host",) if device else ("bandwidth", "speed_up")))
    ]
    best = PEERS[row["best"]] if "best" in row else ""
    met = "" if row["met"] else "missed"
    show_line([row["name"], str(row["threads"]), row["unit"], *figures, ratio, best, *shares, met], device)


def main() -> int:
    description, _, rest = (__doc__ or "").partition("\n")
    parser = argparse.ArgumentParser(
        description=description, epilog=rest, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", nargs="+", help="groups, or beginnings of names of rows (default: all)")
    parser.add_argument("--list", action="store_true", help="show the names of rows, and nothing else")
    parser.add_argument("--threads", nargs="+", type=int, help="default: 1 2; with --device, one per core")
    where = parser.add_mutually_exclusive_group()  # a device's driver chooses instructions itself
    where.add_argument("--device", metavar="NAME", help="a device to do the work, such as opencl:0")
    where.add_argument("--avx2", action="store_true", help="host code of AVX2, of all sides, on any x86-64 CPU")
    parser.add_argument("--rounds", type=int, default=5, help="turns of every side (default: 5)")
    parser.add_argument("--seconds", type=float, default=0.1, help="of a turn (default: 0.1)")
    parser.add_argument("--bursts", action="store_true", help="short bursts under real-time priority")
    parser.add_argument("--small", action="store_true", help="a sixteenth of every size: does it run?")
    parser.add_argument("--peers", nargs="+", choices=tuple(PEERS), help="default: all of the device's")
    parser.add_argument("--torch", metavar="PYTHON", help="a Python that has torch 2.13 and numpy")
    parser.add_argument("--json", metavar="FILE", help="where to write all figures")
    options = parser.parse_args()
    device = options.device
    threads = options.threads or ([len(os.sched_getaffinity(0))] if device else [1, 2])
    on_gpu = (device or "").startswith("cuda")
    table = works(options.small)
    names = [
        name
        for name, work in table.items()
        if (not options.rows and (on_gpu or work.group != "large"))
        or any(row == work.group or name.startswith(row) for row in options.rows or ())
    ]
    if not names or options.list:
        for name, work in table.items():
            print(f"{work.group:12} {name}")
        return 0 if options.list else 2
    peers = options.peers or [peer for peer in PEERS if (peer == "cuda") == on_gpu]
    torch = find_torch(options.torch) if {*OF_TORCH} & set(peers) else None
    peers = peers if torch else [peer for peer in peers if peer not in OF_TORCH]
    load = os.getloadavg()[0]
    if load > BUSY:
        print(f"the machine is busy (load {load:.1f}): figures of several threads say little")
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as directory:
        sides = [
            Side(
                kind,
                count,
                torch if kind in OF_TORCH and torch else sys.executable,
                directory,
                options.small,
                {"device": device, "devscope": "cpu:0" if device else None}.get(kind),
                options.avx2,
            )
            for count in threads
            for kind in (*(["device"] if device else []), "devscope", *peers)
        ]
        show_head(bool(device))
        for number, work in enumerate(table.values()):
            if work.name not in names:
                continue
            store(directory, number, work)
            found, errors = measure(work, sides_of(work, sides), options.rounds, options.seconds, options.bursts)
            for count in threads:
                row = (judge_device if device else judge)(work, count, found)
                row["errors"] = {kind: error for (kind, number), error in errors.items() if number == count}
                rows.append(row)
                show(row, bool(device))
            if options.json:  # after every work: they take long
                Path(options.json).write_text(json.dumps({"load": load, "rows": rows}, indent=1) + "\n")
        for side in sides:
            side.close()
    for row in rows:
        for kind, error in row["errors"].items():
            print(f"{row['name']}, {kind}, {row['threads']} threads: {error.strip().splitlines()[0]}")
    missed = [row for row in rows if not row["met"]]
    if device:
        targets = f"{TARGET_OF_HOST} of devscope's host code; the best peer for {', '.join(DEVICE_TARGETS)}"
    else:
        targets = (
            f"the best peer's speed (MLP: 1.2 times that), {TARGET_BANDWIDTH} of a copy's bandwidth where that is "
            f"the limit, x{TARGET_SPEED_UP} by a second thread where cores are"
        )
    print(f"{len(rows) - len(missed)} of {len(rows)} rows met: {targets}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
