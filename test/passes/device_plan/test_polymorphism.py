"""Clones of functions: how many, why, and how planning copes with many functions."""

from __future__ import annotations

import pytest

from devscope.dialects.device import ScopeAttr
from devscope.errors import OptionError, PlanError
from devscope.passes.device_plan import PlanOptions, plan_module
from devscope.passes.device_verify import verify_module

_SHARED = """func.func private @f(%a: !t) -> !t {
  %0 = math.exp %a : !t
  func.return %0 : !t
} loc("m.mlir":1:1)
"""


def _calls(scopes: list[str]) -> str:
    arguments = ", ".join(f"%x{i}: !t {{device.scope = {scope}}}" for i, scope in enumerate(scopes))
    calls = "\n".join(
        f'%r{i} = func.call @f(%x{i}) : (!t) -> !t loc("m.mlir":9:{i + 1})' for i in range(len(scopes))
    )
    return f"{_SHARED}func.func @main({arguments}) {{\n{calls}\nfunc.return }}"


def test_each_clone_says_who_needs_it(plan) -> None:
    planned = plan(_calls(["#cpu0", "#gpu0", "#cpu0", "#dev1"]))
    assert [(clone.name, clone.original) for clone in planned.plan.clones] == [
        ("f_cuda_0", "f"),
        ("f_opencl_1", "f"),
    ]
    assert [clone.required_by for clone in planned.plan.clones] == [
        "'func.call' (m.mlir:9:2)",
        "'func.call' (m.mlir:9:4)",
    ]
    assert planned.copies() == []
    assert planned.signature("f_opencl_1") == "opencl:1 -> opencl:1"


def test_clones_get_names_that_are_free(plan) -> None:
    taken = "func.func private @f_cuda_0() { func.return }\nfunc.func private @f_cuda_0_1() { func.return }\n"
    planned = plan(taken + _calls(["#cpu0", "#gpu0"]))
    assert [clone.name for clone in planned.plan.clones] == ["f_cuda_0_2"]


def test_clones_are_not_called_like_a_global(plan) -> None:
    properties = 'sym_name = "f_cuda_0", sym_visibility = "private", type = memref<2xf32>, initial_value'
    planned = plan(f'"memref.global"() <{{{properties}}}> : () -> ()\n' + _calls(["#cpu0", "#gpu0"]))
    assert [clone.name for clone in planned.plan.clones] == ["f_cuda_0_1"]


def test_too_many_clones(parse) -> None:
    text = _calls(["#dev0", "#dev1", "#dev2", "#dev3"])
    module = parse(text)
    before = str(module)
    with pytest.raises(PlanError) as caught:
        plan_module(module, PlanOptions(clones=2))
    assert str(caught.value).startswith(
        "m.mlir:1:1: error: @f is used with more than 3 different assignments of scopes"
    )
    assert "option 'clones'" in str(caught.value)
    assert str(module) == before
    assert len(plan_module(parse(text), PlanOptions(clones=3)).clones) == 3


def test_a_negative_limit() -> None:
    with pytest.raises(OptionError, match="'clones' is -1"):
        PlanOptions(clones=-1)


def test_calls_that_double_at_every_level(plan) -> None:
    """2**40 paths through the call graph, two assignments for each function."""
    levels = 40
    functions = [_SHARED.replace("@f(", "@f0(")]
    for level in range(1, levels):
        functions.append(
            f"""func.func private @f{level}(%a: !t) -> !t {{
              %0 = func.call @f{level - 1}(%a) : (!t) -> !t
              %1 = func.call @f{level - 1}(%0) : (!t) -> !t
              func.return %1 : !t
            }}"""
        )
    planned = plan(
        "\n".join(functions)
        + f"""
        func.func @main(%x: !t {{device.scope = #cpu0}}, %y: !t {{device.scope = #gpu0}}) -> (!t, !t) {{
          %0 = func.call @f{levels - 1}(%x) : (!t) -> !t
          %1 = func.call @f{levels - 1}(%y) : (!t) -> !t
          func.return %0, %1 : !t, !t
        }}"""
    )
    assert len(planned.plan.clones) == levels
    assert planned.copies() == []


def test_a_long_chain_of_calls(parse) -> None:
    """Deeper than Python's stack."""
    functions = [_SHARED.replace("@f(", "@f0(")]
    for level in range(1, 1100):
        functions.append(
            f"""func.func private @f{level}(%a: !t) -> !t {{
              %0 = func.call @f{level - 1}(%a) : (!t) -> !t
              func.return %0 : !t
            }}"""
        )
    module = parse("\n".join(functions))
    planned = plan_module(module, PlanOptions(default=ScopeAttr.get("cuda", 0)))
    verify_module(module)
    assert [placement.scope.short() for placement in planned.placements] == ["cuda:0"]


def test_host_arguments_pin_the_public_function_only(plan) -> None:
    """What is called from outside takes host arrays; what is called from inside stays on the device."""
    planned = plan(
        """func.func @layer(%a: !t) -> !t {
          %0 = math.exp %a : !t
          func.return %0 : !t
        }
        func.func @main(%x: !t) -> !t {
          %0 = func.call @layer(%x) {device.scope = #dev0} : (!t) -> !t
          %1 = func.call @layer(%0) {device.scope = #dev0} : (!t) -> !t
          func.return %1 : !t
        }""",
        arguments="host",
    )
    assert planned.signature("layer") == "cpu:0 -> cpu:0"
    assert planned.signature("layer_opencl_0") == "opencl:0 -> opencl:0"
    assert planned.copies() == ["cpu:0>opencl:0", "opencl:0>cpu:0"]


def test_functions_that_pass_themselves(plan) -> None:
    """A function that is an argument of itself through another: one unit, planned once."""
    planned = plan(
        """func.func private @apply(%f: (!t) -> !t, %a: !t) -> !t {
          %0 = func.call_indirect %f(%a) : (!t) -> !t
          func.return %0 : !t
        }
        func.func private @self(%a: !t) -> !t {
          %f = func.constant @self : (!t) -> !t
          %0 = func.call @apply(%f, %a) : ((!t) -> !t, !t) -> !t
          %1 = arith.addf %0, %a : !t
          func.return %1 : !t
        }
        func.func @main(%x: !t {device.scope = #gpu0}, %y: !t {device.scope = #cpu0}) -> (!t, !t) {
          %0 = func.call @self(%x) : (!t) -> !t
          %1 = func.call @self(%y) : (!t) -> !t
          func.return %0, %1 : !t, !t
        }"""
    )
    assert planned.signature("self") == "cuda:0 -> cuda:0"
    assert planned.signature("self_cpu_0") == "cpu:0 -> cpu:0"
    assert planned.copies() == []


_APART = """func.func private @f(%a: !t, %i: index) -> !t {
  %0 = math.exp %a : !t
  %1 = "device.on_device"(%0) {scope = #any, constrain_body = false, constrain_result = false} : (!t) -> !t
  %2 = math.sin %1 : !t
  %c = arith.constant dense<1.0> : !t
  %3 = math.cos %c : !t
  %4 = tensor.extract %3[%i, %i] : !t
  func.return %2 : !t
}
"""


@pytest.mark.parametrize("completion", ["default", "min-cost"])
def test_a_placed_call_places_what_it_calls(parse, completion: str) -> None:
    """All of it, what the signature does not reach too, and nothing of what stands around the call."""
    module = parse(
        _APART
        + """func.func @main(%x: !t, %i: index) -> !t {
          %0 = math.tanh %x : !t
          %1 = func.call @f(%0, %i) {device.scope = #dev0} : (!t, index) -> !t
          %2 = math.absf %1 : !t
          func.return %2 : !t
        }"""
    )
    planned = plan_module(module, PlanOptions(arguments="host", completion=completion))
    verify_module(module)
    where = {placement.op: placement.scope.short() for placement in planned.placements}
    assert {where[f"math.{name}"] for name in ("exp", "sin", "cos")} == {"opencl:0"}
    assert {where[f"math.{name}"] for name in ("tanh", "absf")} == {"cpu:0"}
    assert len(planned.copies) == 2


def test_a_region_places_the_calls_in_it(plan) -> None:
    planned = plan(
        _SHARED
        + """func.func @main(%x: !t {device.scope = #cpu0}) -> (!t, !t) {
          %r = "device.region"() ({
            %0 = func.call @f(%x) : (!t) -> !t
            "device.yield"(%0) : (!t) -> ()
          }) {scope = #dev0} : () -> !t
          %1 = func.call @f(%x) : (!t) -> !t
          func.return %r, %1 : !t, !t
        }"""
    )
    assert planned.signature("f") == "opencl:0 -> opencl:0"
    assert planned.signature("f_cpu_0") == "cpu:0 -> cpu:0"


def test_what_a_function_says_of_its_body_holds_for_all_calls(plan) -> None:
    """Its operations stay where it says, the calls only move its arguments and results."""
    planned = plan(
        """func.func private @f(%a: !t) -> !t attributes {device.scope = #gpu0} {
          %0 = math.exp %a : !t
          func.return %0 : !t
        }
        func.func @main(%x: !t, %y: !t) -> (!t, !t) {
          %0 = func.call @f(%x) {device.scope = #dev0} : (!t) -> !t
          %1 = func.call @f(%y) {device.scope = #dev0} : (!t) -> !t
          func.return %0, %1 : !t, !t
        }"""
    )
    assert planned.plan.clones == []
    assert planned.scopes("f") == "math.exp cuda:0"
