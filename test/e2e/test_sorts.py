"""Sorts of many elements, along any dimension, and their first few, on the host and on a device."""

from __future__ import annotations

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
