"""Transposes by kernels: of all element types, by tiles and beside them, wherever the result begins."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import devscope

TYPES = {"i8": np.int8, "f32": np.float32, "f64": np.float64, "i1": np.bool_}
PERMUTATIONS = [(1, 0), (0, 2, 1), (2, 1, 0), (1, 2, 0), (3, 1, 2, 0), (0, 2, 1, 3)]

SMALL = """
[[transpose]]
template = "transpose"
element = "any"
numbers = { rows = 40, streamed_rows = 16, whole_lines = 32, columns = 50, grain = 3000, stream = 4000 }
"""


def program(element: str) -> str:
    """All permutations, of sizes that are not known."""
    arguments, results, lines, names = [], [], [], []
    for number, permutation in enumerate(PERMUTATIONS):
        type_ = f"tensor<{'?x' * len(permutation)}{element}>"
        arguments.append(f"%x{number}: {type_}")
        results.append(type_)
        for axis in range(len(permutation)):
            lines.append(f"%c{number}_{axis} = arith.constant {axis} : index")
            lines.append(f"%n{number}_{axis} = tensor.dim %x{number}, %c{number}_{axis} : {type_}")
        sizes = ", ".join(f"%n{number}_{axis}" for axis in permutation)
        lines.append(f"%e{number} = tensor.empty({sizes}) : {type_}")
        lines.append(
            f"%r{number} = linalg.transpose ins(%x{number} : {type_}) outs(%e{number} : {type_}) "
            f"permutation = {list(permutation)}"
        )
        names.append(f"%r{number}")
    end = f"return {', '.join(names)} : {', '.join(results)}"
    body = "\n".join([*lines, end])
    return f"func.func @main({', '.join(arguments)}) -> ({', '.join(results)}) {{\n{body}\n}}"


def random(shape: tuple[int, ...], element: str) -> np.ndarray:
    """All bytes but those that are no number of the type, so that every element is another one, if possible."""
    generator = np.random.default_rng(0)
    if element == "i1":
        return generator.integers(0, 2, shape).astype(np.bool_)
    return generator.integers(-(2**7), 2**7, shape).astype(TYPES[element])


@pytest.mark.parametrize("element", TYPES)
def test_transposes(element: str, tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(SMALL)
    run = devscope.compile(program(element), schedules=tmp_path / "small.toml", threads=2)
    bytes_ = TYPES[element](0).itemsize
    for sizes in [
        (64, 80, 3, 2),
        (131, 70, 17, 64),
        (16, 16, 64, 33),
        (5, 7, 1, 3),
        (0, 5, 4, 2),
        (192, 128, 2, 1),
    ]:
        arrays = [random(sizes[: len(p)] if len(p) < 4 else sizes[::-1], element) for p in PERMUTATIONS]
        right = [np.ascontiguousarray(x.transpose(p)) for x, p in zip(arrays, PERMUTATIONS, strict=True)]
        outs = [np.zeros(r.nbytes + 128, np.uint8) for r in right]
        places = [8 * number - out.ctypes.data % 64 + 64 for number, out in enumerate(outs)]
        views = [
            out[place : place + r.nbytes].view(r.dtype).reshape(r.shape)
            for out, place, r in zip(outs, places, right, strict=True)
        ]
        for got in (run(*arrays), run(*arrays, out=views)):
            for array, expected, permutation in zip(got, right, PERMUTATIONS, strict=True):
                np.testing.assert_array_equal(array, expected, err_msg=f"{element} {sizes} {permutation}")
        for out, place, r in zip(outs, places, right, strict=True):
            assert not out[:place].any()
            assert not out[place + r.nbytes :].any(), (bytes_, sizes)


def test_on_a_device() -> None:
    run = devscope.compile(program("f32"), default="opencl:0", cache=False)
    for sizes in [(131, 70, 17, 64), (5, 7, 1, 3)]:
        arrays = [random(sizes[: len(p)] if len(p) < 4 else sizes[::-1], "f32") for p in PERMUTATIONS]
        for got, array, permutation in zip(run(*arrays), arrays, PERMUTATIONS, strict=True):
            np.testing.assert_array_equal(got, array.transpose(permutation))
