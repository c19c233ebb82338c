"""Whole models beside torch eager, torch.compile, onnxruntime and IREE: first result, calls, peak memory.

The models are those of `_models.py`, with random weights; magika's is in the package of that name. Every side is a
process of its own. Seconds to the first result are those of fresh processes, in turn, from the model in memory to
the result (onnxruntime: with the export to ONNX). Then all processes stay, and their calls take turns: a turn is
the best of the calls of ``--seconds``; ratios are medians of the ratios of rounds.

    python bench/models.py [--models resnet18 ...] [--sides devscope eager ...] [--threads 2] [--rounds 7]
                           [--first 3] [--seconds 0.2]

Needs torch, onnx and onnxruntime, magika for its row, and iree-base-compiler and -runtime for IREE.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from _processes import environment

NAMES = ("resnet18", "minilm", "gpt_step", "magika")
SIDES = ("eager", "onnxruntime", "compile", "iree", "devscope")
"""References first."""
TARGET_CALL, TARGET_FIRST, TARGET_PEAK = 1.0, 1.0, 1.5
"""Of the speed of the best peer; of the seconds of torch.compile and of IREE; of eager's memory."""
SETTLE = 0.03
"""Seconds before a turn: threads of the turn before may spin so long for more work."""


class Peer:
    """A process with a model; ``first`` is None where it cannot have it."""

    def __init__(self, side: str, model: str, threads: int, directory: str) -> None:
        script = str(Path(__file__).with_name("_model_peer.py"))
        names = ("DEVSCOPE_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
        self._process = subprocess.Popen(
            [sys.executable, script, side, model, str(threads), directory],
            env={
                **environment(),
                **dict.fromkeys(names, str(threads)),
                "DEVSCOPE_CACHE_DIR": "off",
                "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1",
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._process.stdout
        line = self._process.stdout.readline()
        answer = json.loads(line) if line else {}
        self.first: float | None = answer.get("first")
        self.error: str = answer.get("error", "")

    def ask(self, **request: float) -> float:
        assert self._process.stdin
        assert self._process.stdout
        print(json.dumps(request), file=self._process.stdin, flush=True)
        (value,) = json.loads(self._process.stdout.readline()).values()
        return value

    def close(self) -> None:
        self._process.communicate()


def measure(model: str, options: argparse.Namespace) -> bool:
    """Print the rows of a model; whether devscope's meet the targets."""
    firsts: dict[str, list[float]] = {}
    peers: dict[str, Peer] = {}
    with tempfile.TemporaryDirectory() as directory:
        for _ in range(options.first):
            for peer in peers.values():
                peer.close()
            peers = {}
            for side in options.sides:
                peer = Peer(side, model, options.threads, directory)
                if peer.first is None:
                    if peer.error:
                        print(f"{model}, {side}: {peer.error}", file=sys.stderr)
                    peer.close()
                    continue
                peers[side] = peer
                firsts.setdefault(side, []).append(peer.first)
        if not peers:
            return False
        calls: dict[str, list[float]] = {side: [] for side in peers}
        order = list(peers)
        for number in range(options.rounds):
            turn = number % len(order)
            for side in order[turn:] + order[:turn]:
                time.sleep(SETTLE)
                calls[side].append(peers[side].ask(seconds=options.seconds))
        peaks = {side: peer.ask(peak=1) for side, peer in peers.items()}
        for peer in peers.values():
            peer.close()
    ours = calls.get("devscope")
    met = ours is not None
    for side in order:
        ratio = ""
        if ours and side != "devscope":
            speed = median(theirs / own for theirs, own in zip(calls[side], ours, strict=True))
            first = median(own / theirs for theirs, own in zip(firsts[side], firsts["devscope"], strict=True))
            met &= speed >= TARGET_CALL and (side not in ("compile", "iree") or first <= TARGET_FIRST)
            met &= side != "eager" or peaks["devscope"] <= TARGET_PEAK * peaks[side]
            ratio = f"{speed:10.2f} {first:10.2f} {peaks['devscope'] / peaks[side]:10.2f}"
        figures = f"{1e3 * median(calls[side]):10.2f} {median(firsts[side]):10.2f} {peaks[side]:10.0f}"
        print(f"{model:12} {side:12} {figures}   {ratio}", flush=True)
    return met


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--models", nargs="+", choices=NAMES, default=NAMES)
    parser.add_argument("--sides", nargs="+", choices=SIDES, default=SIDES)
    parser.add_argument("--threads", type=int, default=2, help="default: 2")
    parser.add_argument("--rounds", type=int, default=7, help="turns of calls (default: 7)")
    parser.add_argument("--first", type=int, default=3, help="processes for the first result (default: 3)")
    parser.add_argument("--seconds", type=float, default=0.2, help="of a turn (default: 0.2)")
    options = parser.parse_args()
    print(f"{options.threads} threads; the last columns compare devscope: speed of a call, first result, peak")
    columns = ("call, ms", "first, s", "peak, MiB", "  speed", "first", "peak")
    print(f"{'model':12} {'side':12} {' '.join(f'{each:>10}' for each in columns)}")
    return 0 if all([measure(model, options) for model in options.models]) else 1


if __name__ == "__main__":
    sys.exit(main())
