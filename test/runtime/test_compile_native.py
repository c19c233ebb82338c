"""How the native runtime is compiled: which compiler, and when an editable install does it again."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from devscope.errors import DevscopeError
from devscope.runtime import native
from devscope.runtime.native import compile_native


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the sources, without objects, in place of the installed ones."""
    for path in compile_native.sources():
        shutil.copy(path, tmp_path)
    monkeypatch.setattr(compile_native, "FOLDER", tmp_path)
    forget()
    yield tmp_path  # pyright: ignore[reportReturnType]
    forget()


def forget() -> None:
    for function in (compile_native.digest, compile_native.machine_compiler, native.runtime_object):
        function.cache_clear()


def needs_compiler() -> None:
    if not compile_native.has_compiler():
        pytest.skip("this machine has no C compiler")


def test_compiled_again_when_a_source_changes(folder: Path) -> None:
    needs_compiler()
    first = native.runtime_object()
    assert compile_native.digest().encode() in first
    assert [path.name for path in folder.glob("*.o")] == [compile_native.object_path().name]
    written = compile_native.object_path().stat().st_mtime_ns
    forget()
    assert native.runtime_object() == first
    assert compile_native.object_path().stat().st_mtime_ns == written
    with open(folder / "host_memory.c", "a", encoding="utf-8") as file:
        file.write("/* changed */\n")
    forget()
    assert compile_native.digest().encode() in native.runtime_object()
    assert compile_native.digest().encode() not in first


def test_a_source_that_is_wrong(folder: Path) -> None:
    needs_compiler()
    (folder / "host_memory.c").write_text("this is not C\n", encoding="utf-8")
    with pytest.raises(
        DevscopeError, match=r"(?s)not compiled, or is older than its sources\n.*refuses.*host_memory\.c"
    ):
        native.runtime_object()
    assert not list(folder.glob("*.o"))


def test_no_compiler(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(compile_native.importlib.util, "find_spec", lambda name: None)
    assert not compile_native.has_compiler()
    with pytest.raises(DevscopeError, match=r"needs a C compiler: name one in \$CC.*ziglang"):
        native.runtime_object()


def test_a_wheel_for_another_machine(folder: Path) -> None:
    for path in compile_native.sources():
        path.unlink()
    with pytest.raises(DevscopeError, match="has no native runtime for a machine of type"):
        native.runtime_object()


def test_the_compiler_can_be_chosen(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs_compiler()
    command = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    script = folder / "mycc"
    script.write_text(f'#!/bin/sh\ntouch {folder}/used\nexec {command} "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    monkeypatch.setenv("CC", f"{script} -O1")
    forget()
    compile_native.compile_objects()
    assert (folder / "used").exists()


def test_a_chosen_compiler_that_is_none(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing else is taken in silence."""
    monkeypatch.setenv("CC", str(folder / "no-such-compiler"))
    forget()
    with pytest.raises(DevscopeError, match=r"\$CC is '.*no-such-compiler', which is no C compiler"):
        native.runtime_object()
