"""What becomes of calls that signals or the end of the process end.

Python handles signals in its main thread, between instructions of Python code. Calls of that thread have the
native runtime ask for them, see ``interrupts.c``: what a handler raises, such as ``KeyboardInterrupt``, leaves the
call.
"""

import ctypes
from typing import Any, NoReturn

# ctypes raises the exception that a function of the interpreter sets.
_raise: Any = ctypes.PYFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(
    ("PyErr_Restore", ctypes.pythonapi)
)


def leave(context: Any) -> NoReturn:
    """Raises what ended a call early: the exception of a handler; without one, the process ends."""
    exception = list(context.raised)
    context.raised[:] = [0, 0, 0]
    if exception[0]:
        _raise(*exception)
    raise SystemExit  # which ends a thread without a message
