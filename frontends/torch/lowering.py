"""torch-mlir's dialect to linalg, by a process of its own: its passes may end the one that they run in."""

from __future__ import annotations

import pickle
import signal
import subprocess
from types import TracebackType
from typing import Self

from devscope.errors import DevscopeError, LoweringError
from devscope.runtime.child_process import MOST_SECONDS, crashed, ending, python_module


class UnsupportedOperationError(LoweringError):
    """An operation of PyTorch that torch-mlir does not lower: ``operation`` is its name, ``aten.sort``."""

    operation = ""


class Lowering:
    """The process, which is started early: it imports torch-mlir while PyTorch traces."""

    def __init__(self) -> None:
        self._process = self._started()

    def _started(self) -> subprocess.Popen[bytes]:
        command = python_module("devscope.frontends.torch.lowering_worker")
        pipe = subprocess.PIPE
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def linalg(self, module: bytes) -> bytes:
        """Text of ``module``, which is bytecode, in linalg. Raises LoweringError."""
        if self._process.poll() is not None:  # it answers once
            self._process.communicate()
            self._process = self._started()
        out, said = self._process.communicate(module)
        status = self._process.returncode
        if status == 0:
            found = pickle.loads(out)
            if isinstance(found, bytes):
                return found
            message, operation, notes = found
            error = (UnsupportedOperationError if operation else LoweringError)(message, notes=notes)
            if isinstance(error, UnsupportedOperationError):
                error.operation = operation
            raise error
        if not crashed(status):
            raise DevscopeError(f"the process that lowers PyTorch's operations failed: {ending(status, said)}")
        lines = [line.strip() for line in said.decode(errors="replace").splitlines()]
        told = [line for line in lines if "Assertion" in line or line.startswith("LLVM ERROR")]
        if status == -signal.SIGXCPU:
            told = [f"they do not come to an end in {MOST_SECONDS} s of processor time"]
        raise LoweringError("torch-mlir does not survive the program: its passes end the process", notes=told[:1])
