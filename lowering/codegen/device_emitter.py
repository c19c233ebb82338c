"""Code of devices from LLVM IR text, through the helper process of ``device_worker``."""

import atexit
import os
import pickle
import subprocess
import threading
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from devscope.errors import LoweringError
from devscope.runtime.child_process import ending, python

_SECONDS = 10
"""Longest wait for the end of a helper process that has no more input."""


@dataclass(frozen=True)
class Machine:
    """What LLVM compiles for, in its terms; ``name`` for messages. ``assembly``: text, not an object."""

    name: str
    triple: str
    cpu: str = ""
    features: str = ""
    assembly: bool = False


SPIRV = Machine("SPIR-V", "spirv64-unknown-unknown")


class DeviceEmitter:
    """Owns one helper process; start it early, its start-up then overlaps with other work."""

    def __init__(self) -> None:
        script = str(Path(__file__).with_name("device_worker.py"))  # as a module it would import devscope
        self._said = os.fdopen(os.memfd_create("said"), "w+b")
        self._process = subprocess.Popen(
            python("import runpy; runpy.run_path(sys.argv[1], run_name='__main__')", script),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
        )
        self._owner = os.getpid()
        self._lock = threading.Lock()

    def emit(self, text: str, machine: Machine = SPIRV) -> bytes:
        """Compile textual LLVM IR (LLVM 22 syntax) for ``machine``.

        Raises LoweringError with LLVM's message if the backend refuses the module or dies.
        """
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        with self._lock:
            try:
                pickle.dump((asdict(machine), text), stdin)
                stdin.flush()
                code, message = pickle.load(stdout)
            except (BrokenPipeError, EOFError, pickle.UnpicklingError):
                raise LoweringError(
                    "the helper process that compiles kernels ended", notes=[self._ending()]
                ) from None
        if message:
            raise LoweringError(f"LLVM's {machine.name} backend refused the kernels", notes=[message])
        return code

    def _ending(self) -> str:
        with suppress(subprocess.TimeoutExpired):
            status = self._process.wait(_SECONDS)
            self._said.seek(0)
            return ending(status, self._said.read())
        return "it still runs, but does not answer"

    def alive(self) -> bool:
        return self._process.poll() is None

    def close(self) -> None:
        if self._owner != os.getpid():  # that of a forked one's parent
            return
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait(_SECONDS)
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._said.close()


_shared: DeviceEmitter | None = None
_shared_lock = threading.Lock()


def _forget() -> None:
    global _shared, _shared_lock
    _shared, _shared_lock = None, threading.Lock()


os.register_at_fork(after_in_child=_forget)


def shared_emitter() -> DeviceEmitter:
    """The process-wide emitter, started on first use."""
    global _shared
    with _shared_lock:
        if _shared is None or not _shared.alive():
            _shared = DeviceEmitter()
            atexit.register(_shared.close)
        return _shared
