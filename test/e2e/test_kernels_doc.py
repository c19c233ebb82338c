"""The example in docs/kernels.md does what it says."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

import devscope

DOCUMENT = Path(__file__).parents[2] / "docs" / "kernels.md"


def test_example() -> None:
    (program,) = re.findall(r"```mlir\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    rng = np.random.default_rng(17)
    with devscope.compile(program, cache=False) as executable:
        for n in (0, 1, 63, 64, 65, 1000):
            x = rng.uniform(0, 1, n).astype(np.float32)
            expected = [np.sqrt(x[i : i + 64].sum(dtype=np.float64)) for i in range(0, n, 64)]
            np.testing.assert_allclose(executable(x), expected, rtol=1e-5)
        assert executable.counters().launches["opencl:0"] > 0
