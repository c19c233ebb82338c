"""A command in a child process, so that one that a C++ library ends still ends with a message.

MLIR, LLVM and drivers end the process on a few inputs. The child does all of the work; forking takes milliseconds,
since it comes before any library is loaded. The parent hands signals on, and ends as the child does.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Callable

_HANDED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
_CRASHES = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGTRAP)
_PR_SET_PDEATHSIG = 1
_SI_KERNEL = 0x80
"""Who sent a signal, if a terminal did: to the child as well."""


def guarded(command: Callable[[], int]) -> int:
    """The status of ``command``, in the child; the parent does not return.

    What cannot be said by a status, such as a signal that ended the child, ends the parent in the same way.
    """
    # Who started this process may ignore it; then the end of a child is told to nobody.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signals = {signal.SIGCHLD, *_HANDED_ON}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    parent = os.getpid()
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
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return command()


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
        sys.stderr.write(
            f"error: internal error: a library ended the process ({signal.Signals(number).name})\n"
            "  note: this is a defect of MLIR, LLVM or a driver, or what the program does is undefined "
            "(docs/checks.md): please report it with the input\n"
        )
        sys.stderr.flush()
        os._exit(1)
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)
    os._exit(128 + number)  # not reached: no other signal ends a process
