"""``devscope run``: compile a program and call one of its functions."""

from __future__ import annotations

import argparse
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from devscope.cli.compile_options import add_compile_arguments, compile_options, require_file
from devscope.errors import InputError
from devscope.runtime.executable import Executable
from devscope.runtime.program import Entry

NAME = "run"
HELP = "compile a program, or load a .dsx file, and call a function"
EPILOG = """\
examples:
  devscope run model.mlir --random 0 --check
  devscope run model.mlir --entry predict --input images.npy --output logits.npz
  devscope run model.dsx --random 0 --devices cuda:0=opencl:0
"""

#: Largest relative error that ``--check`` accepts, by dtype; integers must agree exactly.
_TOLERANCE = {"f16": 2e-2, "bf16": 5e-2, "f32": 1e-4, "f64": 1e-10}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_compile_arguments(parser)
    add = parser.add_argument
    add("--entry", metavar="F", help="function to call (default: main, or the only public one)")
    inputs = parser.add_mutually_exclusive_group()
    inputs.add_argument(
        "--input", action="append", default=[], metavar="A.npy", help="an argument; repeat for more"
    )
    inputs.add_argument("--random", type=int, metavar="SEED", help="random arguments")
    add(
        "--size",
        type=int,
        default=8,
        metavar="N",
        help="with --random: size of dynamic dimensions (default: 8)",
    )
    add("--output", metavar="OUT.npz", help="write the results (result0, result1, ...)")
    add("--check", action="store_true", help="compare with the same program built for the host alone")
    add("--no-cache", action="store_true", help="neither read nor write the cache of compiled programs")


def execute(arguments: argparse.Namespace) -> int:
    from devscope.api import only_entry

    file = require_file(arguments.file)
    executable = _load(file, arguments)
    name = arguments.entry or only_entry(executable)
    entry = _entry(executable, name)
    values = _inputs(arguments, entry)
    results = _as_tuple(executable.run(name, *values))
    for number, (spec, result) in enumerate(zip(entry.outputs, results, strict=True)):
        print(f"result{number}: {spec}, shape {list(np.shape(result))}")
        print(np.array2string(np.asarray(result), threshold=20, precision=6))
    if arguments.output:
        _save(Path(arguments.output), results)
    return _check(file, arguments, name, values, results) if arguments.check else 0


def _load(file: Path, arguments: argparse.Namespace) -> Executable:
    from devscope.api import compile, load
    from devscope.cli.arguments import parse_device_mapping

    devices = parse_device_mapping(arguments.devices)
    if zipfile.is_zipfile(file):
        return load(file, devices=devices)
    options = compile_options(arguments)
    return compile(
        file,
        default=options.default,
        arguments=options.arguments,
        devices=devices,
        cache=not arguments.no_cache,
    )


def _entry(executable: Executable, name: str) -> Entry:
    entry = executable.entries.get(name)
    if entry is None:
        raise InputError(
            f"the program has no public function '{name}'",
            notes=[f"public functions: {', '.join(executable.entries)}"],
        )
    return entry


def _inputs(arguments: argparse.Namespace, entry: Entry) -> list[Any]:
    if arguments.random is not None:
        generator = np.random.default_rng(arguments.random)
        return [
            random_array(generator, spec.dtype, _shape(spec.shape, arguments.size)) for spec in entry.inputs
        ]
    return [_read(path) for path in arguments.input]


def _shape(shape: Sequence[int | None], dynamic: int) -> list[int]:
    return [dynamic if size is None else size for size in shape]


def random_array(generator: np.random.Generator, dtype: str, shape: Sequence[int]) -> np.ndarray[Any, Any]:
    """Random values of a dtype: floats are standard normal, integers small and not negative."""
    if dtype == "i1":
        return generator.integers(0, 2, shape).astype(np.bool_)
    if dtype[0] == "f":
        return generator.standard_normal(shape).astype(f"f{int(dtype[1:]) // 8}")
    bits = 64 if dtype == "index" else int(dtype[1:])
    return generator.integers(0, 8, shape).astype(f"i{bits // 8}")


def _read(path: str) -> Any:
    try:
        return np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read the array '{path}': {error}") from None


def _as_tuple(results: Any) -> tuple[Any, ...]:
    return results if isinstance(results, tuple) else () if results is None else (results,)


def _save(path: Path, results: Sequence[Any]) -> None:
    import io

    from devscope.cli.files import write_output

    buffer = io.BytesIO()
    np.savez(buffer, **{f"result{number}": np.asarray(r) for number, r in enumerate(results)})
    write_output(str(path), buffer.getvalue())


def _check(
    file: Path, arguments: argparse.Namespace, name: str, values: Sequence[Any], results: Sequence[Any]
) -> int:
    """Run the same program with every device mapped to the host, and compare."""
    from devscope.api import CompileOptions, build
    from devscope.dialects.target import device_types

    if zipfile.is_zipfile(file):
        raise InputError("--check compiles the program again, which needs its source, not a .dsx file")
    everything_on_host = {kind: "cpu" for kind in device_types() if kind != "cpu"}
    reference = Executable(
        build(file, CompileOptions(arguments.default, arguments.arguments, everything_on_host))
    )
    expected = _as_tuple(reference.run(name, *values))
    entry = reference.entries[name]
    status = 0
    for number, (spec, got, want) in enumerate(zip(entry.outputs, results, expected, strict=True)):
        error = relative_error(np.asarray(got), np.asarray(want))
        limit = _TOLERANCE.get(spec.dtype, 0.0)
        verdict = "agrees" if error <= limit else "DIFFERS"
        print(
            f"check result{number}: {verdict} with the host (max relative error {error:.2e}, limit {limit:.0e})"
        )
        status |= error > limit
    return int(status)


def relative_error(got: np.ndarray[Any, Any], want: np.ndarray[Any, Any]) -> float:
    """Largest absolute difference over the largest magnitude; NaNs and infinities must stand in the same places."""
    if got.shape != want.shape:
        return float("inf")
    if got.size == 0 or np.array_equal(got, want, equal_nan=want.dtype.kind == "f"):
        return 0.0
    if want.dtype.kind != "f":
        return float(np.max(got != want))
    finite = np.isfinite(want)
    if not np.array_equal(np.where(finite, 0, want), np.where(np.isfinite(got), 0, got), equal_nan=True):
        return float("inf")
    wide_got, wide_want = got[finite].astype(np.float64), want[finite].astype(np.float64)
    scale = float(np.max(np.abs(wide_want))) or 1.0
    return float(np.max(np.abs(wide_got - wide_want))) / scale
