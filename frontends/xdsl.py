"""xDSL modules: generic text carries them over, since an xDSL context and an MLIR context share nothing else.

Names of values stay, and messages show places in that text.
"""

from __future__ import annotations

from io import StringIO
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.parser import Parser
from xdsl.printer import Printer

from devscope.errors import InputError, depth_reported
from devscope.frontends import ImportedSource

_NAME = "<xDSL module>"


@depth_reported()
def read_module(module: Any) -> ImportedSource:
    """Raises InputError for another operation than a module."""
    if not isinstance(module, ModuleOp):
        what = module.name if isinstance(module, Operation) else type(module).__name__
        raise InputError(f"'{what}' of xDSL is no program", notes=["give a builtin.module: xdsl's ModuleOp"])
    stream = StringIO()
    Printer(stream, print_generic_format=True).print_op(module)
    return ImportedSource(_NAME, stream.getvalue().encode())


def given_back(module: Any) -> ModuleOp:
    """An ``ir.Module`` as a module of an xDSL context of its own, which has all dialects and lets others pass."""
    from devscope.dialects.context import make_context

    text = module.operation.get_asm(print_generic_op_form=True, large_resource_limit=1 << 62)
    return Parser(make_context(), text).parse_module()
