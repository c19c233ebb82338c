"""How many threads a call may use."""

import math
import os
import sys
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Any

from devscope.errors import InputError, OptionError

VARIABLE = "DEVSCOPE_THREADS"

MOST = 1024
"""Threads that a call can be given."""

_REFUSAL, _LEGAL = "is not a number of threads", [f"legal: 1 to {MOST}"]

_GROUPS = Path("/sys/fs/cgroup")
_OWN_GROUPS = Path("/proc/self/cgroup")


def thread_count(wanted: int | None = None, described: int | None = None, taken: int = 0) -> int:
    """``wanted``; else what the environment variable ``DEVSCOPE_THREADS`` says; else the cores of this process.

    The latter are at most ``described``, less those that are ``taken`` by devices, and at least one.

    Raises :class:`OptionError` for what is no number from 1 to :data:`MOST`, :class:`InputError` if the variable
    is none.
    """
    if wanted is not None:
        if not isinstance(wanted, int) or isinstance(wanted, bool) or not 0 < wanted <= MOST:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise OptionError(f"{wanted!r} {_REFUSAL}", notes=_LEGAL)
        return wanted
    text = os.environ.get(VARIABLE, "")
    if not text:
        return max(1, min(_cores(), described or MOST) - taken)
    if not (text.isascii() and text.isdigit() and len(text) < 10 and 0 < int(text) <= MOST):
        raise InputError(f"{VARIABLE}: {text!r} {_REFUSAL}", notes=_LEGAL)
    return int(text)


def _cores() -> int:
    """Cores that the scheduler gives this process, or the processor time that its control group may use."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([cores, *_quotas()]))


def _quotas() -> Iterator[int]:
    """Of the control groups that this process is in, one inside the other, of both versions; none without a limit.

    A container sees its own group as the outermost one, though the process may be told the path outside.
    """
    with suppress(OSError, ValueError):
        for line in _OWN_GROUPS.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers and "cpu" not in controllers.split(","):
                continue
            outermost = _GROUPS / controllers  # version 2 names none
            group = outermost / path.lstrip("/")
            files = ("cpu.cfs_quota_us", "cpu.cfs_period_us") if controllers else ("cpu.max",)
            for folder in (group, *group.parents[: len(group.parts) - len(outermost.parts)]):
                with suppress(OSError, ValueError):
                    quota, period = " ".join((folder / file).read_text() for file in files).split()
                    if int(quota) > 0:  # "max" and -1 are no limit
                        yield math.ceil(int(quota) / int(period))


def described_cores(report: Mapping[str, Any]) -> dict[str, int]:
    """The cores that a program's machine description gives to devices, as far as its report makes sense."""
    cores = report.get("cores")
    found: dict[Any, Any] = cores if isinstance(cores, dict) else {}  # pyright: ignore[reportUnknownVariableType]
    return {name: count for name, count in found.items() if isinstance(count, int) and 0 <= count <= MOST}


class _Turns:
    lock = Lock()
    users = 0
    seconds: float


_SHORT_TURN = 0.0002


@contextmanager
def short_turns() -> Generator[None]:
    """Let Python's threads take turns often, in the whole process until the last one who asked for it leaves.

    A thread that calls a library gives the interpreter away, and waits for the end of a turn before it makes the
    next call: threads that compile would wait 5 ms, as long as Python's turns are, thirty times for each part.
    """
    with _Turns.lock:
        if _Turns.users == 0:
            _Turns.seconds = sys.getswitchinterval()
            sys.setswitchinterval(min(_Turns.seconds, _SHORT_TURN))
        _Turns.users += 1
    try:
        yield
    finally:
        with _Turns.lock:
            _Turns.users -= 1
            if _Turns.users == 0:
                sys.setswitchinterval(_Turns.seconds)
