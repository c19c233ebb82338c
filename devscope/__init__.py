"""devscope: one MLIR program on several devices.

`compile`, `run`, `plan` and `load` are the API. Nothing is imported before it is used: a saved executable
runs without MLIR and xDSL.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from devscope.api import CompileOptions, build, compile, load, plan, run
    from devscope.runtime.executable import Executable

__version__ = "0.1.0"
__all__ = ["CompileOptions", "Executable", "__version__", "build", "compile", "load", "plan", "run"]


def __getattr__(name: str) -> Any:
    if name == "Executable":
        from devscope.runtime.executable import Executable

        return Executable
    if name in __all__:
        from devscope import api

        return getattr(api, name)
    raise AttributeError(f"module 'devscope' has no attribute '{name}'")
