"""Warnings about copies inside loops, and that the better plan which they name is better."""

from __future__ import annotations

import re

import pytest

from devscope.dialects.device import DeviceCopyOp
from devscope.dialects.names import op_name

FOR = """func.func @main(%x: !t, %n: index) -> !t {
  %a = arith.constant 0 : index
  %b = arith.constant 1 : index
  %c = arith.constant 8 : index
  %r = scf.for %i = %a to %c step %b iter_args(%p = %x) -> (!t) {
    %q = "ml.exp"(%p) {device.scope = #dev0} : (!t) -> !t loc("m.mlir":6:3)
    %s = "ml.log"(%q) {here} : (!t) -> !t loc("m.mlir":7:3)
    %t = "ml.abs"(%s) {here} : (!t) -> !t loc("m.mlir":8:3)
    scf.yield %t : !t
  }
  func.return %r : !t
}"""

WHILE = """func.func @main(%x: !t, %n: index) -> !t {
  %a = arith.constant 0 : index
  %r = "scf.while"(%x) ({
  ^bb0(%p: !t):
    %e = tensor.extract %p[%a, %a] : !t
    %z = arith.constant 1.0 : f32
    %m = arith.cmpf olt, %e, %z : f32
    scf.condition(%m) %p : !t
  }, {
  ^bb0(%q: !t):
    %s = "ml.exp"(%q) {device.scope = #dev0} : (!t) -> !t loc("m.mlir":11:3)
    %t = "ml.log"(%s) {here} : (!t) -> !t loc("m.mlir":12:3)
    scf.yield %t : !t
  }) : (!t) -> !t
  func.return %r : !t
}"""

BLOCKS = """func.func @main(%x: !t, %n: index) -> !t {
  %a = arith.constant 0 : index
  %b = arith.constant 1 : index
  cf.br ^loop(%a, %x : index, !t)
^loop(%i: index, %p: !t):
  %q = "ml.exp"(%p) {device.scope = #dev0} : (!t) -> !t loc("m.mlir":6:3)
  %s = "ml.log"(%q) {here} : (!t) -> !t loc("m.mlir":7:3)
  %j = arith.addi %i, %b : index
  %m = arith.cmpi slt, %j, %n : index
  cf.cond_br %m, ^loop(%j, %s : index, !t), ^exit
^exit:
  func.return %s : !t
}"""


def warnings(plan, text: str, here: str = "") -> list:
    planned = plan(text.replace("{here}", here))
    return [remark for remark in planned.plan.remarks if remark.severity == "warning"]


def copies_in_loops(planned) -> int:
    """Copies inside of a loop operation, or in a block other than the first and the last one."""
    count = 0
    for op in planned.module.walk():
        block = op.parent
        if isinstance(op, DeviceCopyOp) and block is not None and block.parent is not None:
            in_block = block.parent.first_block is not block and block.parent.last_block is not block
            parent = block.parent_op()
            count += in_block or (parent is not None and op_name(parent).startswith("scf."))
    return count


@pytest.mark.parametrize("text", [FOR, WHILE, BLOCKS], ids=["for", "while", "blocks"])
def test_the_advice_holds(plan, text: str) -> None:
    """Placing what the warning names with the rest of the loop removes the loop's copies, and the warnings."""
    first, *others = warnings(plan, text)
    assert others
    assert copies_in_loops(plan(text.replace("{here}", ""))) == 1 + len(others)
    (note,) = first.notes
    named = set(re.findall(r"'(ml\\.\\w+)'", note.text))
    assert note.text.startswith("put 'ml.log'")
    assert note.text.endswith("on opencl:0 too: then the loop copies nothing")
    assert named <= {"ml.log", "ml.abs"}
    assert all(warning.notes == () for warning in others)
    assert copies_in_loops(plan(text.replace("{here}", "{device.scope = #dev0}"))) == 0
    assert warnings(plan, text, "{device.scope = #dev0}") == []


def test_what_a_warning_says(plan) -> None:
    first, second = warnings(plan, FOR)
    assert str(first) == (
        "m.mlir:6:3: warning: %p is copied from cpu:0 to opencl:0 in every iteration of 'scf.for': "
        "140 bytes each time, 8 times, asked for by 'ml.exp' (m.mlir:6:3)"
    )
    assert "%q is copied from opencl:0 to cpu:0" in second.message


def test_demands_on_both_sides(plan) -> None:
    """What the program asks for on two devices cannot be had without copies; the warning says what asks."""
    first, *_ = warnings(plan, FOR, "{device.scope = #cpu0}")
    assert [str(note) for note in first.notes] == [
        "m.mlir:7:3: 'ml.log' is there because device.scope on 'ml.log' (m.mlir:7:3) says cpu:0",
        "m.mlir:6:3: 'ml.exp' is there because device.scope on 'ml.exp' (m.mlir:6:3) says opencl:0",
        "with all of the loop on cpu:0 or opencl:0, it copies nothing",
    ]


def test_a_value_carried_where_nothing_computes(plan) -> None:
    """An annotation in the loop asks for the carried value on the host, where no operation of the loop is."""
    text = """func.func @main(%x: !t, %n: index) -> !t {
      %a = arith.constant 0 : index
      %b = arith.constant 1 : index
      %h = "ml.abs"(%x) {device.scope = #cpu0} : (!t) -> !t
      %r = scf.for %i = %a to %n step %b iter_args(%p = %h) -> (!t) {
        %q = "ml.exp"(%p) {device.scope = #dev0} : (!t) -> !t
        %s = "device.on_device"(%q) {scope = #cpu0, constrain_body = false, constrain_result = true}
           : (!t) -> !t loc("m.mlir":6:3)
        scf.yield %s : !t
      }
      %z = "ml.abs"(%r) {device.scope = #cpu0} : (!t) -> !t
      func.return %z : !t
    }"""
    first, *_ = warnings(plan, text)
    text_of_note = first.notes[0].text
    assert text_of_note.startswith("the loop computes nothing on cpu:0, but carries %p there because ")
    assert text_of_note.endswith("; carried on opencl:0, it is not copied in the loop")
    assert warnings(plan, text.replace("scope = #cpu0", "scope = #dev0")) == []


def test_copies_around_a_loop_are_not_worth_a_warning(plan) -> None:
    assert warnings(plan, FOR, "{device.scope = #dev0}") == []


def test_nested_loops_name_the_inner_one(plan) -> None:
    text = """func.func @main(%x: !t, %n: index) -> !t {
      %a = arith.constant 0 : index
      %b = arith.constant 1 : index
      %r = scf.for %i = %a to %n step %b iter_args(%p = %x) -> (!t) {
        %k = scf.for %j = %a to %n step %b iter_args(%q = %p) -> (!t) {
          %s = "ml.exp"(%q) {device.scope = #dev0} : (!t) -> !t
          %t = "ml.log"(%s) {device.scope = #cpu0} : (!t) -> !t
          scf.yield %t : !t
        } loc("m.mlir":5:3)
        scf.yield %k : !t
      } loc("m.mlir":4:3)
      func.return %r : !t
    }"""
    found = warnings(plan, text)
    assert found
    assert all("in every iteration of 'scf.for' (m.mlir:5:3)" in warning.message for warning in found)


def test_copies_of_dynamic_size(plan) -> None:
    found = warnings(plan, FOR.replace("!t", "tensor<?xf32>"))
    assert all("a size known at run time only" in warning.message for warning in found)


def test_copies_in_functions_that_a_loop_calls(plan) -> None:
    """Directly or through others, but not those that nothing in a loop calls."""
    text = """func.func private @inner(%x: !t) -> !t {
      %0 = "ml.exp"(%x) {device.scope = #dev0} : (!t) -> !t loc("m.mlir":2:3)
      %1 = "ml.log"(%0) {device.scope = #cpu0} : (!t) -> !t loc("m.mlir":3:3)
      func.return %1 : !t
    }
    func.func private @outer(%x: !t) -> !t {
      %0 = func.call @inner(%x) : (!t) -> !t
      func.return %0 : !t
    }
    func.func @main(%x: !t, %n: index) -> !t {
      %a = arith.constant 0 : index
      %b = arith.constant 1 : index
      %r = scf.for %i = %a to %n step %b iter_args(%p = %x) -> (!t) {
        %k = func.call @outer(%p) : (!t) -> !t loc("m.mlir":14:3)
        scf.yield %k : !t
      } loc("m.mlir":13:3)
      func.return %r : !t
    }"""
    found = [warning for warning in warnings(plan, text) if "every run of @inner" in warning.message]
    assert [warning.location.line for warning in found] == [3]
    assert (
        "in every run of @inner, which 'func.call' (m.mlir:14:3) starts in every iteration of "
        "'scf.for' (m.mlir:13:3): 140 bytes each time" in found[0].message
    )
    assert warnings(plan, text.replace("func.call @outer(%p) : (!t) -> !t", '"ml.abs"(%p) : (!t) -> !t')) == []
