"""The seal of a program: a digest in the host object of all that the object was compiled for.

Compiled code indexes the tables of the manifest: constants, kernels and their arguments, places in arenas. With
others it would read and write anywhere. A file whose parts do not belong together, by accident or by a careless
edit, is therefore refused even if each part is whole. The seal is not secret: against intent there are signatures.
"""

import hashlib
import json
from typing import Any

from devscope.errors import ExecutableFormatError
from devscope.runtime.object_file import read_symbols
from devscope.runtime.program import Program

_MARK = b"devscope-seal:1\0"
_DIGEST_BYTES = hashlib.sha256().digest_size
_BLANK = _MARK + bytes(_DIGEST_BYTES)

SEAL_SYMBOL = "devscope.seal"
SEAL_IR = (
    f'@{SEAL_SYMBOL} = constant [{len(_BLANK)} x i8] c"' + "".join(f"\\{byte:02X}" for byte in _BLANK) + '"\n'
)
"""LLVM IR text of the place for a seal, which every host object has."""


def seal(program: Program) -> Program:
    """Puts the seal of a program into its host object, which has a place for it; gives the program."""
    start = _place(program.host_object)
    if start is not None:
        program.host_object = _with_seal(program.host_object, start, _digest(program, start))
    return program


def check_seal(program: Program) -> None:
    """Raises :class:`ExecutableFormatError` unless the parts of a program are those that its code was made for."""
    start = _place(program.host_object)
    found = b"" if start is None else program.host_object[start : start + len(_BLANK)]
    if start is None or found != _MARK + _digest(program, start):
        raise ExecutableFormatError(
            "the program's parts do not belong together: its code was compiled for others",
            notes=["compile and save the program again"],
        )


def _place(data: bytes) -> int | None:
    """Where the seal is; None in what is no object, or has none."""
    try:
        start = read_symbols(data).places.get(SEAL_SYMBOL)
    except ExecutableFormatError:
        return None  # with what is wrong with it, loading fails
    return start if start is not None and data.startswith(_MARK, start) else None


def _with_seal(data: bytes, start: int, digest: bytes) -> bytes:
    return data[:start] + _MARK + digest + data[start + len(_BLANK) :]


def _digest(program: Program, start: int) -> bytes:
    code = _with_seal(program.host_object, start, bytes(_DIGEST_BYTES))
    parts = [
        code,
        program.host_triple,
        program.entries,
        program.devices,
        program.constants,
        program.arenas,
        program.shared,
        program.objects,
        program.uses,
    ]
    return hashlib.sha256(json.dumps(parts, default=_plain, sort_keys=True).encode()).digest()


def _plain(part: Any) -> Any:
    return hashlib.sha256(part).hexdigest() if isinstance(part, bytes) else vars(part)
