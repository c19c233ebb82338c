"""Helper processes: what they find, and how they end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from devscope.errors import DevscopeError
from devscope.runtime.child_process import crashed, ending, python, python_module


def ended(command: list[str], **options: str) -> tuple[str, bool, str]:
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=options)
    return done.stdout, crashed(done.returncode), ending(done.returncode, done.stderr)


def test_modules_are_found_where_this_process_finds_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with ``PYTHONPATH``, which the process itself does not look at."""
    (tmp_path / "of_path.py").write_text("import sys\nprint(__name__, *sys.argv[1:])")
    (tmp_path / "os.py").write_text("raise ImportError")
    missing = "status 1: ModuleNotFoundError: No module named 'of_path'"
    assert ended(python("import of_path"), PYTHONPATH=str(tmp_path)) == ("", False, missing)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    assert ended(python_module("of_path", "a b"))[0] == "__main__ a b\n"
    assert ended(python("import of_path"))[0] == "of_path\n"


def test_ends() -> None:
    assert ended(python("import os; os.abort()")) == ("", True, "signal 6")
    assert ended(python("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")) == (
        "",
        False,
        "signal 9",
    )
    assert ended(python("raise SystemExit(3)")) == ("", False, "status 3")


def test_what_does_not_come_to_an_end() -> None:
    limit = (
        "from devscope.runtime import child_process\nchild_process.MOST_SECONDS = 1\nchild_process.limit_time()"
    )
    assert ended(python(f"{limit}\nwhile True: pass")) == ("", True, "signal 24")


def test_no_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "")
    with pytest.raises(DevscopeError, match="helper processes cannot be started"):
        python("")
