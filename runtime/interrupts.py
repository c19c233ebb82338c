"""Signals and the end of the process while compiled code runs.

Python handles signals in its main thread, between instructions of Python code. Calls of that thread have the
native runtime ask for them, see ``interrupts.c``: what a handler raises, such as ``KeyboardInterrupt``, leaves the
call.
"""

import ctypes
import threading
from typing import Any, NoReturn

from devscope.runtime.native import abi

_api: Any = ctypes.pythonapi
_FUNCTIONS = ("PyGILState_Ensure", "PyGILState_Release", "PyErr_CheckSignals", "PyErr_Fetch")
_interpreter = abi.Interpreter(
    *(ctypes.cast(getattr(_api, name), ctypes.c_void_p).value or 0 for name in _FUNCTIONS)
)
_address = ctypes.addressof(_interpreter)

# ctypes raises the exception that a function of the interpreter sets.
_raise: Any = ctypes.PYFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(("PyErr_Restore", _api))


def interpreter_address() -> int:
    """What a call in this thread asks for signals; 0 in threads that handle none."""
    return _address if threading.get_ident() == threading.main_thread().ident else 0


def leave(context: Any) -> NoReturn:
    """Raises what ended a call early: the exception of a handler; without one, the process ends."""
    exception = list(context.raised)
    context.raised[:] = [0, 0, 0]
    if exception[0]:
        _raise(*exception)
    raise SystemExit  # which ends a thread without a message
