"""Where the time of a compilation goes: exclusive seconds per stage, by wrapping the functions of the stages."""

from __future__ import annotations

import builtins
import importlib
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

IMPORTS = "imports"

#: (stage, module, attribute path): the attribute is wrapped where it is used.
STAGES = (
    ("cache look-up", "devscope.api", "source_digest"),
    ("cache look-up", "devscope.api", "cache_key"),
    ("cache look-up", "devscope.runtime.cache", "DiskCache.load_program"),
    ("cache store", "devscope.runtime.cache", "DiskCache.store_program"),
    ("MLIR context", "devscope.parsed_source", "make_mlir_context"),
    ("parse", "devscope.parsed_source", "parse_source"),
    ("MLIR -> xDSL", "devscope.planning", "Session"),
    ("MLIR -> xDSL", "devscope.lowering.interop.session", "Session.to_xdsl"),
    ("plan", "devscope.planning", "plan_module"),
    ("verify", "devscope.pipeline", "DeviceVerifyPass.run"),
    ("split", "devscope.pipeline", "DeviceSplitPass.run"),
    ("split", "devscope.lowering.stages", "cut_module"),
    ("xDSL -> MLIR", "devscope.lowering.interop.session", "Session.to_mlir"),
    ("MLIR, host", "devscope.lowering.stages", "_compile"),
    ("MLIR, device", "devscope.lowering.stages", "_lower_device"),
    ("SPIR-V", "devscope.lowering.codegen.device_emitter", "DeviceEmitter.emit"),
    ("LLVM, host", "devscope.lowering.cpu.target", "compile_host_object"),
    ("find devices", "devscope.runtime.executable", "resolve_devices"),
    ("link", "devscope.runtime.instance", "HostLibrary"),
    ("driver build", "devscope.runtime.pool", "Builds.get"),
    ("run", "devscope.runtime.executable", "Executable.run"),
)


class Stages:
    """A stopwatch with a stack: while an inner stage runs, the outer one stands still."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self._stack: list[str] = []
        self._since = time.perf_counter()

    def enter(self, stage: str) -> None:
        self._charge()
        self._stack.append(stage)

    def leave(self) -> None:
        self._charge()
        self._stack.pop()

    def _charge(self) -> None:
        now = time.perf_counter()
        self.seconds[self._stack[-1] if self._stack else "other"] += now - self._since
        self._since = now

    def wrap(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any, **options: Any) -> Any:
            self.enter(stage)
            try:
                return function(*arguments, **options)
            finally:
                self.leave()

        return timed

    def watch_imports(self) -> None:
        """Charge the import of modules that are not loaded yet to a stage of its own, wherever it happens."""
        original = builtins.__import__

        def timed(name: str, *arguments: Any, **options: Any) -> Any:
            if name in sys.modules or (self._stack and self._stack[-1] == IMPORTS):
                return original(name, *arguments, **options)
            self.enter(IMPORTS)
            try:
                return original(name, *arguments, **options)
            finally:
                self.leave()

        builtins.__import__ = timed

    def watch_stages(self) -> None:
        """Wrap the functions of all stages; this imports the compiler."""
        for stage, module, path in STAGES:
            self.enter(IMPORTS)
            owner: Any = importlib.import_module(module)
            self.leave()
            *parents, name = path.split(".")
            for parent in parents:
                owner = getattr(owner, parent)
            setattr(owner, name, self.wrap(stage, getattr(owner, name)))
