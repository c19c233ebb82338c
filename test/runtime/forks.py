"""Work in forked processes."""

import os
import signal
from collections.abc import Callable


def in_fork(work: Callable[[], object]) -> str:
    """What ``work`` says in a forked process, or the error that it raises; a process that hangs is ended."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        signal.alarm(60)
        try:
            said = str(work())
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(write, said.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as file:
        said = file.read()
    os.waitpid(child, 0)
    return said
