"""``device-verify`` finds every broken promise, and says where."""

from __future__ import annotations

import pytest
from xdsl.parser import Parser

from devscope.dialects.context import make_context
from devscope.errors import VerifyError
from devscope.passes.device_verify import verify_module

HEAD = """
func.func private @f(%x: T {device.scope = DEV}) -> (T {device.scope = CPU}) {
  %0 = "device.device_copy"(%x) {src = DEV, dst = CPU} : (T) -> T
  func.return %0 : T
}
"""

GOOD = {
    "copy": '%v = "device.device_copy"(%a) {src = DEV, dst = CPU} : (T) -> T "ml.op"(%v, %b) : (T, T) -> ()',
    "call": "%v = func.call @f(%a) : (T) -> T",
    "shape": "%s = arith.constant dense<2> : tensor<2xi64> "
    '%v = "tensor.reshape"(%a, %s) {device.scope = DEV} : (T, tensor<2xi64>) -> T',
    "query": '%v = "tensor.dim"(%a, %i) : (T, index) -> index',
    "loop": '"scf.for"(%i, %i, %i, %a) ({ ^bb0(%k: index, %w: T): scf.yield %w : T })'
    " : (index, index, index, T) -> T",
}

BAD = {
    "mixed operands": (
        '"ml.op"(%a, %b) {device.scope = DEV} : (T, T) -> () LOC',
        "operand #1 of 'ml.op' is on cpu:0, but is used on opencl:0 without a device.device_copy",
    ),
    "implied scope": ('"ml.op"(%a) : (T) -> () LOC', "operand #0 of 'ml.op' is on opencl:0, but is used on cpu:0"),
    "captured": (
        '"ml.op"() ({ "ml.in"(%b) : (T) -> () LOC }) {device.scope = DEV} : () -> ()',
        "operand #0, captured by 'ml.op',",
    ),
    "inner scope": (
        '"ml.op"(%a) ({ "ml.in"() {device.scope = CPU} : () -> () LOC }) {device.scope = DEV} : (T) -> ()',
        "'ml.in' stands in 'ml.op', which runs on opencl:0",
    ),
    "shape operand": (
        "%s = arith.constant {device.scope = DEV} dense<2> : tensor<2xi64> "
        '%v = "tensor.reshape"(%a, %s) {device.scope = DEV} : (T, tensor<2xi64>) -> T LOC',
        "operand #1 of 'tensor.reshape' is on opencl:0, but is used on cpu:0",
    ),
    "copy source": (
        '%v = "device.device_copy"(%a) {src = CPU, dst = DEV} : (T) -> T LOC',
        "'src' is cpu:0, but the operand is on opencl:0",
    ),
    "copy to itself": (
        '%v = "device.device_copy"(%a) {src = DEV, dst = DEV} : (T) -> T LOC',
        "the copy goes from opencl:0 to itself",
    ),
    "copy to an open scope": (
        '%v = "device.device_copy"(%a) {src = DEV, dst = #device.scope<"cuda", -1 : i64, "", "">} : (T) -> T LOC',
        "'dst' needs a device type and an id; it is cuda",
    ),
    "copy of a scalar": (
        '%v = "device.device_copy"(%i) {src = CPU, dst = DEV} : (index) -> index LOC',
        "of a scalar",
    ),
    "call operand": ("%v = func.call @f(%b) : (T) -> T LOC", "operand #0 of 'func.call' is on cpu:0"),
    "return": (
        "func.return %b : T LOC } func.func @other() {",
        "operand #0 of 'func.return' is on cpu:0, but is used on opencl:0",
    ),
    "yields": (
        '%v = "scf.if"(%p) ({ scf.yield %a : T }, { scf.yield %b : T LOC }) : (i1) -> T',
        "operand #0 of 'scf.yield' is on cpu:0, but is used on opencl:0",
    ),
    "carried": (
        '"scf.for"(%i, %i, %i, %a) ({ ^bb0(%k: index, %w: T): scf.yield %b : T LOC })'
        " : (index, index, index, T) -> T",
        "operand #0 of 'scf.yield' is on cpu:0",
    ),
    "while": (
        '"scf.while"(%a) ({ ^bb0(%w: T): scf.condition(%p) %b : T }, { ^bb1(%u: T): scf.yield %u : T LOC })'
        " : (T) -> T",
        "operand #0 of 'scf.yield' is on cpu:0, but is used on opencl:0",
    ),
    "branch": (
        'cf.cond_br %p, ^x(%a : T), ^y ^y: "cf.br"(%b) [^x] : (T) -> () LOC ^x(%w: T):',
        "operand #0 of 'cf.br' is on cpu:0, but is used on opencl:0",
    ),
    "annotation": (
        '%v = "device.on_device"(%a) {scope = DEV} : (T) -> T LOC',
        "'device.on_device' must not remain after planning",
    ),
    "scope on control flow": (
        "%v = func.call @f(%a) {device.scope = DEV} : (T) -> T LOC",
        "'func.call' runs on the host and must not carry 'device.scope'",
    ),
    "scope on scalar code": (
        '%v = "arith.addi"(%i, %i) {device.scope = DEV} : (index, index) -> index LOC',
        "'arith.addi' touches no data",
    ),
    "open scope": (
        '"ml.op"() {device.scope = #device.scope<"cuda", -1 : i64, "", "">} : () -> (T) LOC',
        "'ml.op' needs a scope with a device type and an id; it is cuda",
    ),
}


def parse(body: str):
    text = (
        HEAD
        + "func.func @main(%a: T {device.scope = DEV}, %b: T {device.scope = CPU}, %p: i1, %i: index)"
        + (" -> (T {device.scope = DEV})" if body.startswith("func.return") else "")
        + " {"
        + body.replace("LOC", 'loc("m.mlir":3:7)')
        + "\nfunc.return }"
    )
    for short, scope in (("DEV", '"opencl", 0'), ("CPU", '"cpu", 0')):
        text = text.replace(f" {short}", f' #device.scope<{scope} : i64, "", "">')
    text = text.replace("(T", "(tensor<4xf32>").replace(" T", " tensor<4xf32>")
    return Parser(make_context(), text).parse_module()


@pytest.mark.parametrize("case", GOOD)
def test_accepts(case: str) -> None:
    verify_module(parse(GOOD[case]))


@pytest.mark.parametrize("case", BAD)
def test_refuses(case: str) -> None:
    body, message = BAD[case]
    with pytest.raises(VerifyError) as caught:
        verify_module(parse(body))
    assert message in str(caught.value)
    assert str(caught.value).startswith("m.mlir:3:7: error: ")


def test_refuses_unplanned_signature() -> None:
    text = "func.func @main(%x: tensor<4xf32>) { func.return }"
    with pytest.raises(VerifyError, match=r"argument #0 of @main needs 'device.scope' .* it is missing"):
        verify_module(Parser(make_context(), text).parse_module())
