"""Modules of MLIR's Python bindings: ``mlir``, ``torch_mlir``, ``jaxlib.mlir``, each in the context of its user.

A module of another package, or another context, comes as `other_bindings` write it, and goes as bytecode.
"""

from __future__ import annotations

import importlib
from typing import Any

from devscope.errors import InputError
from devscope.frontends import ImportedSource
from devscope.lowering.interop.other_bindings import package_of, written

_NAME = "<module>"


def read_module(module: Any) -> ImportedSource:
    """What is in a module, or in the operation that it is."""
    return ImportedSource(_NAME, written(module))


def load_dialect(context: Any) -> None:
    """Make the ``device`` dialect known to an ``ir.Context`` of any bindings, unless it is.

    Raises InputError for bindings without IRDL: their contexts can let unknown dialects pass.
    """
    from devscope.dialects.irdl_file import IRDL_FILE

    if hasattr(context, "is_dialect_loaded") and context.is_dialect_loaded("device"):  # JAX's of before lack it
        return
    package = package_of(context)
    bindings: Any = importlib.import_module(f"{package}.ir")
    try:
        irdl: Any = importlib.import_module(f"{package}._mlir_libs._mlirDialectsIRDL")
    except ImportError:
        if context.allow_unregistered_dialects:
            return
        raise InputError(
            f"'{package}' cannot load dialects", notes=["set context.allow_unregistered_dialects = True"]
        ) from None
    with context, bindings.Location.unknown():
        irdl.load_dialects(bindings.Module.parse(IRDL_FILE.read_text(encoding="utf-8")))
        # IRDL has no traits; without these, no region of device.region and device.launch would verify.
        bindings.IsTerminatorTrait.attach("device.yield")
        bindings.NoTerminatorTrait.attach("device.launch")


def in_context(data: bytes, context: Any) -> Any:
    """The ``ir.Module`` in bytecode, in a context of any bindings."""
    load_dialect(context)
    bindings: Any = importlib.import_module(f"{package_of(context)}.ir")
    return bindings.Module.parse(data, context)


def replace_contents(op: Any, data: bytes) -> None:
    """Replace what ``op``, a ``builtin.module``, contains by what the module in bytecode does; attributes, too."""
    new = in_context(data, op.context)
    old_names = [name for name in dict(_attributes(op)) if name not in new.operation.attributes]
    for name in old_names:
        del op.attributes[name]
    for name, value in _attributes(new.operation):
        op.attributes[name] = value
    block = op.regions[0].blocks[0]
    for inner in [inner.operation for inner in block.operations]:
        inner.erase()
    for inner in [inner.operation for inner in new.body.operations]:
        block.append(inner)


def _attributes(op: Any) -> list[tuple[str, Any]]:
    return [(name, op.attributes[name]) for name in op.attributes]
