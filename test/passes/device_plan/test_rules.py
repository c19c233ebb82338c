"""What is planned and what is not, and what planning says about it."""

from __future__ import annotations

import pytest

from devscope.errors import PlanError
from devscope.passes.device_plan import plan_module


def test_a_module_inside_a_module_is_refused(parse) -> None:
    module = parse(
        """builtin.module {
          func.func @main(%x: !t) -> !t {
            func.return %x : !t
          }
          builtin.module @inner {
            func.func @main(%x: !t) -> !t {
              func.return %x : !t
            }
          } loc("m.mlir":5:3)
        }"""
    )
    before = str(module)
    with pytest.raises(PlanError, match="a module inside a module is not planned") as caught:
        plan_module(module)
    assert str(caught.value.location) == "m.mlir:5:3"
    assert str(module) == before


def test_device_code_is_left_alone(parse) -> None:
    module = parse(
        """builtin.module {
          func.func @main(%x: !t) -> !t {
            func.return %x : !t
          }
          "gpu.module"() <{sym_name = "kernels"}> ({
            func.func @inner(%x: !t) -> !t {
              %0 = "ml.op"(%x) : (!t) -> !t
              func.return %0 : !t
            }
          }) : () -> ()
        }"""
    )
    inner = str(module.body.block.last_op)
    plan_module(module)
    assert str(module.body.block.last_op) == inner


def test_a_read_back_is_visible(plan) -> None:
    """In the module, as the scope of the operation that reads, and as a remark."""
    planned = plan(
        """func.func @main(%x: !t, %i: index) -> f32 {
          %0 = "ml.op"(%x) {device.scope = #dev0} : (!t) -> !t
          %1 = tensor.extract %0[%i, %i] : !t loc("m.mlir":3:3)
          func.return %1 : f32
        }"""
    )
    assert planned.scopes() == "ml.op opencl:0, tensor.extract opencl:0"
    remarks = [str(remark) for remark in planned.plan.copy_remarks]
    assert "m.mlir:3:3: remark: 'tensor.extract' reads the result of 'ml.op' back from opencl:0" in remarks


def test_a_fixed_operand_comes_before_others(plan) -> None:
    """What an annotation or an explicit copy fixes is followed, not copied back to where other operands are."""
    for fixed in (
        '"device.on_device"(%c) {scope = #gpu0, constrain_result = true} : (!t) -> !t',
        '"device.device_copy"(%c) {src = #cpu0, dst = #gpu0} : (!t) -> !t',
    ):
        planned = plan(
            f"""func.func @main(%a: !t, %b: !t, %c: !t) -> !t {{
              %0 = {fixed}
              %1 = "ml.a"(%a, %b) : (!t, !t) -> !t
              %2 = "device.on_device"(%1) {{scope = #cpu0}} : (!t) -> !t
              %3 = "ml.b"(%b, %0) : (!t, !t) -> !t
              %4 = "ml.c"(%2, %3) : (!t, !t) -> !t
              func.return %4 : !t
            }}""",
            default="cuda:0",
        )
        assert planned.scopes() == "ml.a cpu:0, ml.b cuda:0, ml.c cuda:0"
