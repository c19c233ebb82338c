"""The native runtime that is linked into the host code of every program.

``runtime.ll`` is LLVM IR written by hand: code that compiled host code calls to allocate, copy and
launch. The lowering links it into the host module, with :func:`calls_ir` for the program's entries, and makes
everything internal except :data:`EXPORTS` and the :func:`call_symbol` of each entry.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

CONTEXT_SYMBOL = "devscope_context"
"""Global of type ``ptr`` in the host object; the loader stores the address of the context there."""

ARENAS_SYMBOL = "devscope_arenas"
"""Global of type ``ptr`` in the host object; the loader stores the address of the arenas' records there."""

EXPORTS = (CONTEXT_SYMBOL, ARENAS_SYMBOL)
"""Symbols of the native runtime that must stay external after linking."""

ENTRY_PREFIX = "_mlir_ciface_devscope_entry_"
"""The C symbol of the entry ``F`` is this and ``F``."""

API = (
    "devscope_alloc",
    "devscope_free",
    "devscope_copy",
    "devscope_map",
    "devscope_map_new",
    "devscope_publish",
    "devscope_view",
    "devscope_view_done",
    "devscope_constant",
    "devscope_launch",
    "devscope_start",
    "devscope_assert",
    "devscope_host_alloc",
    "devscope_arena_buffer",
    "devscope_host_place",
    "devscope_host_done",
    "_mlir_memref_to_llvm_alloc",
    "_mlir_memref_to_llvm_free",
    "memrefCopy",
)
"""Functions of the native runtime that host code may call."""


@cache
def runtime_ir() -> str:
    """The native runtime as LLVM IR text, without triple and data layout."""
    return Path(__file__).with_name("runtime.ll").read_text(encoding="utf-8")


def call_symbol(entry: str) -> str:
    """The function through which the loader calls an entry, given by its C symbol.

    ``i32 (ptr pointers)``: the arguments of the entry as an array. Gives 0, or 1 if the call failed: then the
    error is in the context, there are no results, and what the call had made is freed.
    """
    return f"devscope_call_{entry.removeprefix(ENTRY_PREFIX)}"


def calls_ir(entries: Mapping[str, int]) -> str:
    """LLVM IR text of the :func:`call_symbol` of every entry; ``entries`` maps C symbols to numbers of parameters.

    ``_setjmp`` returns a second time when the native runtime stops the call (``_``: it leaves the signal mask
    alone, which would take a system call). The entry must not be inlined: LLVM holds back on a function that
    calls ``setjmp``.
    """
    declarations = """
declare i32 @_setjmp(ptr) returns_twice
declare ptr @devscope_begin()
declare i32 @devscope_end()
"""
    return declarations + "".join(_call_ir(entry, count) for entry, count in entries.items())


def _call_ir(entry: str, count: int) -> str:
    loads = "".join(
        f"  %p{index}.p = getelementptr ptr, ptr %pointers, i64 {index}\n  %p{index} = load ptr, ptr %p{index}.p\n"
        for index in range(count)
    )
    values = ", ".join(f"ptr %p{index}" for index in range(count))
    return f"""
declare void {_symbol(entry)}({", ".join(["ptr"] * count)})

define i32 {_symbol(call_symbol(entry))}(ptr %pointers) {{
  %buffer = call ptr @devscope_begin()
  %stopped = call i32 @_setjmp(ptr %buffer) returns_twice
  %first = icmp eq i32 %stopped, 0
  br i1 %first, label %call, label %end

call:
{loads}  call void {_symbol(entry)}({values}) noinline
  br label %end

end:
  %status = call i32 @devscope_end()
  ret i32 %status
}}
"""


def _symbol(name: str) -> str:
    """A symbol in LLVM's syntax: every byte that could not stand in a quoted name is escaped."""
    plain = "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:02X}" for b in name.encode())
    return f'@"{plain}"'


@cache
def builtins_ir() -> str:
    """Float conversions that LLVM may call and that the process may lack, as LLVM IR text.

    The loader links them next to a host object that mentions one of :data:`BUILTINS`.
    """
    return Path(__file__).with_name("builtins.ll").read_text(encoding="utf-8")


BUILTINS = ("__truncsfbf2", "__truncdfbf2")
"""Names defined by :func:`builtins_ir`."""
