"""Modules of MLIR's Python bindings: ``mlir``, ``torch_mlir``, ``jaxlib.mlir``, each in the context of its user.

A module of another package, or another context, comes as bytecode. Between builds that may be of different
versions StableHLO goes as a portable artifact, the form that it keeps stable.
"""

from __future__ import annotations

import importlib
import io
from typing import Any

from devscope.errors import InputError
from devscope.frontends import ImportedSource
from devscope.lowering.interop.bindings import PACKAGE, children

_NAME = "<module>"


def package_of(module: Any) -> str:
    """The bindings that ``module`` belongs to: ``"torch_mlir"``, ``"jaxlib.mlir"``."""
    return type(module).__module__.partition("._mlir_libs")[0].partition(".ir")[0]


def read_module(module: Any) -> ImportedSource:
    """Raises InputError for an operation that cannot be written, such as one with names that are not UTF-8."""
    package = package_of(module)
    if package != PACKAGE and _has_stablehlo(module):
        return ImportedSource(_NAME, _portable_artifact(package, module))
    stream = io.BytesIO()
    module.operation.write_bytecode(stream)
    return ImportedSource(_NAME, stream.getvalue())


def _has_stablehlo(module: Any) -> bool:
    functions = [op for op in children(module.operation) if op.name == "func.func"]
    return any(op.name.startswith(("stablehlo.", "chlo.")) for function in functions for op in children(function))


def _portable_artifact(package: str, module: Any) -> bytes:
    from devscope.lowering.interop.bindings import load

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
