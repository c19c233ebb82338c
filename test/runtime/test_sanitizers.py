"""The native runtime under sanitizers, with a fake OpenCL, as C programs."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from devscope.runtime.native import compile_native

FOLDER = Path(__file__).parent / "native"
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g"]
STRICT = ["-Wall", "-Wextra", "-Werror"]


def compiler() -> str:
    found = os.environ.get("CC") or next(filter(shutil.which, ("cc", "gcc", "clang")), None)
    if found is None:
        pytest.skip("this machine has no C compiler")
    return found


def build(text: str, program: Path, *options: str) -> subprocess.CompletedProcess[str]:
    includes = ["-I", str(compile_native.FOLDER), "-I", str(FOLDER)]
    command = [compiler(), "-std=c11", "-D_DEFAULT_SOURCE", '-DDEVSCOPE_SOURCES="test"', *options, *includes]
    return subprocess.run(
        [*command, "-x", "c", "-", "-lm", "-o", str(program)],
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )


def test_sanitizers(tmp_path: Path) -> None:
    program = tmp_path / "test"
    if build("int main(void) { return 0; }", program, *SANITIZERS).returncode:
        pytest.skip("the C compiler of this machine has no sanitizers")
    text = compile_native.translation_unit() + '#include "test_runtime.c"\n'
    built = build(text, program, "-O1", *STRICT, *SANITIZERS)
    assert built.returncode == 0, built.stderr
    # The tests ask for more memory than there is.
    environment = {**os.environ, "ASAN_OPTIONS": "allocator_may_return_null=1"}
    process = subprocess.run([program], env=environment, capture_output=True, text=True, check=False)
    assert (process.returncode, process.stdout) == (0, "done\n"), process.stderr


@pytest.mark.parametrize("options", [(), ("-fsanitize=thread",)], ids=["forks", "races"])
def test_pool(tmp_path: Path, options: tuple[str, ...]) -> None:
    """The threads of all programs, also when they are forked, which ThreadSanitizer does not follow."""
    program = tmp_path / "test"
    if options and build("int main(void) { return 0; }", program, *options).returncode:
        pytest.skip("the C compiler of this machine has no ThreadSanitizer")
    text = compile_native.translation_unit() + '#include "test_pool.c"\n'
    built = build(text, program, "-O1", "-g", "-pthread", "-Dpthread_create=give_thread", *STRICT, *options)
    assert built.returncode == 0, built.stderr
    command = [program] if options else [program, "forks"]
    process = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert (process.returncode, process.stdout) == (0, "done\n"), process.stderr


def test_no_warnings(tmp_path: Path) -> None:
    built = build(compile_native.translation_unit(), tmp_path / "runtime.o", "-O2", "-fPIC", "-c", *STRICT)
    assert built.returncode == 0, built.stderr
