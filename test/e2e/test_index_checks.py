"""``checks="on"``: indices and divisions, on the host and in kernels. See docs/checks.md."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import devscope
from devscope.compile_options import CompileOptions
from devscope.errors import ExecutionError
from devscope.runtime.executable import Executable

SOURCE = """
func.func @gather(%t: tensor<?xf32>, %i: tensor<?xi64>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %i, %c0 : tensor<?xi64>
  %e = tensor.empty(%n) : tensor<?xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]} ins(%i : tensor<?xi64>) outs(%e : tensor<?xf32>) {
  ^bb0(%id: i64, %o: f32):
    %x = arith.index_cast %id : i64 to index
    %v = tensor.extract %t[%x] : tensor<?xf32>
    linalg.yield %v : f32
  } -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
func.func @extract(%t: tensor<4xf32>, %i: index) -> f32 {
  %0 = math.exp %t : tensor<4xf32>
  %v = tensor.extract %0[%i] : tensor<4xf32>
  return %v : f32
}
func.func @constant(%i: index) -> f32 {
  %c = arith.constant dense<3.0> : tensor<4xf32>
  %v = tensor.extract %c[%i] : tensor<4xf32>
  return %v : f32
}
func.func @generated(%i: index, %n: index) -> index {
  %c = tensor.generate %n { ^bb0(%k: index): tensor.yield %k : index } : tensor<?xindex>
  %v = tensor.extract %c[%i] : tensor<?xindex>
  return %v : index
}
func.func @insert(%t: tensor<4xf32>, %i: index) -> tensor<4xf32> {
  %c = arith.constant 9.0 : f32
  %0 = tensor.insert %c into %t[%i] : tensor<4xf32>
  %1 = math.sqrt %0 : tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func @div(%x: tensor<?xi32>, %y: tensor<?xi32>) -> tensor<?xi32> {
  %0 = arith.divsi %x, %y : tensor<?xi32>
  return %0 : tensor<?xi32>
}
func.func @mod(%x: tensor<?xi32>, %y: tensor<?xi32>) -> tensor<?xi32> {
  %0 = arith.remui %x, %y : tensor<?xi32>
  return %0 : tensor<?xi32>
}
func.func @scalar(%x: i32, %y: i32) -> i32 {
  %0 = arith.floordivsi %x, %y : i32
  return %0 : i32
}
func.func @asserted(%x: tensor<?xi32>) -> tensor<?xi32> {
  %0 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      outs(%x : tensor<?xi32>) {
  ^bb0(%v: i32):
    %zero = arith.constant 0 : i32
    %ok = arith.cmpi sge, %v, %zero : i32
    cf.assert %ok, "negative"
    linalg.yield %v : i32
  } -> tensor<?xi32>
  return %0 : tensor<?xi32>
}
func.func @refused(%x: tensor<?xi32>, %y: tensor<?xi32>, %ok: i1) -> tensor<?xi32> {
  %0 = arith.divsi %x, %y : tensor<?xi32>
  cf.assert %ok, "refused"
  return %0 : tensor<?xi32>
}
"""
LEAST = -(2**31)


def floats(size: int) -> Any:
    return np.arange(size, dtype=np.float32)


def ints(*numbers: int) -> Any:
    return np.array(numbers, np.int32)


def index(number: int, size: int, op: str = "extract") -> str:
    return (
        rf"out of range: (an index|index {number}) in dimension 0 of 'tensor.{op}'(, which has {size} elements)?$"
    )


#: Entry, arguments that are right, and some that are not, with the message.
CASES: list[tuple[str, tuple[Any, ...], list[tuple[tuple[Any, ...], str]]]] = [
    (
        "gather",
        (floats(4), np.array([0, 3])),
        [
            ((floats(4), np.array([0, 4])), index(4, 4)),
            ((floats(4), np.array([0, -1])), index(-1, 4)),
            ((floats(4), np.array([1 << 40])), index(1 << 40, 4)),
            ((floats(0), np.array([0])), index(0, 0)),
        ],
    ),
    ("extract", (floats(4), 3), [((floats(4), 4), index(4, 4)), ((floats(4), -1), index(-1, 4))]),
    ("constant", (3,), [((4,), index(4, 4)), ((-1,), index(-1, 4))]),
    ("generated", (3, 4), [((4, 4), index(4, 4))]),
    ("insert", (floats(4), 3), [((floats(4), 4), index(4, 4, "insert"))]),
    (
        "div",
        (ints(7, 8), ints(2, -1)),
        [
            ((ints(7, 8), ints(2, 0)), "division by zero in 'arith.divsi'"),
            ((ints(LEAST, 8), ints(-1, 1)), "overflow in 'arith.divsi'"),
        ],
    ),
    ("mod", (ints(7, 8), ints(2, -1)), [((ints(7, 8), ints(2, 0)), "division by zero in 'arith.remui'")]),
    (
        "scalar",
        (7, 2),
        [((7, 0), "division by zero in 'arith.floordivsi'"), ((LEAST, -1), "overflow in 'arith.floordivsi'")],
    ),
    ("asserted", (ints(0, 1),), [((ints(0, -1),), "assertion failed: negative")]),
]


@cache
def executable(default: str) -> Executable:
    return devscope.compile(SOURCE, default=default, checks="on", cache=False)


@pytest.mark.parametrize("default", ["cpu:0", "opencl:0"])
@pytest.mark.parametrize(("entry", "right", "wrong"), CASES)
def test_checks(
    default: str, entry: str, right: tuple[Any, ...], wrong: list[tuple[tuple[Any, ...], str]]
) -> None:
    expected = executable(default).run(entry, *right)
    for arguments, message in wrong:
        with pytest.raises(ExecutionError, match=message) as caught:
            executable(default).run(entry, *arguments)
        assert caught.value.location is not None
        assert not any(executable(default).counters().live.values())
        assert np.array_equal(executable(default).run(entry, *right), expected)


KERNEL = """
#d = #device.scope<"opencl", 0 : i64, "", "">
func.func private @take(%x: memref<?xf32>, %i: memref<?xindex>, %out: memref<?xf32>) attributes {device.kernel} {
  %t = gpu.global_id x
  %k = memref.load %i[%t] : memref<?xindex>
  %v = memref.load %x[%k] : memref<?xf32>
  memref.store %v, %out[%t] : memref<?xf32>
  return
}
func.func @main(%x: tensor<?xf32>, %i: tensor<?xindex>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %i, %c0 : tensor<?xindex>
  %e = tensor.empty(%n) : tensor<?xf32>
  %r = "device.launch"(%n, %c1, %c1, %c1, %c1, %c1) ({
    "device.in"(%x) : (tensor<?xf32>) -> ()
    "device.in"(%i) : (tensor<?xindex>) -> ()
    "device.out"(%e) : (tensor<?xf32>) -> ()
  }) {kernel = @take, device.scope = #d} : (index, index, index, index, index, index) -> tensor<?xf32>
  return %r : tensor<?xf32>
}
"""


def test_kernels_of_the_user() -> None:
    with devscope.compile(KERNEL, checks="on", cache=False) as program:
        for _ in range(2):
            assert program(floats(4), np.array([3, 0, 2])).tolist() == [3, 0, 2]
            for wrong in (4, -1, 1 << 40):
                with pytest.raises(ExecutionError, match=r"an index in dimension 0 of 'memref.load'$") as caught:
                    program(floats(4), np.array([1, wrong]))
                assert caught.value.location is not None
                assert caught.value.location.line == 6


def test_both_places_are_the_same() -> None:
    places: list[str] = []
    for default in ("cpu:0", "opencl:0"):
        with pytest.raises(ExecutionError) as caught:
            executable(default).run("gather", floats(4), np.array([9]))
        places.append(str(caught.value.location))
    assert places[0] == places[1]


def test_the_option_is_in_the_key_of_the_cache() -> None:
    assert CompileOptions(checks="on").key() != CompileOptions().key()


def test_saved_program_checks(tmp_path: Path) -> None:
    executable("opencl:0").save(tmp_path / "checked.dsx")
    with devscope.load(tmp_path / "checked.dsx") as loaded:
        with pytest.raises(ExecutionError, match="division by zero"):
            loaded.run("div", ints(1), ints(0))
        assert loaded.run("div", ints(4), ints(2)).tolist() == [2]


@pytest.mark.parametrize("default", ["cpu:0", "opencl:0"])
def test_reports_of_kernels_end_with_their_call(default: str) -> None:
    """The call was left before the host has read them."""
    program = executable(default)
    for _ in range(2):
        with pytest.raises(ExecutionError, match=r"refused|division by zero"):
            program.run("refused", ints(1), ints(0), False)
        assert program.run("refused", ints(4), ints(2), True).tolist() == [2]


def test_failures_leak_nothing() -> None:
    program = executable("opencl:0")
    for _ in range(20):
        with pytest.raises(ExecutionError):
            program.run("div", ints(1), ints(0))
    before = program.counters().driver_allocations
    for _ in range(200):
        with pytest.raises(ExecutionError):
            program.run("div", ints(1), ints(0))
    assert program.counters().driver_allocations == before
