"""Patterns of MLIR's PDL dialect, as xDSL matches them: what they describe, not how they would rewrite it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xdsl.dialects import pdl
from xdsl.interpreters.pdl import PDLMatcher
from xdsl.ir import Operation, OpResult, SSAValue

from devscope.analysis.patterns.language import Custom
from devscope.dialects.names import op_name
from devscope.errors import OptionError


class _Matcher(PDLMatcher):
    """As xDSL's, by the names that MLIR knows operations under, registered with xDSL or not."""

    def match_operation(self, ssa_val: SSAValue, pdl_op: pdl.OperationOp, xdsl_op: Operation) -> bool:
        if pdl_op.opName is not None and op_name(xdsl_op) != pdl_op.opName.data:
            return False
        name = pdl_op.opName
        pdl_op.opName = None
        try:
            return super().match_operation(ssa_val, pdl_op, xdsl_op)
        finally:
            pdl_op.opName = name


def pdl_pattern(text: str, constraints: Mapping[str, Callable[..., bool]] | None = None) -> Custom:
    """The first ``pdl.pattern`` of MLIR text. ``constraints``: functions for ``pdl.apply_native_constraint``.

    Operations that the pattern names are the match, values go by the names of the pattern's operands. Raises
    OptionError for text that is no pattern.
    """
    pattern = _parsed(text)
    rewrite = pattern.body.block.last_op
    assert isinstance(rewrite, pdl.RewriteOp)
    root = rewrite.root
    if root is None or not isinstance(root, OpResult) or not isinstance(root.op, pdl.OperationOp):
        raise OptionError("the PDL pattern does not say which operation is its root", notes=["pdl.rewrite %root"])
    root_op = root.op

    def match(op: Operation) -> tuple[Sequence[Operation], Mapping[str, SSAValue]] | str:
        matcher = _Matcher(native_constraints=dict(constraints or {}))
        if not matcher.match_operation(root, root_op, op):
            return "the PDL pattern does not match"
        for one in pattern.walk():
            if isinstance(one, pdl.ApplyNativeConstraintOp) and not matcher.check_native_constraints(one):
                return f"constraint '{one.constraint_name.data}' says no"
        found: Mapping[SSAValue, Any] = matcher.matching_context
        ops = [one for one in found.values() if isinstance(one, Operation)]
        values = {
            key.name_hint: value
            for key, value in found.items()
            if isinstance(value, SSAValue) and isinstance(key.owner, pdl.OperandOp) and key.name_hint is not None
        }
        return ops, values

    name = root_op.opName.data if root_op.opName is not None else "*"
    return Custom(match, f"'{name}'", (name,))


def _parsed(text: str) -> pdl.PatternOp:
    from xdsl.context import Context
    from xdsl.dialects.builtin import Builtin
    from xdsl.parser import Parser
    from xdsl.utils.exceptions import ParseError, VerifyException

    context = Context(allow_unregistered=True)
    context.load_dialect(Builtin)
    context.load_dialect(pdl.PDL)
    try:
        module = Parser(context, text).parse_module()
        module.verify()
    except (ParseError, VerifyException) as error:
        raise OptionError(f"this is no PDL: {error}") from None
    found = next((op for op in module.walk() if isinstance(op, pdl.PatternOp)), None)
    if found is None:
        raise OptionError("there is no pdl.pattern in this text")
    return found
