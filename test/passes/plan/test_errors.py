"""Contradictory demands are errors that show both chains of reasons, with positions."""

from __future__ import annotations

import pytest

from devscope.errors import OptionError, PlanError
from devscope.passes.plan import PlanOptions, plan_module


def error_of(parse, text: str, arguments: str = "open") -> PlanError:
    module = parse(text)
    before = str(module)
    with pytest.raises(PlanError) as caught:
        plan_module(module, PlanOptions(arguments=arguments))
    assert str(module) == before, "a module that cannot be planned must not change"
    return caught.value


def test_two_annotations_of_one_operation(parse) -> None:
    error = error_of(
        parse,
        """func.func @main(%a: !t) -> !t {
          %n = arith.negf %a : !t loc("m.mlir":2:3)
          %0 = "device.on_device"(%n) {scope = #cpu0} : (!t) -> !t loc("m.mlir":3:3)
          %1 = "device.on_device"(%n) {scope = #gpu0} : (!t) -> !t loc("m.mlir":4:3)
          %2 = arith.subf %0, %1 : !t
          func.return %2 : !t
        }""",
    )
    assert str(error) == (
        "m.mlir:4:3: error: %n must be on cpu:0 and on cuda:0\n"
        "  note: %n must be on cpu:0 because 'device.on_device' (m.mlir:3:3) puts %n on cpu:0\n"
        "  note: and on cuda:0 because 'device.on_device' (m.mlir:4:3) puts %n on cuda:0\n"
        "  note: make the two scopes agree, drop one of them, or put a device.device_copy where the data may move"
    )


def test_attribute_against_fixed_annotation(parse) -> None:
    error = error_of(
        parse,
        """func.func @main(%a: !t) -> !t {
          %n = "ml.op"(%a) {device.scope = #gpu0} : (!t) -> !t loc("m.mlir":2:3)
          %0 = "device.on_device"(%n) {scope = #cpu0, constrain_result = true} : (!t) -> !t loc("m.mlir":3:3)
          func.return %0 : !t
        }""",
    )
    assert "device.scope on 'ml.op' (m.mlir:2:3) says cuda:0" in str(error)
    assert "'device.on_device' (m.mlir:3:3) puts %n on cpu:0" in str(error)


def test_two_call_sites(parse) -> None:
    """A function is on one scope; the error names both calls' annotations."""
    error = error_of(
        parse,
        """func.func private @f(%a: !t) -> !t {
          %0 = arith.negf %a : !t
          func.return %0 : !t
        }
        func.func @main(%x: !t, %y: !t) -> !t {
          %p = func.call @f(%x) : (!t) -> !t
          %1 = "device.on_device"(%p) {scope = #cpu0, constrain_result = true} : (!t) -> !t loc("m.mlir":7:3)
          %q = func.call @f(%y) : (!t) -> !t
          %3 = "device.on_device"(%q) {scope = #gpu0, constrain_result = true} : (!t) -> !t loc("m.mlir":9:3)
          %4 = arith.subf %1, %3 : !t
          func.return %4 : !t
        }""",
    )
    assert "m.mlir:7:3" in error.notes[0]
    assert "m.mlir:9:3" in error.notes[1]


def test_buffers_are_not_copied(parse) -> None:
    """The chain leads from the clash through a view to the buffer's own placement."""
    error = error_of(
        parse,
        """func.func @main(%x: !t) {
          %m = "memref.alloc"() {device.scope = #gpu0, operandSegmentSizes = array<i32: 0, 0>}
             : () -> memref<5x7xf32> loc("m.mlir":2:3)
          %k = "ml.touch"(%m) : (memref<5x7xf32>) -> memref<5x7xf32> loc("m.mlir":3:3)
          "ml.touch"(%k) {device.scope = #cpu0} : (memref<5x7xf32>) -> () loc("m.mlir":4:3)
          func.return
        }""",
    )
    assert error.message == "%k must be on cuda:0 and on cpu:0"
    assert error.notes[0] == (
        "%k must be on cuda:0 because 'ml.touch' (m.mlir:3:3) uses %m; "
        "device.scope on 'memref.alloc' (m.mlir:2:3) says cuda:0"
    )
    assert error.notes[1] == "and on cpu:0 because device.scope on 'ml.touch' (m.mlir:4:3) says cpu:0"


def test_parallel_loop_runs_on_one_scope(parse) -> None:
    text = """func.func @main(%x: !t) -> !t {
      %0 = "scf.forall"(%x) ({
        ^bb0(%i: index, %o: !t):
        %1 = "ml.op"(%o) {device.scope = #gpu0} : (!t) -> !t loc("m.mlir":4:3)
        "scf.forall.in_parallel"() ({ "ml.end"() : () -> () }) : () -> ()
      }) {device.scope = #cpu0} : (!t) -> !t loc("m.mlir":2:3)
      func.return %0 : !t
    }"""
    error = error_of(parse, text)
    assert "'scf.forall' (m.mlir:2:3) says cpu:0" in str(error)
    assert "'ml.op' (m.mlir:4:3) says cuda:0" in str(error)
    annotated = text.replace('"ml.op"(%o) {device.scope = #gpu0}', '"device.on_device"(%o) {scope = #gpu0}')
    assert "put device.scope on the 'scf.forall'" in str(error_of(parse, annotated))


def test_call_against_callee(parse) -> None:
    error = error_of(
        parse,
        """func.func private @f(%a: !t {device.scope = #cpu0}) -> !t {
          func.return %a : !t
        }
        func.func @main(%x: !t) -> !t {
          %0 = func.call @f(%x) {device.scope = #gpu0} : (!t) -> !t loc("m.mlir":5:3)
          func.return %0 : !t
        }""",
    )
    assert "device.scope on argument #0 of @f says cpu:0" in str(error)
    assert "device.scope on 'func.call' (m.mlir:5:3) says cuda:0" in str(error)


def test_not_a_scope(parse) -> None:
    error = error_of(
        parse,
        """func.func @main(%x: !t) {
          "ml.op"(%x) {device.scope = "gpu"} : (!t) -> () loc("m.mlir":2:3)
          func.return
        }""",
    )
    assert str(error).startswith("m.mlir:2:3: error: 'device.scope' on 'ml.op' is not a scope")


def test_unknown_function(parse) -> None:
    error = error_of(
        parse,
        """func.func @main(%x: !t) {
          func.call @missing(%x) : (!t) -> () loc("m.mlir":2:3)
          func.return
        }""",
    )
    assert str(error) == "m.mlir:2:3: error: 'func.call' names @missing, which is no func.func of this module"


@pytest.mark.parametrize("option", [{"arguments": "device"}, {"completion": "magic"}])
def test_options(option: dict[str, str]) -> None:
    with pytest.raises(OptionError, match="is not a value of"):
        PlanOptions(**option)
