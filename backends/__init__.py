"""What a vendor writes: a `Backend`. See docs/backends.md.

The built-in ones are packages of this one, made with nothing else. Nothing is imported before it is used: what a
backend needs when programs run, its `devscope.runtime.plugins.Runtime`, may stand beside it.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from devscope.backends.backend import (
        Argument,
        Backend,
        Claimed,
        Code,
        CSource,
        DeviceBinary,
        LibraryCall,
        LlvmIr,
        Mlir,
        ObjectCode,
        OptionSpec,
        Phase,
        PythonCall,
        Row,
    )
    from devscope.backends.registry import register_backend

__all__ = [
    "Argument",
    "Backend",
    "CSource",
    "Claimed",
    "Code",
    "DeviceBinary",
    "LibraryCall",
    "LlvmIr",
    "Mlir",
    "ObjectCode",
    "OptionSpec",
    "Phase",
    "PythonCall",
    "Row",
    "register_backend",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        if name == "register_backend":
            from devscope.backends import registry

            return registry.register_backend
        from devscope.backends import backend

        return getattr(backend, name)
    raise AttributeError(f"module 'devscope.backends' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)
