"""The pass ``device-canonicalize``: simplifies a planned module, and keeps the plan.

xDSL's canonicalization and folding run with a `ScopePreservingRewriter`, together with patterns of their own for
copies, which other passes leave behind.
"""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnregisteredOp
from xdsl.dialects.scf import ForOp
from xdsl.ir import Operation, OpResult
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    GreedyRewritePatternApplier,
    PatternRewriter,
    RewritePattern,
    op_type_rewrite_pattern,
)
from xdsl.rewriter import InsertPoint
from xdsl.transforms.canonicalize import CanonicalizationRewritePattern
from xdsl.transforms.dead_code_elimination import region_dce

from devscope.analysis.classify import is_rematerialised
from devscope.dialects.device import DeviceCopyOp, ScopeAttr
from devscope.dialects.scope_attribute import unplaced
from devscope.rewriting.copies import copies_of, dominates, fold_copy
from devscope.rewriting.scope_rewriter import rewrite_keeping_scopes


class FoldCopyChain(RewritePattern):
    """S -> S is no copy; S -> T -> S is the value itself; S -> T -> U is S -> U if nothing else uses T."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: DeviceCopyOp, rewriter: PatternRewriter) -> None:
        value = fold_copy(op)
        if value is not None:
            rewriter.replace(op, (), (value,))


class ShareCopy(RewritePattern):
    """A value that is on a scope already is not copied there again."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: DeviceCopyOp, rewriter: PatternRewriter) -> None:
        for other in copies_of(op.operand, op.dst):
            if other is not op and dominates(other, op):
                rewriter.replace(op, (), (other.result,))
                return


class RematerialiseCopied(RewritePattern):
    """A constant, an empty tensor or a splat is made where it is needed instead of copied there."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: DeviceCopyOp, rewriter: PatternRewriter) -> None:
        owner = op.operand.owner
        if isinstance(owner, Operation) and isinstance(op.operand, OpResult) and is_rematerialised(owner):
            made = rewriter.insert(unplaced(owner), InsertPoint.after(owner))
            rewriter.replace(op, (), made.results)


class Canonicalize(CanonicalizationRewritePattern):
    """xDSL's patterns, less those that move what xDSL does not know.

    `RehoistConstInLoops` takes every unregistered operation for a constant and hoists it out of its loop.
    """

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /) -> None:
        if not (isinstance(op, ForOp) and any(isinstance(inner, UnregisteredOp) for inner in op.body.block.ops)):
            super().match_and_rewrite(op, rewriter)


@dataclass(frozen=True)
class DeviceCanonicalizePass(ModulePass):
    """Fold copies, and run xDSL's canonicalization without losing scopes.

    Folded are copies to where the value is, there and back, over a third scope that nothing else uses, repeated
    copies, unused ones, and those of constants. Copies in different branches are left where they are.
    """

    name = "device-canonicalize"

    host: str = "cpu:0"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        copies = [FoldCopyChain(), ShareCopy(), RematerialiseCopied()]
        pattern = GreedyRewritePatternApplier([*copies, Canonicalize()], ctx=ctx, folding_enabled=True)
        rewrite_keeping_scopes(op, pattern, ScopeAttr.parse_text(self.host), region_dce)
