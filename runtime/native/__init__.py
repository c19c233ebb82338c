"""The native runtime that is linked into the host code of every program.

``runtime.ll`` is LLVM IR written by hand: code that compiled host code calls to allocate, copy and
launch. The lowering links it into the host module and makes everything internal except
:data:`EXPORTS` (and the program's own entries); the loader finds the context pointer by name.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

CONTEXT_SYMBOL = "devscope_context"
"""Global of type ``ptr`` in the host object; the loader stores the address of the context there."""

EXPORTS = (CONTEXT_SYMBOL,)
"""Symbols of the native runtime that must stay external after linking."""

API = (
    "devscope_alloc",
    "devscope_free",
    "devscope_copy",
    "devscope_constant",
    "devscope_launch",
    "memrefCopy",
)
"""Functions of the native runtime that host code may call."""


@cache
def runtime_ir() -> str:
    """The native runtime as LLVM IR text, without triple and data layout."""
    return Path(__file__).with_name("runtime.ll").read_text(encoding="utf-8")


@cache
def builtins_ir() -> str:
    """Float conversions that LLVM may call and that the process may lack, as LLVM IR text.

    The loader links them next to a host object that mentions one of :data:`BUILTINS`.
    """
    return Path(__file__).with_name("builtins.ll").read_text(encoding="utf-8")


BUILTINS = ("__truncsfbf2", "__truncdfbf2")
"""Names defined by :func:`builtins_ir`."""
