"""The `Plan`, rules added by plugins, and size."""

from __future__ import annotations

import json

import pytest
from xdsl.dialects.arith import AddfOp
from xdsl.dialects.builtin import ModuleOp, TensorType, f32
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region

from devscope.dialects import op_facts
from devscope.dialects.device import SCOPE_ATTR, ScopeAttr
from devscope.passes.device_plan import plan_module, register_rule, rules
from devscope.passes.device_plan.domains import Domains
from devscope.passes.device_plan.scope_table import ScopeTable
from devscope.passes.device_verify import verify_module

MIXED = """func.func @main(%x: !t, %d: tensor<?xf32>) -> !t {
  %c = arith.constant dense<1.0> : !t
  %e = "ml.op"(%x) {device.scope = #dev0} : (!t) -> !t loc("m.mlir":3:3)
  "ml.op"(%d) {device.scope = #dev1} : (tensor<?xf32>) -> ()
  "ml.op"(%d) {device.scope = #dev0} : (tensor<?xf32>) -> ()
  %0 = arith.addf %e, %c : !t loc("m.mlir":6:3)
  func.return %0 : !t
}"""


def test_placements(plan) -> None:
    planned = plan(MIXED)
    assert [(p.op, p.scope.short(), p.reason) for p in planned.plan.placements] == [
        ("ml.op", "opencl:0", "device.scope on 'ml.op' (m.mlir:3:3) says opencl:0"),
        ("ml.op", "opencl:1", "device.scope on 'ml.op' says opencl:1"),
        ("ml.op", "opencl:0", "device.scope on 'ml.op' says opencl:0"),
        ("arith.addf", "cpu:0", "default scope"),
        ("arith.constant", "cpu:0", "made again on every scope that needs it"),
    ]


def test_copies(plan) -> None:
    planned = plan(MIXED)
    copies = [(c.value, c.src.short(), c.dst.short(), c.bytes, c.required_by) for c in planned.plan.copies]
    assert sorted(copies) == [
        ("%d", "opencl:1", "opencl:0", None, "'ml.op'"),
        ("%e", "opencl:0", "cpu:0", 140, "'arith.addf' (m.mlir:6:3)"),
    ]


def test_json(plan) -> None:
    data = json.loads(json.dumps(plan(MIXED).plan.to_json()))
    assert data["placements"][0] == {
        "op": "ml.op",
        "function": "main",
        "location": "m.mlir:3:3",
        "source_name": None,
        "made_of": [],
        "scope": "opencl:0",
        "reason": "device.scope on 'ml.op' (m.mlir:3:3) says opencl:0",
    }
    assert len(data["copies"]) == 2
    assert data["remarks"] == [
        "m.mlir:3:3: remark: no planning rule for 'ml.op'; all its operands and results are put on one scope"
    ]


def test_reasons_outlive_the_annotations(plan) -> None:
    """Annotations are gone after planning, and the plan still tells what they asked for."""
    planned = plan(
        """func.func @main(%x: !t) -> !t {
          %n = arith.negf %x : !t
          %0 = "device.on_device"(%n) {scope = #dev0} : (!t) -> !t loc("m.mlir":3:3)
          func.return %0 : !t
        }"""
    )
    (placement,) = planned.plan.placements
    assert placement.reason == "'device.on_device' (m.mlir:3:3) puts %n on opencl:0"


def test_scopes_on_scalar_code_are_dropped(plan) -> None:
    planned = plan(
        """func.func @main(%x: f32, %y: !t) -> f32 {
          %0 = "arith.addf"(%x, %x) {device.scope = #dev0} : (f32, f32) -> f32
          func.return %0 : f32
        }"""
    )
    assert planned.plan.placements == []
    assert planned.signature("main") == "-, cpu:0 -> -"


def test_register_rule(plan) -> None:
    """A plugin's row: its operation reads a table that is always on the host."""

    def lookup(system, op) -> None:
        rules.compute.compute(system, op, host_operands={1})

    text = """func.func @main(%x: !t, %table: !t) -> !t {
      %0 = "plugin.lookup"(%x, %table) {device.scope = #dev0} : (!t, !t) -> !t
      func.return %0 : !t
    }"""
    register_rule("plugin.lookup", lookup)
    try:
        planned = plan(text, verify=False)
        assert planned.signature("main") == "opencl:0, cpu:0 -> opencl:0"
        assert planned.plan.remarks == []
        register_rule("plugin", rules.compute.compute)
        del rules.RULES["plugin.lookup"]
        assert plan(text).signature("main") == "opencl:0, opencl:0 -> opencl:0"
    finally:
        rules.RULES.pop("plugin.lookup", None)
        rules.RULES.pop("plugin", None)


def test_control_flow_of_plugins(plan, monkeypatch) -> None:
    """One row of facts is enough: yields flow to results, for the planner and for device-verify."""
    monkeypatch.setattr(op_facts, "OPERATIONS", dict(op_facts.OPERATIONS))
    op_facts.register_facts("plugin.if", op_facts.Facts(control=op_facts.Control.CHOICE))
    op_facts.register_facts("plugin.yield", op_facts.Facts(control=op_facts.Control.YIELD))
    text = """func.func @main(%p: i1, %x: !t) -> !t {
      %0 = "plugin.if"(%p) ({
        %1 = "ml.a"(%x) {device.scope = #dev0} : (!t) -> !t
        "plugin.yield"(%1) : (!t) -> ()
      }, {
        %2 = "ml.b"(%x) {device.scope = #dev0} : (!t) -> !t
        "plugin.yield"(%2) : (!t) -> ()
      }) : (i1) -> !t
      %3 = "ml.c"(%0) {device.scope = #dev0} : (!t) -> !t
      func.return %3 : !t
    }"""
    try:
        assert plan(text).signature("main") == "-, opencl:0 -> opencl:0"
    finally:
        op_facts.facts.cache_clear()


def chain(length: int, every: int) -> ModuleOp:
    """``%n = addf %n-2, %n-1``, with every so-manieth operation placed on a device."""
    type_, device = TensorType(f32, [5, 7]), ScopeAttr.get("opencl", 0)
    block = Block(arg_types=[type_, type_])
    left, right = block.args
    for number in range(length):
        op = AddfOp(left, right)
        if every and number % every == 0:
            op.attributes[SCOPE_ATTR] = device
        block.add_op(op)
        left, right = right, op.result
    block.add_op(ReturnOp(right))
    return ModuleOp([FuncOp("main", ([type_, type_], [type_]), Region(block))])


@pytest.mark.parametrize(("every", "copies"), [(0, 0), (1, 0), (1000, 29)])
def test_long_chain(every: int, copies: int) -> None:
    """10,000 operations plan without recursion, so fast that a test can do it."""
    module = chain(10_000, every)
    planned = plan_module(module)
    assert len(planned.copies) == copies
    verify_module(module)


def test_deep_nesting(plan) -> None:
    """Control flow nested 60 deep; only a value deep inside is needed on the device."""
    depth = 60
    text = "%v = arith.negf %x : !t\n"
    text += "".join(f"scf.if %p {{\n%w{i} = arith.constant {i} : index\n" for i in range(depth))
    text += '"ml.op"(%v) {device.scope = #dev0} : (!t) -> ()\n' + "scf.yield\n}\n" * depth
    planned = plan(f"func.func @main(%x: !t, %p: i1) {{ {text} func.return }}")
    (copy,) = planned.plan.copies
    assert copy.operation.next_op is not None
    assert copy.operation.next_op.attributes[SCOPE_ATTR] == ScopeAttr.get("opencl", 0)


def test_trial_is_taken_back() -> None:
    domains = Domains(ScopeTable())
    scope = domains.scopes.number(ScopeAttr.get("cpu", 0))
    other = domains.scopes.number(ScopeAttr.get("cuda", 0))
    a, b, c, d = (domains.new(computes=i == 0) for i in range(4))
    domains.demand(a, scope, ("same", None, 0))
    domains.demand(d, other, ("same", None, 0))
    assert domains.unify(b, c, ("same", None, 0))
    with domains.trial():
        assert domains.unify(a, b, ("same", None, 0))
        assert domains.find(c) == domains.find(a)
        assert not domains.unify(c, d, ("same", None, 0))
    assert domains.find(c) == domains.find(b) != domains.find(a)
    assert domains.scope_of(c) == 0
    assert not domains.computes[domains.find(c)]
    assert domains.unify(c, d, ("same", None, 0))
    assert domains.scope_of(b) == other
