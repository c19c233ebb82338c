"""Sorts of many elements, along any dimension, and their first few, on the host and on a device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import devscope


def program(shape: tuple[int, ...], axis: int, kept: int, dynamic: bool = False) -> str:
    """Sorts by the first operand, takes the second along, and gives the first ``kept`` of both."""
    sizes = ["?" if dynamic and dim != axis else str(size) for dim, size in enumerate(shape)]
    taken = [str(kept) if dim == axis else size for dim, size in enumerate(sizes)]
    x, y = (f"tensor<{'x'.join([*sizes, of])}>" for of in ("f32", "i32"))
    a, b = (f"tensor<{'x'.join([*taken, of])}>" for of in ("f32", "i32"))
    rank = len(shape)
    lengths = [f"%n{dim}" if size == "?" else size for dim, size in enumerate(taken)]
    place = f"[{', '.join('0' * rank)}] [{', '.join(lengths)}] [{', '.join('1' * rank)}]"
    dims = "".join(
        f"  %c{dim} = arith.constant {dim} : index\n  %n{dim} = tensor.dim %x, %c{dim} : {x}\n"
        for dim in range(rank)
    )
    return f"""
func.func @main(%x: {x}, %y: {y}) -> ({a}, {b}) {{
{dims}
  %0:2 = "stablehlo.sort"(%x, %y) <{{dimension = {axis} : i64, is_stable = true}}> ({{
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):
    %less = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %less : tensor<i1>
  }}) : ({x}, {y}) -> ({x}, {y})
  %1 = tensor.extract_slice %0#0{place} : {x} to {a}
  %2 = tensor.extract_slice %0#1{place} : {y} to {b}
  return %1, %2 : {a}, {b}
}}"""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("device", ["cpu:0", "opencl:0"])
@pytest.mark.parametrize(
    ("shape", "axis", "kept", "dynamic"),
    [
        ((3, 100), 1, 100, False),
        ((100, 3), 0, 100, False),
        ((2, 33, 2), 1, 33, True),
        ((1, 1024), 1, 1000, False),
        ((2, 70), 1, 1, False),
        ((70, 2), 0, 5, True),
        ((2, 4100), 1, 8, False),  # in parts, the last of which has fewer
        ((9000, 2), 0, 17, False),
        ((5000,), 0, 3, False),
    ],
)
def test_sorts_and_first_ones(device: str, shape: tuple[int, ...], axis: int, kept: int, dynamic: bool) -> None:
    """Equal elements stay in their order; NaNs come last, and -0.0 before 0.0."""
    rng = np.random.default_rng(0)
    x = rng.integers(-30, 30, shape).astype(np.float32)
    x[rng.random(shape) < 0.05] = np.nan
    x[rng.random(shape) < 0.05] = -np.inf
    x[(x == 0) & (rng.random(shape) < 0.5)] = -0.0
    y = rng.integers(0, 1000, shape).astype(np.int32)
    order = np.lexsort((~np.signbit(x), x), axis=axis)
    first = np.take(order, range(kept), axis)
    with devscope.compile(program(shape, axis, kept, dynamic), default=device, cache=False) as executable:
        values, others = executable(x, y)
    np.testing.assert_array_equal(values, np.take_along_axis(x, first, axis))
    np.testing.assert_array_equal(np.signbit(values), np.signbit(np.take_along_axis(x, first, axis)))
    np.testing.assert_array_equal(others, np.take_along_axis(y, first, axis))


@pytest.mark.parametrize("device", ["cpu:0", "opencl:0"])
@pytest.mark.parametrize("rising", [True, False])
def test_first_ones_of_what_is_in_order(device: str, rising: bool) -> None:
    """Every element enters the list, or none does."""
    x = np.arange(5000, dtype=np.float32)[None]
    x = x if rising else x[:, ::-1].copy()
    y = np.arange(5000, dtype=np.int32)[None]
    with devscope.compile(program((1, 5000), 1, 9), default=device, cache=False) as executable:
        values, others = executable(x, y)
    assert values.tolist() == [list(range(9))]
    assert others.tolist() == [list(range(9)) if rising else list(range(4999, 4990, -1))]


TYPES: dict[str, Any] = {"f16": np.float16, "f64": np.float64, "i8": np.int8, "i32": np.int32, "i64": np.int64}


def by_key(type_: str, length: int, begin: int, end: int, is_unsigned: bool) -> str:
    """Sorts columns of numbers of a type, largest first, with their places; those from ``begin`` to ``end``."""
    x, y = f"tensor<?x{length}x2x{type_}>", f"tensor<?x{length}x2xi32>"
    a, b = (f"tensor<?x{end - begin}x2x{of}>" for of in (type_, "i32"))
    order = "TOTALORDER" if type_[0] == "f" else "UNSIGNED" if is_unsigned else "SIGNED"
    scalar = f"tensor<{type_}>"
    return f"""
func.func @main(%x: {x}, %y: {y}) -> ({a}, {b}) {{
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : {x}
  %0:2 = "stablehlo.sort"(%x, %y) <{{dimension = 1 : i64, is_stable = true}}> ({{
  ^bb0(%a: {scalar}, %b: {scalar}, %c: tensor<i32>, %d: tensor<i32>):
    %less = stablehlo.compare GT, %a, %b, {order} : ({scalar}, {scalar}) -> tensor<i1>
    stablehlo.return %less : tensor<i1>
  }}) : ({x}, {y}) -> ({x}, {y})
  %1 = tensor.extract_slice %0#0[0, {begin}, 0] [%n, {end - begin}, 2] [1, 1, 1] : {x} to {a}
  %2 = tensor.extract_slice %0#1[0, {begin}, 0] [%n, {end - begin}, 2] [1, 1, 1] : {y} to {b}
  return %1, %2 : {a}, {b}
}}"""


@pytest.mark.sampled(10)
@pytest.mark.parametrize("device", ["cpu:0", "opencl:0"])
@pytest.mark.parametrize("type_", [*TYPES, "u32", "u8"])
@pytest.mark.parametrize(
    ("length", "begin", "end"), [(2, 0, 2), (70, 0, 70), (300, 2, 299), (300, 150, 151), (65, 64, 65)]
)
def test_sorts_by_one_number(device: str, type_: str, length: int, begin: int, end: int) -> None:
    """By counts of those before, by merges of runs, and one element by its bits; equals stay in their order."""
    rng = np.random.default_rng(length)
    of = type_.replace("u", "i")
    x = rng.integers(-20, 20, (3, length, 2)).astype(TYPES.get(of, np.int8))
    bits = x.view(f"i{x.itemsize}")
    key = bits.view(f"u{x.itemsize}") if type_[0] == "u" else x
    if type_[0] == "f":
        x[rng.random(x.shape) < 0.1] = -np.inf
        x[(x == 0) & (rng.random(x.shape) < 0.5)] = -0.0
        x[rng.random(x.shape) < 0.1] = np.nan
        key = np.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits)
    elif type_ != "u8":
        x[rng.random(x.shape) < 0.1] = np.iinfo(x.dtype).max
        x[rng.random(x.shape) < 0.1] = np.iinfo(x.dtype).min
    order = np.argsort(~key, axis=1, kind="stable")[:, begin:end]
    y = rng.integers(0, 1000, x.shape).astype(np.int32)
    with devscope.compile(
        by_key(of, length, begin, end, type_[0] == "u"), default=device, cache=False
    ) as executable:
        values, others = executable(x, y)
    np.testing.assert_array_equal(values.view(bits.dtype), np.take_along_axis(bits, order, 1))
    np.testing.assert_array_equal(others, np.take_along_axis(y, order, 1))


@pytest.mark.parametrize("device", ["cpu:0", "opencl:0"])
def test_merges_by_two_numbers(device: str) -> None:
    text = program((3, 100), 1, 100).replace(
        "    stablehlo.return %less",
        """    %equal = stablehlo.compare EQ, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %other = stablehlo.compare LT, %c, %d, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %tie = stablehlo.and %equal, %other : tensor<i1>
    %either = stablehlo.or %less, %tie : tensor<i1>
    stablehlo.return %either""",
    )
    rng = np.random.default_rng(0)
    x, y = rng.integers(1, 9, (3, 100)).astype(np.float32), rng.integers(-99, 99, (3, 100)).astype(np.int32)
    with devscope.compile(text, default=device, cache=False) as executable:
        values, others = executable(x, y)
    order = np.lexsort((y, x), axis=1)
    np.testing.assert_array_equal(values, np.take_along_axis(x, order, 1))
    np.testing.assert_array_equal(others, np.take_along_axis(y, order, 1))


@pytest.mark.parametrize(("begin", "end"), [(0, 300), (0, 5), (0, 1)])
def test_many_rows_are_sorted_by_several_tasks(begin: int, end: int) -> None:
    rng = np.random.default_rng(end)
    x = rng.integers(-99, 99, (600, 300, 2)).astype(np.float32)
    y = rng.integers(0, 1000, x.shape).astype(np.int32)
    with devscope.compile(by_key("f32", 300, begin, end, False), threads=3, cache=False) as executable:
        values, others = executable(x, y)
    order = np.argsort(-x, axis=1, kind="stable")[:, begin:end]
    np.testing.assert_array_equal(values, np.take_along_axis(x, order, 1))
    np.testing.assert_array_equal(others, np.take_along_axis(y, order, 1))
