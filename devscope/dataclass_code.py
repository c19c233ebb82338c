"""The code of dataclasses, kept from process to process as Python keeps that of modules.

``dataclasses`` writes the methods of a class as text, and compiles that whenever the module is imported: a third
of the time of the compiler's imports, most of it for xDSL's classes. The same text is the same code, so it is
compiled once and kept in a file beside the bytecode of this module, wherever Python may write such files.
"""

import builtins
import dataclasses
import inspect
import marshal
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from importlib.util import MAGIC_NUMBER, cache_from_source
from pathlib import Path
from threading import Lock
from types import CodeType, SimpleNamespace
from typing import Any

_OWNERS = ("devscope", "xdsl")
"""The packages whose classes are looked at."""
_MOST = 4000
"""Texts. If there are more, those of versions before are thrown away."""


class _Kept:
    """``codes``: by text, also what the file has; ``asked``: the texts that this process had."""

    lock = Lock()
    users = 0
    codes: dict[str, CodeType] | None = None
    asked: set[str]


@contextmanager
def dataclass_code_kept() -> Generator[None]:
    """Modules of devscope and xDSL that are imported meanwhile get the methods of their dataclasses from the file.

    Acts on the whole process, until the last one who asked for it leaves. Who leaves writes what the file lacks.
    """
    with _Kept.lock:
        if _Kept.codes is None:
            _Kept.codes, _Kept.asked = _read(), set()
        known = len(_Kept.codes)
        _Kept.users += 1
        dataclasses.__dict__["exec"] = _execute  # found before the built-in one
        dataclasses.__dict__["inspect"] = SimpleNamespace(**{**vars(inspect), "signature": _signature})
    try:
        yield
    finally:
        with _Kept.lock:
            _Kept.users -= 1
            if _Kept.users == 0:
                del dataclasses.__dict__["exec"]
                dataclasses.__dict__["inspect"] = inspect
            if len(_Kept.codes) > known and not sys.dont_write_bytecode:
                _write(_Kept.codes)


def _execute(text: str, names: dict[str, Any], results: dict[str, Any]) -> None:
    """What ``exec`` does."""
    codes = _Kept.codes
    if codes is None or not _is_owned(names.get("__name__", "")):
        builtins.exec(text, names, results)
        return
    _Kept.asked.add(text)
    code = codes.get(text)
    if code is None:
        code = codes[text] = compile(text, "<string>", "exec", dont_inherit=True)
    builtins.exec(code, names, results)


def _signature(class_: type) -> inspect.Signature | str:
    """What ``dataclasses`` writes behind the name of a class that has no docstring: of ours, nobody reads it."""
    return "" if _is_owned(class_.__module__) else inspect.signature(class_)


def _is_owned(module: str) -> bool:
    return module.partition(".")[0] in _OWNERS


def _file() -> Path:
    """Raises NotImplementedError where Python keeps no bytecode."""
    return Path(cache_from_source(str(Path(__file__).with_name("dataclass_methods.py"))))


def _read() -> dict[str, CodeType]:
    with suppress(NotImplementedError, OSError, EOFError, TypeError, ValueError):
        data = _file().read_bytes()
        if data.startswith(MAGIC_NUMBER):
            return marshal.loads(memoryview(data)[len(MAGIC_NUMBER) :])
    return {}


def _write(codes: dict[str, CodeType]) -> None:
    from devscope.runtime.replaced_file import replaced_file

    if len(codes) > _MOST:
        codes = {text: code for text, code in codes.items() if text in _Kept.asked}
    with suppress(NotImplementedError, OSError), replaced_file(_file()) as file:
        file.write(MAGIC_NUMBER + marshal.dumps(codes))
