"""Planning again after memory scopes were added: they spread, and existing copies get the ends that follow."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from module_text import generic, parse
from planned import Planned
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from devscope.dialects.device import SCOPE_ATTR, ScopeAttr
from devscope.dialects.names import op_name
from devscope.dialects.scope_attribute import ARGUMENTS, RESULTS, set_signature_attributes
from devscope.errors import PlanError
from devscope.passes.device_plan import PlanOptions, plan_module
from devscope.passes.device_verify import verify_module

PROGRAM = """func.func private @layer(%x: !t) -> !t {
  %0 = "ml.layer"(%x) : (!t) -> !t
  func.return %0 : !t
}
func.func @main(%x: !t, %y: !t) -> !t {
  %0 = "ml.a"(%x) {device.scope = #dev0} : (!t) -> !t
  %1 = func.call @layer(%0) : (!t) -> !t
  %2 = "ml.b"(%1, %y) : (!t, !t) -> !t
  %3 = "ml.c"(%2) {device.scope = #dev0} : (!t) -> !t
  func.return %3 : !t
}"""
LOWERED = """"func.func"() <{sym_name = "kernel", sym_visibility = "private",
  function_type = (!t, !t, !t) -> !t}> ({}) {device.lowered} : () -> ()
func.func @main(%x: !t, %y: !t, %z: !t) -> !t {
  %0 = "ml.a"(%x) {device.scope = #dev0} : (!t) -> !t
  %1 = func.call @kernel(%0, %y, %z) : (!t, !t, !t) -> !t
  %2 = "ml.b"(%1) {device.scope = #dev0} : (!t) -> !t
  func.return %2 : !t
}"""
Change = Callable[[ModuleOp], None]


def scope(text: str) -> ScopeAttr:
    return ScopeAttr.parse_text(text)


def replanned(text: str, change: Change, default: str) -> Planned:
    """Plan, change, plan again. The second outcome verifies, and planning it a third time changes nothing."""
    module, options = parse(text), PlanOptions(default=scope(default))
    plan_module(module, options)
    change(module)
    outcome = plan_module(module, options)
    verify_module(module)
    printed = generic(module)
    plan_module(module, options)
    assert generic(module) == printed
    return Planned(module, outcome)


def on_argument(name: str, text: str) -> Change:
    return on_signature(name, ARGUMENTS, [scope(text)])


def on_signature(name: str, side: str, scopes: Sequence[ScopeAttr | None]) -> Change:
    def change(module: ModuleOp) -> None:
        func = next(op for op in module.ops if isinstance(op, FuncOp) and op.sym_name.data == name)
        types = func.function_type.inputs if side == ARGUMENTS else func.function_type.outputs
        set_signature_attributes(func, side, [*scopes, *[None] * (len(types) - len(scopes))])

    return change


def on_op(name: str, text: str) -> Change:
    def change(module: ModuleOp) -> None:
        for op in module.walk():
            if op_name(op) == name:
                op.attributes[SCOPE_ATTR] = scope(text)

    return change


@pytest.mark.parametrize(
    ("change", "memory"),
    [
        (on_argument("main", "opencl:0@global"), "global"),
        (on_argument("layer", "opencl:0@texture"), "texture"),
        (on_signature("layer", RESULTS, [scope("opencl:0@global")]), "global"),
        (on_op("ml.b", "opencl:0@texture"), "texture"),
        (on_op("ml.layer", "opencl:0@texture"), "texture"),
    ],
    ids=["argument", "callee_argument", "callee_result", "operation", "operation_of_callee"],
)
def test_a_memory_spreads(change: Change, memory: str) -> None:
    """Where nothing else was said, naming a memory once costs no copy."""
    planned = replanned(PROGRAM, change, "opencl:0")
    at = f"opencl:0@{memory}"
    assert planned.signature("main") == f"{at}, {at} -> {at}"
    assert planned.signature("layer") == f"{at} -> {at}"
    assert planned.copies() == []


@pytest.mark.parametrize(
    ("change", "signature", "copies"),
    [
        (
            on_argument("main", "opencl:0@A"),
            "opencl:0@A, cpu:0 -> opencl:0",
            ["opencl:0@A>cpu:0", "cpu:0>opencl:0"],
        ),
        (on_op("ml.c", "opencl:0@A"), "opencl:0, cpu:0 -> opencl:0@A", ["opencl:0>cpu:0", "cpu:0>opencl:0@A"]),
        (
            on_argument("layer", "cpu:0@A"),
            "opencl:0, cpu:0@A -> opencl:0",
            ["opencl:0>cpu:0@A", "cpu:0@A>opencl:0"],
        ),
        (on_op("ml.b", "cpu:0@A"), "opencl:0, cpu:0@A -> opencl:0", ["opencl:0>cpu:0@A", "cpu:0@A>opencl:0"]),
    ],
    ids=["source", "destination", "callee", "between"],
)
def test_existing_copies_follow(change: Change, signature: str, copies: list[str]) -> None:
    """A copy of the first planning has closed ends, but for the memory; TVM's second run stumbles over them."""
    planned = replanned(PROGRAM, change, "cpu:0")
    assert planned.signature("main") == signature
    assert planned.copies() == copies


def test_a_second_memory_needs_a_copy() -> None:
    def change(module: ModuleOp) -> None:
        on_op("ml.a", "opencl:0@A")(module)
        on_op("ml.b", "opencl:0@B")(module)

    planned = replanned(PROGRAM, change, "opencl:0")
    assert planned.signature("main") == "opencl:0@A, opencl:0@B -> opencl:0@B"
    assert planned.copies() == ["opencl:0@A>opencl:0@B"]


def test_lowered_kernels() -> None:
    """Memories that lowering gave to the arguments of kernels reach those who call them."""

    def change(module: ModuleOp) -> None:
        memories = [scope("opencl:0@A"), scope("opencl:0"), scope("opencl:0@B")]
        on_signature("kernel", ARGUMENTS, memories)(module)
        on_signature("kernel", RESULTS, [scope("opencl:0@A")])(module)

    planned = replanned(LOWERED, change, "opencl:0")
    assert planned.signature("kernel") == "opencl:0@A, opencl:0, opencl:0@B -> opencl:0@A"
    assert planned.signature("main") == "opencl:0@A, opencl:0, opencl:0@B -> opencl:0@A"
    assert planned.copies() == []


def test_kernels_that_disagree() -> None:
    def change(module: ModuleOp) -> None:
        on_signature("kernel", ARGUMENTS, [scope("opencl:0@A")])(module)
        on_signature("kernel", RESULTS, [scope("opencl:0@C")])(module)
        on_op("ml.a", "opencl:0@B")(module)

    planned = replanned(LOWERED, change, "opencl:0")
    assert planned.copies() == ["opencl:0@B>opencl:0@A"]
    assert planned.signature("main") == "opencl:0@B, opencl:0, opencl:0 -> opencl:0@C"


def test_a_copy_that_the_first_planning_folded_comes_back() -> None:
    """Two memories of one device: a copy between them is one, though both are the same device."""
    text = """func.func @main(%x: !t {device.scope = #dev0}) -> !t {
      %0 = "device.device_copy"(%x) {src = #dev0, dst = #dev0@global} : (!t) -> !t
      %1 = "ml.a"(%0) : (!t) -> !t
      %2 = "ml.b"(%x) {device.scope = #dev0} : (!t) -> !t
      %3 = "ml.c"(%1, %2) : (!t, !t) -> !t
      func.return %3 : !t
    }"""
    planned = replanned(text, on_op("ml.b", "opencl:0@texture"), "opencl:0")
    verify_module(planned.module)
    assert set(planned.copies()) <= {"opencl:0@texture>opencl:0@global", "opencl:0@global>opencl:0@texture"}
    assert planned.copies()


def test_a_type_that_disagrees(parse) -> None:
    module = parse(
        """func.func @main(%m: memref<4xf32, "global">) {
          "ml.use"(%m) {device.scope = #dev0@texture} : (memref<4xf32, "global">) -> () loc("m.mlir":2:3)
          func.return
        }"""
    )
    with pytest.raises(PlanError, match="must be on @global and on opencl:0@texture") as caught:
        plan_module(module)
    assert "is in memory @global" in str(caught.value)


def test_what_passes_data_on_does_not_take_the_memory_of_the_default(plan) -> None:
    """By min-cost: `plan` checks that planning again, without the annotation, leaves the value where it is."""
    planned = plan(
        """func.func @main(%x: !t) -> !t {
          %r = "scf.execute_region"() ({
            %0 = "ml.exp"(%x) {device.scope = #dev0@global} : (!t) -> !t
            scf.yield %0 : !t
          }) : () -> !t
          %1 = "device.on_device"(%r) {scope = #dev@A} : (!t) -> !t
          %2 = "ml.log"(%1) {device.scope = #dev0@A} : (!t) -> !t
          func.return %2 : !t
        }""",
        "opencl:0@global",
        "host",
        completion="min-cost",
    )
    assert planned.copies() == ["cpu:0>opencl:0@global", "opencl:0@global>opencl:0@A", "opencl:0@A>cpu:0"]


def test_min_cost_knows_devices_that_only_types_name(plan) -> None:
    planned = plan(
        """func.func @main(%x: !t) -> !t {
          %b = "ml.make"() : () -> memref<5x7xf32, #dev0@global>
          %t = "ml.read"(%x, %b) : (!t, memref<5x7xf32, #dev0@global>) -> !t
          func.return %t : !t
        }""",
        completion="min-cost",
    )
    assert planned.scopes() == "ml.make opencl:0@global, ml.read opencl:0@global"
