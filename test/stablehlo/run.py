"""Runs programs of `generate.py` on a target: ``run.py FOLDER TARGET [FAMILY...]``; prints what is not right.

TARGET is a device, or ``mixed``: what computes is on ``opencl:0`` and on ``cpu:0`` in turn. Counts are kept in the
folder. ``run.py FOLDER table`` prints those of all targets as a table of Markdown.
"""

from __future__ import annotations

import collections
import itertools
import json
import os
import sys
import traceback
import warnings
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

import devscope
import devscope.lowering.cpu.target
import devscope.lowering.opencl.target
import devscope.lowering.stablehlo.convert
import devscope.lowering.stages
import devscope.pipeline
import devscope.runtime.instance  # once, not in every child
from devscope.errors import DevscopeWarning


def dtype_of(name: str) -> Any:
    return np.dtype(getattr(ml_dtypes, name)) if hasattr(ml_dtypes, name) else np.dtype(name)


def read(path: Path) -> tuple[list[Any], list[Any]]:
    data = np.load(path)
    dtypes, count = [dtype_of(str(d)) for d in data["dtypes"]], int(data["inputs"])
    arrays = [data[f"arr_{n}"] for n in range(len(dtypes))]
    arrays = [a if a.dtype == d else a.view(d) for a, d in zip(arrays, dtypes, strict=False)]
    return arrays[:count], arrays[count:]


LIMITS = {
    "float64": 1e-9,
    "float32": 2e-4,
    "float16": 1e-2,
    "bfloat16": 6e-2,
    "complex64": 5e-4,
    "complex128": 1e-9,
}


def differs(got: Any, want: Any) -> str:
    got = np.asarray(got)
    if got.shape != want.shape:
        return f"shape {got.shape}, not {want.shape}"
    if got.dtype != want.dtype:
        got = got.view(want.dtype) if got.dtype.itemsize == want.dtype.itemsize else got.astype(want.dtype)
    name = str(want.dtype)
    if want.dtype.kind in "biu" or name.startswith(("int", "uint")):
        return (
            ""
            if np.array_equal(got, want)
            else f"{np.sum(got != want)} of {want.size} differ: {got.ravel()[got.ravel() != want.ravel()][:3]} {want.ravel()[got.ravel() != want.ravel()][:3]}"
        )
    if name not in LIMITS:
        g, w = got.astype("float32"), want.astype("float32")
        ok = (g == w) | (np.isnan(g) & np.isnan(w))
        return "" if ok.all() else f"{np.sum(~ok)} of {want.size} differ: {g[~ok][:3]} {w[~ok][:3]}"
    kind = np.complex128 if want.dtype.kind == "c" else np.float64
    g, w, limit = got.astype(kind), want.astype(kind), LIMITS[name]
    scale = np.max(np.abs(w[np.isfinite(w)]), initial=0) if want.size else 0
    with np.errstate(all="ignore"):
        ok = (g == w) | (np.isnan(g) & np.isnan(w)) | (np.abs(g - w) <= limit * (np.abs(w) + 0.05 * scale) + 1e-30)
    return "" if ok.all() else f"{np.sum(~ok)} of {want.size} differ: {g[~ok][:3]} {w[~ok][:3]}"


def placed(path: Path, target: str) -> dict[str, Any]:
    """Where the operations of a program go. Of those that alternate, every other program has the first on the host."""
    if target != "mixed":
        return {"default": target}
    turn = itertools.count(int(path.stem))
    return {"place": [devscope.Rule("opencl:0", when=lambda _: next(turn) % 2 == 0)], "default": "cpu:0"}


def one(path: Path, target: str) -> str:
    args, wants = read(path.with_suffix(".npz"))
    try:
        program = devscope.compile(path.with_suffix(".mlir").read_text(), **placed(path, target), cache=False)
    except Exception as error:
        if not isinstance(error, devscope.DevscopeError):
            frame = traceback.extract_tb(error.__traceback__)[-1]
            return f"crash {type(error).__name__}: {error} at {frame.filename}:{frame.lineno}"
        return f"refused {error}"
    try:
        got = program.run("main", *args)
    except Exception as error:
        return f"failed {type(error).__name__}: {error}"
    got = [*got] if isinstance(got, tuple | list) else [got]
    if len(got) != len(wants):
        return f"wrong: {len(got)} results, not {len(wants)}"
    for number, (g, w) in enumerate(zip(got, wants, strict=False)):
        if text := differs(g, w):
            return f"wrong {number}: {w.dtype} {text}"
    return ""


def apart(path: Path, target: str) -> str:
    """In a process of its own: one that ends badly is counted, too."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            os.write(writer, one(path, target).encode()[:3000])
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        text = pipe.read().decode(errors="replace")
    _, status = os.waitpid(child, 0)
    return text if status == 0 else f"died {status}"


def keep(folder: str, target: str, family: str, counts: dict[str, int]) -> None:
    path = Path(folder) / "results.json"
    results = json.loads(path.read_text()) if path.exists() else {}
    results.setdefault(family, {})[target] = counts
    path.write_text(json.dumps(results, indent=1, sort_keys=True))


def table(folder: str) -> str:
    """A row per family: programs that are right, of how many, and what the others are."""
    results = json.loads((Path(folder) / "results.json").read_text())
    targets = sorted({target for counts in results.values() for target in counts})
    lines = [f"| family | {' | '.join(targets)} |", "|---" * (len(targets) + 1) + "|"]
    sums = {target: collections.Counter[str]() for target in targets}
    for family, by_target in sorted(results.items()):
        for target, counts in by_target.items():
            sums[target].update(counts)
        lines.append(f"| {family} | {' | '.join(shown(by_target.get(target, {})) for target in targets)} |")
    lines.append(f"| all | {' | '.join(shown(sums[target]) for target in targets)} |")
    return "\n".join(lines)


def shown(counts: dict[str, int]) -> str:
    if not counts:
        return "not run"
    others = [f"{count} {kind}" for kind, count in sorted(counts.items()) if kind != "right"]
    return ", ".join([f"{counts.get('right', 0)} of {sum(counts.values())}", *others])


def main() -> None:
    folder, target, *names = sys.argv[1:]
    warnings.simplefilter("ignore", DevscopeWarning)  # of programs of one operation, which is on the host
    if target == "table":
        print(table(folder))
        return
    total: collections.Counter[str] = collections.Counter()
    for family in names or sorted(p.name for p in Path(folder).iterdir() if p.is_dir()):
        counts: collections.Counter[str] = collections.Counter()
        for path in sorted((Path(folder) / family).glob("*.mlir")):
            text = apart(path, target)
            kind = text.partition(" ")[0].rstrip(":") or "right"
            counts[kind] += 1
            if text:
                lines = [line for line in text.splitlines() if line.strip()]
                print(f"    {family}/{path.stem} {' | '.join(lines[:3])[:330]}", flush=True)
        total += counts
        keep(folder, target, family, counts)
        print(family, dict(counts), flush=True)
    print("total", dict(total))


if __name__ == "__main__":
    main()
