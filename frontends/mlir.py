"""Modules of MLIR's Python bindings: ``mlir``, ``torch_mlir``, ``jaxlib.mlir``, each in the context of its user.

A module of another package, or another context, comes and goes as bytecode. Between builds that may be of
different versions StableHLO comes as a portable artifact, the form that it keeps stable.
"""

from __future__ import annotations

import importlib
import io
from typing import Any

from devscope.errors import InputError
from devscope.frontends import ImportedSource
from devscope.lowering.interop.bindings import PACKAGE, children, load

_NAME = "<module>"


def package_of(module: Any) -> str:
    """The bindings that ``module``, or a context, belongs to: ``"torch_mlir"``, ``"jaxlib.mlir"``."""
    name = next(kind.__module__ for kind in type(module).__mro__ if "._mlir_libs" in kind.__module__)
    return name.partition("._mlir_libs")[0]


def read_module(module: Any) -> ImportedSource:
    """What is in a module, or in the operation that it is."""
    package = package_of(module)
    if package != PACKAGE and _has_stablehlo(module):
        return ImportedSource(_NAME, _portable_artifact(package, module))
    return ImportedSource(_NAME, written(module))


def written(module: Any) -> bytes:
    """Bytecode, which carries locations over to another context, too."""
    stream = io.BytesIO()
    module.operation.write_bytecode(stream)
    return stream.getvalue()


def _has_stablehlo(module: Any) -> bool:
    functions = [op for op in children(module.operation) if op.name == "func.func"]
    return any(op.name.startswith(("stablehlo.", "chlo.")) for function in functions for op in children(function))


def _portable_artifact(package: str, module: Any) -> bytes:
    try:
        theirs: Any = importlib.import_module(f"{package}.dialects.stablehlo")
    except ImportError:
        raise InputError(
            f"a module of '{package}' has StableHLO, and that package cannot write a portable artifact",
            notes=["give its text: str(module)"],
        ) from None
    ours = load("_mlir_libs._stablehlo")
    version = theirs.get_smaller_version(ours.get_current_version(), theirs.get_current_version())
    data = theirs.serialize_portable_artifact(module, version)
    return data if isinstance(data, bytes) else data.encode()


def load_dialect(context: Any) -> None:
    """Make the ``device`` dialect known to an ``ir.Context`` of any bindings, unless it is.

    Raises InputError for bindings without IRDL: their contexts can let unknown dialects pass.
    """
    from devscope.dialects.irdl_file import IRDL_FILE

    if context.is_dialect_loaded("device"):
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
