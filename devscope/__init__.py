"""devscope: one MLIR program on several devices.

A program is MLIR text, bytecode or a module of the MLIR bindings, whose attributes ``device.scope`` say what runs
where:

    import devscope

    exe = devscope.compile("model.mlir", devices={"cuda:0": "opencl:0"})
    print(exe)                   # its functions, with the names, shapes and dtypes of their arguments, and devices
    y = exe(x, w)                # numpy or DLPack arrays in, numpy arrays out: a tuple where there are several
    y = exe(w=w, x=x)            # by the names that the arguments have in the source
    exe.run("predict", x)        # another public function than main
    exe.save("model.dsx")        # load("model.dsx") needs neither MLIR nor xDSL

    devscope.plan("model.mlir")  # where everything goes, and which copies that takes
    devscope.list_devices()      # what this machine has

Nothing is converted in silence: an array has the dtype and shape of its argument, or is refused. Everything that
bad input can cause is a `DevscopeError`, which says where and what to do; its kinds are in `devscope.errors`.

Command lines: devscope and devscope-opt. Nothing is imported before it is used.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from devscope.analysis.placement import Placement, Rule
    from devscope.api import CompileOptions, build, compile, list_devices, load, plan, run
    from devscope.backends import Backend, register_backend
    from devscope.errors import DevscopeError
    from devscope.pragmas import on
    from devscope.runtime.executable import Executable

__version__ = "0.1.0"
__all__ = [
    "Backend",
    "CompileOptions",
    "DevscopeError",
    "Executable",
    "Placement",
    "Rule",
    "__version__",
    "build",
    "compile",
    "list_devices",
    "load",
    "on",
    "plan",
    "register_backend",
    "run",
]


def __getattr__(name: str) -> Any:
    if name == "Executable":
        from devscope.runtime.executable import Executable

        return Executable
    if name == "DevscopeError":
        from devscope.errors import DevscopeError

        return DevscopeError
    if name == "on":
        from devscope.pragmas import on

        return on
    if name in ("Placement", "Rule"):
        from devscope.analysis import placement

        return getattr(placement, name)
    if name in ("Backend", "register_backend"):
        from devscope import backends

        return getattr(backends, name)
    if name in __all__:
        from devscope import api

        return getattr(api, name)
    raise AttributeError(f"module 'devscope' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)
