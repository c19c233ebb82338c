"""Builds a stranger's SPIR-V or PTX in a process of its own (`build_worker`), which the driver may end.

The validator of SPIR-V Tools looks at a module of SPIR-V first where it is installed (the extra ``opencl`` does
that).
"""

import importlib.util
import shutil
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

from devscope.errors import DeviceError
from devscope.runtime.binary_check import problem_of_binary, spirv_version
from devscope.runtime.child_process import crashed, ending, python_module

_SECONDS = 300
REFUSED = 3
"""Status of that process when the driver refuses the module; its message is on stderr."""


def _advice(kind: str) -> str:
    return f"compile the program again for target '{kind}'"


def refuse_damaged(
    label: str, kind: str, binary: bytes, validate: Callable[[bytes], str | None] | None = None
) -> None:
    """Raises :class:`DeviceError` for a binary of which it can be seen, or ``validate`` says, what is wrong."""
    problem = problem_of_binary(kind, binary) or (validate(binary) if validate is not None else None)
    if problem:
        raise DeviceError(f"{label}: the device binary is {problem}", notes=[_advice(kind)])


def build_apart(label: str, name: str, kind: str, binary: bytes) -> bytes | None:
    """What the driver makes of a binary of the target ``kind`` for the device ``name``; None where it gives none.

    ``label`` is the device in messages. Raises :class:`DeviceError` when the binary is not valid, or when the
    driver refuses it or does not survive it.
    """
    refuse_damaged(label, kind, binary, problem_by_validator if kind == "opencl" else None)
    advice = _advice(kind)
    command = python_module("devscope.runtime.drivers.build_worker", name)
    try:
        process = subprocess.run(command, input=binary, capture_output=True, timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise DeviceError(f"{label}: the driver does not come to an end with the device binary") from None
    if process.returncode == 0:
        return process.stdout or None
    text = process.stderr.decode(errors="replace").strip()
    if process.returncode == REFUSED:
        raise DeviceError(f"{label}: the driver refused the device binary", notes=[*text.splitlines(), advice])
    how = ending(process.returncode, text)
    if not crashed(process.returncode):
        raise DeviceError(f"{label}: the process in which the driver builds failed: {how}")
    raise DeviceError(f"{label}: the driver does not survive the device binary ({how})", notes=[advice])


@cache
def _validator() -> str | None:
    found = importlib.util.find_spec("cmeel")
    for folder in (found.submodule_search_locations if found is not None else None) or ():
        path = Path(folder).parent / "cmeel.prefix" / "bin" / "spirv-val"
        if path.is_file():
            return str(path)
    return shutil.which("spirv-val")


def problem_by_validator(binary: bytes) -> str | None:
    """What the validator of SPIR-V Tools has against a module; None also where it is not installed."""
    program = _validator()
    if program is None:
        return None
    command = [program, "--target-env", f"spv{spirv_version(binary)}"]
    process = subprocess.run(command, input=binary, capture_output=True, timeout=_SECONDS, check=False)
    if process.returncode == 0:
        return None
    lines = process.stderr.decode(errors="replace").strip().splitlines() or [f"status {process.returncode}"]
    return f"not valid SPIR-V: {lines[0].removeprefix('error: ')}"
