"""What a split module is simplified by: facts, dead values and equal code, across the border of host and device.

`simplify_across` runs the passes of this package in order, and does nothing for a program without device
functions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from devscope.passes.split.placed_functions import functions_on_devices

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp


def simplify_across(module: ModuleOp) -> bool:
    """Simplify a split module in place; whether there was anything to look at.

    Raises LoweringError for a recursive function that a target would have to inline.
    """
    if not functions_on_devices(module):
        return False
    # Imported here because programs for the host alone do without.
    from devscope.passes.border.constants import propagate_constants
    from devscope.passes.border.equal import merge_equal_functions
    from devscope.passes.border.inline import inline_calls
    from devscope.passes.border.unused import remove_unused

    inline_calls(module)
    propagate_constants(module)
    remove_unused(module)
    merge_equal_functions(module)
    return True
