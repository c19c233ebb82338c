"""Transposes by kernels: of all element types, by tiles and beside them, wherever the result begins."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from emulation import set_order
from test_workgroup_tiles import gpu  # noqa: F401  (a fixture)

import devscope

pytestmark = pytest.mark.sampled(5)

TYPES = {"i8": np.int8, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64, "i1": np.bool_}
PERMUTATIONS = [(1, 0), (0, 2, 1), (2, 1, 0), (1, 2, 0), (3, 1, 2, 0), (0, 2, 1, 3)]

SMALL = """
[[transpose]]
template = "transpose"
element = "any"

[transpose.numbers]
rows = 40
streamed_rows = 16
paged_lines = 2
ahead = 1
paged_ahead = 2
whole_lines = {}
columns = 50
grain = 3000
stream = 4000
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


def beside_lines(array: np.ndarray, behind: int) -> np.ndarray:
    """A copy that begins so many bytes behind a line of memory."""
    room = np.empty(array.nbytes + 128, np.uint8)
    place = behind - room.ctypes.data % 64 + 64
    copy = room[place : place + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


@pytest.mark.parametrize("whole_lines", [0, 64])
@pytest.mark.parametrize("element", TYPES)
def test_transposes(element: str, whole_lines: int, tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(SMALL.format(whole_lines))
    run = devscope.compile(program(element), schedules=tmp_path / "small.toml", threads=2)
    bytes_ = TYPES[element](0).itemsize
    for sizes in [
        (4096 // bytes_, 150, 1, 1),
        (150, 4096 // bytes_, 1, 1),
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
        arrays = [beside_lines(x, 8 * number) for number, x in enumerate(reversed(arrays))][::-1]
        for got in (run(*arrays), run(*arrays, out=views)):
            for array, expected, permutation in zip(got, right, PERMUTATIONS, strict=True):
                np.testing.assert_array_equal(array, expected, err_msg=f"{element} {sizes} {permutation}")
        for out, place, r in zip(outs, places, right, strict=True):
            assert not out[:place].any()
            assert not out[place + r.nbytes :].any(), (bytes_, sizes)


@pytest.mark.parametrize("element", ["f32", "bf16"])
def test_on_a_device(element: str, tmp_path: Path) -> None:
    """Where lines of results begin in memory is known to kernels only, since addresses of devices are."""
    rows = SMALL.format(64).replace("[transpose.numbers]", 'instructions = "opencl-cpu"\n[transpose.numbers]')
    (tmp_path / "small.toml").write_text(rows)
    run = devscope.compile(program(element), default="opencl:0", schedules=tmp_path / "small.toml", cache=False)
    for sizes in [(131, 70, 17, 64), (192, 128, 2, 1), (5, 7, 1, 3)]:
        arrays = [random(sizes[: len(p)] if len(p) < 4 else sizes[::-1], element) for p in PERMUTATIONS]
        for got, array, permutation in zip(run(*arrays), arrays, PERMUTATIONS, strict=True):
            np.testing.assert_array_equal(got, array.transpose(permutation))


@pytest.mark.parametrize("device", ["opencl:0", pytest.param("cuda:0", marks=pytest.mark.long)])
def test_tiles_of_gpus(device: str, gpu: None, cuda: Callable[[], AbstractContextManager[object]]) -> None:  # noqa: F811
    """By workgroups, in local memory; where the last axis stays, element by element."""
    with cuda() if device == "cuda:0" else nullcontext():
        set_order(3)
        for element in TYPES:
            run = devscope.compile(program(element), default=device, cache=False)
            (used,) = run.program.devices
            turned = ["tile_transpose" in kernel.name for kernel in used.kernels]
            assert turned == [True] * (len(turned) - 1) + [False]
            for sizes in [(64, 80, 3, 2), (33, 65, 5, 20), (5, 7, 1, 3), (0, 5, 4, 2)]:
                arrays = [random(sizes[: len(p)] if len(p) < 4 else sizes[::-1], element) for p in PERMUTATIONS]
                for x, permutation, found in zip(arrays, PERMUTATIONS, run(*arrays), strict=True):
                    np.testing.assert_array_equal(found, x.transpose(permutation), err_msg=f"{element} {sizes}")


def test_brain_floats_and_strides_in_tiles_of_gpus(gpu: None) -> None:  # noqa: F811
    """Of a part of a tensor, in the middle of a program."""
    run = devscope.compile(
        """
        func.func @main(%x: tensor<70x90xbf16>) -> tensor<40x50xbf16> {
          %e = tensor.empty() : tensor<40x50xbf16>
          %part = tensor.extract_slice %x[3, 5] [50, 40] [1, 1] : tensor<70x90xbf16> to tensor<50x40xbf16>
          %r = linalg.transpose ins(%part : tensor<50x40xbf16>) outs(%e : tensor<40x50xbf16>) permutation = [1, 0]
          return %r : tensor<40x50xbf16>
        }""",
        default="opencl:0",
    )
    assert any("tile_transpose" in kernel.name for kernel in run.program.devices[0].kernels)
    x = np.arange(70 * 90).reshape(70, 90).astype(np.float32).astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(run(x), x[3:53, 5:45].T)


def test_quarters_of_a_turn_are_transposes() -> None:
    """Copies that load what they write at another place, backwards along either axis."""
    turns = {
        "left": ("%j, %y", lambda x: np.rot90(x, 1)),
        "right": ("%x, %i", lambda x: np.rot90(x, 3)),
        "both": ("%x, %y", lambda x: x[::-1, ::-1].T),
    }
    text = "\n".join(
        f"""func.func @{name}(%a: tensor<33x70xf32>) -> tensor<70x33xf32> {{
          %r = tensor.generate {{ ^bb0(%i: index, %j: index):
            %rows = arith.constant 32 : index
            %columns = arith.constant 69 : index
            %x = arith.subi %rows, %j : index
            %y = arith.subi %columns, %i : index
            %e = tensor.extract %a[{place}] : tensor<33x70xf32>
            tensor.yield %e : f32
          }} : tensor<70x33xf32>
          return %r : tensor<70x33xf32>
        }}"""
        for name, (place, _) in turns.items()
    )
    x = np.arange(33 * 70, dtype=np.float32).reshape(33, 70)
    with devscope.compile(text) as executable:
        for name, (_, turned) in turns.items():
            np.testing.assert_array_equal(executable.run(name, x), turned(x))


def test_bodies_that_load_along_the_innermost_loop() -> None:
    """Rows in another order, parts of rows that indices say, sums with such rows; sizes that leave some over."""
    shape, rows = "tensor<?x?xf32>", "tensor<?xindex>"
    maps = "affine_map<(i, j) -> (i)>", "affine_map<(i, j) -> (i, j)>"
    program = f"""
    func.func @rows(%a: {shape}, %at: {rows}, %b: {shape}, %s: tensor<?xf32>) -> ({shape}, tensor<?xf32>) {{
      %one = arith.constant 1 : index
      %zero = arith.constant 0 : index
      %m = tensor.dim %a, %zero : {shape}
      %last = arith.subi %m, %one : index
      %r = linalg.generic {{indexing_maps = [{maps[0]}, {maps[1]}], iterator_types = ["parallel", "parallel"]}}
          ins(%at : {rows}) outs(%b : {shape}) {{
      ^bb0(%i: index, %old: f32):
        %j = linalg.index 1 : index
        %k = arith.addi %j, %one : index
        %x = tensor.extract %a[%i, %k] : {shape}
        %y = arith.addf %x, %old : f32
        linalg.yield %y : f32
      }} -> {shape}
      %t = linalg.generic {{indexing_maps = [{maps[1]}, {maps[0]}], iterator_types = ["parallel", "reduction"]}}
          ins(%a : {shape}) outs(%s : tensor<?xf32>) {{
      ^bb0(%x: f32, %sum: f32):
        %i = linalg.index 0 : index
        %j = linalg.index 1 : index
        %k = arith.subi %last, %i : index
        %y = tensor.extract %a[%k, %j] : {shape}
        %p = arith.mulf %x, %y : f32
        %more = arith.addf %sum, %p : f32
        linalg.yield %more : f32
      }} -> tensor<?xf32>
      return %r, %t : {shape}, tensor<?xf32>
    }}"""
    rng = np.random.default_rng(0)
    with devscope.compile(program) as executable:
        for m, n in ((1, 2), (5, 8), (33, 600), (3, 1), (0, 9), (2050, 2049)):
            a, b = (rng.integers(-9, 9, (m, k)).astype(np.float32) for k in (n, n - 1))
            at = rng.integers(0, max(m, 1), m)
            found, sums = executable(a, at, b, np.zeros(m, np.float32))
            np.testing.assert_array_equal(found, a[at][:, 1:] + b)
            np.testing.assert_array_equal(sums, (a * a[::-1]).sum(1))
