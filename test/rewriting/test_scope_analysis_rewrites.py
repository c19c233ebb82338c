"""While a module is rewritten, `ScopeAnalysis` answers as a new one of the same module would."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from xdsl.dialects import test
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter
from xdsl.rewriter import InsertPoint

from devscope.analysis.scope_analysis import ScopeAnalysis
from devscope.analysis.value_kinds import TENSOR, kind_of
from devscope.dialects.device import SCOPE_ATTR, DeviceCopyOp, ScopeAttr
from devscope.dialects.names import op_name
from devscope.dialects.op_facts import CALLS, facts_of
from devscope.errors import PlanError, VerifyError
from devscope.passes.device_plan import plan_module
from devscope.passes.device_verify import verify_module
from devscope.rewriting.scope_rewriter import ScopePreservingRewriter

SCOPES = [ScopeAttr.parse_text(text) for text in ("cpu:0", "opencl:0", "opencl:1", "opencl:0@fast")]


def answers(analysis: ScopeAnalysis, module: ModuleOp) -> list[object]:
    """The answers to all queries."""
    found: list[object] = []
    for op in module.walk():
        found += (analysis.of_op(op), analysis.executes(op), analysis.lexical(op))
        found += (analysis.of_value(value) for value in values_of(op))
        if facts_of(op).control in CALLS:
            found.append(analysis.callees_of(op))
        found += ((need.op, need.operand, need.scope) for need in analysis.needs(op))
    return found


def values_of(op: Operation) -> list[SSAValue]:
    return [*op.results, *(a for region in op.regions for block in region.blocks for a in block.args)]


def in_computation(op: Operation) -> bool:
    """Whether ``op`` stands in the body of a computation, which runs on one scope and has no copies."""
    parent = op.parent_op()
    while parent is not None and facts_of(parent).is_entered:
        parent = parent.parent_op()
    return not isinstance(parent, FuncOp | None)


class RandomRewrites:
    """Rewrites a module at random, through the rewriters that ``rewriter_for`` makes for operations."""

    def __init__(
        self, rng: random.Random, module: ModuleOp, rewriter_for: Callable[[Operation], PatternRewriter]
    ) -> None:
        self.rng, self.module, self.rewriter_for = rng, module, rewriter_for

    def step(self, sensible: bool) -> None:
        """One change; with ``sensible``, one that a pattern may make and expect the plan to be kept."""
        kinds = [self.insert, self.replace, self.erase, self.replace_value, self.replace_some]
        kinds += [self.change_operand, self.inline, self.move]
        if not sensible:
            kinds += [self.change_scope, self.change_signature, self.change_callee, self.drop_function]
            kinds += [self.add_block_argument, self.change_branch]
        self.rng.choice(kinds)()

    def pick(self, wanted: Callable[[Operation], bool]) -> Operation | None:
        found = [op for op in self.module.walk() if wanted(op)]
        return self.rng.choice(found) if found else None

    def plain(self) -> Operation | None:
        return self.pick(lambda op: op_name(op) == "ml.op")

    def visible(self, op: Operation) -> list[SSAValue]:
        """Tensors that ``op`` may use."""
        found: list[SSAValue] = []
        current: Operation | None = op
        while current is not None and not isinstance(current, FuncOp) and current.parent is not None:
            before = current.prev_op
            while before is not None:
                found += before.results
                before = before.prev_op
            found += current.parent.args
            current = current.parent_op()
        return [value for value in found if kind_of(value.type) == TENSOR]

    def mark(self) -> dict[str, ScopeAttr]:
        return {SCOPE_ATTR: self.rng.choice(SCOPES)} if self.rng.random() < 0.4 else {}

    def new_op(self, op: Operation) -> Operation | None:
        values = self.visible(op)
        if not values:
            return None
        if self.rng.random() < 0.2 and not in_computation(op):
            src, dst = self.rng.sample(SCOPES, 2)
            return DeviceCopyOp(self.rng.choice(values), src, dst)
        operands = self.rng.choices(values, k=2)
        return test.TestOp.create(operands=operands, result_types=[values[0].type], attributes=self.mark())

    def insert(self) -> None:
        op = self.pick(lambda op: op.parent_op() is not None and op.parent_op() is not self.module)
        if op is not None and (new := self.new_op(op)) is not None:
            self.rewriter_for(op).insert(new, InsertPoint.before(op))

    def replace(self) -> None:
        op = self.pick(lambda op: len(op.results) == 1 and kind_of(op.results[0].type) == TENSOR)
        if op is not None and (new := self.new_op(op)) is not None:
            self.rewriter_for(op).replace(op, new)

    def erase(self) -> None:
        op = self.pick(lambda op: bool(op.results) and all(not r.uses for r in op.results))
        if op is not None:
            self.rewriter_for(op).erase(op)

    def replace_value(self) -> None:
        op = self.plain()
        if op is not None and (values := self.visible(op)):
            self.rewriter_for(op).replace_all_uses_with(op.results[0], self.rng.choice(values))

    def replace_some(self) -> None:
        op = self.plain()
        if op is not None and (values := self.visible(op)):
            chosen = self.rng.choice(values)
            self.rewriter_for(op).replace_uses_with_if(op.results[0], chosen, lambda use: use.index == 0)

    def change_scope(self) -> None:
        if (op := self.pick(lambda op: not isinstance(op, ModuleOp))) is not None:
            op.attributes.pop(SCOPE_ATTR, None)
            op.attributes |= self.mark()
            self.rewriter_for(op).notify_op_modified(op)

    def change_operand(self) -> None:
        op = self.pick(lambda op: any(kind_of(v.type) == TENSOR for v in op.operands) and bool(self.visible(op)))
        if op is not None:
            rewriter = self.rewriter_for(op)
            places = [i for i, v in enumerate(op.operands) if kind_of(v.type) == TENSOR]
            op.operands[self.rng.choice(places)] = self.rng.choice(self.visible(op))
            rewriter.notify_op_modified(op)

    def change_signature(self) -> None:
        func = self.pick(lambda op: isinstance(op, FuncOp))
        assert isinstance(func, FuncOp)
        count = len(func.function_type.inputs)
        func.arg_attrs = ArrayAttr([DictionaryAttr(dict(self.mark())) for _ in range(count)])
        self.rewriter_for(func).notify_op_modified(func)

    def change_callee(self) -> None:
        op = self.pick(lambda op: op_name(op) == "func.constant")
        if op is not None:
            target = self.pick(lambda f: isinstance(f, FuncOp) and f.function_type == op.results[0].type)
            if isinstance(target, FuncOp):
                op.properties["value"] = type(op.properties["value"])(target.sym_name.data)
                self.rewriter_for(op).notify_op_modified(op)

    def inline(self) -> None:
        op = self.pick(lambda op: op_name(op) == "scf.if")
        if op is not None:
            block = self.rng.choice(op.regions).block
            last = block.last_op
            assert last is not None
            rewriter = self.rewriter_for(op)
            rewriter.inline_block(block, InsertPoint.before(op))
            rewriter.replace(op, (), last.operands)
            rewriter.erase(last)

    def drop_function(self) -> None:
        func = self.pick(lambda op: isinstance(op, FuncOp) and op.sym_name.data != "main")
        if func is not None and self.rng.random() < 0.2:
            self.rewriter_for(func).erase(func)

    def blocks(self) -> list[Block]:
        return [b for op in self.module.walk() for region in op.regions for b in list(region.blocks)[1:] if b.uses]

    def add_block_argument(self) -> None:
        """The argument, and what every branch passes for it."""
        if not (blocks := self.blocks()):
            return
        block = self.rng.choice(blocks)
        branches = [use.operation for use in block.uses]
        if any(not self.visible(op) or op_name(op) != "cf.br" for op in branches):
            return
        self.rewriter_for(branches[0]).insert_block_argument(block, 0, self.visible(branches[0])[0].type)
        for branch in branches:
            branch.operands = [self.rng.choice(self.visible(branch)), *branch.operands]
            self.rewriter_for(branch).notify_op_modified(branch)

    def change_branch(self) -> None:
        op = self.pick(lambda op: bool(op.successors))
        if op is not None:
            position = self.rng.randrange(len(op.successors))
            types = op.successors[position].arg_types
            same = [b for b in self.blocks() if b.arg_types == types and b.parent is op.parent_region()]
            if same:
                op.successors[position] = self.rng.choice(same)
                self.rewriter_for(op).notify_op_modified(op)

    def move(self) -> None:
        """As far down in its block as its users and other blocks allow."""
        op = self.plain()
        if op is None or not isinstance(rewriter := self.rewriter_for(op), ScopePreservingRewriter):
            return
        users = {use.operation for use in op.results[0].uses}
        later = op.next_op
        while later is not None and later.next_op is not None and not later.regions and later not in users:
            later = later.next_op
        assert later is not None
        rewriter.move(op, InsertPoint.before(later))


def rewriters(analysis: ScopeAnalysis, keeping: bool) -> Callable[[Operation], PatternRewriter]:
    def make(op: Operation) -> PatternRewriter:
        if keeping:
            return ScopePreservingRewriter(op, analysis)
        rewriter = PatternRewriter(op)
        rewriter.extend_from_listener(analysis.listener)
        return rewriter

    return make


PROPERTY = settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("keeping", [False, True], ids=["plain rewriter", "scope-preserving rewriter"])
@PROPERTY
@given(seed=st.integers(0, 10**6))
def test_answers_as_a_new_analysis(
    keeping: bool,
    write_program: Callable[..., str],
    parse_program: Callable[[str], ModuleOp],
    seed: int,
) -> None:
    module = parse_program(write_program(seed, closed=True))
    rng = random.Random(seed)
    analysis = ScopeAnalysis(module)
    assert answers(analysis, module) == answers(ScopeAnalysis(module), module)
    rewrites = RandomRewrites(rng, module, rewriters(analysis, keeping))
    for _ in range(20):
        try:
            rewrites.step(sensible=False)
        except VerifyError:  # A function value was to be copied.
            break
        if rng.random() < 0.5:
            assert answers(analysis, module) == answers(ScopeAnalysis(module), module)
    assert answers(analysis, module) == answers(ScopeAnalysis(module), module)


@PROPERTY
@given(seed=st.integers(0, 10**6))
def test_a_planned_module_stays_planned(
    write_program: Callable[..., str], parse_program: Callable[[str], ModuleOp], seed: int
) -> None:
    module = parse_program(write_program(seed, placed=0.3))
    try:
        plan_module(module)
    except PlanError:
        return
    verify_module(module)
    rewrites = RandomRewrites(random.Random(seed), module, rewriters(ScopeAnalysis(module), keeping=True))
    for _ in range(10):
        rewrites.step(sensible=True)
        verify_module(module)
    module.verify()


def test_module_level_changes_are_seen(parse_program: Callable[[str], ModuleOp]) -> None:
    module = parse_program(
        """func.func private @f(%x: !t {device.scope = #opencl0}) -> (!t {device.scope = #opencl0}) {
          func.return %x : !t
        }
        func.func @main(%x: !t {device.scope = #opencl0}) {
          %y = func.call @f(%x) : (!t) -> !t
          func.return
        }"""
    )
    analysis = ScopeAnalysis(module)
    f, main = analysis.symbols.functions.values()
    call = next(iter(main.body.block.ops))
    assert analysis.of_value(call.results[0]).short() == "opencl:0"
    f.res_attrs = ArrayAttr([DictionaryAttr({SCOPE_ATTR: ScopeAttr.parse_text("cpu:0")})])
    assert analysis.of_value(call.results[0]).short() == "cpu:0"  # Signatures are not remembered at all.
    rewriter = PatternRewriter(call)
    rewriter.extend_from_listener(analysis.listener)
    rewriter.erase(f)
    assert list(analysis.symbols.functions) == ["main"]
    assert analysis.callees_of(call).functions == ()
