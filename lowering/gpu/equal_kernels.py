"""Kernels that do the same become one: a device compiles and holds each once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from devscope.lowering import mlir_util
from devscope.lowering.interop.bindings import ir


def merge_equal_kernels(module: Any, kernels: Sequence[Any]) -> list[Any]:
    """Of ``kernels``, functions of ``module``, those that differ; launchers call these in place of the others.

    Equal are kernels with one text but for the name: the same operations on values of the same types.
    """
    first: dict[str, Any] = {}
    stands_for: dict[str, str] = {}
    for kernel in kernels:
        name = mlir_util.symbol_name(kernel)
        # Attributes are written out, not by aliases, which have names by the order in which they occur.
        text = kernel.get_asm(use_local_scope=True).replace(f"@{name}(", "@(", 1)
        other = first.setdefault(text, kernel)
        if other is not kernel:
            stands_for[name] = mlir_util.symbol_name(other)
            kernel.erase()
    if stands_for:
        _redirect_calls(module, stands_for)
    return list(first.values())


def _redirect_calls(module: Any, stands_for: dict[str, str]) -> None:
    for op in mlir_util.walk(module.operation):
        if op.name == "func.call":
            name = stands_for.get(ir.FlatSymbolRefAttr(op.attributes["callee"]).value)
            if name is not None:
                op.attributes["callee"] = ir.FlatSymbolRefAttr.get(name, module.context)
