"""User (hand-written) kernels of a module, and the operations that launch them.

A kernel is a private function over buffers with ``device.kernel``. It is device code as it stands: planning,
splitting and what runs after them leave its body alone.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from devscope.analysis.symbols import Symbols
from devscope.dialects.device import LaunchOp


def launches_in(op: Operation) -> list[LaunchOp]:
    """The launches in ``op``, in order."""
    return [inner for inner in op.walk() if isinstance(inner, LaunchOp)]


def kernel_name(launch: LaunchOp) -> str:
    """The kernel that a launch names."""
    return launch.kernel.string_value()


def drop_idle_kernels(module: ModuleOp) -> None:
    """Erase the kernels that nothing launches."""
    kernels = Symbols(module).kernels
    launched = {kernel_name(launch) for launch in launches_in(module)} if kernels else set[str]()
    for name, kernel in kernels.items():
        if name not in launched:
            kernel.detach()
            kernel.erase(safe_erase=False)
