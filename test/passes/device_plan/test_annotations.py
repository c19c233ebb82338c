"""``device.on_device`` in all its modes, wherever it may stand, and attributes of signatures."""

from __future__ import annotations

import pytest

from devscope.errors import PlanError

MODES = {
    "body": "",
    "both": ", constrain_result = true",
    "result": ", constrain_body = false, constrain_result = true",
    "free": ", constrain_body = false",
}
C, D, G = "cpu:0", "opencl:0", "cuda:0"


def annotated(value: str, mode: str, scope: str = "#dev0") -> str:
    return f'"device.on_device"({value}) {{scope = {scope}{MODES[mode]}}} : (!t) -> !t'


def program(*lines: str) -> str:
    body = "\n".join(lines)
    return f"func.func @main(%x: !t, %y: !t) -> !t {{\n{body}\n}}"


PRODUCE = '%p = "ml.in"(%x) : (!t) -> !t'
CONSUME = '%r = "ml.out"(%q, %y) : (!t, !t) -> !t\nfunc.return %r : !t'


@pytest.mark.parametrize(
    ("mode", "signature", "scopes", "copies"),
    [
        ("body", f"{D}, {C} -> {C}", f"ml.in {D}, ml.out {C}", [f"{D}>{C}"]),
        ("both", f"{D}, {D} -> {D}", f"ml.in {D}, ml.out {D}", []),
        # The result is where what uses the annotation is, and arguments follow the result.
        ("result", f"{D}, {D} -> {D}", f"ml.in {D}, ml.out {D}", []),
        ("free", f"{C}, {C} -> {C}", f"ml.in {C}, ml.out {C}", []),
    ],
)
def test_on_what_is_computed(plan, mode: str, signature: str, scopes: str, copies: list[str]) -> None:
    planned = plan(program(PRODUCE, f"%q = {annotated('%p', mode)}", CONSUME))
    assert (planned.signature("main"), planned.scopes(), planned.copies()) == (signature, scopes, copies)


@pytest.mark.parametrize(
    ("mode", "scopes", "copies"),
    [
        ("body", f"ml.in {D}, ml.out {C}", [f"{C}>{D}", f"{D}>{C}"]),
        ("both", f"ml.in {D}, ml.out {D}", [f"{C}>{D}", f"{C}>{D}", f"{D}>{C}"]),
        ("result", f"ml.in {C}, ml.out {D}", [f"{C}>{D}", f"{C}>{D}", f"{D}>{C}"]),
        ("free", f"ml.in {C}, ml.out {C}", []),
    ],
)
def test_between_pinned_ends(plan, mode: str, scopes: str, copies: list[str]) -> None:
    planned = plan(program(PRODUCE, f"%q = {annotated('%p', mode)}", CONSUME), arguments="host")
    assert planned.signature("main") == f"{C}, {C} -> {C}"
    assert (planned.scopes(), planned.copies()) == (scopes, copies)


@pytest.mark.parametrize(
    ("mode", "signature", "scopes", "copies", "pinned_scopes", "pinned_copies"),
    [
        ("body", f"{D}, {C} -> {C}", f"ml.out {C}", [f"{D}>{C}"], f"ml.out {C}", []),
        ("both", f"{D}, {D} -> {D}", f"ml.out {D}", [], f"ml.out {D}", [f"{C}>{D}", f"{C}>{D}", f"{D}>{C}"]),
        ("result", f"{D}, {D} -> {D}", f"ml.out {D}", [], f"ml.out {D}", [f"{C}>{D}", f"{C}>{D}", f"{D}>{C}"]),
        ("free", f"{C}, {C} -> {C}", f"ml.out {C}", [], f"ml.out {C}", []),
    ],
)
def test_on_an_argument(plan, mode, signature, scopes, copies, pinned_scopes, pinned_copies) -> None:
    text = program(f"%q = {annotated('%x', mode)}", CONSUME)
    planned = plan(text)
    assert (planned.signature("main"), planned.scopes(), planned.copies()) == (signature, scopes, copies)
    pinned = plan(text, arguments="host")
    assert (pinned.scopes(), pinned.copies()) == (pinned_scopes, pinned_copies)


@pytest.mark.parametrize("value", ["%p", "%x"])
@pytest.mark.parametrize("mode", MODES)
def test_on_what_a_function_returns(plan, mode: str, value: str) -> None:
    """TVM's rule: an annotation of what a function returns fixes the result."""
    planned = plan(program(PRODUCE, f"%q = {annotated(value, mode)}", "func.return %q : !t"))
    scope = C if mode == "free" else D
    assert planned.signature("main") == f"{scope}, {scope} -> {scope}"
    assert planned.copies() == []


@pytest.mark.parametrize("mode", MODES)
def test_on_a_constant(plan, mode: str) -> None:
    """A constant is made where it is used: only what is said about its users counts."""
    planned = plan(program("%c = arith.constant dense<1.0> : !t", f"%q = {annotated('%c', mode)}", CONSUME))
    scope = D if mode in ("both", "result") else C
    assert planned.scopes() == f"arith.constant {scope}, ml.out {scope}"
    assert planned.copies() == []


NESTED = {
    # The inner one says opencl:0, the outer one cuda:0.
    ("body", "result"): (f"ml.in {D}, ml.out {G}", [f"{D}>{G}"]),
    ("both", "result"): (f"ml.in {D}, ml.out {G}", [f"{D}>{G}"]),
    ("body", "free"): (f"ml.in {D}, ml.out {D}", []),
    ("both", "free"): (f"ml.in {D}, ml.out {D}", []),
    ("result", "free"): (f"ml.in {D}, ml.out {D}", []),
    ("result", "result"): (f"ml.in {G}, ml.out {G}", []),
    ("free", "body"): (f"ml.in {G}, ml.out {C}", [f"{G}>{C}"]),
    ("free", "both"): (f"ml.in {G}, ml.out {G}", []),
    ("free", "result"): (f"ml.in {G}, ml.out {G}", []),
    ("free", "free"): (f"ml.in {C}, ml.out {C}", []),
}


@pytest.mark.parametrize("inner", MODES)
@pytest.mark.parametrize("outer", MODES)
def test_nested(plan, inner: str, outer: str) -> None:
    text = program(PRODUCE, f"%i = {annotated('%p', inner)}", f"%q = {annotated('%i', outer, '#gpu0')}", CONSUME)
    if (inner, outer) in NESTED:
        planned = plan(text)
        assert (planned.scopes(), planned.copies()) == NESTED[inner, outer]
    elif (inner, outer) == ("result", "body"):
        # The value goes by way of a scope where nobody uses it, and on to where the consumer is.
        assert plan(text).copies() == []
    else:
        with pytest.raises(PlanError, match="must be on opencl:0 and on cuda:0"):
            plan(text)


@pytest.mark.parametrize("first", MODES)
@pytest.mark.parametrize("second", MODES)
@pytest.mark.parametrize("value", ["%p", "%x"])
def test_twice(plan, value: str, first: str, second: str) -> None:
    """On one value. Where it is computed can be said once; the first to say so of an argument wins."""
    text = program(
        PRODUCE,
        f"%q = {annotated(value, first)}",
        f"%s = {annotated(value, second, '#gpu0')}",
        '%a = "ml.first"(%q) : (!t) -> !t',
        '%b = "ml.second"(%s) : (!t) -> !t',
        '%c = "ml.out"(%p, %a, %b) : (!t, !t, !t) -> !t',
        "func.return %c : !t",
    )
    says = [mode for mode in (first, second) if mode in ("body", "both")]
    if len(says) == 2 and (value == "%p" or second == "both"):
        with pytest.raises(PlanError, match="must be on opencl:0 and on cuda:0"):
            plan(text)
        return
    planned = plan(text)
    scopes = dict(part.split() for part in planned.scopes().split(", "))
    if first in ("both", "result"):
        assert scopes["ml.first"] == D
    if second in ("both", "result"):
        assert scopes["ml.second"] == G
    if value == "%p" and says:
        assert scopes["ml.in"] == (D if first in says else G)
    if value == "%x" and says:
        assert planned.signature("main").startswith(D if first in ("body", "both") else G)


@pytest.mark.parametrize("x", ["", "{device.scope = #dev0}"])
@pytest.mark.parametrize("y", ["", "{device.scope = #dev1}"])
@pytest.mark.parametrize("result", ["", "{device.scope = #gpu0}"])
def test_attributes_of_a_signature_are_independent(plan, x: str, y: str, result: str) -> None:
    planned = plan(
        f"""func.func @main(%x: !t {x}, %y: !t {y}) -> (!t {result}) {{
          %r = "ml.op"(%x, %y) : (!t, !t) -> !t
          func.return %r : !t
        }}"""
    )
    default = G if result else D if x else "opencl:1" if y else C
    wanted = D if x else default, "opencl:1" if y else default, default
    assert planned.signature("main") == "{}, {} -> {}".format(*wanted)
    assert len(planned.copies()) == len([scope for scope in wanted if scope != default])


def test_each_result_of_an_operation_is_copied_by_itself(plan) -> None:
    """Project, then copy: only what is used elsewhere moves."""
    planned = plan(
        """func.func @main(%x: !t) -> (!t, !t) {
          %0:3 = "ml.split"(%x) {device.scope = #dev0} : (!t) -> (!t, !t, !t)
          %1 = "ml.op"(%0#1) {device.scope = #gpu0} : (!t) -> !t
          func.return %1, %0#2 : !t, !t
        }"""
    )
    assert planned.copies() == [f"{D}>{G}"]
    assert planned.signature("main") == f"{D} -> {G}, {D}"


def test_on_a_function(plan) -> None:
    """``device.scope`` on a function places its body; what the body says itself goes first."""
    planned = plan(
        """func.func @main(%x: !t) -> !t attributes {device.scope = #dev0} {
          %0 = "ml.a"(%x) : (!t) -> !t
          %1 = "ml.b"(%0) {device.scope = #gpu0} : (!t) -> !t
          %2 = "device.on_device"(%1) {scope = #cpu0, constrain_body = false, constrain_result = true}
             : (!t) -> !t
          %3 = "ml.c"(%2) : (!t) -> !t
          func.return %3 : !t
        }"""
    )
    assert planned.scopes() == f"ml.a {D}, ml.b {G}, ml.c {D}"
