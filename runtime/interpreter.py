"""What the native runtime uses of the interpreter and of numpy, and how the interpreter calls it.

The runtime is linked with neither: it gets the addresses of functions, of CPython's stable ABI and of numpy's C
interface, whose arrays all extensions of numpy 2 reach in the same way.
"""

import ctypes
import importlib
import os
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from devscope.errors import DevscopeError
from devscope.runtime.native import abi

_CPYTHON = {
    "lock": "PyGILState_Ensure",
    "unlock": "PyGILState_Release",
    "handle_signals": "PyErr_CheckSignals",
    "take_exception": "PyErr_Fetch",
    "release": "PyEval_SaveThread",
    "acquire": "PyEval_RestoreThread",
    "thread": "PyThread_get_thread_ident",
    "keep": "Py_IncRef",
    "drop": "Py_DecRef",
    "new_tuple": "PyTuple_New",
    "set_item": "PyTuple_SetItem",
    "new_capsule": "PyCapsule_New",
    "memory": "PyCapsule_GetPointer",
    "list_size": "PyList_Size",
    "list_item": "PyList_GetItem",
    "list_cut": "PyList_SetSlice",
    "list_append": "PyList_Append",
    "set_attribute": "PyObject_SetAttr",
    "address": "PyLong_AsVoidPtr",
    "integer": "PyLong_AsLongLongAndOverflow",
    "real": "PyFloat_AsDouble",
}

NUMPY = {
    "new_array": (94, "PyArray_NewFromDescr"),
    "set_base": (282, "PyArray_SetBaseObject"),
    "copy": (85, "PyArray_NewCopy"),
    "copy_to": (50, "PyArray_CopyInto"),
    "number_of": (76, "PyArray_Return"),
    "same_dtype": (182, "PyArray_EquivTypes"),
    "value_of": (62, "PyArray_ScalarAsCtype"),
}
"""Places in the table of numpy's C interface."""

_NUMPY_VERSION = 0x02000000
"""Of the interface: what ``PyArray_GetNDArrayCVersion`` says, the first function of the table."""

_METH_FASTCALL = 0x80

_python: Any = ctypes.pythonapi


class _MethodDef(ctypes.Structure):
    """CPython's PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


_interpreter: list[Any] = []
_definitions: dict[int, _MethodDef] = {}


def interpreter() -> Any:
    """The native record of this interpreter. Raises :class:`DevscopeError` for a numpy of another interface."""
    if not _interpreter:
        _interpreter.append(_made())  # native code has its address: of several threads' the first one is used
    return _interpreter[0]


def _made() -> Any:
    found = abi.Interpreter(**{name: _address(getattr(_python, function)) for name, function in _CPYTHON.items()})
    table = _numpy_table()
    for name, (place, _) in NUMPY.items():
        setattr(found, name, table[place])
    found.none, found.not_implemented = id(None), id(NotImplemented)
    found.array_type, found.integer_type, found.real_type = id(np.ndarray), id(int), id(float)
    found.header = object.__basicsize__
    found.main_thread = threading.main_thread().ident or 0
    return found


def method(function: int, instance: int) -> Callable[..., Any]:
    """What calls a native function by the interpreter's own protocol, with a number as ``self``."""
    new: Any = _python.PyCFunction_NewEx
    new.restype = ctypes.py_object
    new.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    # It has the address: of several threads' the first one is used.
    definition = _definitions.setdefault(function, _MethodDef(b"call", function, _METH_FASTCALL, None))
    return new(ctypes.addressof(definition), instance, None)


def _numpy_table() -> Any:
    module = importlib.import_module("numpy._core._multiarray_umath")
    pointer: Any = _python.PyCapsule_GetPointer
    pointer.restype = ctypes.c_void_p
    pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    table: Any = ctypes.cast(pointer(module._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))
    version = ctypes.CFUNCTYPE(ctypes.c_uint)(table[0])()
    if version != _NUMPY_VERSION:
        raise DevscopeError(
            f"numpy {np.__version__} has another C interface ({version:#x}) than devscope is made for",
            notes=["pip install 'numpy<3'"],
        )
    return table


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _is_main_thread_now() -> None:
    if _interpreter:
        interpreter().main_thread = threading.get_ident()


os.register_at_fork(after_in_child=_is_main_thread_now)
