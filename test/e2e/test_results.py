"""The memory of results: reused from call to call, or the caller's (``out``)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import devscope
from devscope.errors import ArgumentError, ExecutionError, InputError

SOURCE = """
func.func private @twice(%x: tensor<?xf32>) -> tensor<?xf32> {
  %r = arith.addf %x, %x : tensor<?xf32>
  return %r : tensor<?xf32>
}
func.func @several(%x: tensor<?xf32>, %y: tensor<4x4xf32>) -> (tensor<?xf32>, tensor<4x4xf32>, tensor<4x4xf32>) {
  %r = func.call @twice(%x) : (tensor<?xf32>) -> tensor<?xf32>
  %s = arith.mulf %y, %y : tensor<4x4xf32>
  return %r, %s, %y : tensor<?xf32>, tensor<4x4xf32>, tensor<4x4xf32>
}
func.func @same(%x: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>) {
  %r = arith.addf %x, %x : tensor<?xf32>
  return %r, %r : tensor<?xf32>, tensor<?xf32>
}
func.func @constant() -> tensor<4xf32> {
  %r = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  return %r : tensor<4xf32>
}
func.func @matrix(%x: tensor<?x?xf32>) -> tensor<?xf32> {
  %r = tensor.collapse_shape %x [[0, 1]] : tensor<?x?xf32> into tensor<?xf32>
  %s = arith.negf %r : tensor<?xf32>
  return %s : tensor<?xf32>
}
// Its result is made in each iteration, the argument if there is none, and on one path it fails.
func.func @loop(%x: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> tensor<?xf32> {
    %0 = arith.addf %a, %x : tensor<?xf32>
    %few = arith.cmpi slt, %i, %c9 : index
    cf.assert %few, "too many"
    scf.yield %0 : tensor<?xf32>
  }
  return %r : tensor<?xf32>
}
func.func @branch(%x: tensor<?xf32>, %c: i1) -> tensor<?xf32> {
  %r = scf.if %c -> tensor<?xf32> {
    %0 = arith.addf %x, %x : tensor<?xf32>
    scf.yield %0 : tensor<?xf32>
  } else {
    scf.yield %x : tensor<?xf32>
  }
  return %r : tensor<?xf32>
}
// A public function that another one calls.
func.func @calls_same(%x: tensor<?xf32>) -> tensor<?xf32> {
  %r, %s = func.call @same(%x) : (tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>)
  %t = arith.mulf %r, %s : tensor<?xf32>
  return %t : tensor<?xf32>
}
func.func @reverse(%x: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %last = arith.subi %n, %c1 : index
  %r = tensor.generate %n {
  ^bb0(%i: index):
    %j = arith.subi %last, %i : index
    %0 = tensor.extract %x[%j] : tensor<?xf32>
    tensor.yield %0 : f32
  } : tensor<?xf32>
  return %r : tensor<?xf32>
}
func.func @short(%x: tensor<3xbf16>, %s: f32) -> (tensor<3xbf16>, f32) {
  %r = arith.addf %x, %x : tensor<3xbf16>
  return %r, %s : tensor<3xbf16>, f32
}
func.func @scalar(%x: tensor<f32>, %out: tensor<f32>) -> tensor<f32> {
  %r = arith.addf %x, %out : tensor<f32>
  return %r : tensor<f32>
}
func.func @product(%x: tensor<?x?xf32>, %y: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = tensor.dim %x, %c0 : tensor<?x?xf32>
  %n = tensor.dim %y, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%m, %n) : tensor<?x?xf32>
  %z = arith.constant 0.0 : f32
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  %r = linalg.matmul ins(%x, %y : tensor<?x?xf32>, tensor<?x?xf32>) outs(%f : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}
"""


@pytest.fixture(scope="module")
def exe() -> Iterator[devscope.Executable]:
    with devscope.compile(SOURCE) as executable:
        yield executable


def numbers(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).integers(-9, 9, shape).astype(np.float32)


def allocations(exe: devscope.Executable, *call: Any, **named: Any) -> int:
    exe.reset_counters()
    exe.run(*call, **named)
    return exe.counters().allocations["cpu:0"]


CASES: list[tuple[str, tuple[Any, ...], list[Any]]] = [
    ("several", (numbers(5), numbers(4, 4)), [numbers(5) * 2, numbers(4, 4) ** 2, numbers(4, 4)]),
    ("several", (numbers(0), numbers(4, 4)), [numbers(0), numbers(4, 4) ** 2, numbers(4, 4)]),
    ("same", (numbers(7),), [numbers(7) * 2, numbers(7) * 2]),
    ("constant", (), [np.array([1, 2, 3, 4], np.float32)]),
    ("matrix", (numbers(3, 5),), [-numbers(3, 5).reshape(15)]),
    ("loop", (numbers(6), 0), [numbers(6)]),
    ("loop", (numbers(6), 3), [numbers(6) * 4]),
    ("branch", (numbers(6), True), [numbers(6) * 2]),
    ("branch", (numbers(6), False), [numbers(6)]),
    ("calls_same", (numbers(6),), [(numbers(6) * 2) ** 2]),
    ("reverse", (numbers(6),), [numbers(6)[::-1]]),
    ("product", (numbers(30, 20), numbers(20, 40)), [numbers(30, 20) @ numbers(20, 40)]),
]


@pytest.mark.parametrize(("name", "arguments", "expected"), CASES)
def test_results_in_arrays_of_the_caller(
    exe: devscope.Executable, name: str, arguments: tuple[Any, ...], expected: list[Any]
) -> None:
    outs = [np.full_like(array, np.nan) for array in expected]
    # What is before and behind an array stays.
    wide = [np.full(array.size + 2, 77, np.float32) for array in expected]
    inner = [array[1:-1].reshape(out.shape) for array, out in zip(wide, outs, strict=True)]
    for given in (outs, inner, tuple(outs)):
        got = exe.run(name, *arguments, out=given if len(given) > 1 else given[0])
        got = got if isinstance(got, tuple) else (got,)
        for result, out, right in zip(got, given, expected, strict=True):
            assert result is out
            assert np.array_equal(out, right)
    assert all(array[0] == array[-1] == 77 for array in wide)


def test_results_are_written_where_they_go(exe: devscope.Executable) -> None:
    """Not copied: the program asks for no memory."""
    x, y = numbers(50), numbers(4, 4)
    outs = [np.empty(50, np.float32), np.empty((4, 4), np.float32), None]
    assert allocations(exe, "several", x, y) - allocations(exe, "several", x, y, out=outs) == 2
    assert allocations(exe, "matrix", y, out=np.empty(16, np.float32)) == 0
    assert allocations(exe, "reverse", x, out=np.empty(50, np.float32)) == 0
    assert allocations(exe, "reverse", x, out=x.copy()[:]) == 0


@pytest.mark.parametrize("distance", [0, 3, -3, 9, -9, 10, -10])
def test_arrays_that_share_memory_with_arguments(exe: devscope.Executable, distance: int) -> None:
    memory = numbers(32)
    x, out = memory[10:20], memory[10 + distance : 20 + distance]
    right = x[::-1].copy()
    assert exe.run("reverse", x, out=out) is out
    assert np.array_equal(out, right)


def test_an_argument_that_another_result_overwrites(exe: devscope.Executable) -> None:
    x, y = numbers(16), numbers(4, 4)
    right = y.copy()
    first, _, third = exe.run("several", x, y, out=[y.reshape(16), None, None])
    assert np.array_equal(first, x * 2)
    assert np.array_equal(third, right)


def test_what_is_no_place_for_a_result(exe: devscope.Executable) -> None:
    x, y = numbers(6), numbers(4, 4)
    fixed = np.empty(4, np.float32)
    fixed.flags.writeable = False
    for out, message in [
        (np.empty((2, 2), np.float32), r"out 0: expected shape \[4\], got \[2, 2\]"),
        (np.empty(4), "out 0: expected dtype float32, got float64"),
        (np.empty(4, ">f4"), "out 0: expected dtype float32, got float32 in foreign byte order\n.*np.empty"),
        (np.empty(8, np.float32)[::2], r"out 0: the array is not contiguous \(in C order\)\n.*np.empty"),
        (np.empty(17, np.uint8)[1:].view(np.float32), "out 0: the array is not aligned\n"),
        (fixed, "out 0: the array is not writable\n"),
        (np.ma.masked_array(np.empty(4, np.float32)), "out 0: expected a numpy array, got MaskedArray"),
        (1.0, "out 0: expected a numpy array, got float"),
        ([fixed, fixed], "'constant' has 1 result, 'out' has 2"),
    ]:
        with pytest.raises(InputError, match=message):
            exe.run("constant", out=out)
    with pytest.raises(InputError, match="'several' has 3 results, 'out' has 1"):
        exe.run("several", x, y, out=x)
    with pytest.raises(InputError, match="two arrays of 'out' share memory"):
        exe.run("same", x, out=[memory := np.empty(6, np.float32), memory])
    with pytest.raises(InputError, match=r"result 0 of 'reverse' has shape \[6\], the array for it \[5\]"):
        exe.run("reverse", x, out=np.empty(5, np.float32))
    with pytest.raises(ExecutionError, match="too many"):
        exe.run("loop", x, 20, out=np.empty(6, np.float32))
    with pytest.raises(InputError, match="out 1: the result is a scalar"):
        exe.run("short", np.zeros(3, np.uint16), 1.0, out=[None, np.empty((), np.float32)])
    assert np.array_equal(exe.run("reverse", x), x[::-1])


def test_bf16_results(exe: devscope.Executable) -> None:
    bits = np.array([0x3F80, 0x4000, 0xC000], np.uint16)
    out = np.zeros(3, np.uint16)
    result, scalar = exe.run("short", bits, 2.5, out=[out, None])
    assert result is out
    assert (out.tolist(), scalar) == ([0x4000, 0x4080, 0xC080], 2.5)


def test_an_argument_called_out(exe: devscope.Executable) -> None:
    """The name is the argument's."""
    one = np.ones((), np.float32)
    assert exe.run("scalar", one, out=one) == 2
    with pytest.raises(ArgumentError, match="twice"):
        exe.run("scalar", one, one, out=one)


def test_no_fresh_memory_in_the_steady_state(exe: devscope.Executable) -> None:
    """Large results that replace those of the call before; shapes that differ a little; packed operands."""
    x = np.ones(1 << 22, np.float32)
    y = None
    for count in range(12):
        if count == 3:
            exe.reset_counters()
        y = exe.run("reverse", x[: x.size - 1000 * count])
    assert y is not None
    assert exe.counters().driver_allocations["cpu:0"] == 0
    for count in range(12):
        if count == 3:
            exe.reset_counters()
        y = exe.run("product", x[:12800].reshape(128, 100), x[: 100 * (305 + count)].reshape(100, 305 + count))
    assert y.shape == (128, 316)
    assert exe.counters().driver_allocations["cpu:0"] == 0


def test_results_of_devices_in_arrays_of_the_caller() -> None:
    source = """
    #d = #device.scope<"opencl", 0 : i64, "", "">
    func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
      %r = arith.addf %x, %x {device.scope = #d} : tensor<?xf32>
      return %r : tensor<?xf32>
    }
    """
    with devscope.compile(source) as exe:
        x, out = numbers(1000), np.empty(1000, np.float32)
        assert exe(x, out=out) is out
        assert np.array_equal(out, 2 * x)
        right = 2 * x
        assert np.array_equal(exe(x, out=x), right)


def test_cores_of_the_machine_description(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DEVSCOPE_THREADS", raising=False)
    machine = tmp_path / "machine.toml"
    machine.write_text('[devices."cpu:0"]\nflops = 1e9\nbandwidth = 1e9\ncores = 1\n')
    with devscope.compile(SOURCE, machine=machine) as exe:
        assert exe.threads == 1
        exe.save(tmp_path / "saved.dsx")
    with devscope.load(tmp_path / "saved.dsx") as exe:
        assert exe.threads == 1
    with devscope.load(tmp_path / "saved.dsx", threads=3) as exe:
        assert exe.threads == 3
