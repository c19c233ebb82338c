"""Compiles the native runtime: one object per machine type that the C compiler can compile for.

The build backend does it when the package is built or installed; in an editable install the loader does it again
when a source has changed. Needs nothing but the standard library: it is also imported where devscope is not
installed yet.
"""

import hashlib
import importlib.util
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent

ZIG = "ziglang==0.17.1"
"""A package with a C compiler, for machines that have none."""

# glibc of the oldest systems that Python wheels of this age are for.
_ZIG_TARGETS = {machine: f"{machine}-linux-gnu.2.28" for machine in ("x86_64", "aarch64")}

# One translation unit, whose functions call each other directly. The object must not ask for more than a C library
# has: no stack protector, no checking variants of its functions, no unwind tables for the linker to register.
FLAGS = [
    *["-std=c11", "-D_DEFAULT_SOURCE", "-O2", "-g0", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra"],
    *["-fno-stack-protector", "-U_FORTIFY_SOURCE", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables"],
]

_PROBE = "#include <setjmp.h>\n#include <stdlib.h>\n#include <time.h>\n"


class CompileError(Exception):
    """There is no C compiler, or it refuses the sources; the text says what to do."""


def has_compiler() -> bool:
    """Whether this machine has a C compiler, with the headers of a C library."""
    return machine_compiler() is not None


def object_path(machine: str = platform.machine()) -> Path:
    """Where the object for a machine type is, if it was compiled."""
    return FOLDER / f"runtime.{machine}.o"


def sources() -> list[Path]:
    """The C files and headers; none in an installation from a wheel."""
    files = [*FOLDER.glob("*.c")]
    return sorted([*files, *FOLDER.glob("*.h")]) if files else []


@cache
def digest() -> str:
    """Identifies the sources and how they are compiled. An object contains it."""
    state = hashlib.sha256(Path(__file__).read_bytes())
    for path in sources():
        state.update(path.name.encode() + b"\0" + path.read_bytes())
    return state.hexdigest()[:32]


def translation_unit() -> str:
    """C text that includes all sources."""
    return "".join(f'#include "{path.name}"\n' for path in sources() if path.suffix == ".c")


def compile_objects() -> None:
    """Compiles for this machine, and for others where the compiler can. Raises :class:`CompileError`."""
    if (compiler := machine_compiler()) is not None:
        _compile(compiler, platform.machine())
        return
    if importlib.util.find_spec("ziglang") is None:
        raise CompileError(
            "devscope's native runtime needs a C compiler: name one in $CC, install cc, gcc or clang with the "
            f"headers of a C library, or: pip install {ZIG}"
        )
    for machine, target in _ZIG_TARGETS.items():
        _compile([sys.executable, "-m", "ziglang", "cc", "-target", target, "-fno-sanitize=all"], machine)


@cache
def machine_compiler() -> list[str] | None:
    """The command of this machine's C compiler; None where there is none.

    Raises :class:`CompileError` where ``$CC`` names none."""
    chosen = os.environ.get("CC")
    for command in [chosen] if chosen else ["cc", "gcc", "clang"]:
        words = shlex.split(command)
        if words and shutil.which(words[0]) and _run(words, _PROBE, ["-fsyntax-only"]) is None:
            return words
    if chosen:
        raise CompileError(
            f"$CC is '{chosen}', which is no C compiler with the headers of a C library: name another one, "
            "or unset it"
        )
    return None


def _compile(compiler: list[str], machine: str) -> None:
    # Several processes may do so at once: none sees half an object.
    handle, temporary = tempfile.mkstemp(".o", dir=FOLDER)
    os.close(handle)
    options = [*FLAGS, f'-DDEVSCOPE_SOURCES="{digest()}"', "-I", str(FOLDER), "-c", "-o", temporary]
    try:
        if (problem := _run(compiler, translation_unit(), options)) is not None:
            raise CompileError(f"the C compiler '{shlex.join(compiler)}' refuses devscope's runtime:\n{problem}")
        os.chmod(temporary, 0o644)
        os.replace(temporary, object_path(machine))
    finally:
        Path(temporary).unlink(missing_ok=True)


def _run(compiler: list[str], text: str, options: list[str]) -> str | None:
    """What a compiler has against a C text; None if it compiles it."""
    command = [*compiler, "-x", "c", *options, "-"]
    process = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    return (process.stderr or f"exit status {process.returncode}") if process.returncode else None
