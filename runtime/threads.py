"""How many threads a call may use."""

import math
import os
from pathlib import Path

from devscope.errors import OptionError

VARIABLE = "DEVSCOPE_THREADS"

_QUOTA = Path("/sys/fs/cgroup/cpu.max")


def thread_count() -> int:
    """What the environment variable ``DEVSCOPE_THREADS`` says, else the cores that this process may use.

    Raises :class:`OptionError` when the variable is no positive number.
    """
    text = os.environ.get(VARIABLE, "")
    if not text:
        return _cores()
    if not text.isascii() or not text.isdigit() or not 0 < int(text) <= 1024:
        raise OptionError(f"{VARIABLE} must be a number of threads, from 1 to 1024, not '{text}'")
    return int(text)


def _cores() -> int:
    """Cores that the scheduler gives this process, or the processor time that its control group may use."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = _QUOTA.read_text(encoding="ascii").split()
        return max(1, min(cores, math.ceil(int(quota) / int(period))))
    except (OSError, ValueError):  # no control group, or no limit
        return cores
