"""`ScopeAnalysis` reads a module's scopes without the planner's help."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.parser import Parser

from devscope.analysis.scope_analysis import ScopeAnalysis
from devscope.dialects.context import make_context
from devscope.dialects.names import op_name

HEAD = """
builtin.module {
  func.func private @f(%g: (tensor<4xf32>) -> tensor<4xf32>, %x: tensor<4xf32> {device.scope = DEV})
      -> (tensor<4xf32> {device.scope = DEV}) {
    %in_f = "func.call_indirect"(%g, %x) : ((tensor<4xf32>) -> tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    func.return %in_f : tensor<4xf32>
  }
  func.func private @h(%x: tensor<4xf32> {device.scope = DEV}) -> (tensor<4xf32> {device.scope = DEV1}) {
    %in_h = "ml.op"(%x) {device.scope = DEV1} : (tensor<4xf32>) -> tensor<4xf32>
    func.return %in_h : tensor<4xf32>
  }
"""

CASES = {
    "argument": ("", "%a", "opencl:0"),
    "scalar argument": ("", "%p", "cpu:0"),
    "operation": ('%v = "ml.op"(%a) {device.scope = DEV1} : (T) -> T', "%v", "opencl:1"),
    "surroundings": ('%v = "ml.op"(%b) : (T) -> T', "%v", "cpu:0"),
    "scalar": ('%v = "tensor.extract"(%a, %i) {device.scope = DEV} : (T, index) -> f32', "%v", "cpu:0"),
    "shape": ('%v = "tensor.dim"(%a, %i) : (T, index) -> index', "%v", "cpu:0"),
    "shape tensor": ('%v = "shape.shape_of"(%a) : (T) -> tensor<1xindex>', "%v", "cpu:0"),
    "copy": ('%v = "device.device_copy"(%a) {src = DEV, dst = DEV1} : (T) -> T', "%v", "opencl:1"),
    "choice": (
        '%v = "scf.if"(%p) ({ scf.yield %a : T }, { scf.yield %a : T }) : (i1) -> T',
        "%v",
        "opencl:0",
    ),
    "loop": (
        '%v = "scf.for"(%i, %i, %i, %a) ({ ^bb0(%k: index, %w: T): scf.yield %w : T })'
        " : (index, index, index, T) -> T",
        "%v",
        "opencl:0",
    ),
    "carried": (
        '"scf.for"(%i, %i, %i, %a) ({ ^bb0(%k: index, %w: T): scf.yield %w : T }) : (index, index, index, T) -> T',
        "%w",
        "opencl:0",
    ),
    "while": (
        '%v = "scf.while"(%a) ({ ^bb0(%w: T):'
        ' %c = "device.device_copy"(%w) {src = DEV, dst = DEV1} : (T) -> T scf.condition(%p) %c : T },'
        ' { ^bb1(%u: T): %d = "device.device_copy"(%u) {src = DEV1, dst = DEV} : (T) -> T scf.yield %d : T })'
        " : (T) -> T",
        "%u",
        "opencl:1",
    ),
    "call": ("%h = func.constant @h : (T) -> T  %v = func.call @f(%h, %a) : ((T) -> T, T) -> T", "%v", "opencl:0"),
    "call through a value": (
        '%h = func.constant @h : (T) -> T  %v = "func.call_indirect"(%h, %a) : ((T) -> T, T) -> T',
        "%v",
        "opencl:1",
    ),
    "call through an argument": (
        "%h = func.constant @h : (T) -> T  %v = func.call @f(%h, %a) : ((T) -> T, T) -> T",
        "%in_f",
        "opencl:1",
    ),
    "inside a computation": (
        '"ml.loop"(%a) ({ ^bb0(%w: T): "ml.end"(%w) : (T) -> () }) {device.scope = DEV1} : (T) -> ()',
        "%w",
        "opencl:1",
    ),
    "frame": (
        '%v = "device.region"() ({ %w = "ml.op"(%b) : (T) -> T "device.yield"(%w) : (T) -> () })'
        " {scope = DEV1} : () -> T",
        "%v",
        "opencl:1",
    ),
}


def parse(body: str) -> ModuleOp:
    text = (
        HEAD
        + "func.func @main(%a: T {device.scope = DEV}, %b: T {device.scope = CPU}, %p: i1, %i: index) {"
        + body
        + "\nfunc.return } }"
    )
    for short, scope in (("DEV1", '"opencl", 1'), ("DEV", '"opencl", 0'), ("CPU", '"cpu", 0')):
        text = text.replace(short, f'#device.scope<{scope} : i64, "", "">')
    return Parser(
        make_context(), text.replace("(T", "(tensor<4xf32>").replace(" T", " tensor<4xf32>")
    ).parse_module()


def named(module: ModuleOp, name: str) -> SSAValue:
    for op in module.walk():
        for value in (*op.results, *(a for region in op.regions for b in region.blocks for a in b.args)):
            if value.name_hint == name.removeprefix("%"):
                return value
    raise KeyError(name)


@pytest.mark.parametrize("case", CASES)
def test_of_value(case: str) -> None:
    body, name, expected = CASES[case]
    module = parse(body)
    assert ScopeAnalysis(module).of_value(named(module, name)).short() == expected


def test_of_op() -> None:
    module = parse(
        '%v = "ml.op"(%a) {device.scope = DEV} : (T) -> T'
        ' %w = "device.device_copy"(%v) {src = DEV, dst = CPU} : (T) -> T'
        ' "scf.if"(%p) ({ "ml.loop"(%a) ({ "ml.inner"() : () -> () }) {device.scope = DEV} : (T) -> ()'
        " scf.yield }, {}) : (i1) -> ()"
    )
    analysis = ScopeAnalysis(module)
    found = {op_name(op): analysis.of_op(op) for op in module.walk()}
    assert {name: found[name].short() for name in ("device.device_copy", "scf.if", "ml.loop", "ml.inner")} == {
        "device.device_copy": "cpu:0",
        "scf.if": "cpu:0",
        "ml.loop": "opencl:0",
        "ml.inner": "opencl:0",
    }
