"""Loops that become tasks: equal ones, and ones inside each other, of one function."""

from __future__ import annotations

import re

from devscope.lowering.interop.session import Session
from devscope.lowering.tasks import outline_tasks

LOOPS = """
func.func @main(%x: memref<8x8xf32>, %y: memref<8x8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
"""


def nest(read: str, operation: str, write: str) -> str:
    return f"""
  scf.parallel (%i) = (%c0) to (%c8) step (%c1) {{
    scf.parallel (%j) = (%c0) to (%c8) step (%c1) {{
      %v = memref.load {read}[%i, %j] : memref<8x8xf32>
      %w = arith.{operation} %v, %v : f32
      memref.store %w, {write}[%i, %j] : memref<8x8xf32>
    }}
  }}
"""


def test_equal_loops_are_one_task() -> None:
    session = Session()
    kinds = [("%x", "addf", "%y"), ("%x", "mulf", "%y"), ("%y", "addf", "%x"), ("%x", "addf", "%y")]
    nests = "".join(nest(*kind) for kind in kinds)
    module = session.parse(f"{LOOPS}{nests}  return\n}}")
    with session.context:
        outline_tasks(module)
    assert module.operation.verify()
    text = str(module)
    assert text.count("scf.parallel") == 0
    assert text.count("call @devscope_run_tasks") == len(kinds) + 2  # two functions have one inside
    defined = set(re.findall(r"func private @(devscope_task_\d+)\(", text))
    assert len(defined) == 4
    assert set(re.findall(r"constant @(devscope_task_\d+) ", text)) == defined
