"""What can be wrong with the fields of code that a backend gives, before anything is made of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from devscope.backends.backend import (
    Argument,
    Code,
    CSource,
    DeviceBinary,
    LibraryCall,
    LlvmIr,
    Mlir,
    ObjectCode,
    PythonCall,
)

_SYMBOL = re.compile(r"[A-Za-z_][\w$.]*", re.ASCII)
_WHAT = ("pointer", "scalar", "size", "constant")
_SIZE_TYPES = ("i8", "i16", "i32", "i64", "index")
_CONSTANT_TYPES = ("i1", *_SIZE_TYPES, "f16", "bf16", "f32", "f64")


def problem_of(code: Code) -> str | None:
    """What is wrong with ``code``, as in "gave PythonCall whose name is 5"; None if nothing is."""
    what = next(_problems(code), None)
    return None if what is None else f"gave {type(code).__name__} whose {what}"


def _problems(code: Code) -> Iterator[str]:
    match code:
        case Mlir():
            yield from _text("text", code.text)
            yield from _symbol("close", code.close or "_")
            yield from _symbols(code.calls)
        case LlvmIr():
            yield from _text("text", code.text)
            yield from _symbol("close", code.close or "_")
            yield from _c_function(code)
        case CSource():
            yield from _text("text", code.text)
            if not callable(code.toolchain):
                yield f"toolchain is {code.toolchain!r}, no function"
            yield from _c_function(code)
        case ObjectCode():
            yield from _bytes("data", code.data)
            yield from _c_function(code)
        case LibraryCall():
            yield from _c_function(code)
        case PythonCall():
            yield from _symbol("name", code.name)
        case DeviceBinary():
            yield from _bytes("data", code.data)
            yield from _symbol("kernel", code.kernel)


def _c_function(code: LlvmIr | CSource | ObjectCode | LibraryCall) -> Iterator[str]:
    yield from _symbol("symbol", code.symbol)
    if not isinstance(code, LibraryCall):
        yield from _symbols(code.calls)
    arguments: Any = code.arguments
    if arguments is None:
        return
    if not isinstance(arguments, list | tuple):
        yield f"arguments are {arguments!r}, no list"
    for argument in arguments:
        yield from _argument(argument)


def _argument(argument: Any) -> Iterator[str]:
    if not isinstance(argument, Argument):
        yield f"arguments have {argument!r}, which is no Argument"
    what, *numbers, number, type_ = argument
    if what not in _WHAT:
        yield f"arguments have a {what!r}; legal: {', '.join(_WHAT)}"
    if any(type(one) is not int for one in numbers):
        yield f"arguments have {argument!r}, where 'value' and 'dim' are no integers"
    legal = {"size": _SIZE_TYPES, "constant": _CONSTANT_TYPES}.get(what, (type_,))
    if type_ not in legal:
        yield f"arguments have a {what} of type {type_!r}; legal: {', '.join(legal)}"
    if what == "constant" and not _fits(number, type_):
        yield f"arguments have the constant {number!r}, which is no {type_}"


def _fits(number: object, type_: str) -> bool:
    """Whether a constant is one of its type; integers may be written signed or unsigned."""
    if type_ == "i1" and isinstance(number, bool):
        return True
    if isinstance(number, bool) or not isinstance(number, int | float):
        return False
    if "f" in type_:
        return isinstance(number, float) or abs(number) < 2**64
    if isinstance(number, float) and not number.is_integer():
        return False
    bits = 64 if type_ == "index" else int(type_[1:])
    return -(2 ** (bits - 1)) <= number < 2**bits


def _text(field: str, value: object) -> Iterator[str]:
    if not isinstance(value, str):
        yield f"{field} is {value!r}, no text"


def _bytes(field: str, value: object) -> Iterator[str]:
    if not isinstance(value, bytes):
        yield f"{field} is {type(value).__name__}, not bytes"


def _symbol(field: str, value: object) -> Iterator[str]:
    if not isinstance(value, str) or not _SYMBOL.fullmatch(value):
        yield f"{field} is {value!r}, which is no name of a function"


def _symbols(values: Any) -> Iterator[str]:
    if not isinstance(values, list | tuple):
        yield f"calls are {values!r}, no list"
    for value in values:
        yield from _symbol("calls", value)
