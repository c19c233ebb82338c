"""Effects of operations: what may be dropped, and what must keep its place."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from xdsl.dialects.builtin import ModuleOp

from devscope.analysis.effects import Effects, has_side_effects
from devscope.analysis.symbols import Symbols

GENERIC = '"linalg.generic"({}) <{{operandSegmentSizes = array<i32: 1, 1>}}> ({{ ^bb0(%a: f32, %b: f32): {} '
GENERIC += '"linalg.yield"(%a) : (f32) -> () }}) : ({}) -> '

PURE = {
    "a call of something that only computes": '%y = "stablehlo.custom_call"(%x) : (!t) -> !t',
    "arithmetic": "%y = arith.addi %i, %i : index",
    "arithmetic on vectors": '%y = "arith.addf"(%v, %v) : (vector<4xf32>, vector<4xf32>) -> vector<4xf32>',
    "tensors": GENERIC.format("%x, %x", "", "!t, !t") + "!t",
    "stablehlo": '%y = "stablehlo.add"(%x, %x) : (!t, !t) -> !t',
    "a shape of memory": "%y = memref.dim %m, %i : memref<?xf32>",
    "a copy": '%y = "device.device_copy"(%x) <{src = #cpu0, dst = #opencl0}> : (!t) -> !t',
    "control flow": '%y = "scf.if"(%p) ({ "scf.yield"(%x) : (!t) -> () }, { "scf.yield"(%x) : (!t) -> () }) '
    ": (i1) -> !t",
    "an affine loop": '"affine.for"() ({ ^bb0(%k: index): "affine.yield"() : () -> () }) : () -> ()',
    "a function value": "%y = func.constant @pure : () -> ()",
}
EFFECTS = {
    "a store": "memref.store %f, %m[%i] : memref<?xf32>",
    "memory in, tensor out": GENERIC.format("%m, %x", "", "memref<?xf32>, !t") + "!t",
    "tensor in, memory out": GENERIC.format("%x, %m", "", "!t, memref<?xf32>") + "()",
    "a load": "%y = memref.load %m[%i] : memref<?xf32>",
    "a tensor of memory": '%y = "bufferization.to_tensor"(%m) : (memref<?xf32>) -> tensor<?xf32>',
    "a store in a loop": '"affine.for"() ({ ^bb0(%k: index): memref.store %f, %m[%k] : memref<?xf32> '
    '"affine.yield"() : () -> () }) : () -> ()',
    "a store in a body": GENERIC.format("%x, %x", "memref.store %a, %m[%i] : memref<?xf32>", "!t, !t") + "!t",
    "an assertion": '"cf.assert"(%p) <{msg = "no"}> : (i1) -> ()',
    "the outside": '%y = "stablehlo.custom_call"(%x) {has_side_effect = true} : (!t) -> !t',
    "state": '%y = "tosa.variable_read"() : () -> !t',
    "unknown": '%y = "my.op"(%x) : (!t) -> !t',
    "an unknown callee": '"func.call_indirect"(%g) : (() -> ()) -> ()',
}
FUNCTIONS = """
func.func private @pure() { func.call @leaf() : () -> () func.return }
func.func private @leaf() { func.return }
func.func private @asserts() { %p = arith.constant true "cf.assert"(%p) <{msg = "no"}> : (i1) -> () func.return }
func.func private @caller() { func.call @pure() : () -> () func.call @asserts() : () -> () func.return }
func.func private @recursive() { func.call @recursive() : () -> () func.return }
func.func private @elsewhere()
"""
ARGUMENTS = "%x: !t, %m: memref<?xf32>, %v: vector<4xf32>, %f: f32, %p: i1, %i: index, %g: () -> ()"


def effects_of(text: str, parse_program: Callable[[str], ModuleOp]) -> tuple[list[bool], list[bool]]:
    """Of each operation of a function: whether it has side effects, and whether it is pure with what it calls."""
    module = parse_program(f"{FUNCTIONS} func.func @main({ARGUMENTS}) {{ {text} func.return }}")
    symbols = Symbols(module)
    effects = Effects(symbols)
    ops = list(symbols.functions["main"].body.block.ops)[:-1]
    return [has_side_effects(op) for op in ops], [effects.is_pure(op) for op in ops]


@pytest.mark.parametrize("case", PURE)
def test_what_only_computes_is_pure(case: str, parse_program: Callable[[str], ModuleOp]) -> None:
    effects, pure = effects_of(PURE[case], parse_program)
    assert (effects, pure) == ([False], [True])


@pytest.mark.parametrize("case", EFFECTS)
def test_what_does_more_keeps_its_place(case: str, parse_program: Callable[[str], ModuleOp]) -> None:
    effects, pure = effects_of(EFFECTS[case], parse_program)
    assert (effects, pure) == ([True], [False])


@pytest.mark.parametrize(
    ("name", "pure"),
    {
        "pure": True,
        "leaf": True,
        "asserts": False,
        "caller": False,
        "recursive": False,
        "elsewhere": False,
    }.items(),
)
def test_a_call_is_as_pure_as_its_callee(name: str, pure: bool, parse_program: Callable[[str], ModuleOp]) -> None:
    effects, found = effects_of(f"func.call @{name}() : () -> ()", parse_program)
    assert (effects, found) == ([True], [pure])
