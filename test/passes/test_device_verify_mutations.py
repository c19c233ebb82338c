"""``device-verify`` against an independent judge: a planned module with one change is refused, or still runs.

The judge runs the module on tokens that say where data is, along random paths. It shares no code with the
verifier, and knows no analysis: a value is where the operation that made it ran.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TypeAlias

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FunctionType, ModuleOp, SymbolRefAttr, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from devscope.dialects.device import SCOPE_ATTR, DeviceCopyOp, ScopeAttr
from devscope.dialects.names import op_name
from devscope.errors import PlanError, VerifyError
from devscope.passes.device_plan import plan_module
from devscope.passes.device_verify import verify_module

HOST = ScopeAttr.parse_text("cpu:0")
SCOPES = [ScopeAttr.parse_text(text) for text in ("cpu:0", "opencl:0", "opencl:1", "opencl:0@fast")]
STEPS = 400

Token: TypeAlias = "ScopeAttr | FuncOp | None"
"""Where a tensor is, which function a value is, None for a scalar."""


class Mixed(Exception):
    """An operation met data on another scope."""


class TooLong(Exception):
    """A run took too many steps; what it has met was right."""


class Judge:
    """Runs a module once, along a random path."""

    def __init__(self, module: ModuleOp, rng: random.Random) -> None:
        self.functions = {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp)}
        self.rng, self.steps = rng, 0

    def call(self, func: FuncOp, arguments: list[Token]) -> list[Token]:
        expect(arguments, signature(func, "arg_attrs"), func)
        values: dict[SSAValue, Token] = {}
        block, passed = func.body.blocks[0], arguments
        while True:
            end = self.run(block, passed, values)
            if not end.successors:
                results = [values[v] for v in end.operands]
                expect(results, signature(func, "res_attrs"), end)
                return results
            chosen = self.rng.randrange(len(end.successors))
            count = sum(len(b.args) for b in end.successors[chosen:])
            block = end.successors[chosen]
            first = len(end.operands) - count
            passed = [values[v] for v in end.operands[first : first + len(block.args)]]

    def run(self, block: Block, passed: list[Token], values: dict[SSAValue, Token]) -> Operation:
        """Run a block; its last operation."""
        values.update(zip(block.args, passed, strict=True))
        for op in block.ops:
            self.steps += 1
            if self.steps > STEPS:
                raise TooLong
            if op is block.last_op:
                return op
            values.update(zip(op.results, self.execute(op, values), strict=True))
        raise AssertionError("a block ends with a terminator")

    def execute(self, op: Operation, values: dict[SSAValue, Token]) -> list[Token]:
        name = op_name(op)
        operands = [values[v] for v in op.operands]
        if isinstance(op, DeviceCopyOp):
            check(op, operands[0] == op.src != op.dst)
            return [op.dst]
        if name == "func.constant":
            return [self.named(op, "value")]
        if name == "func.call":
            return self.call(self.named(op, "callee"), operands)
        if name == "func.call_indirect":
            assert isinstance(operands[0], FuncOp)
            return self.call(operands[0], operands[1:])
        if name == "scf.if":
            end = self.run(self.rng.choice(op.regions).block, [], values)
            return [values[v] for v in end.operands]
        if name == "scf.for":
            return self.loop(op, operands[3:], values)
        if name == "scf.while":
            return self.loop_while(op, operands, values)
        if name in ("tensor.dim", "shape.shape_of"):
            return [HOST if isinstance(r.type, TensorType) else None for r in op.results]
        return self.compute(op, operands, values)

    def loop(self, op: Operation, carried: list[Token], values: dict[SSAValue, Token]) -> list[Token]:
        start = carried
        for _ in range(self.rng.randrange(3)):
            end = self.run(op.regions[0].block, [None, *carried], values)
            carried = [values[v] for v in end.operands]
            check(end, carried == start)
        return carried

    def loop_while(self, op: Operation, carried: list[Token], values: dict[SSAValue, Token]) -> list[Token]:
        start, left = carried, None
        for turn in range(3):
            end = self.run(op.regions[0].block, carried, values)
            out = [values[v] for v in end.operands[1:]]
            check(end, left in (None, out))
            left = out
            if turn == 2 or self.rng.random() < 0.5:
                break
            end = self.run(op.regions[1].block, out, values)
            carried = [values[v] for v in end.operands]
            check(end, carried == start)
        assert left is not None
        return left

    def compute(self, op: Operation, operands: list[Token], values: dict[SSAValue, Token]) -> list[Token]:
        inner = [values[v] for i in op.walk() if i is not op for v in i.operands if v in values]
        scope = around(op)
        check(op, all(token == scope for token in (*operands, *inner) if isinstance(token, ScopeAttr)))
        return [scope if isinstance(result.type, TensorType) else None for result in op.results]

    def named(self, op: Operation, key: str) -> FuncOp:
        symbol = op.properties[key]
        assert isinstance(symbol, SymbolRefAttr)
        return self.functions[symbol.string_value()]


def around(op: Operation) -> ScopeAttr:
    current: Operation | None = op
    while current is not None:
        if isinstance(scope := current.attributes.get(SCOPE_ATTR), ScopeAttr):
            return scope
        current = current.parent_op()
    return HOST


def signature(func: FuncOp, side: str) -> list[Attribute | None]:
    types = func.function_type.inputs if side == "arg_attrs" else func.function_type.outputs
    attributes = func.properties.get(side)
    entries = attributes.data if isinstance(attributes, ArrayAttr) else [DictionaryAttr({})] * len(types)
    return [
        entry.data.get(SCOPE_ATTR) if isinstance(entry, DictionaryAttr) and isinstance(type_, TensorType) else None
        for entry, type_ in zip(entries, types, strict=True)
    ]


def expect(tokens: list[Token], scopes: list[Attribute | None], op: Operation) -> None:
    for token, scope in zip(tokens, scopes, strict=True):
        check(op, not isinstance(token, ScopeAttr) or token == scope)


def check(op: Operation, right: bool) -> None:
    if not right:
        raise Mixed(op)


def judge(module: ModuleOp, rng: random.Random, runs: int) -> Operation | None:
    """An operation that mixes scopes on some run, if one is found."""
    for func in [op for op in module.ops if isinstance(op, FuncOp)]:
        if any(isinstance(type_, FunctionType) for type_ in func.function_type.inputs):
            continue
        for _ in range(runs):
            given = signature(func, "arg_attrs")
            arguments: list[Token] = [scope if isinstance(scope, ScopeAttr) else None for scope in given]
            try:
                Judge(module, rng).call(func, arguments)
            except Mixed as mixed:
                return mixed.args[0]
            except TooLong:
                continue
    return None


class Mutation:
    """One change of a planned module."""

    def __init__(self, rng: random.Random, module: ModuleOp) -> None:
        self.rng, self.module = rng, module

    def apply(self) -> bool:
        kinds = [self.scope, self.scope, self.swap_ends, self.change_end, self.remove_copy, self.callee]
        return self.rng.choice([*kinds, self.signature, self.operand, self.move_result])()

    def pick(self, wanted: Callable[[Operation], bool]) -> Operation | None:
        found = [op for op in self.module.walk() if wanted(op)]
        return self.rng.choice(found) if found else None

    def scope(self) -> bool:
        """Drop, or change, where an operation or a function says that it runs."""
        op = self.pick(lambda op: SCOPE_ATTR in op.attributes)
        if op is None:
            return False
        del op.attributes[SCOPE_ATTR]
        if self.rng.random() < 0.6:
            op.attributes[SCOPE_ATTR] = self.rng.choice(SCOPES)
        return True

    def swap_ends(self) -> bool:
        copy = self.pick(lambda op: isinstance(op, DeviceCopyOp))
        if isinstance(copy, DeviceCopyOp):
            copy.src, copy.dst = copy.dst, copy.src
        return copy is not None

    def change_end(self) -> bool:
        copy = self.pick(lambda op: isinstance(op, DeviceCopyOp))
        if isinstance(copy, DeviceCopyOp):
            copy.attributes[self.rng.choice(("src", "dst"))] = self.rng.choice(SCOPES)
        return copy is not None

    def remove_copy(self) -> bool:
        copy = self.pick(lambda op: isinstance(op, DeviceCopyOp))
        if copy is None:
            return False
        copy.results[0].replace_all_uses_with(copy.operands[0])
        copy.detach()
        copy.erase()
        return True

    def callee(self) -> bool:
        """Call another function of the same type."""
        op = self.pick(lambda op: op_name(op) in ("func.call", "func.constant"))
        if op is None:
            return False
        key = "callee" if op_name(op) == "func.call" else "value"
        functions = {f.sym_name.data: f for f in self.module.ops if isinstance(f, FuncOp)}
        symbol = op.properties[key]
        assert isinstance(symbol, SymbolRefAttr)
        type_ = functions[symbol.string_value()].function_type
        same = [name for name, f in functions.items() if f.function_type == type_]
        op.properties[key] = SymbolRefAttr(self.rng.choice(same))
        return True

    def signature(self) -> bool:
        func = self.pick(lambda op: isinstance(op, FuncOp))
        side = self.rng.choice(("arg_attrs", "res_attrs"))
        assert func is not None
        entries = func.properties.get(side)
        if not isinstance(entries, ArrayAttr) or not entries.data:
            return False
        position = self.rng.randrange(len(entries.data))
        new = {SCOPE_ATTR: self.rng.choice(SCOPES)} if self.rng.random() < 0.8 else {}
        func.properties[side] = ArrayAttr(
            DictionaryAttr(new) if i == position else entry for i, entry in enumerate(entries)
        )
        return True

    def operand(self) -> bool:
        """Use another argument or result of the same block."""
        op = self.pick(lambda op: bool(op.operands) and op.parent is not None)
        if op is None or op.parent is None:
            return False
        index = self.rng.randrange(len(op.operands))
        values: list[SSAValue] = list(op.parent.args)
        before = op.prev_op
        while before is not None:
            values += before.results
            before = before.prev_op
        same = [value for value in values if value.type == op.operands[index].type]
        if same:
            op.operands[index] = self.rng.choice(same)
        return bool(same)

    def move_result(self) -> bool:
        """Use a copy where the value was used, or the value where the copy was."""
        copy = self.pick(lambda op: isinstance(op, DeviceCopyOp) and bool(op.result.uses))
        if not isinstance(copy, DeviceCopyOp):
            return False
        use = self.rng.choice(list(copy.result.uses))
        use.operation.operands[use.index] = copy.operand
        return True


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 10**6))
def test_a_mutation_is_caught_or_harmless(
    write_program: Callable[..., str], parse_program: Callable[[str], ModuleOp], seed: int
) -> None:
    rng = random.Random(seed)
    module = parse_program(write_program(seed, placed=0.3))
    try:
        plan_module(module)
    except PlanError:
        return
    verify_module(module)
    assert judge(module, rng, 4) is None
    for _ in range(4):
        mutant = module.clone()
        if not Mutation(rng, mutant).apply():
            continue
        try:
            verify_module(mutant)
        except VerifyError:
            continue
        assert judge(mutant, rng, 10) is None


def test_the_judge_sees_what_is_wrong(parse_program: Callable[[str], ModuleOp]) -> None:
    module = parse_program(
        """func.func @main(%x: !t {device.scope = #opencl0}) {
          "ml.op"(%x) : (!t) -> ()
          func.return
        }"""
    )
    assert judge(module, random.Random(0), 1) is not None
    with pytest.raises(VerifyError):
        verify_module(module)
