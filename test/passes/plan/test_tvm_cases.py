"""The cases of TVM's planner tests, in MLIR: the same scopes everywhere, and no more copies."""

from __future__ import annotations

from typing import NamedTuple

import pytest


class Case(NamedTuple):
    text: str
    signatures: dict[str, str]
    copies: list[str]
    default: str = "cuda:0"


G, C = "cuda:0", "cpu:0"

CASES = {
    "plain": Case(
        """func.func @main(%a: !t, %b: !t, %c: !t, %d: !t) -> !t {
          %0 = arith.addf %a, %b : !t
          %1 = arith.addf %c, %d : !t
          %2 = arith.subf %0, %1 : !t
          func.return %2 : !t
        }""",
        {"main": f"{G}, {G}, {G}, {G} -> {G}"},
        [],
    ),
    "left_add_on_cpu": Case(
        """func.func @main(%a: !t, %b: !t, %c: !t, %d: !t) -> !t {
          %0 = arith.addf %a, %b : !t
          %1 = "device.on_device"(%0) {scope = #cpu0} : (!t) -> !t
          %2 = arith.addf %c, %d : !t
          %3 = arith.subf %1, %2 : !t
          func.return %3 : !t
        }""",
        {"main": f"{C}, {C}, {G}, {G} -> {G}"},
        ["cpu:0>cuda:0"],
    ),
    "left_add_on_cpu_via_copy": Case(
        """func.func @main(%a: !t, %b: !t, %c: !t, %d: !t) -> !t {
          %0 = arith.addf %a, %b : !t
          %1 = "device.device_copy"(%0) {src = #cpu0, dst = #gpu0} : (!t) -> !t
          %2 = arith.addf %c, %d : !t
          %3 = arith.subf %1, %2 : !t
          func.return %3 : !t
        }""",
        {"main": f"{C}, {C}, {G}, {G} -> {G}"},
        ["cpu:0>cuda:0"],
    ),
    "both_adds_on_cpu": Case(
        """func.func @main(%a: !t, %b: !t, %c: !t, %d: !t) -> !t {
          %0 = arith.addf %a, %b : !t
          %1 = arith.addf %c, %d : !t
          %2 = "device.on_device"(%0) {scope = #cpu0} : (!t) -> !t
          %3 = "device.on_device"(%1) {scope = #cpu0} : (!t) -> !t
          %4 = arith.subf %2, %3 : !t
          func.return %4 : !t
        }""",
        {"main": f"{C}, {C}, {C}, {C} -> {G}"},
        ["cpu:0>cuda:0"] * 2,
    ),
    "sharing": Case(
        """func.func @main(%a: !t, %b: !t) -> !t {
          %0 = arith.addf %a, %b : !t
          %1 = "device.on_device"(%0) {scope = #cpu0} : (!t) -> !t
          %2 = arith.subf %1, %1 : !t
          func.return %2 : !t
        }""",
        {"main": f"{C}, {C} -> {G}"},
        ["cpu:0>cuda:0"],
    ),
    "producers_of_an_annotated_value": Case(
        """func.func @main(%a: !t, %b: !t, %c: !t) -> !t {
          %0 = arith.negf %a : !t
          %1 = arith.addf %0, %b : !t
          %2 = "device.on_device"(%1) {scope = #cpu0} : (!t) -> !t
          %3 = arith.subf %2, %c : !t
          func.return %3 : !t
        }""",
        {"main": f"{C}, {C}, {G} -> {G}"},
        ["cpu:0>cuda:0"],
    ),
    "func_param_on_cpu": Case(
        """func.func private @f(%x: !t, %y: !t) -> !t {
          %0 = arith.addf %x, %y : !t
          %1 = "device.on_device"(%0) {scope = #cpu0} : (!t) -> !t
          func.return %1 : !t
        }
        func.func @main(%a: !t, %b: !t, %c: !t, %d: !t) -> !t {
          %0 = func.call @f(%a, %b) : (!t, !t) -> !t
          %1 = arith.addf %c, %d : !t
          %2 = arith.subf %0, %1 : !t
          func.return %2 : !t
        }""",
        {"main": f"{C}, {C}, {C}, {C} -> {C}", "f": f"{C}, {C} -> {C}"},
        [],
    ),
    "higher_order": Case(
        """func.func private @f_inner(%g: (!t) -> !t, %x: !t, %a: !t) -> !t {
          %0 = "device.on_device"(%a) {scope = #cpu0} : (!t) -> !t
          %1 = "func.call_indirect"(%g, %0) : ((!t) -> !t, !t) -> !t
          %2 = arith.addf %1, %x : !t
          func.return %2 : !t
        }
        func.func private @h(%b: !t) -> !t {
          %0 = arith.negf %b : !t
          func.return %0 : !t
        }
        func.func @main(%x: !t, %y: !t) -> !t {
          %h = "func.constant"() {value = @h} : () -> ((!t) -> !t)
          %f = "func.constant"() {value = @f_inner} : () -> (((!t) -> !t, !t, !t) -> !t)
          %0 = "func.call_indirect"(%f, %h, %x, %y) : (((!t) -> !t, !t, !t) -> !t, (!t) -> !t, !t, !t) -> !t
          %1 = arith.subf %x, %0 : !t
          func.return %1 : !t
        }""",
        {"main": f"{G}, {C} -> {G}", "f_inner": f"{G}, {G}, {C} -> {G}", "h": f"{G} -> {G}"},
        ["cpu:0>cuda:0"],
    ),
    "function_in_tuple": Case(
        """func.func private @f(%a: !t, %b: !t) -> !t {
          %0 = "device.on_device"(%b) {scope = #cpu0} : (!t) -> !t
          %1 = arith.addf %a, %0 : !t
          func.return %1 : !t
        }
        func.func @main(%x: !t, %y: !t) -> !t {
          %f = "func.constant"() {value = @f} : () -> ((!t, !t) -> !t)
          %t = "rt.tuple"(%f, %x) : ((!t, !t) -> !t, !t) -> tuple<(!t, !t) -> !t, !t>
          %1 = "rt.tuple_get"(%t) {index = 1} : (tuple<(!t, !t) -> !t, !t>) -> !t
          %2 = "rt.tuple_get"(%t) {index = 0} : (tuple<(!t, !t) -> !t, !t>) -> ((!t, !t) -> !t)
          %3 = "func.call_indirect"(%2, %1, %y) : ((!t, !t) -> !t, !t, !t) -> !t
          func.return %3 : !t
        }""",
        {"main": f"{C}, {C} -> {C}", "f": f"{C}, {C} -> {C}"},
        [],
    ),
    "device_copy": Case(
        """func.func @main(%x: !t) -> !t {
          %0 = "device.device_copy"(%x) {src = #cpu0, dst = #gpu0} : (!t) -> !t
          %c = arith.constant dense<1.0> : !t
          %1 = arith.addf %0, %c : !t
          func.return %1 : !t
        }""",
        {"main": f"{C} -> {G}"},
        ["cpu:0>cuda:0"],
    ),
    "shape_of": Case(
        """func.func @main(%x: tensor<?x?xf32>) -> tensor<2xindex> {
          %0 = "device.on_device"(%x) {scope = #gpu0, constrain_result = true}
             : (tensor<?x?xf32>) -> tensor<?x?xf32>
          %1 = "shape.shape_of"(%0) : (tensor<?x?xf32>) -> tensor<2xindex>
          func.return %1 : tensor<2xindex>
        }""",
        {"main": f"{G} -> {C}"},
        [],
    ),
    "alloc_storage": Case(
        """func.func @main(%size: index) -> memref<?xi8> {
          %0 = "memref.alloc"(%size) {alignment = 64 : i64, operandSegmentSizes = array<i32: 1, 0>,
                                      device.scope = #gpu0} : (index) -> memref<?xi8>
          func.return %0 : memref<?xi8>
        }""",
        {"main": f"- -> {G}"},
        [],
    ),
    "reshape_tensor": Case(
        """func.func @main(%x: tensor<2x8xf32>) -> tensor<2x4x2xf32> {
          %s = arith.constant dense<[2, 4, 2]> : tensor<3xi64>
          %0 = "tensor.reshape"(%x, %s) : (tensor<2x8xf32>, tensor<3xi64>) -> tensor<2x4x2xf32>
          func.return %0 : tensor<2x4x2xf32>
        }""",
        {"main": f"{G} -> {G}"},
        [],
    ),
    "redundant_annotation": Case(
        """func.func @main(%x: !t, %y: !t, %z: !t) -> !t {
          %0 = arith.addf %x, %y : !t
          %1 = "device.on_device"(%0) {scope = #cpu0} : (!t) -> !t
          %2 = arith.subf %1, %z : !t
          %3 = "device.on_device"(%0) {scope = #cpu0} : (!t) -> !t
          %4 = arith.addf %2, %3 : !t
          func.return %4 : !t
        }""",
        {"main": f"{C}, {C}, {G} -> {G}"},
        ["cpu:0>cuda:0"],
    ),
    "annotate_expr": Case(
        """func.func @main(%x: !t, %y: !t, %z: !t) -> !t {
          %0 = arith.addf %x, %y : !t
          %1 = "device.on_device"(%0) {scope = #gpu0} : (!t) -> !t
          %2 = arith.subf %1, %z : !t
          %3 = "device.on_device"(%2) {scope = #cpu0} : (!t) -> !t
          func.return %3 : !t
        }""",
        {"main": f"{G}, {G}, {C} -> {C}"},
        ["cuda:0>cpu:0"],
    ),
    "annotate_all": Case(
        """func.func @main(%x: !t, %y: !t, %z: !t) -> !t {
          %0 = arith.addf %x, %y : !t
          %1 = "device.on_device"(%0) {scope = #cpu0} : (!t) -> !t
          %2 = arith.subf %1, %z : !t
          %3 = "device.on_device"(%2) {scope = #cpu0} : (!t) -> !t
          func.return %3 : !t
        }""",
        {"main": f"{C}, {C}, {C} -> {C}"},
        [],
    ),
    "conv_network": Case(
        """func.func @main(%d1: !t, %d2: !t, %w: !t) -> !t {
          %0 = "ml.conv2d"(%d1, %w) : (!t, !t) -> !t
          %1 = "ml.conv2d"(%d2, %w) : (!t, !t) -> !t
          %2 = "device.on_device"(%0) {scope = #cpu0} : (!t) -> !t
          %3 = "device.on_device"(%1) {scope = #cpu0} : (!t) -> !t
          %4 = arith.addf %2, %3 : !t
          %5 = "device.on_device"(%4) {scope = #gpu0} : (!t) -> !t
          %6 = "ml.conv2d"(%5, %w) : (!t, !t) -> !t
          %7 = "device.on_device"(%6) {scope = #cpu0} : (!t) -> !t
          func.return %7 : !t
        }""",
        {"main": f"{C}, {C}, {C} -> {C}"},
        ["cpu:0>cuda:0", "cpu:0>cuda:0", "cuda:0>cpu:0"],
    ),
    "unpropagatable_graph": Case(
        """func.func @main(%a: !t, %b: !t, %c: !t, %d: !t) -> !t {
          %0 = arith.addf %a, %b : !t
          %1 = arith.mulf %c, %d : !t
          %2 = "device.on_device"(%0) {scope = #cpu0} : (!t) -> !t
          %3 = "device.on_device"(%1) {scope = #gpu0} : (!t) -> !t
          %4 = arith.subf %2, %3 : !t
          %5 = "device.on_device"(%4) {scope = #cpu0} : (!t) -> !t
          func.return %5 : !t
        }""",
        {"main": f"{C}, {C}, {G}, {G} -> {C}"},
        ["cuda:0>cpu:0"],
    ),
    "conditional": Case(
        """func.func private @f(%a: !t, %y: !t) -> !t {
          %0 = "device.on_device"(%y) {scope = #cpu0, constrain_result = true} : (!t) -> !t
          %1 = arith.addf %a, %0 : !t
          func.return %1 : !t
        }
        func.func private @g(%a1: !t, %y: !t) -> !t {
          %0 = arith.subf %a1, %y : !t
          func.return %0 : !t
        }
        func.func @main(%x: i1, %y: !t, %z: !t) -> !t {
          %f = "func.constant"() {value = @f} : () -> ((!t, !t) -> !t)
          %g = "func.constant"() {value = @g} : () -> ((!t, !t) -> !t)
          %h = "scf.if"(%x) ({
            scf.yield %f : (!t, !t) -> !t
          }, {
            scf.yield %g : (!t, !t) -> !t
          }) : (i1) -> ((!t, !t) -> !t)
          %0 = "func.call_indirect"(%h, %z, %y) : ((!t, !t) -> !t, !t, !t) -> !t
          func.return %0 : !t
        }""",
        {"main": f"-, {C}, {C} -> {C}", "f": f"{C}, {C} -> {C}", "g": f"{C}, {C} -> {C}"},
        [],
    ),
    "ref": Case(
        """func.func @main(%x: !t, %y: !t) -> !t {
          %r = memref.alloc() : memref<5x7xf32>
          "rt.ref_write"(%x, %r) : (!t, memref<5x7xf32>) -> ()
          %0 = "device.on_device"(%y) {scope = #cpu0} : (!t) -> !t
          "rt.ref_write"(%0, %r) : (!t, memref<5x7xf32>) -> ()
          %1 = "bufferization.to_tensor"(%r) : (memref<5x7xf32>) -> !t
          %2 = arith.addf %x, %1 : !t
          func.return %2 : !t
        }""",
        {"main": f"{G}, {C} -> {G}"},
        ["cpu:0>cuda:0"],
    ),
    "free_on_device": Case(
        """func.func @on_scope_b(%x: !t {device.scope = #cpu0@B}) -> (!t {device.scope = #cpu0@B}) {
          func.return %x : !t
        }
        func.func @main(%a: !t {device.scope = #cpu0}, %b: !t {device.scope = #cpu0@A},
                        %c: !t {device.scope = #cpu0@B}) -> (!t {device.scope = #cpu0@A}) {
          %0 = "device.on_device"(%a) {scope = #any, constrain_body = false} : (!t) -> !t
          %1 = func.call @on_scope_b(%0) : (!t) -> !t
          %2 = "device.on_device"(%b) {scope = #any, constrain_body = false} : (!t) -> !t
          %3 = func.call @on_scope_b(%2) : (!t) -> !t
          %4 = "device.on_device"(%c) {scope = #any, constrain_body = false} : (!t) -> !t
          %5 = func.call @on_scope_b(%4) : (!t) -> !t
          %6 = arith.addf %1, %3 : !t
          %7 = arith.addf %6, %5 : !t
          %8 = "device.on_device"(%7) {scope = #any, constrain_body = false} : (!t) -> !t
          func.return %8 : !t
        }""",
        {"main": "cpu:0@B, cpu:0@A, cpu:0@B -> cpu:0@A", "on_scope_b": "cpu:0@B -> cpu:0@B"},
        ["cpu:0@A>cpu:0@B", "cpu:0@B>cpu:0@A"],
        default="cpu:0",
    ),
    "lowered": Case(
        """"func.func"() <{sym_name = "gem", sym_visibility = "private", function_type = (!t, !t, !t) -> !t,
            arg_attrs = [{device.scope = #any@A}, {}, {device.scope = #any@B}],
            res_attrs = [{device.scope = #any@A}]}> ({}) {device.lowered} : () -> ()
        func.func @main(%x: !t {device.scope = #cpu0}, %y: !t {device.scope = #cpu0@B},
                        %z: !t {device.scope = #cpu0@A}) -> (!t {device.scope = #cpu0@B}) {
          %0 = func.call @gem(%x, %y, %z) : (!t, !t, !t) -> !t
          func.return %0 : !t
        }""",
        {"main": "cpu:0@A, cpu:0@B, cpu:0@A -> cpu:0@B", "gem": "cpu:0@A, cpu:0@B, cpu:0@B -> cpu:0@A"},
        ["cpu:0@A>cpu:0@B", "cpu:0@A>cpu:0@B"],
        default="cpu:0",
    ),
    "primitive": Case(
        """func.func private @p0(%a: !t) -> !t attributes {device.primitive} {
          %0 = "ml.layout_transform"(%a) : (!t) -> !t
          func.return %0 : !t
        }
        func.func private @p5(%a: !t {device.scope = #any@global}, %b: !t {device.scope = #any@global})
              -> (!t {device.scope = #any@texture}) attributes {device.primitive} {
          %0 = arith.addf %a, %b : !t
          func.return %0 : !t
        }
        func.func private @p10(%a: !t) -> (!t {device.scope = #any@global}) attributes {device.primitive} {
          %0 = "ml.layout_transform"(%a) : (!t) -> !t
          func.return %0 : !t
        }
        func.func @main(%d1: !t, %d2: !t) -> !t {
          %1 = func.call @p0(%d1) : (!t) -> !t
          %3 = func.call @p0(%d2) : (!t) -> !t
          %6 = func.call @p5(%1, %3) : (!t, !t) -> !t
          %10 = func.call @p10(%6) : (!t) -> !t
          func.return %10 : !t
        }""",
        {
            "main": "cuda:0@global, cuda:0@global -> cuda:0@global",
            "p5": "cuda:0@global, cuda:0@global -> cuda:0@texture",
            "p10": "cuda:0@texture -> cuda:0@global",
        },
        [],
    ),
    "conflicated_inputs": Case(
        """func.func @main(%a: !t, %b: !t, %c: !t) -> !t {
          %0 = arith.addf %a, %b : !t
          %1 = "device.on_device"(%0) {scope = #cpu0} : (!t) -> !t
          %2 = arith.addf %b, %c : !t
          %3 = "device.on_device"(%2) {scope = #gpu0} : (!t) -> !t
          %4 = arith.subf %1, %3 : !t
          func.return %4 : !t
        }""",
        {"main": f"{C}, {C}, {G} -> {G}"},
        ["cpu:0>cuda:0"] * 2,
    ),
    # What TVM gets wrong.
    "third_unannotated_use": Case(
        """func.func @main(%a: !t, %b: !t, %c: !t, %d: !t) -> !t {
          %0 = arith.addf %a, %b : !t
          %1 = "device.on_device"(%0) {scope = #cpu0} : (!t) -> !t
          %2 = arith.addf %b, %c : !t
          %3 = "device.on_device"(%2) {scope = #gpu0} : (!t) -> !t
          %4 = arith.subf %1, %3 : !t
          %5 = arith.addf %b, %d : !t
          %6 = arith.mulf %4, %5 : !t
          func.return %6 : !t
        }""",
        {"main": f"{C}, {C}, {G}, {G} -> {G}"},
        ["cpu:0>cuda:0"] * 2,
    ),
    "direct_double_annotation": Case(
        """func.func @main(%b: !t) -> !t {
          %0 = "device.on_device"(%b) {scope = #cpu0} : (!t) -> !t
          %1 = "device.on_device"(%b) {scope = #gpu0} : (!t) -> !t
          %2 = arith.subf %0, %1 : !t
          func.return %2 : !t
        }""",
        {"main": f"{C} -> {G}"},
        ["cpu:0>cuda:0"],
    ),
    "alias_annotation_lost": Case(
        """func.func @main(%x: !t) -> !t {
          %0 = "device.on_device"(%x) {scope = #cpu0} : (!t) -> !t
          func.return %0 : !t
        }""",
        {"main": f"{C} -> {C}"},
        [],
    ),
    "scope_leak": Case(
        """func.func @main(%a: !t, %b: !t) -> (!t {device.scope = #gpu0@texture}) {
          %0 = "device.device_copy"(%a) {src = #cpu0, dst = #gpu0@texture} : (!t) -> !t
          %1 = arith.addf %0, %b : !t
          func.return %1 : !t
        }""",
        {"main": "cpu:0, cuda:0@texture -> cuda:0@texture"},
        ["cpu:0>cuda:0@texture"],
    ),
    "mixed_param_callee": Case(
        """func.func private @f(%a: !t, %b: !t) -> !t {
          %0 = arith.negf %a : !t
          %1 = "device.on_device"(%0) {scope = #cpu0} : (!t) -> !t
          %2 = arith.addf %1, %b : !t
          func.return %2 : !t
        }
        func.func @main(%x: !t, %y: !t) -> !t {
          %0 = func.call @f(%x, %y) : (!t, !t) -> !t
          func.return %0 : !t
        }""",
        {"main": f"{C}, {G} -> {G}", "f": f"{C}, {G} -> {G}"},
        ["cpu:0>cuda:0"],
    ),
    "arms_differ": Case(
        """func.func @main(%p: i1, %x: !t, %y: !t) -> !t {
          %0 = "scf.if"(%p) ({
            %1 = arith.negf %x : !t
            %2 = "device.on_device"(%1) {scope = #cpu0} : (!t) -> !t
            scf.yield %2 : !t
          }, {
            %3 = arith.negf %y : !t
            %4 = "device.on_device"(%3) {scope = #gpu0} : (!t) -> !t
            scf.yield %4 : !t
          }) : (i1) -> !t
          func.return %0 : !t
        }""",
        {"main": f"-, {C}, {G} -> {G}"},
        ["cpu:0>cuda:0"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_case(name: str, plan) -> None:
    case = CASES[name]
    planned = plan(case.text, case.default)
    assert {function: planned.signature(function) for function in case.signatures} == case.signatures
    assert planned.copies() == case.copies
    assert [f"{copy.src.short()}>{copy.dst.short()}" for copy in planned.plan.copies] == case.copies


def test_function_order_and_names_do_not_matter(plan) -> None:
    """Two callers disagree about a shared function's argument: the same one wins in any order."""
    shared = """func.func private @NAME(%x: !t) -> !t {
      %0 = arith.negf %x : !t
      func.return %0 : !t
    }"""
    callers = [
        """func.func @A(%x: !t) -> !t {
          %0 = "device.on_device"(%x) {scope = #cpu0, constrain_result = true} : (!t) -> !t
          %1 = func.call @NAME(%0) : (!t) -> !t
          func.return %1 : !t
        }""",
        """func.func @B(%x: !t) -> !t {
          %0 = "device.on_device"(%x) {scope = #gpu0, constrain_result = true} : (!t) -> !t
          %1 = func.call @NAME(%0) : (!t) -> !t
          func.return %1 : !t
        }""",
    ]
    outcomes = {
        (planned.signature("A"), planned.signature("B"), planned.signature(name))
        for name in ("f", "zz")
        for order in ((0, 1, 2), (1, 0, 2), (2, 1, 0), (0, 2, 1))
        for planned in [
            plan("\n".join([callers[0], callers[1], shared][i] for i in order).replace("@NAME", f"@{name}"))
        ]
    }
    assert len(outcomes) == 1
