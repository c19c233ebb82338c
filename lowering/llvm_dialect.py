"""LLVM dialect -> LLVM IR text, with the check that keeps the translator from crashing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from devscope.errors import LoweringError, SourceLocation
from devscope.lowering import mlir_util
from devscope.lowering.codegen.llvm_text import to_llvm22
from devscope.lowering.interop import bindings
from devscope.lowering.interop.diagnostics import file_line_col

_CAST = "builtin.unrealized_conversion_cast"
_TRANSLATED = ("llvm.", "nvvm.", "rocdl.")
"""Dialects that MLIR translates to LLVM IR."""


def mlir_location(op: Any) -> SourceLocation | None:
    """Where an MLIR operation stands in its source file."""
    position = file_line_col(op.location)
    return SourceLocation(*position) if position is not None else None


def _require_fully_lowered(root: Any, target: str) -> None:
    """MLIR's translation to LLVM IR crashes the process on other operations, so it must not see them."""
    left: dict[str, SourceLocation | None] = {}
    for op in mlir_util.walk(root):
        if not op.name.startswith(_TRANSLATED) and op.name != "builtin.module":
            left.setdefault(op.name, mlir_location(op))
    if left:
        # A cast is what a neighbour's failed conversion leaves behind, not the cause.
        name = next((name for name in left if name != _CAST), _CAST)
        others = [other for other in left if other not in (name, _CAST)]
        raise cannot_lower(target, name, left[name], others)


def cannot_lower(
    target: str, name: str, location: SourceLocation | None, others: Sequence[str] = ()
) -> LoweringError:
    """The error for operation ``name``, which ``target`` cannot compile; neither can it ``others``."""
    notes = [f"also left: {', '.join(others)}"] if others else []
    advice = "place the operation on another device, or rewrite it with linalg, arith, math or tensor"
    return LoweringError(f"target '{target}' cannot lower operation '{name}'", location, [*notes, advice])


def to_llvm_ir(module: Any, target: str) -> str:
    """LLVM IR text, for llvmlite's LLVM, of a module in the LLVM dialect.

    Raises LoweringError naming the first operations that are not in a dialect which becomes LLVM IR.
    """
    _require_fully_lowered(module.operation, target)
    return to_llvm22(bindings.llvm_translation().translate_module_to_llvmir(module.operation))
