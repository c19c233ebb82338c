"""Python processes that do for this one what it may not survive: what starts them, and how they ended."""

import resource
import signal
import sys

from devscope.errors import DevscopeError

_CRASHES = {
    signal.SIGSEGV,
    signal.SIGABRT,
    signal.SIGBUS,
    signal.SIGILL,
    signal.SIGFPE,
    signal.SIGTRAP,
    signal.SIGXCPU,
}

MOST_SECONDS = 600
"""Of processor time, for passes that may not come to an end."""


def python(code: str, *arguments: str) -> list[str]:
    """The command that runs ``code`` with ``arguments``, apart from the variables of the environment.

    Modules are found where this process finds them, wherever it has that from: ``PYTHONPATH``, which an isolated
    process does not look at, or its own code. Raises :class:`DevscopeError` where there is no Python to start.
    """
    if not sys.executable:
        raise DevscopeError(
            "helper processes cannot be started: Python does not know where its program is",
            notes=["set sys.executable to it"],
        )
    path = [folder for folder in sys.path if isinstance(folder, str)]  # pyright: ignore[reportUnnecessaryIsInstance]
    return [sys.executable, "-I", "-c", f"import sys; sys.path[:] = {path!r}\n{code}", *arguments]


def python_module(name: str, *arguments: str) -> list[str]:
    """The same for what a module does as a program."""
    return python(f"import runpy; runpy.run_module({name!r}, run_name='__main__', alter_sys=True)", *arguments)


def limit_time() -> None:
    """Ends this process when it has taken `MOST_SECONDS` of processor time, also after the one that started it."""
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS + 1))


def crashed(status: int) -> bool:
    """Whether a process, of which `subprocess` has this status, was ended by what it did."""
    return -status in _CRASHES


def ending(status: int, said: str | bytes) -> str:
    """``status 1: ModuleNotFoundError: No module named 'numpy'``, given what the process said on stderr."""
    text = said.decode(errors="replace") if isinstance(said, bytes) else said
    last = next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")
    how = f"status {status}" if status >= 0 else f"signal {-status}"
    return f"{how}: {last}" if last else how
