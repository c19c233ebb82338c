"""Guards of places that lie outside, in kernels that drivers compile for whole vectors of work-items."""

import numpy as np
import pytest

import devscope

#: One step of a nest: a place that may be outside, and what becomes of the carried ``%old`` where it is not.
_STEPS = {
    "place": """
      %element = tensor.extract %x[%place] : tensor<7000xi64>
      %wanted = arith.cmpi slt, %element, %none : i64
      %found = arith.index_cast %place : index to i64
      %new = arith.select %wanted, %found, %old : i64""",
    "sum": """
      %element = tensor.extract %x[%place] : tensor<7000xi64>
      %new = arith.addi %element, %old : i64""",
}
_GUARDS = {
    "unsigned": "%inside = arith.cmpi ult, %column, %c58 : index",
    "signed": """
      %after = arith.cmpi sge, %column, %c0 : index
      %before = arith.cmpi slt, %column, %c58 : index
      %inside = arith.andi %after, %before : i1""",
}


@pytest.mark.parametrize("guard", _GUARDS)
@pytest.mark.parametrize("step", _STEPS)
def test_guarded_places(step: str, guard: str) -> None:
    """Intel's driver for CPUs went from one vector to the next by an arbitrary distance."""
    text = f"""func.func @main(%x: tensor<7000xi64>) -> tensor<20x61xi64> {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c3 = arith.constant 3 : index
      %c8 = arith.constant 8 : index
      %c29 = arith.constant 29 : index
      %c58 = arith.constant 58 : index
      %none = arith.constant 0 : i64
      %e = tensor.empty() : tensor<20x61xi64>
      %0 = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>],
          iterator_types = ["parallel", "parallel"]}}
          outs(%e : tensor<20x61xi64>) {{
      ^bb0(%o: i64):
        %i = linalg.index 0 : index
        %j = linalg.index 1 : index
        %twice = arith.muli %j, %c2 : index
        %first = arith.subi %twice, %c1 : index
        %1 = scf.for %k = %c0 to %c3 step %c1 iter_args(%a = %none) -> i64 {{
          %2 = scf.for %l = %c0 to %c3 step %c1 iter_args(%old = %a) -> i64 {{
            %row = arith.addi %i, %k : index
            %begin = arith.muli %row, %c29 : index
            %column = arith.addi %first, %l : index
            %sum = arith.addi %begin, %column : index
            %place = arith.muli %sum, %c8 : index
            {_GUARDS[guard]}
            %3 = scf.if %inside -> i64 {{
              {_STEPS[step]}
              scf.yield %new : i64
            }} else {{
              scf.yield %old : i64
            }}
            scf.yield %3 : i64
          }}
          scf.yield %2 : i64
        }}
        linalg.yield %1 : i64
      }} -> tensor<20x61xi64>
      return %0 : tensor<20x61xi64>
    }}"""
    x = np.random.default_rng(0).integers(-5, 5, 7000)
    on_host, on_device = (devscope.run(text, x, default=scope, cache=False) for scope in ("cpu:0", "opencl:0"))
    np.testing.assert_array_equal(on_device, on_host)
