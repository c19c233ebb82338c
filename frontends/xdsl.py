"""xDSL modules: generic text carries them over, since an xDSL context and an MLIR context share nothing else.

Names of values stay, and messages show places in that text.
"""

from __future__ import annotations

from io import StringIO
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.printer import Printer

from devscope.errors import InputError
from devscope.frontends import ImportedSource

_NAME = "<xDSL module>"


def read_module(module: Any) -> ImportedSource:
    """Raises InputError for another operation than a module."""
    if not isinstance(module, ModuleOp):
        what = module.name if isinstance(module, Operation) else type(module).__name__
        raise InputError(f"'{what}' of xDSL is no program", notes=["give a builtin.module: xdsl's ModuleOp"])
    stream = StringIO()
    Printer(stream, print_generic_format=True).print_op(module)
    return ImportedSource(_NAME, stream.getvalue().encode())
