"""A planned module, broken in one place at a time: ``device-verify`` says where."""

from __future__ import annotations

import re
from typing import NamedTuple

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from devscope.dialects.context import make_context
from devscope.errors import VerifyError
from devscope.passes.device_verify import verify_module

# `@@N` at the end of a line is the location m.mlir:N:1.
PLANNED = """
func.func private @on_host(%x: !t {device.scope = CPU}) -> (!t {device.scope = CPU}) {
  func.return %x : !t @@101
}
func.func private @on_dev(%x: !t {device.scope = DEV}) -> (!t {device.scope = DEV}) {
  func.return %x : !t @@102
}
func.func private @on_dev_too(%x: !t {device.scope = DEV}) -> (!t {device.scope = DEV}) {
  func.return %x : !t @@103
}
func.func private @to_dev(%x: !t {device.scope = CPU}) -> (!t {device.scope = DEV}) {
  %y = "device.device_copy"(%x) {src = CPU, dst = DEV} : (!t) -> !t
  func.return %y : !t
}
func.func private @apply(%h: !f {device.scope = DEV}, %x: !t {device.scope = DEV}) -> (!t {device.scope = DEV}) {
  %y = "func.call_indirect"(%h, %x) : (!f, !t) -> !t @@104
  func.return %y : !t
}
func.func private @both(%x: !t {device.scope = DEV}) -> (!t {device.scope = DEV}, !t {device.scope = CPU})
func.func private @same(%x: !t {device.scope = DEV}) -> (!t {device.scope = DEV}, !t {device.scope = CPU})
func.func private @other(%x: !t {device.scope = DEV}) -> (!t {device.scope = DEV}, !t {device.scope = DEV})
func.func @main(%a: !t {device.scope = DEV}, %b: !t {device.scope = CPU}, %m: !m {device.scope = DEV}, %p: i1,
                %i: index, %given_scalar: f32, %given: !f {device.scope = DEV}) -> (!t {device.scope = DEV})
                attributes {device.scope = CPU} {
  %0 = "ml.op"(%a) {device.scope = DEV} : (!t) -> !t @@1
  %1 = "device.device_copy"(%0) {src = DEV, dst = CPU} : (!t) -> !t @@2
  %2 = "ml.two"(%1, %b) : (!t, !t) -> !t @@3
  %3 = "device.device_copy"(%2) {src = CPU, dst = DEV} : (!t) -> !t @@4
  %4 = func.call @on_dev(%3) : (!t) -> !t @@5
  %5 = func.constant @on_dev : (!t) -> !t
  %6 = func.constant @on_dev_too : (!t) -> !t
  %7 = "scf.if"(%p) ({
    "scf.yield"(%5) : (!f) -> () @@6
  }, {
    "scf.yield"(%6) : (!f) -> () @@7
  }) : (i1) -> (!f) @@8
  %8 = "func.call_indirect"(%7, %4) : (!f, !t) -> !t @@9
  %9 = func.call @apply(%5, %8) : (!f, !t) -> !t @@10
  %10 = "tensor.generate"() ({
  ^bb0(%j: index):
    %e = "tensor.extract"(%9, %j) : (!t, index) -> f32 @@11
    "tensor.yield"(%e) : (f32) -> ()
  }) {device.scope = DEV} : () -> !t @@12
  %11 = "scf.forall"(%10) ({
  ^bb0(%j: index, %out: !t):
    %f = func.call @on_dev(%10) : (!t) -> !t @@13
    %g = "ml.inner"(%f) : (!t) -> !t @@14
    "scf.forall.in_parallel"() ({}) : () -> ()
  }) {device.scope = DEV} : (!t) -> !t @@15
  %12 = "scf.for"(%i, %i, %i, %11) ({
  ^bb0(%k: index, %carried: !t):
    %next = "ml.op"(%carried) {device.scope = DEV} : (!t) -> !t @@16
    scf.yield %next : !t @@17
  }) : (index, index, index, !t) -> !t @@18
  %13 = "func.call_indirect"(%given, %12) : (!f, !t) -> !t @@19
  "memref.store"(%given_scalar, %m, %i) {device.scope = DEV} : (f32, !m, index) -> () @@20
  %14 = "tensor.dim"(%13, %i) : (!t, index) -> index @@21
  %15 = func.constant @both : !g
  %16 = func.constant @same : !g
  %17 = "arith.select"(%p, %15, %16) {device.scope = DEV} : (i1, !g, !g) -> (!g)
  %18, %19 = "func.call_indirect"(%17, %13) : (!g, !t) -> (!t, !t) @@22
  %20 = "ml.two"(%19, %b) : (!t, !t) -> !t @@23
  %21 = "linalg.generic"(%18, %13) <{operandSegmentSizes = array<i32: 1, 1>}> ({
  ^bb0(%s: f32, %t: f32):
    "linalg.yield"(%s) : (f32) -> ()
  }) {device.scope = DEV} : (!t, !t) -> !t @@24
  func.return %21 : !t @@25
}
"""


class Broken(NamedTuple):
    old: str
    new: str
    line: int
    message: str


ON_DEV = "is on opencl:0, but is used on cpu:0 without a device.device_copy"
ON_HOST = "is on cpu:0, but is used on opencl:0 without a device.device_copy"

BROKEN = {
    "scope dropped": Broken(
        '"ml.op"(%a) {device.scope = DEV}', '"ml.op"(%a)', 1, f"operand #0 of 'ml.op' {ON_DEV}"
    ),
    "scope changed": Broken(
        '"ml.op"(%a) {device.scope = DEV}', '"ml.op"(%a) {device.scope = DEV1}', 1, "opencl:1"
    ),
    "memory changed": Broken(
        '"ml.op"(%a) {device.scope = DEV}', '"ml.op"(%a) {device.scope = FAST}', 1, "used on opencl:0@fast"
    ),
    "scope added": Broken('"ml.two"(%1, %b)', '"ml.two"(%1, %b) {device.scope = DEV}', 3, ON_HOST),
    "surroundings changed": Broken(
        "attributes {device.scope = CPU}", "attributes {device.scope = DEV}", 3, ON_HOST
    ),
    "surroundings no scope": Broken(
        "attributes {device.scope = CPU}", 'attributes {device.scope = "cpu"}', 0, "@main"
    ),
    "copy turned": Broken("(%0) {src = DEV, dst = CPU}", "(%0) {src = CPU, dst = DEV}", 2, "'src' is cpu:0"),
    "copy removed": Broken('"ml.two"(%1, %b)', '"ml.two"(%0, %b)', 3, f"operand #0 of 'ml.two' {ON_DEV}"),
    "copy to elsewhere": Broken("(%0) {src = DEV, dst = CPU}", "(%0) {src = DEV, dst = DEV1}", 3, "opencl:1"),
    "copy from elsewhere": Broken("(%0) {src = DEV, dst = CPU}", "(%0) {src = DEV1, dst = CPU}", 2, "opencl:1"),
    "copy with a scope": Broken(
        "(%0) {src = DEV, dst = CPU}", "(%0) {device.scope = CPU, src = DEV, dst = CPU}", 2, "names its ends"
    ),
    "another clone": Broken("%4 = func.call @on_dev(", "%4 = func.call @on_host(", 5, "operand #0 of 'func.call'"),
    "no callee": Broken(
        "%4 = func.call @on_dev(", "%4 = func.call @nobody(", 5, "names no func.func of this module"
    ),
    "argument moved": Broken("@main(%a: !t {device.scope = DEV}", "@main(%a: !t {device.scope = CPU}", 1, ON_HOST),
    "callee's argument moved": Broken(
        "@on_dev(%x: !t {device.scope = DEV})", "@on_dev(%x: !t {device.scope = CPU})", 102, ON_HOST
    ),
    "result moved": Broken(
        "!f {device.scope = DEV}) -> (!t {device.scope = DEV})",
        "!f {device.scope = DEV}) -> (!t {device.scope = CPU})",
        25,
        ON_DEV,
    ),
    "one possible callee on the host": Broken(
        "%6 = func.constant @on_dev_too", "%6 = func.constant @on_host", 7, f"operand #0 of 'scf.yield' {ON_HOST}"
    ),
    "one possible callee takes it elsewhere": Broken(
        "%6 = func.constant @on_dev_too",
        "%6 = func.constant @to_dev",
        9,
        f"operand #1 of 'func.call_indirect' {ON_DEV}",
    ),
    "one possible callee leaves it elsewhere": Broken(
        "%16 = func.constant @same",
        "%16 = func.constant @other",
        22,
        f"result #1, as the possible callee @other leaves it, {ON_DEV}",
    ),
    "a function that is passed": Broken("@apply(%5, %8)", "@apply(%h, %8)", 104, ON_DEV),
    "a passed function's other scopes": Broken("@apply(%5, %8)", "@apply(%d, %8)", 104, ON_DEV),
    "a caller's function": Broken(
        "(%given, %12)", "(%given, %b)", 19, f"operand #1 of 'func.call_indirect' {ON_HOST}"
    ),
    "a caller's function unplaced": Broken(
        "!f {device.scope = DEV}) -> (!t {device.scope = DEV})\n                attr",
        "!f) -> (!t {device.scope = DEV})\n                attr",
        0,
        "argument #6 of @main needs 'device.scope'",
    ),
    "captured by tensor.generate": Broken(
        '"tensor.extract"(%9,', '"tensor.extract"(%2,', 11, "captured by 'tensor.generate'"
    ),
    "captured by scf.forall": Broken('"ml.inner"(%f)', '"ml.inner"(%2)', 14, "captured by 'scf.forall'"),
    "called in scf.forall": Broken(
        "%f = func.call @on_dev(", "%f = func.call @on_host(", 13, "argument #0 of the callee @on_host is on cpu:0"
    ),
    "scope in scf.forall": Broken(
        '"ml.inner"(%f)', '"ml.inner"(%f) {device.scope = CPU}', 14, "which runs on opencl:0"
    ),
    "copy in scf.forall": Broken(
        '"ml.inner"(%f)', '"device.device_copy"(%f) {src = DEV, dst = CPU}', 14, "runs on one scope as a whole"
    ),
    "scf.forall moved": Broken(
        "{device.scope = DEV} : (!t) -> !t @@15", ": (!t) -> !t @@15", 13, "of the callee @on_dev"
    ),
    "initial value": Broken("(%i, %i, %i, %11)", "(%i, %i, %i, %2)", 16, ON_HOST),
    "yielded value": Broken("scf.yield %next", "scf.yield %2", 17, ON_HOST),
    "operand of linalg.generic": Broken('"linalg.generic"(%18, %13)', '"linalg.generic"(%18, %b)', 24, ON_HOST),
    "returned value": Broken("func.return %21", "func.return %20", 25, ON_HOST),
    "buffer elsewhere": Broken(
        "(%given_scalar, %m, %i) {device.scope = DEV}", "(%given_scalar, %m, %i)", 20, ON_DEV
    ),
    "buffer unplaced": Broken(
        "%m: !m {device.scope = DEV}", "%m: !m", 0, "argument #2 of @main needs 'device.scope'"
    ),
    "query with a scope": Broken(
        '"tensor.dim"(%13, %i)', '"tensor.dim"(%13, %i) {device.scope = DEV}', 21, "must not carry"
    ),
    "branch with a scope": Broken(
        "}) : (i1) -> (!f)", "}) {device.scope = DEV} : (i1) -> (!f)", 8, "must not carry"
    ),
}


def parse(text: str) -> ModuleOp:
    extra = "%h = func.constant @on_host : (!t) -> !t\n  %d = func.constant @to_dev : (!t) -> !t\n  %0 ="
    text = text.replace("  %0 =", extra)
    text = re.sub(r"@@(\d+)$", r'loc("m.mlir":\1:1)', text, flags=re.MULTILINE)
    for short, scope in (("DEV1", "opencl:1"), ("DEV", "opencl:0"), ("FAST", "opencl:0@fast"), ("CPU", "cpu:0")):
        kind, rest = scope.split(":")
        number, _, memory = rest.partition("@")
        text = re.sub(rf"= {short}\b", f'= #device.scope<"{kind}", {number} : i64, "", "{memory}">', text)
    text = (
        text.replace("!g", "(!t) -> (!t, !t)")
        .replace("!f", "(!t) -> !t")
        .replace("!t", "tensor<4xf32>")
        .replace("!m", "memref<4xf32>")
    )
    return Parser(make_context(), text).parse_module()


def test_the_planned_module_is_right() -> None:
    module = parse(PLANNED)
    verify_module(module)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("case", BROKEN)
def test_broken(case: str) -> None:
    broken = BROKEN[case]
    assert PLANNED.count(broken.old) == 1
    with pytest.raises(VerifyError) as caught:
        verify_module(parse(PLANNED.replace(broken.old, broken.new)))
    assert broken.message in str(caught.value)
    location = caught.value.location
    assert (location.line if location is not None else 0) == broken.line
