"""Function values: whatever a value may be called as, its scopes are those of every function that it may be."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from xdsl.dialects.builtin import FunctionType, ModuleOp, TensorType, f32
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Region

from devscope.passes.device_plan import plan_module
from devscope.passes.device_verify import verify_module

UNARY = "(!t) -> !t"
PLACED = """func.func private @placed(%x: !t) -> !t {
  %0 = "ml.op"(%x) {device.scope = #dev0} : (!t) -> !t
  func.return %0 : !t
}"""
OPEN = """func.func private @open(%x: !t) -> !t {
  %0 = arith.negf %x : !t
  func.return %0 : !t
}"""
DEMANDS = """func.func private @demands(%x: !t {device.scope = #dev0}) -> !t {
  %0 = arith.negf %x : !t
  func.return %0 : !t
}"""


def constant(name: str, of: str, type_: str = UNARY) -> str:
    return f'{name} = "func.constant"() {{value = @{of}}} : () -> ({type_})'


def call(result: str, function: str, argument: str) -> str:
    return f'{result} = "func.call_indirect"({function}, {argument}) : ({UNARY}, !t) -> !t'


class Case(NamedTuple):
    text: str
    signatures: dict[str, str]
    copies: list[str]
    arguments: str = "open"


D, C = "opencl:0", "cpu:0"

CASES = {
    # A computation that nobody placed keeps both on the default; the placed one copies, in and out.
    "select": Case(
        f"""{PLACED}
        {OPEN}
        func.func @main(%p: i1, %x: !t) -> !t {{
          {constant("%f", "placed")}
          {constant("%g", "open")}
          %h = "arith.select"(%p, %f, %g) : (i1, {UNARY}, {UNARY}) -> ({UNARY})
          {call("%0", "%h", "%x")}
          func.return %0 : !t
        }}""",
        {"placed": f"{C} -> {C}", "open": f"{C} -> {C}", "main": f"-, {C} -> {C}"},
        [f"{C}>{D}", f"{D}>{C}"],
    ),
    # One of the functions demands, so both are there.
    "if": Case(
        f"""{DEMANDS}
        {OPEN}
        func.func @main(%p: i1, %x: !t) -> !t {{
          %h = "scf.if"(%p) ({{
            {constant("%f", "demands")}
            scf.yield %f : {UNARY}
          }}, {{
            {constant("%g", "open")}
            scf.yield %g : {UNARY}
          }}) : (i1) -> ({UNARY})
          {call("%0", "%h", "%x")}
          func.return %0 : !t
        }}""",
        {"demands": f"{D} -> {D}", "open": f"{D} -> {D}", "main": f"-, {D} -> {D}"},
        [],
    ),
    "for": Case(
        f"""{OPEN}
        {DEMANDS}
        func.func @main(%i: index, %x: !t) -> !t {{
          {constant("%f", "open")}
          %r:2 = "scf.for"(%i, %i, %i, %f, %x) ({{
          ^bb0(%k: index, %h: {UNARY}, %a: !t):
            {constant("%g", "demands")}
            {call("%y", "%h", "%a")}
            scf.yield %g, %y : {UNARY}, !t
          }}) : (index, index, index, {UNARY}, !t) -> ({UNARY}, !t)
          {call("%0", "%r#0", "%r#1")}
          func.return %0 : !t
        }}""",
        {"open": f"{D} -> {D}", "demands": f"{D} -> {D}", "main": f"-, {D} -> {D}"},
        [],
    ),
    # What the loop carries is where the function that it calls wants it: one copy before, one after.
    "while": Case(
        f"""{PLACED}
        func.func @main(%p: i1, %x: !t) -> !t {{
          {constant("%f", "placed")}
          %r:2 = "scf.while"(%f, %x) ({{
          ^bb0(%h: {UNARY}, %a: !t):
            scf.condition(%p) %h, %a : {UNARY}, !t
          }}, {{
          ^bb0(%h: {UNARY}, %a: !t):
            {call("%y", "%h", "%a")}
            scf.yield %h, %y : {UNARY}, !t
          }}) : ({UNARY}, !t) -> ({UNARY}, !t)
          func.return %r#1 : !t
        }}""",
        {"placed": f"{D} -> {D}", "main": f"-, {C} -> {C}"},
        [f"{C}>{D}", f"{D}>{C}"],
        arguments="host",
    ),
    "blocks": Case(
        f"""{PLACED}
        {DEMANDS}
        func.func @main(%p: i1, %x: !t) -> !t {{
          {constant("%f", "placed")}
          {constant("%g", "demands")}
          cf.cond_br %p, ^a(%f : {UNARY}), ^a(%g : {UNARY})
        ^a(%h: {UNARY}):
          {call("%0", "%h", "%x")}
          func.return %0 : !t
        }}""",
        {"placed": f"{D} -> {D}", "demands": f"{D} -> {D}", "main": f"-, {D} -> {D}"},
        [],
    ),
    "returned": Case(
        f"""{DEMANDS}
        func.func private @make() -> ({UNARY}) {{
          {constant("%f", "demands")}
          func.return %f : {UNARY}
        }}
        func.func @main(%x: !t) -> !t {{
          %f = func.call @make() : () -> ({UNARY})
          {call("%0", "%f", "%x")}
          func.return %0 : !t
        }}""",
        {"demands": f"{D} -> {D}", "make": f" -> {D}", "main": f"{C} -> {C}"},
        [f"{C}>{D}", f"{D}>{C}"],
        arguments="host",
    ),
    # Functions of functions: @twice(h, f, x) calls h(f) two times.
    "nested": Case(
        f"""func.func private @id(%f: {UNARY}) -> ({UNARY}) {{
          func.return %f : {UNARY}
        }}
        func.func private @twice(%h: ({UNARY}) -> ({UNARY}), %f: {UNARY}, %x: !t) -> !t {{
          %a = "func.call_indirect"(%h, %f) : (({UNARY}) -> ({UNARY}), {UNARY}) -> ({UNARY})
          {call("%0", "%a", "%x")}
          {call("%1", "%a", "%0")}
          func.return %1 : !t
        }}
        {PLACED}
        func.func @main(%x: !t) -> !t {{
          {constant("%h", "id", f"({UNARY}) -> ({UNARY})")}
          {constant("%f", "placed")}
          %0 = func.call @twice(%h, %f, %x) : (({UNARY}) -> ({UNARY}), {UNARY}, !t) -> !t
          func.return %0 : !t
        }}""",
        {"id": f"{D} -> {D}", "twice": f"{D}, {D}, {D} -> {D}", "placed": f"{D} -> {D}", "main": f"{D} -> {D}"},
        [],
    ),
    # Two uses are two functions where they have to be.
    "polymorphic": Case(
        f"""{OPEN}
        func.func @main(%x: !t, %y: !t) -> (!t, !t) {{
          {constant("%f", "open")}
          {call("%0", "%f", "%x")}
          %a = "device.on_device"(%0) {{scope = #dev0}} : (!t) -> !t
          {call("%1", "%f", "%y")}
          %b = "device.on_device"(%1) {{scope = #gpu0}} : (!t) -> !t
          func.return %a, %b : !t, !t
        }}""",
        {"open": f"{D} -> {D}", "open_cuda_0": "cuda:0 -> cuda:0", "main": f"{D}, cuda:0 -> {D}, cuda:0"},
        [],
    ),
    # Each argument and result is on a scope of its own.
    "per_result": Case(
        """func.func private @two(%x: !t, %y: !t) -> (!t, !t) {
          %0 = "ml.op"(%x) {device.scope = #dev0} : (!t) -> !t
          %1 = "ml.op"(%y) {device.scope = #gpu0} : (!t) -> !t
          func.return %0, %1 : !t, !t
        }
        func.func @main(%x: !t, %y: !t) -> (!t, !t) {
          %f = "func.constant"() {value = @two} : () -> ((!t, !t) -> (!t, !t))
          %0:2 = "func.call_indirect"(%f, %x, %y) : ((!t, !t) -> (!t, !t), !t, !t) -> (!t, !t)
          func.return %0#0, %0#1 : !t, !t
        }""",
        {"two": f"{D}, cuda:0 -> {D}, cuda:0", "main": f"{D}, cuda:0 -> {D}, cuda:0"},
        [],
    ),
    # Also where it is passed on and chosen from: an attribute speaks of the first result only.
    "per_result_passed": Case(
        """func.func private @two(%x: !t, %y: !t) -> (!t, !t) {
          %0 = "ml.op"(%x) {device.scope = #dev0} : (!t) -> !t
          %1 = "ml.op"(%y) {device.scope = #gpu0} : (!t) -> !t
          func.return %0, %1 : !t, !t
        }
        func.func private @same(%x: !t, %y: !t) -> (!t, !t) {
          func.return %x, %y : !t, !t
        }
        func.func private @apply(%f: (!t, !t) -> (!t, !t), %x: !t, %y: !t) -> (!t, !t) {
          %0:2 = "func.call_indirect"(%f, %x, %y) : ((!t, !t) -> (!t, !t), !t, !t) -> (!t, !t)
          func.return %0#0, %0#1 : !t, !t
        }
        func.func @main(%p: i1, %x: !t, %y: !t) -> (!t, !t) {
          %f = "func.constant"() {value = @two} : () -> ((!t, !t) -> (!t, !t))
          %g = "func.constant"() {value = @same} : () -> ((!t, !t) -> (!t, !t))
          %h = "arith.select"(%p, %f, %g) : (i1, (!t, !t) -> (!t, !t), (!t, !t) -> (!t, !t))
                                          -> ((!t, !t) -> (!t, !t))
          %0:2 = func.call @apply(%h, %x, %y) : ((!t, !t) -> (!t, !t), !t, !t) -> (!t, !t)
          func.return %0#0, %0#1 : !t, !t
        }""",
        {
            "two": f"{D}, cuda:0 -> {D}, cuda:0",
            "same": f"{D}, cuda:0 -> {D}, cuda:0",
            "apply": f"{D}, {D}, cuda:0 -> {D}, cuda:0",
            "main": f"-, {D}, cuda:0 -> {D}, cuda:0",
        },
        [],
    ),
    # Nobody knows what is passed in from outside: it is on one scope.
    "from_outside": Case(
        f"""func.func @main(%f: {UNARY}, %x: !t) -> !t {{
          {call("%0", "%f", "%x")}
          %1 = "device.on_device"(%0) {{scope = #dev0}} : (!t) -> !t
          func.return %1 : !t
        }}""",
        {"main": f"{D}, {C} -> {C}"},
        [f"{C}>{D}", f"{D}>{C}"],
        arguments="host",
    ),
    "annotated": Case(
        f"""{OPEN}
        func.func @main(%x: !t) -> !t {{
          {constant("%f", "open")}
          %g = "device.on_device"(%f) {{scope = #dev0}} : ({UNARY}) -> ({UNARY})
          {call("%0", "%g", "%x")}
          func.return %0 : !t
        }}""",
        {"open": f"{D} -> {D}", "main": f"{D} -> {D}"},
        [],
    ),
    "attribute": Case(
        f"""func.func private @apply(%f: {UNARY} {{device.scope = #dev0}}, %x: !t) -> !t {{
          {call("%0", "%f", "%x")}
          func.return %0 : !t
        }}
        {OPEN}
        func.func @main(%x: !t) -> !t {{
          {constant("%f", "open")}
          %0 = func.call @apply(%f, %x) : ({UNARY}, !t) -> !t
          func.return %0 : !t
        }}""",
        {"apply": f"{D}, {D} -> {D}", "open": f"{D} -> {D}", "main": f"{D} -> {D}"},
        [],
    ),
    # An operation that nobody knows may call what it is given: that is on one scope with all else it touches.
    "unknown": Case(
        f"""{OPEN}
        func.func @main(%x: !t) -> !t {{
          {constant("%f", "open")}
          %0 = "ml.map"(%f, %x) {{device.scope = #dev0}} : ({UNARY}, !t) -> !t
          func.return %0 : !t
        }}""",
        {"open": f"{D} -> {D}", "main": f"{D} -> {D}"},
        [],
    ),
    # Through itself: types bound what can be passed, so there is an end.
    "recursive": Case(
        f"""func.func private @run(%f: {UNARY}, %p: i1, %x: !t) -> !t {{
          %0 = "scf.if"(%p) ({{
            {constant("%g", "step")}
            %1 = func.call @run(%g, %p, %x) : ({UNARY}, i1, !t) -> !t
            scf.yield %1 : !t
          }}, {{
            {call("%1", "%f", "%x")}
            scf.yield %1 : !t
          }}) : (i1) -> !t
          func.return %0 : !t
        }}
        func.func private @step(%x: !t) -> !t {{
          %p = "ml.flag"() : () -> i1
          {constant("%g", "step")}
          %0 = func.call @run(%g, %p, %x) : ({UNARY}, i1, !t) -> !t
          %1 = "ml.op"(%0) {{device.scope = #dev0}} : (!t) -> !t
          func.return %1 : !t
        }}
        func.func @main(%x: !t) -> !t {{
          %0 = func.call @step(%x) : (!t) -> !t
          func.return %0 : !t
        }}""",
        {"run": f"{D}, -, {C} -> {D}", "step": f"{C} -> {D}", "main": f"{C} -> {D}"},
        [],
    ),
    "scalars": Case(
        """func.func private @s(%x: f32) -> f32 {
          func.return %x : f32
        }
        func.func @main(%x: f32) -> f32 {
          %f = "func.constant"() {value = @s} : () -> ((f32) -> f32)
          %0 = "func.call_indirect"(%f, %x) : ((f32) -> f32, f32) -> f32
          func.return %0 : f32
        }""",
        {"s": "- -> -", "main": "- -> -"},
        [],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_case(name: str, plan) -> None:
    case = CASES[name]
    planned = plan(case.text, arguments=case.arguments)
    assert {function: planned.signature(function) for function in case.signatures} == case.signatures
    assert planned.copies() == case.copies


def test_deep_types() -> None:
    """Terms are as deep as types are nested."""
    data = TensorType(f32, [4])
    type_: Attribute = data
    for _ in range(150):
        type_ = FunctionType.from_lists([type_], [data])
    block = Block(arg_types=[type_])
    block.add_op(ReturnOp(block.args[0]))
    module = ModuleOp([FuncOp("main", ([type_], [type_]), Region(block))])
    plan_module(module)
    verify_module(module)
