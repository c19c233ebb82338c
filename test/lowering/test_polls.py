"""Where loops of the host ask whether a signal ends the call."""

from __future__ import annotations

import pytest

from devscope.lowering.interop.bindings import ir
from devscope.lowering.polls import poll_in_loops, poll_in_scalar_loops

PROGRAM = """
    func.func private @devscope_go_on()
    func.func private @work(f32)
    func.func @main(%x: memref<?xf32>, %y: memref<?xf32>, %a: memref<4xf32>, %b: memref<4xf32>,
        %n: index, %f: f32) {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      scf.for %i = %c0 to %n step %c1 {{
        {}
      }}
      return
    }}
"""


@pytest.mark.parametrize(
    ("body", "in_parts"),
    [
        ("memref.copy %a, %b : memref<4xf32> to memref<4xf32>", True),
        ("memref.copy %x, %y : memref<?xf32> to memref<?xf32>", False),
        ("func.call @work(%f) : (f32) -> ()", False),
    ],
)
def test_iterations_that_may_take_long_ask_each_time(body: str, in_parts: bool) -> None:
    module = ir.Module.parse(PROGRAM.format(body), ir.Context())
    poll_in_scalar_loops(module.operation)
    poll_in_loops(module.operation)
    text = str(module)
    assert text.count("scf.for") == 1 + in_parts
    assert text.count("call @devscope_go_on()") == 1
