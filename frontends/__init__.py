"""The ways in: what users give as a program, and the MLIR that becomes of it, a file per way.

| source | file |
|---|---|
| a module of MLIR's Python bindings, any package's, in any context | `mlir` |
| an xDSL ``ModuleOp`` | `xdsl` |
| a StableHLO portable artifact: bytes, or a file | `stablehlo` |
| an ONNX model: a path, bytes, ``onnx.ModelProto`` | `onnx` |
| a JAX function with example arguments, ``jax.export.Exported`` | `jax` |
| a PyTorch module or function with example arguments, ``torch.export.ExportedProgram``, ``.pt2`` | `torch` |

MLIR text and bytecode need nothing: the parser takes them. What no program uses is not imported.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from devscope.errors import InputError

if TYPE_CHECKING:
    from devscope.runtime.state import StateSpec
    from devscope.runtime.structure import Structure


@dataclass(frozen=True)
class ImportedSource:
    """A program in MLIR text, bytecode or as a portable artifact, with what MLIR has no place for.

    ``name`` stands in messages. By public function, ``names`` are those of its arguments and results,
    ``structures`` says how arguments and results nest where it is not one array each, and ``dtypes`` are those of
    arguments and results where the source's differ from what is stored (``ui8``).

    ``literals`` is the data of dense resources that stand without any in ``data`` (``dense_resource<NAME>``), in
    the order of their elements, by name: weights, which are not copied. It lives as long as the source does.

    ``state`` says which of the last arguments and results are kept from call to call.
    """

    name: str
    data: bytes
    names: Mapping[str, tuple[list[str], list[str]]] = field(default_factory=dict[str, Any])
    structures: Mapping[str, Structure] = field(default_factory=dict[str, Any])
    dtypes: Mapping[str, tuple[list[str], list[str]]] = field(default_factory=dict[str, Any])
    literals: Mapping[str, memoryview] = field(default_factory=dict[str, memoryview])
    state: Mapping[str, StateSpec] = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class DeferredSource:
    """A program whose import takes time, so that it is only made when the cache of compiled programs lacks it.

    ``digest`` covers all that ``read`` depends on. Both may raise a `DevscopeError`.
    """

    name: str
    digest: Callable[[], str]
    read: Callable[[], ImportedSource]


Examples = Sequence[Any] | Mapping[str, Any]
"""Example arguments of a function: by position, or by name. Of an array, shape and dtype count."""


def imported(source: Any, examples: Any = None, dynamic_shapes: Any = None) -> Any:
    """``source``, or if it is neither a path nor MLIR that can be parsed, the `ImportedSource` that is made of it.

    Raises `InputError` for an object that no way in takes, and where a way in lacks its package.
    """
    if (examples is not None and not isinstance(examples, Sequence | Mapping)) or isinstance(examples, str):
        raise InputError(
            f"example arguments of type {type(examples).__name__} are none",
            notes=["give a tuple of arguments, or a dictionary of them by name"],
        )
    if _is_a(source, "torch.nn", "Module") or (is_function(source) and _is_of_torch(examples)):
        from devscope.frontends import torch

        return torch.read_function(source, examples, dynamic_shapes)
    if dynamic_shapes is not None:
        raise InputError("dynamic shapes are named for what PyTorch traces; the program is none of it")
    if is_function(source):
        from devscope.frontends import jax

        return jax.read_function(source, examples)
    onnx_model = _onnx_model(source, examples)
    if onnx_model is not None:
        return onnx_model
    if examples is not None:
        raise InputError("example arguments go with functions, modules and ONNX models; the program is none")
    if _is_a(source, "torch.export", "ExportedProgram"):
        from devscope.frontends import torch

        return torch.read_exported(source)
    if _is_torch_file(source):
        from devscope.frontends import torch

        return torch.read_file(source)
    if hasattr(source, "operation"):
        from devscope.frontends import mlir

        return mlir.read_module(source)
    if _is_a(source, "xdsl.ir", "Operation"):
        from devscope.frontends import xdsl

        return xdsl.read_module(source)
    if _is_a(source, "jax", "Exported"):
        from devscope.frontends import jax

        return jax.read_exported(source)
    return source


def is_onnx_model(source: Any) -> bool:
    """Whether ``source`` is an ONNX model: a path, an object, or bytes, told by their first field, the version."""
    if isinstance(source, bytes):
        return source[:1] == b"\x08" and len(source) > 1
    if isinstance(source, str | os.PathLike):
        return os.fspath(source)[-5:] in (".onnx", b".onnx")
    return _is_a(source, "onnx", "ModelProto")


def _onnx_model(source: Any, examples: Examples | None) -> DeferredSource | None:
    """None for what is no model."""
    if not is_onnx_model(source):
        return None
    from devscope.frontends import onnx

    if isinstance(source, bytes):
        return onnx.read_bytes(source, examples)
    if isinstance(source, str | os.PathLike):
        return onnx.read_file(os.fsdecode(source), examples)
    return onnx.read_model(source, examples)


def _is_a(source: Any, package: str, name: str) -> bool:
    """Whether ``source`` is of a class that is called so, without an import of its package."""
    return any(kind.__name__ == name and kind.__module__.startswith(package) for kind in type(source).__mro__)


def _is_of_torch(examples: Any) -> bool:
    """Whether example arguments have tensors of PyTorch, which is not imported for that."""
    if "torch" not in sys.modules or examples is None:
        return False
    from devscope.frontends.torch import has_tensors

    return has_tensors(examples)


def _is_torch_file(source: Any) -> bool:
    is_path = isinstance(source, os.PathLike) or (isinstance(source, str) and "\n" not in source)
    return is_path and os.fspath(source).endswith(".pt2") and os.path.isfile(source)


def is_function(source: Any) -> bool:
    """Whether ``source`` is called with arguments to become a program."""
    return (
        callable(source) and not isinstance(source, type) and not _is_a(source, "torch.export", "ExportedProgram")
    )


def given_back(source: Any, module: Any) -> Any:
    """``module``, an ``ir.Module`` of the compiler, as what ``source`` is.

    A module of MLIR's bindings in the context of that one, an xDSL module, else MLIR text.
    """
    if hasattr(source, "operation"):
        from devscope.frontends import mlir

        return mlir.in_context(mlir.written(module), source.operation.context)
    if _is_a(source, "xdsl.ir", "Operation"):
        from devscope.frontends import xdsl

        return xdsl.given_back(module)
    return str(module)
