"""func.constant and func.call_indirect beside xDSL's own func operations."""

from __future__ import annotations

import pytest
from xdsl.dialects import test
from xdsl.dialects.builtin import FunctionType, ModuleOp, f32, i32
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError, VerifyException

from devscope.dialects.context import make_context
from devscope.dialects.func_ext import CallIndirectOp, ConstantOp

PROGRAM = """
func.func private @g(f32, i32) -> (f32, f32)
func.func @f(%x: f32, %i: i32) -> f32 {
  %g = func.constant @g : (f32, i32) -> (f32, f32)
  %0, %1 = func.call_indirect %g(%x, %i) : (f32, i32) -> (f32, f32)
  %2, %3 = func.call_indirect %g(%0, %i) {tag = 1 : i64} : (f32, i32) -> (f32, f32)
  %4, %5 = func.call @g(%2, %i) : (f32, i32) -> (f32, f32)
  func.return %5 : f32
}
"""
FUNCTION = FunctionType.from_lists([f32], [f32])


def parse(text: str) -> ModuleOp:
    return Parser(make_context(), text).parse_module()


def test_round_trip_beside_the_dialect_that_it_completes() -> None:
    module = parse(PROGRAM)
    module.verify()
    assert {type(op) for op in module.walk()} >= {FuncOp, CallOp, ConstantOp, CallIndirectOp}
    assert parse(str(module)).is_structurally_equivalent(module)
    assert "func.call_indirect %g(%0, %i) {tag = 1 : i64} : (f32, i32) -> (f32, f32)" in str(module)


@pytest.mark.parametrize(
    ("symbol", "message"),
    [
        ("@nowhere", "@nowhere does not name a func.func in the module"),
        ("@m", "@m does not name a func.func in the module"),
        ("@h", r"the result type must be that of @h, \(i32\) -> \(\), not \(f32\) -> f32"),
    ],
)
def test_a_constant_names_a_function_of_its_type(symbol: str, message: str) -> None:
    module = parse(f"""
      module @m {{ }}
      func.func private @h(i32)
      func.func @f() {{
        %0 = func.constant {symbol} : (f32) -> f32
        func.return
      }}""")
    with pytest.raises(VerifyException, match=message):
        module.verify()


def test_construction() -> None:
    constant = ConstantOp("g", FUNCTION)
    argument = test.TestOp(result_types=[f32])
    call = CallIndirectOp(constant, [argument])
    call.verify_()
    assert call.outputs.types == (f32,)
    assert constant.value.root_reference.data == "g"


def test_a_call_gives_what_the_callee_takes() -> None:
    argument = test.TestOp(result_types=[i32])
    with pytest.raises(VerifyException, match=r"the callee takes \(f32\), but is given \(i32\)"):
        CallIndirectOp(ConstantOp("g", FUNCTION), [argument]).verify_()


def test_a_call_has_the_results_of_the_callee() -> None:
    text = '%0 = "test.op"() : () -> ((f32) -> f32)\n%1 = "test.op"() : () -> f32\n'
    module = parse(text + '%2 = "func.call_indirect"(%0, %1) : ((f32) -> f32, f32) -> i32')
    with pytest.raises(VerifyException, match=r"the callee returns \(f32\), but the results are \(i32\)"):
        module.verify()


def test_a_callee_is_a_function() -> None:
    with pytest.raises(VerifyException, match="f32"):
        CallIndirectOp(test.TestOp(result_types=[f32]), []).verify_()


@pytest.mark.parametrize(
    ("type", "message"), [("f32", "needs the callee's function type here"), ("(f32, f32) -> f32", "2")]
)
def test_malformed_calls(type: str, message: str) -> None:
    text = '%0 = "test.op"() : () -> ((f32) -> f32)\n%1 = "test.op"() : () -> f32\n'
    with pytest.raises(ParseError, match=message):
        parse(f"{text}%2 = func.call_indirect %0(%1) : {type}")
