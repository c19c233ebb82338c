"""Types of files by magika's model, on devscope and with onnxruntime: ``magika_files.py [COUNT]``."""

from __future__ import annotations

import random
import sys
import sysconfig
from pathlib import Path
from typing import Any

import numpy as np


def model_path() -> Path:
    import magika

    (found,) = (Path(magika.__file__).parent / "models").glob("*/model.onnx")
    return found


def files(count: int) -> list[Path]:
    """Of the standard library: sources, and a few binaries."""
    library = Path(sysconfig.get_path("stdlib"))
    sources = sorted(path for path in library.glob("*/*.py") if path.stat().st_size > 2048)
    binaries = sorted(path for path in (library / "lib-dynload").glob("*.so") if path.stat().st_size > 2048)
    chosen = random.Random(1).sample(sources, count - count // 10)
    return [*chosen, *random.Random(1).sample(binaries, count // 10)]


def features(path: Path) -> np.ndarray:
    """What the model gets of a file: 1024 bytes of its begin and of its end, without white space around."""
    data = path.read_bytes()
    begin, end = data[:4096].lstrip()[:1024], data[-4096:].rstrip()[-1024:]
    padding = 256
    row = [*begin, *[padding] * (1024 - len(begin)), *[padding] * (1024 - len(end)), *end]
    return np.array(row, np.int32)


def compare(count: int, target: str) -> tuple[int, float]:
    """How many files get the same label, and the largest difference of two scores."""
    import onnxruntime

    import devscope

    rows = np.stack([features(path) for path in files(count)])
    session = onnxruntime.InferenceSession(str(model_path()), providers=["CPUExecutionProvider"])
    (name,) = (one.name for one in session.get_inputs())
    program = devscope.compile(model_path(), default=target)
    same, most = 0, 0.0
    for start in range(0, count, 20):
        part = rows[start : start + 20]
        want: Any = session.run(None, {name: part})[0]
        got = program(**{name: part})
        same += int(np.sum(got.argmax(-1) == want.argmax(-1)))
        most = max(most, float(np.abs(got - want).max()))
    return same, most


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    for target in ("cpu:0", "opencl:0"):
        same, most = compare(count, target)
        print(
            f"magika on {target}: {same} of {count} files get the label of onnxruntime, scores within {most:.1e}"
        )
        if same != count:
            sys.exit(1)


if __name__ == "__main__":
    main()
