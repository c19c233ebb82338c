"""Writes random StableHLO programs, their arguments and results: ``generate.py FOLDER COUNT [FAMILY...]``. Needs jax.

The variable SEED, a number, gives other programs.
"""

from __future__ import annotations

import os
import sys
import zlib
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax import export
from jax_libraries import FAMILIES as OF_LIBRARIES
from jax_programs import FAMILIES as OF_OPERATIONS
from jax_programs import Random

FAMILIES = OF_OPERATIONS | OF_LIBRARIES


def plain(array: Any) -> Any:
    """As numpy stores it: other dtypes by their bits, with their name."""
    array = np.asarray(array)
    return (
        array
        if array.dtype.kind in "biufc" and array.dtype.isbuiltin == 1
        else array.view(f"u{array.dtype.itemsize}")
    )


def main() -> None:
    folder, count, *names = sys.argv[1:]
    seed = int(os.environ.get("SEED", "0"))
    for name in names or FAMILIES:
        for number in range(int(count)):
            path = Path(folder) / name / f"{number:02}"
            path.parent.mkdir(parents=True, exist_ok=True)
            function, args, *shapes = FAMILIES[name](Random((zlib.crc32(name.encode()) + seed, number)))
            try:
                jitted = jax.jit(function, keep_unused=True)
                results = jax.tree_util.tree_leaves(jitted(*args))
                results = [np.asarray(r) for r in results]
                specs = export.symbolic_args_specs(args, shapes[0]) if shapes else args
                # An unknown platform gets JAX's general lowerings, the processor's call LAPACK.
                platform = ("devscope", "cpu")[number % 3 == 2]
                try:
                    text = export.export(jitted, platforms=[platform])(*specs).mlir_module()
                except NotImplementedError:  # there are no general ones of eigenvalues
                    text = export.export(jitted, platforms=["cpu"])(*specs).mlir_module()
            except Exception as error:
                print("skipped", name, number, type(error).__name__, str(error).splitlines()[0][:150])
                continue
            path.with_suffix(".mlir").write_text(str(text))
            dtypes = [str(np.asarray(a).dtype) for a in (*args, *results)]
            np.savez(path.with_suffix(".npz"), *map(plain, (*args, *results)), inputs=len(args), dtypes=dtypes)


if __name__ == "__main__":
    main()
