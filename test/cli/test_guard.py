"""Commands that a library ends: one message, status 1; and all other ends are those of the command itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

RUN = "import os, signal, sys, time; from devscope.cli.guard import guarded; {}; sys.exit(guarded(lambda: {}))"


def start(what: str, first: str = "0") -> subprocess.Popen[str]:
    command = [sys.executable, "-c", RUN.format(first, what)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGABRT", "SIGBUS", "SIGILL", "SIGFPE"])
def test_a_crash_is_a_message(name: str) -> None:
    process = start(f"os.kill(os.getpid(), signal.{name})")
    out, err = process.communicate()
    assert (process.returncode, out) == (1, "")
    assert err.startswith(f"error: a library ended the process ({name}) while working on the input\n  note: ")


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("lowering/interop/parsing.py", "MLIR ended the process (SIGSEGV) while reading a.mlir"),
        ("runtime/executable.py", "the process was ended (SIGSEGV) while running a.mlir"),
        ("lowering/host/passes.py", "a library ended the process (SIGSEGV) while working on a.mlir"),
    ],
)
def test_it_says_what_the_command_was_doing(place: str, said: str, tmp_path: Path) -> None:
    module = tmp_path / place
    module.parent.mkdir(parents=True)
    module.write_text("import os, signal\ndef crash():\n  os.kill(os.getpid(), signal.SIGSEGV)\n")
    load = f"import runpy; from devscope.cli import guard; f = runpy.run_path({str(module)!r})['crash']; "
    command = [sys.executable, "-c", load + "guard.guarded(lambda: guard.works_on('a.mlir') or f())"]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    head, _, last = process.stderr.splitlines()
    assert (process.returncode, head) == (1, f"error: {said}")
    assert last.startswith(f'  note: called in: File "{module}", line 3 in crash')


REST = "[time.sleep(0.05) for _ in range(1200)]"
"""In short sleeps: one that begins right behind a signal, before Python looks for any, ends late."""


@pytest.mark.parametrize("status", [0, 1, 2, 130])
def test_the_status_is_the_commands(status: int) -> None:
    process = start(f"print('out') or print('err', file=sys.stderr) or {status}")
    assert process.communicate() == ("out\n", "err\n")
    assert process.returncode == status


def test_who_starts_it_may_ignore_the_ends_of_children() -> None:
    """As daemons do, whose own children shall leave no zombies; that is inherited."""
    process = start("3", "signal.signal(signal.SIGCHLD, signal.SIG_IGN)")
    assert process.communicate(timeout=60) == ("", "")
    assert process.returncode == 3


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGPIPE])
def test_other_signals_are_the_commands(number: signal.Signals) -> None:
    process = start(f"(signal.signal(13, signal.SIG_DFL), os.kill(os.getpid(), {int(number)}))")
    assert process.communicate() == ("", "")
    assert process.returncode == -number


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 5), (signal.SIGTERM, -signal.SIGTERM)])
def test_signals_are_handed_on(number: signal.Signals, status: int) -> None:
    process = start(f"signal.signal(2, lambda *_: sys.exit(5)) and (print('up', flush=True) or {REST})")
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    process.send_signal(number)
    process.communicate(timeout=120)
    assert process.returncode == status


def test_a_signal_to_the_whole_group_is_one() -> None:
    """The command gets it twice, the second time from its parent, and while it deals with the first one."""
    text = """
import os, signal, sys, time
from devscope.cli.guard import guarded
def command():
    try:
        print(os.getpid(), flush=True)
        for _ in range(1200):
            time.sleep(0.05)
    except KeyboardInterrupt:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.2)
    return 7
sys.exit(guarded(command))
"""
    command = [sys.executable, "-c", text]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    process.stdout.readline()
    os.killpg(process.pid, signal.SIGINT)
    assert process.communicate()[1] == ""
    assert process.returncode == 7


def test_the_command_does_not_outlive_its_parent() -> None:
    process = start(f"print(os.getpid(), flush=True) or {REST}")
    assert process.stdout is not None
    child = int(process.stdout.readline())
    process.kill()
    process.communicate()
    state = Path(f"/proc/{child}/stat")
    for _ in range(600):
        if not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z":
            return
        time.sleep(0.1)
    os.kill(child, signal.SIGKILL)
    raise AssertionError("it goes on")
