"""The native runtime: C code that compiled host code calls to allocate, copy and launch.

It is compiled when devscope is built or installed (``compile_native.py``). The loader links the object into every
program, which has the names of :data:`ENTRY_PREFIX` and :func:`call_symbol`; ``abi.h`` is the interface.
"""

from functools import cache

from devscope.errors import DevscopeError
from devscope.runtime.native import compile_native

ENTRY_PREFIX = "_mlir_ciface_devscope_entry_"
"""The C symbol of the entry ``F`` is this and ``F``."""

CALL_PREFIX = "devscope_call_"
"""As `ENTRY_PREFIX`, for :func:`call_symbol`."""


def call_symbol(entry: str) -> str:
    """The packed interface of an entry, given by its C symbol: a function that takes the arguments as an array."""
    return f"{CALL_PREFIX}{entry.removeprefix(ENTRY_PREFIX)}"


@cache
def runtime_object() -> bytes:
    """The native runtime for this machine, as a relocatable object.

    In an editable install it is compiled again when its sources have changed. Raises :class:`DevscopeError`.
    """
    path = compile_native.object_path()
    data = path.read_bytes() if path.exists() else b""
    if compile_native.sources() and compile_native.digest().encode() not in data:
        try:
            compile_native.compile_objects()
        except (compile_native.CompileError, OSError) as error:
            raise DevscopeError(
                "devscope's native runtime is not compiled, or is older than its sources", notes=[str(error)]
            ) from None
        data = path.read_bytes() if path.exists() else b""
    if not data:
        machine = path.name.split(".")[1]
        raise DevscopeError(
            f"this installation of devscope has no native runtime for a machine of type '{machine}'",
            notes=["install devscope from its source distribution on this machine"],
        )
    return data
