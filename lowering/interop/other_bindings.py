"""Modules of bindings of another build of MLIR, maybe of another version, as bytes that ours read.

StableHLO comes as a portable artifact, the form that it keeps stable, or where it has what artifacts cannot hold,
as text; all else as bytecode.
"""

import importlib
from typing import Any

from devscope.errors import InputError
from devscope.lowering.interop.artifacts import is_portable_artifact
from devscope.lowering.interop.bindings import PACKAGE, load
from devscope.lowering.interop.parsing import bytecode

_JAX = "jaxlib.mlir"


def package_of(module: Any) -> str:
    """The bindings that ``module``, or a context, belongs to, as ``"jaxlib.mlir"``."""
    name = next(kind.__module__ for kind in type(module).__mro__ if "._mlir_libs" in kind.__module__)
    return name.partition("._mlir_libs")[0]


def written(module: Any) -> bytes:
    """What ours read, of a module of any bindings, which stays as it is. Raises InputError."""
    package = package_of(module)
    if package == PACKAGE or not _has_stablehlo(module.operation):
        return bytecode(module)
    return _portable(package, module)


def reread_bytecode(data: bytes) -> bytes | None:
    """What ours read, of bytecode, also of an artifact, that they do not but JAX's do: they may be newer, and know
    Shardy. Else None."""
    if PACKAGE == _JAX:
        return None
    try:
        theirs: Any = importlib.import_module(f"{_JAX}.ir")
        context, registry = theirs.Context(), theirs.DialectRegistry()
        importlib.import_module(f"{_JAX}._mlir_libs._jax_mlir_ext").register_dialects(registry)
        context.append_dialect_registry(registry)
        context.load_all_available_dialects()
        for name in ("stablehlo", "chlo", "sdy"):
            importlib.import_module(f"{_JAX}.dialects.{name}").register_dialect(context)
        if is_portable_artifact(data):
            return written(
                importlib.import_module(f"{_JAX}.dialects.stablehlo").deserialize_portable_artifact(context, data)
            )
        return written(theirs.Module.parse(data, context))
    except Exception:  # what is private to JAX can be of another form: then ours have the last word
        return None


def _has_stablehlo(op: Any) -> bool:
    """Whether it is in ``op``, of bindings whose walks are not ours to call."""
    waiting = [op]
    while waiting:
        for region in waiting.pop().regions:
            for block in region:
                for inner in block:
                    if inner.operation.name.startswith(("stablehlo.", "chlo.")):
                        return True
                    waiting.append(inner.operation)
    return False


def _say_nothing(_: Any) -> bool:
    return True


def _portable(package: str, module: Any) -> bytes:
    try:
        theirs: Any = importlib.import_module(f"{package}.dialects.stablehlo")
    except ImportError:
        raise InputError(
            f"a module of '{package}' has StableHLO, and that package cannot write a portable artifact",
            notes=["give its text: str(module)"],
        ) from None
    ours = load("_mlir_libs._stablehlo")
    version = theirs.get_smaller_version(ours.get_current_version(), theirs.get_current_version())
    context = module.operation.context
    silent = context.attach_diagnostic_handler(_say_nothing)
    try:
        # It makes VHLO of what it is given.
        copy = importlib.import_module(f"{package}.ir").Module.parse(bytecode(module), context)
        data = theirs.serialize_portable_artifact(copy, version)
    except Exception:  # the bindings raise several kinds
        return module.operation.get_asm(enable_debug_info=True).encode()
    finally:
        silent.detach()
    return data if isinstance(data, bytes) else data.encode()
