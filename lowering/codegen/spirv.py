"""SPIR-V from LLVM IR text, through the helper process of ``spirv_worker``."""

from __future__ import annotations

import atexit
import struct
import subprocess
import sys
import threading
from pathlib import Path

from devscope.errors import LoweringError

_REQUEST = struct.Struct("<QI")
_REPLY = struct.Struct("<Q")


class SpirvEmitter:
    """Owns one helper process; start it early, its start-up then overlaps with other work."""

    def __init__(self) -> None:
        script = Path(__file__).with_name("spirv_worker.py")
        self._process = subprocess.Popen(
            [sys.executable, "-I", str(script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._lock = threading.Lock()

    def emit(self, text: str, level: int = 2) -> bytes:
        """Compile textual LLVM IR (LLVM 22 syntax) to a SPIR-V binary.

        Raises LoweringError with LLVM's message if the backend refuses the module or dies.
        """
        source = text.encode()
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        with self._lock:
            try:
                stdin.write(_REQUEST.pack(len(source), level) + source)
                stdin.flush()
                header = stdout.read(_REPLY.size)
            except BrokenPipeError:
                header = b""
            if len(header) < _REPLY.size:
                raise LoweringError(
                    "the SPIR-V helper process ended", notes=[f"exit status {self._process.poll()}"]
                )
            reply = stdout.read(_REPLY.unpack(header)[0])
        if reply[0]:
            raise LoweringError("LLVM's SPIR-V backend refused the kernels", notes=[reply[1:].decode()])
        return reply[1:]

    def alive(self) -> bool:
        return self._process.poll() is None

    def close(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait(timeout=10)


_shared: SpirvEmitter | None = None
_shared_lock = threading.Lock()


def shared_emitter() -> SpirvEmitter:
    """The process-wide emitter, started on first use."""
    global _shared
    with _shared_lock:
        if _shared is None or not _shared.alive():
            _shared = SpirvEmitter()
            atexit.register(_shared.close)
        return _shared
