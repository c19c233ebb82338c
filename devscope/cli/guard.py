"""A command in a child process, so that one that a C++ library ends still ends with a message.

MLIR, LLVM and drivers end the process on a few inputs. The child does all of the work; forking takes milliseconds,
since it comes before any library is loaded. The parent hands signals on, and ends as the child does. What the
child was doing when a library ended it, Python's faulthandler has written.
"""

import ctypes
import faulthandler
import os
import re
import signal
import sys
from collections.abc import Callable
from contextlib import suppress

_HANDED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
_CRASHES = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGTRAP)
_PR_SET_PDEATHSIG = 1
_SI_KERNEL = 0x80
"""Who sent a signal, if a terminal did: to the child as well."""

_INPUT = "# "
"""Before the name of the program in what the child writes."""
_READING, _RUNNING = re.compile(r"/interop/pars\w+\.py\""), re.compile(r"/runtime/(?:\w+/)?\w+\.py\"")

_log = -1


def guarded(command: Callable[[], int]) -> int:
    """The status of ``command``, in the child; the parent does not return.

    What cannot be said by a status, such as a signal that ended the child, ends the parent in the same way.
    """
    global _log
    # Who started this process may ignore it; then the end of a child is told to nobody.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signals = {signal.SIGCHLD, *_HANDED_ON}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    parent = os.getpid()
    _log = os.memfd_create("crash")
    child = os.fork()
    if child:
        status = _wait(child, signals)
        if os.WIFSIGNALED(status):
            _end_by(os.WTERMSIG(status))
        os._exit(os.WEXITSTATUS(status))
    # Without its parent nobody would look at what it does.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt_once)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    if not faulthandler.is_enabled():  # else the user has asked for it on standard error
        faulthandler.enable(_log)
    return command()


def _interrupt_once(number: int, frame: object) -> None:
    """The command ends by it: a second one, as of who signals all of a process group, must not disturb that."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt


def works_on(file: str) -> None:
    """Messages about a crash name this file."""
    if _log >= 0:
        with suppress(OSError):  # RLIMIT_FSIZE is for this one, too
            os.write(_log, f"{_INPUT}{file}\n".encode(errors="replace"))


def _wait(child: int, signals: set[signal.Signals]) -> int:
    while True:
        found = signal.sigwaitinfo(signals)
        if found.si_signo == signal.SIGCHLD:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                return status
        elif found.si_code != _SI_KERNEL:
            os.kill(child, found.si_signo)


def _end_by(number: int) -> None:
    """Ends this process by a signal, or, after a crash, with a message and status 1."""
    if number in _CRASHES:
        said = os.pread(_log, 1 << 20, 0).decode(errors="replace")
        sys.stderr.write(_crash_text(signal.Signals(number).name, said))
        sys.stderr.flush()
        os._exit(1)
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)
    os._exit(128 + number)  # not reached: no other signal ends a process


def _crash_text(name: str, said: str) -> str:
    """The message about a crash; ``said``: the input's name and the child's Python frames, innermost first."""
    lines = said.splitlines()
    file = next((line.removeprefix(_INPUT) for line in lines if line.startswith(_INPUT)), "the input")
    frames = [line.strip() for line in lines if line.strip().startswith("File ")]
    if any(map(_READING.search, frames)):
        what, note = (
            f"MLIR ended the process ({name}) while reading {file}",
            ("MLIR does not survive this text: take parts out until it is read, and write those otherwise"),
        )
    elif any(map(_RUNNING.search, frames[:1])):
        what, note = (
            f"the process was ended ({name}) while running {file}",
            (
                "what the program does is undefined (docs/checks.md; --checks on finds indices out of range), or "
                "this is a defect of a driver"
            ),
        )
    else:
        what, note = (
            f"a library ended the process ({name}) while working on {file}",
            ("MLIR, LLVM or a driver does not survive this input: please report it with the input"),
        )
    called = f"  note: called in: {frames[0]}\n" if frames else ""
    return f"error: {what}\n  note: {note}\n{called}"
