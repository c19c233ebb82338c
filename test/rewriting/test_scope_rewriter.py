"""Patterns that know nothing of scopes keep a plan when a `ScopePreservingRewriter` runs them."""

from __future__ import annotations

import io
import re
from collections.abc import Callable

import pytest
from xdsl.dialects import func, scf
from xdsl.dialects.builtin import ModuleOp, UnitAttr, UnregisteredOp
from xdsl.ir import Block, Operation, Region
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern
from xdsl.printer import Printer
from xdsl.rewriter import BlockInsertPoint, InsertPoint

from devscope.analysis.scope_analysis import ScopeAnalysis
from devscope.dialects.device import SCOPE_ATTR, DeviceCopyOp, ScopeAttr
from devscope.dialects.names import op_name
from devscope.errors import VerifyError
from devscope.passes.device_verify import verify_module
from devscope.rewriting.scope_rewriter import ScopePreservingRewriter, rewrite_keeping_scopes

Parse = Callable[[str], ModuleOp]

MAIN = """
func.func @main(%d: !t {device.scope = #opencl0}, %h: !t {device.scope = #cpu0},
                %m: memref<4xf32> {device.scope = #cpu0}, %p: i1, %i: index) -> (!t {device.scope = #opencl0}) {
  BODY
}
"""


class Rewrite(RewritePattern):
    """Calls a function on operations of one name."""

    def __init__(self, name: str, action: Callable[[Operation, PatternRewriter], None]) -> None:
        self.name, self.action = name, action

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        if op_name(op) == self.name:
            self.action(op, rewriter)


def rewrite(parse: Parse, body: str, action: Callable[[Operation, PatternRewriter], None]) -> str:
    """Rewrite the operation ``ml.old`` of a planned function; the body, if it is still planned."""
    module = parse(MAIN.replace("BODY", body))
    verify_module(module)
    assert rewrite_keeping_scopes(module, Rewrite("ml.old", action))
    verify_module(module)
    module.verify()
    return shown(module)


def shown(module: ModuleOp) -> str:
    """The last function's body, with scopes in short."""
    stream = io.StringIO()
    Printer(stream).print_op(list(module.ops)[-1])
    text = re.sub(r'#device.scope<"(\w+)", (\d) : i64, "", "(\w*)">', r"#\1\2\3", stream.getvalue())
    return "\n".join(line.strip() for line in text.replace("tensor<4xf32>", "!t").split("\n")[1:-1])


def make(name: str, op: Operation, *operands: int) -> Operation:
    """A new operation over some operands of another."""
    kind = UnregisteredOp.with_name(name)
    return kind.create(operands=[op.operands[i] for i in operands], result_types=[op.results[0].type])


def replace_by_new(op: Operation, rewriter: PatternRewriter) -> None:
    new = make("ml.new", op, 0, 1)
    rewriter.replace(op, new)


def test_new_operations_inherit(parse_program: Parse) -> None:
    body = """%0 = "ml.old"(%d, %d) {device.scope = #opencl0} : (!t, !t) -> !t
      func.return %0 : !t"""
    text = rewrite(parse_program, body, replace_by_new)
    assert '"ml.new"(%d, %d) {device.scope = #opencl0}' in text


def test_nothing_is_written_that_the_surroundings_say(parse_program: Parse) -> None:
    body = """%0 = "ml.old"(%h, %h) : (!t, !t) -> !t
      func.return %d : !t"""
    assert '"ml.new"(%h, %h) : (' in rewrite(parse_program, body, replace_by_new)


def test_an_operand_from_elsewhere_is_copied(parse_program: Parse) -> None:
    def through_copies(op: Operation, rewriter: PatternRewriter) -> None:
        sources = [v.owner.operands[0] if isinstance(v.owner, DeviceCopyOp) else v for v in op.operands]
        new = UnregisteredOp.with_name("ml.new").create(operands=sources, result_types=[op.results[0].type])
        rewriter.replace(op, new)

    body = """%0 = "device.device_copy"(%h) {src = #cpu0, dst = #opencl0} : (!t) -> !t
      %1 = "ml.old"(%0, %d) {device.scope = #opencl0} : (!t, !t) -> !t
      func.return %1 : !t"""
    text = rewrite(parse_program, body, through_copies)
    # The copy that stands already serves again.
    assert text.count("device.device_copy") == 1
    assert '"ml.new"(%0, %d) {device.scope = #opencl0}' in text


def test_a_copy_goes_where_it_runs_least(parse_program: Parse) -> None:
    def use_argument(op: Operation, rewriter: PatternRewriter) -> None:
        loop = op.parent_op()
        assert loop is not None
        assert loop.parent is not None
        op.operands[1] = loop.parent.args[1]
        rewriter.notify_op_modified(op)
        rewriter.replace(op, make("ml.new", op, 0, 1))

    body = """%l = "scf.for"(%i, %i, %i, %d) ({ ^bb0(%k: index, %c: !t):
        %0 = "ml.old"(%c, %d) {device.scope = #opencl0} : (!t, !t) -> !t
        scf.yield %0 : !t }) : (index, index, index, !t) -> !t
      func.return %l : !t"""
    text = rewrite(parse_program, body, use_argument)
    assert text.startswith("%0 = device.device_copy %h from #cpu0 to #opencl0"), "not in the loop"


def test_a_result_from_elsewhere_is_copied(parse_program: Parse) -> None:
    body = """%0 = "ml.old"(%d, %d) {device.scope = #opencl0} : (!t, !t) -> !t
      func.return %0 : !t"""

    def by_argument(op: Operation, rewriter: PatternRewriter) -> None:
        assert op.parent is not None
        rewriter.replace(op, (), (op.parent.args[1],))

    text = rewrite(parse_program, body, by_argument)
    assert text.split("\n") == ["%0 = device.device_copy %h from #cpu0 to #opencl0 : !t", "func.return %0 : !t"]


def test_a_carried_result_from_elsewhere_is_copied(parse_program: Parse) -> None:
    """A yield is no demand by itself: what it carries must stay where it was."""

    def yield_other(op: Operation, rewriter: PatternRewriter) -> None:
        rewriter.replace_all_uses_with(op.results[0], op.operands[1])
        rewriter.erase(op)

    body = """%c = "device.device_copy"(%d) {src = #opencl0, dst = #cpu0} : (!t) -> !t
      "ml.keep"(%c) : (!t) -> ()
      %y = "scf.if"(%p) ({
        %0 = "ml.old"(%d, %d) {device.scope = #opencl0} : (!t, !t) -> !t
        scf.yield %0 : !t }, { scf.yield %d : !t }) : (i1) -> !t
      func.return %y : !t"""
    text = rewrite(parse_program, body, yield_other)
    assert "scf.yield %d : !t\n} else {\nscf.yield %d : !t" in text


def test_buffers_cannot_be_copied(parse_program: Parse) -> None:
    module = parse_program(
        MAIN.replace("BODY", '"ml.old"(%d, %p) {device.scope = #opencl0} : (!t, i1) -> () func.return %d : !t')
    )

    def take_buffer(op: Operation, rewriter: PatternRewriter) -> None:
        assert op.parent is not None
        op.operands[1] = op.parent.args[2]
        rewriter.notify_op_modified(op)

    with pytest.raises(
        VerifyError, match=r"memref<4xf32> on cpu:0 is used on opencl:0, and no device.device_copy"
    ):
        rewrite_keeping_scopes(module, Rewrite("ml.old", take_buffer))


def test_moved_operations_run_where_they_ran(parse_program: Parse) -> None:
    """A function whose body is on a device is inlined into one whose body is on the host."""
    callee = """func.func private @f(%x: !t {device.scope = #opencl0}) -> (!t {device.scope = #opencl0})
        attributes {device.scope = #opencl0} {
      %y = "ml.inner"(%x) : (!t) -> !t
      func.return %y : !t
    }"""
    module = parse_program(callee + MAIN.replace("BODY", "%0 = func.call @f(%d) : (!t) -> !t func.return %0 : !t"))
    verify_module(module)

    def inline(op: Operation, rewriter: PatternRewriter) -> None:
        function = next(iter(module.ops))
        assert isinstance(function, func.FuncOp)
        block = function.body.block
        last = block.last_op
        assert last is not None
        rewriter.inline_block(block, InsertPoint.before(op), op.operands)
        rewriter.replace(op, (), last.operands)
        rewriter.erase(last)
        rewriter.erase(function)

    rewrite_keeping_scopes(module, Rewrite("func.call", inline))
    verify_module(module)
    assert '%y = "ml.inner"(%d) {device.scope = #opencl0}' in shown(module)


def test_move(parse_program: Parse) -> None:
    module = parse_program(
        """func.func @on_dev(%d: !t {device.scope = #opencl0}) attributes {device.scope = #opencl0} {
          "ml.old"(%d) : (!t) -> ()
          func.return
        }
        func.func @main() { func.return }"""
    )
    analysis = ScopeAnalysis(module)
    op = next(iter(analysis.symbols.functions["on_dev"].body.block.ops))
    rewriter = ScopePreservingRewriter(op, analysis)
    rewriter.move(op, InsertPoint.at_start(analysis.symbols.functions["main"].body.block))
    assert analysis.of_op(op).short() == "opencl:0"
    rewriter.move(op, InsertPoint.at_start(analysis.symbols.functions["on_dev"].body.block))
    assert SCOPE_ATTR not in op.attributes


def test_regions_that_are_taken_apart(parse_program: Parse) -> None:
    """Both arms of a choice become bodies of a new one, and inherit nothing: they stay where they were."""

    def rebuild(op: Operation, rewriter: PatternRewriter) -> None:
        regions = [rewriter.move_region_contents_to_new_regions(region) for region in op.regions]
        new = scf.IfOp.create(operands=op.operands, result_types=[r.type for r in op.results], regions=regions)
        new.attributes["done"] = UnitAttr()
        rewriter.replace(op, new)

    module = parse_program(
        MAIN.replace(
            "BODY",
            """%y = "scf.if"(%p) ({
                %0 = "ml.a"(%h) : (!t) -> !t
                %1 = "device.device_copy"(%0) {src = #cpu0, dst = #opencl0} : (!t) -> !t
                scf.yield %1 : !t }, { scf.yield %d : !t }) : (i1) -> !t
              func.return %y : !t""",
        )
    )
    rewrite_keeping_scopes(
        module, Rewrite("scf.if", lambda op, r: None if "done" in op.attributes else rebuild(op, r))
    )
    verify_module(module)
    assert shown(module).count("device_copy") == 1
    assert '"ml.a"(%h) : (!t)' in shown(module)


def test_what_is_inserted_into_new_regions(parse_program: Parse) -> None:
    def wrap(op: Operation, rewriter: PatternRewriter) -> None:
        assert op.parent is not None
        blocks = [Block(), Block()]
        for block in blocks:
            new = rewriter.insert(make("ml.new", op, 0, 1), InsertPoint.at_end(block))
            rewriter.insert(scf.YieldOp(*new.results), InsertPoint.at_end(block))
        choice = scf.IfOp(op.parent.args[3], [op.results[0].type], Region(blocks[0]), Region(blocks[1]))
        rewriter.replace(op, choice)

    body = """%0 = "ml.old"(%d, %d) {device.scope = #opencl0} : (!t, !t) -> !t
      func.return %0 : !t"""
    assert rewrite(parse_program, body, wrap).count('"ml.new"(%d, %d) {device.scope = #opencl0}') == 2


def test_place(parse_program: Parse) -> None:
    def place(op: Operation, rewriter: PatternRewriter) -> None:
        assert isinstance(rewriter, ScopePreservingRewriter)
        if rewriter.scopes.of_op(op).short() == "opencl:0":
            rewriter.place(op, ScopeAttr.parse_text("opencl:1"))

    body = """%0 = "ml.old"(%d, %d) {device.scope = #opencl0} : (!t, !t) -> !t
      func.return %0 : !t"""
    lines = rewrite(parse_program, body, place).split("\n")
    assert [line.split(" = ")[1].split(" :")[0] if " = " in line else line for line in lines] == [
        "device.device_copy %d from #opencl0 to #opencl1",
        '"ml.old"(%0, %0) {device.scope',
        "device.device_copy %1 from #opencl1 to #opencl0",
        "func.return %2 : !t",
    ]


def test_blocks_are_inlined(parse_program: Parse) -> None:
    """`inline_region` into another function: blocks and all."""
    module = parse_program(
        """func.func @on_dev(%d: !t {device.scope = #opencl0}) attributes {device.scope = #opencl0} {
          cf.br ^next
        ^next:
          "ml.old"() : () -> !t
          func.return
        }
        func.func @main() { func.return }"""
    )
    analysis = ScopeAnalysis(module)
    source, target = analysis.symbols.functions.values()
    rewriter = ScopePreservingRewriter(source, analysis)
    op = next(iter(source.body.blocks[1].ops))
    assert isinstance(op, Operation)
    rewriter.inline_region(source.body, BlockInsertPoint.at_end(target.body))
    assert analysis.of_op(op).short() == "opencl:0"


def test_the_location_of_the_rewritten_operation_is_inherited(parse_program: Parse) -> None:
    module = parse_program(
        MAIN.replace("BODY", '%0 = "ml.old"(%h, %h) : (!t, !t) -> !t loc("m.mlir":7:3) func.return %d : !t')
    )
    rewrite_keeping_scopes(module, Rewrite("ml.old", replace_by_new))
    (new,) = [op for op in module.walk() if op_name(op) == "ml.new"]
    assert "7" in str(new.location)


def test_an_error_in_a_pattern_is_raised_as_it_is(parse_program: Parse) -> None:
    module = parse_program(MAIN.replace("BODY", '"ml.old"() : () -> () "ml.old"() : () -> () func.return %d : !t'))
    seen: list[Operation] = []

    def fail(op: Operation, rewriter: PatternRewriter) -> None:
        seen.append(op)
        raise VerifyError("no")

    with pytest.raises(VerifyError, match="no"):
        rewrite_keeping_scopes(module, Rewrite("ml.old", fail))
    assert len(seen) == 1
