"""Modules as text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from devscope.cli.scope_aliases import add_scope_aliases
from devscope.lowering.interop.custom_form import to_custom


@dataclass(frozen=True)
class PrintStyle:
    """How modules are printed."""

    generic: bool = False
    locations: bool = False
    aliases: bool = True


def module_text(module: Any, style: PrintStyle) -> str:
    """The text of an MLIR module, ending in a newline, that devscope parses back to the same module."""
    text: str = module.operation.get_asm(print_generic_op_form=style.generic, enable_debug_info=style.locations)
    if not text.endswith("\n"):
        text += "\n"
    if not style.generic:
        text = to_custom(text)
    return add_scope_aliases(text) if style.aliases else text
