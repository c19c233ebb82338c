"""The code of dataclasses, kept from process to process as Python keeps that of modules.

``dataclasses`` writes the methods of a class as text, and compiles that whenever the module is imported: a third
of the time of the compiler's imports, most of it for xDSL's classes, and a twentieth of the time to the first
result of a model of PyTorch, for what ``torch.export`` imports. The same text is the same code, so it is compiled
once and kept in a file beside the bytecode of this module, wherever Python may write such files.
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
from typing import Any, ClassVar

_OWNERS = ("devscope", "torch", "xdsl")
"""The packages whose classes are looked at."""
_MOST = 4000
"""Texts of a package. If there are more, those of versions before are thrown away."""


class _Texts:
    """Those of a package: ``codes`` by text, also what the file has; ``asked``: those that this process had."""

    def __init__(self, owner: str) -> None:
        self.codes, self.asked = _read(owner), set[str]()
        self.known = len(self.codes)


class _Kept:
    lock = Lock()
    users = 0
    texts: ClassVar[dict[str, _Texts]] = {}


@contextmanager
def dataclass_code_kept() -> Generator[None]:
    """Modules of `_OWNERS` that are imported meanwhile get the methods of their dataclasses from a file.

    Acts on the whole process, until the last one who asked for it leaves. Who leaves writes what the file lacks.
    """
    with _Kept.lock:
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
            for owner, texts in () if sys.dont_write_bytecode else list(_Kept.texts.items()):
                if len(texts.codes) > texts.known:
                    _write(owner, texts)


def _execute(text: str, names: dict[str, Any], results: dict[str, Any]) -> None:
    """What ``exec`` does."""
    owner = _package(names.get("__name__", ""))
    if owner not in _OWNERS:
        builtins.exec(text, names, results)
        return
    texts = _Kept.texts.get(owner) or _Kept.texts.setdefault(owner, _Texts(owner))
    texts.asked.add(text)
    code = texts.codes.get(text)
    if code is None:
        code = texts.codes[text] = compile(text, "<string>", "exec", dont_inherit=True)
    builtins.exec(code, names, results)


def _signature(class_: type) -> inspect.Signature | str:
    """What is written behind the name of a class that has no docstring: of the compiler's, nobody reads it."""
    return "" if _package(class_.__module__) in ("devscope", "xdsl") else inspect.signature(class_)


def _package(module: str) -> str:
    return module.partition(".")[0]


def _file(owner: str) -> Path:
    """Raises NotImplementedError where Python keeps no bytecode."""
    return Path(cache_from_source(str(Path(__file__).with_name(f"dataclass_methods_{owner}.py"))))


def _read(owner: str) -> dict[str, CodeType]:
    with suppress(NotImplementedError, OSError, EOFError, TypeError, ValueError):
        data = _file(owner).read_bytes()
        if data.startswith(MAGIC_NUMBER):
            return marshal.loads(memoryview(data)[len(MAGIC_NUMBER) :])
    return {}


def _write(owner: str, texts: _Texts) -> None:
    from devscope.runtime.replaced_file import replaced_file

    codes = dict(texts.codes)
    if len(codes) > _MOST:
        codes = {text: code for text, code in codes.items() if text in texts.asked}
    with suppress(NotImplementedError, OSError), replaced_file(_file(owner)) as file:
        file.write(MAGIC_NUMBER + marshal.dumps(codes))
    texts.known = len(texts.codes)
