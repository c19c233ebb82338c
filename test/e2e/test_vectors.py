"""Operations on vectors as programs have them: of several dimensions, with masks, at the ends of tensors."""

from __future__ import annotations

import numpy as np
import pytest

import devscope
from devscope.errors import ExecutionError, LoweringError


def test_masks_stay_apart() -> None:
    """The sum of some elements is not that of all."""
    made = devscope.compile("""
func.func @main(%a: tensor<8xf32>, %n: index) -> (f32, f32, f32) {
  %z = arith.constant 0.0 : f32
  %i = arith.constant 0 : index
  %x = vector.transfer_read %a[%i], %z : tensor<8xf32>, vector<8xf32>
  %all = vector.reduction <add>, %x : vector<8xf32> into f32
  %mask = vector.create_mask %n : vector<8xi1>
  %some = vector.mask %mask { vector.reduction <add>, %x : vector<8xf32> into f32 } : vector<8xi1> -> f32
  %less = vector.constant_mask [2] : vector<8xi1>
  %two = vector.mask %less { vector.reduction <add>, %x : vector<8xf32> into f32 } : vector<8xi1> -> f32
  return %all, %some, %two : f32, f32, f32
}
""")
    assert made(np.arange(1, 9, dtype=np.float32), 3) == (36, 6, 3)


def test_several_dimensions() -> None:
    made = devscope.compile("""
func.func @main(%a: tensor<?x9xf32>, %b: tensor<16x4xf32>, %i: index)
    -> (tensor<?x9xf32>, tensor<4x4xf32>, tensor<4xf32>) {
  %z = arith.constant 0.5 : f32
  %o = arith.constant 0 : index
  %none = arith.constant dense<0.0> : vector<4x4xf32>
  %lowest = arith.constant dense<-1.0e9> : vector<4xf32>
  %x = vector.transfer_read %a[%i, %o], %z {in_bounds = [false, false]} : tensor<?x9xf32>, vector<4x16xf32>
  %y = vector.transfer_read %b[%o, %o], %z {in_bounds = [true, true]} : tensor<16x4xf32>, vector<16x4xf32>
  %twice = arith.addf %x, %x : vector<4x16xf32>
  %0 = vector.transfer_write %twice, %a[%i, %o] {in_bounds = [false, false]} : vector<4x16xf32>, tensor<?x9xf32>
  %p = vector.contract {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>,
      affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"],
      kind = #vector.kind<add>} %x, %y, %none : vector<4x16xf32>, vector<16x4xf32> into vector<4x4xf32>
  %most = vector.multi_reduction <maximumf>, %x, %lowest [1] : vector<4x16xf32> to vector<4xf32>
  %e = tensor.empty() : tensor<4x4xf32>
  %1 = vector.transfer_write %p, %e[%o, %o] : vector<4x4xf32>, tensor<4x4xf32>
  %f = tensor.empty() : tensor<4xf32>
  %2 = vector.transfer_write %most, %f[%o] : vector<4xf32>, tensor<4xf32>
  return %0, %1, %2 : tensor<?x9xf32>, tensor<4x4xf32>, tensor<4xf32>
}
""")
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((5, 9)).astype(np.float32), rng.standard_normal((16, 4)).astype(np.float32)
    for i in (0, 2, 5):
        read = np.full((4, 16), 0.5, np.float32)
        read[: 5 - i, :9] = a[i : i + 4]
        written = a.copy()
        written[i : i + 4] *= 2
        found = made(a, b, i)
        np.testing.assert_array_equal(found[0], written)
        np.testing.assert_allclose(found[1], read @ b, rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(found[2], read.max(1))


def test_assumptions_are_checked() -> None:
    made = devscope.compile("""
func.func @main(%a: tensor<?xf32>, %b: tensor<?xf32>) -> tensor<?xf32> {
  %s = shape.shape_of %a : tensor<?xf32> -> tensor<1xindex>
  %t = shape.shape_of %b : tensor<?xf32> -> tensor<1xindex>
  %w = shape.cstr_eq %s, %t : tensor<1xindex>, tensor<1xindex>
  %0 = shape.assuming %w -> tensor<?xf32> {
    %1 = arith.negf %a : tensor<?xf32>
    shape.assuming_yield %1 : tensor<?xf32>
  }
  return %0 : tensor<?xf32>
}
""")
    x = np.arange(3, dtype=np.float32)
    np.testing.assert_array_equal(made(x, x), -x)
    with pytest.raises(ExecutionError, match="required equal shapes"):
        made(x, x[:2])


@pytest.mark.parametrize("default", ["cpu:0", "opencl:0"])
def test_other_ways_to_round_are_refused(default: str) -> None:
    text = """
func.func @main(%a: tensor<4xf64>) -> (tensor<4xf32>, tensor<4xf64>) {
  %0 = arith.truncf %a MODE : tensor<4xf64> to tensor<4xf32>
  %1 = arith.addf %a, %a MODE : tensor<4xf64>
  return %0, %1 : tensor<4xf32>, tensor<4xf64>
}
"""
    x = np.array([1.1, -1.1, 1e300, np.nan])
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(
            devscope.compile(text.replace("MODE", "to_nearest_even"), default=default)(x)[0], x.astype(np.float32)
        )
    with pytest.raises(LoweringError, match=r"cannot round downward in 'arith.truncf'"):
        devscope.compile(text.replace("MODE", "downward"), default=default)
