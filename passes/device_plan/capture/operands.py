"""Changing operands in bulk. xDSL's own way makes a view and several sequences for each, three times the work."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from xdsl.ir import Operation, SSAValue, SSAValues


def set_operand(op: Operation, index: int, value: SSAValue) -> None:
    """``op.operands[index] = value``."""
    operands, use = [*op._operands], op._operand_uses[index]
    operands[index].remove_use(use)
    value.add_use(use)
    operands[index] = value
    op._operands = SSAValues(operands)


def replace_uses(old: SSAValue, new: SSAValue) -> None:
    """``old.replace_all_uses_with(new)``; a value without a name takes over that of ``old``."""
    for use in tuple(old.uses):
        set_operand(use._operation, use._index, new)
    if new.name_hint is None and old.name_hint is not None:
        new.name_hint = old.name_hint
