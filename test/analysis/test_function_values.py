"""Which functions a function value may be, however it got there."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from xdsl.dialects.builtin import ModuleOp

from devscope.analysis.scope_analysis import ScopeAnalysis
from devscope.dialects.names import op_name

HEAD = """
func.func private @a(%x: !t) -> !t { func.return %x : !t }
func.func private @b(%x: !t) -> !t { func.return %x : !t }
func.func private @c(%x: !t) -> !t { func.return %x : !t }
"""
CONSTANTS = "%a = func.constant @a : (!t) -> !t  %b = func.constant @b : (!t) -> !t "
CALL = '"func.call_indirect"({}, %x) : (!f, !t) -> !t '
MAIN = "func.func @main(%x: !t, %p: i1, %i: index) { BODY func.return }"

CASES = {
    "constant": (CONSTANTS + CALL.format("%a"), "a"),
    "scf.if": (
        CONSTANTS
        + '%f = "scf.if"(%p) ({ "scf.yield"(%a) : (!f) -> () }, { "scf.yield"(%b) : (!f) -> () }) : (i1) -> (!f) '
        + CALL.format("%f"),
        "a, b",
    ),
    "arith.select": (
        CONSTANTS + '%f = "arith.select"(%p, %a, %b) : (i1, !f, !f) -> (!f) ' + CALL.format("%f"),
        "a, b",
    ),
    "carried by a loop": (
        CONSTANTS
        + '%f = "scf.for"(%i, %i, %i, %a) ({ ^bb0(%k: index, %g: !f): "scf.yield"(%b) : (!f) -> () }) '
        + ": (index, index, index, !f) -> (!f) "
        + CALL.format("%f"),
        "a, b",
    ),
    "in a loop": (
        CONSTANTS
        + '%f = "scf.while"(%a) ({ ^bb0(%g: !f): "scf.condition"(%p, %g) : (i1, !f) -> () }, '
        + "{ ^bb1(%h: !f): "
        + CALL.format("%h")
        + '"scf.yield"(%b) : (!f) -> () }) : (!f) -> (!f) ',
        "a, b",
    ),
    "argument of a block": (
        CONSTANTS
        + '"cf.cond_br"(%p, %a, %b) [^y, ^y] <{operandSegmentSizes = array<i32: 1, 1, 1>}> : (i1, !f, !f) -> () '
        + "^y(%f: !f): "
        + CALL.format("%f"),
        "a, b",
    ),
    "argument from several calls": (
        CONSTANTS
        + "%0 = func.call @apply(%a, %x) : (!f, !t) -> !t  %1 = func.call @apply(%b, %x) : (!f, !t) -> !t "
        + "func.return } func.func private @apply(%f: !f, %x: !t) -> !t { %y = "
        + CALL.format("%f")
        + "func.return %y : !t } func.func @last() {",
        "a, b",
    ),
    "returned": (
        "%f = func.call @pick(%p) : (i1) -> (!f) "
        + CALL.format("%f")
        + "func.return } func.func private @pick(%p: i1) -> (!f) { "
        + CONSTANTS
        + '"cf.cond_br"(%p) [^y, ^z] <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (i1) -> () '
        + "^y: func.return %a : !f ^z: func.return %b : !f } func.func @last() {",
        "a, b",
    ),
    "passed through a function value": (
        CONSTANTS
        + "%0 = func.constant @apply : (!f, !t) -> !t "
        + '%1 = "func.call_indirect"(%0, %b, %x) : ((!f, !t) -> !t, !f, !t) -> !t '
        + "func.return } func.func private @apply(%f: !f, %x: !t) -> !t { %y = "
        + CALL.format("%f")
        + "func.return %y : !t } func.func @last() {",
        "b",
    ),
    "recursion": (
        CONSTANTS
        + "%0 = func.call @rec(%a, %b, %x) : (!f, !f, !t) -> !t "
        + "func.return } func.func private @rec(%f: !f, %g: !f, %x: !t) -> !t { "
        + "%0 = func.call @rec(%g, %f, %x) : (!f, !f, !t) -> !t "
        + CALL.format("%f")
        + "func.return %0 : !t } func.func @last() {",
        "a, b",
    ),
    "from nobody knows where": ('%f = "ml.make"() : () -> (!f) ' + CALL.format("%f"), "?"),
    "from a public function's caller": (
        CONSTANTS
        + "%0 = func.call @open(%a, %x) : (!f, !t) -> !t func.return } "
        + "func.func @open(%f: !f, %x: !t) -> !t { %y = "
        + CALL.format("%f")
        + "func.return %y : !t } func.func @last() {",
        "a, ?",
    ),
    "from an external function": (
        "%f = func.call @ext() : () -> (!f) "
        + CALL.format("%f")
        + "func.return } func.func private @ext() -> (!f) func.func @last() {",
        "?",
    ),
    "argument of a function that got out": (
        CONSTANTS
        + '%0 = func.constant @apply : (!f, !t) -> !t "ml.keep"(%0) : ((!f, !t) -> !t) -> () '
        + "func.return } func.func private @apply(%f: !f, %x: !t) -> !t { %y = "
        + CALL.format("%f")
        + "func.return %y : !t } func.func @last() {",
        "?",
    ),
    "argument of a function that was returned to a stranger": (
        "func.return } func.func @leak() -> ((!f, !t) -> !t) { %0 = func.constant @apply : (!f, !t) -> !t "
        + "func.return %0 : (!f, !t) -> !t } func.func private @apply(%f: !f, %x: !t) -> !t { %y = "
        + CALL.format("%f")
        + "func.return %y : !t } func.func @last() {",
        "?",
    ),
    "of a function that nobody calls": (
        "func.return } func.func private @apply(%f: !f, %x: !t) -> !t { %y = "
        + CALL.format("%f")
        + "func.return %y : !t } func.func @last() {",
        "",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_callees(case: str, parse_program: Callable[[str], ModuleOp]) -> None:
    body, expected = CASES[case]
    module = parse_program(HEAD + MAIN.replace("BODY", body))
    module.verify()
    analysis = ScopeAnalysis(module)
    calls = [op for op in module.walk() if op_name(op) == "func.call_indirect" and len(op.operands) == 2]
    (call,) = calls
    callees = analysis.callees_of(call)
    names = [func.sym_name.data for func in callees.functions] + ([] if callees.complete else ["?"])
    assert ", ".join(names) == expected
