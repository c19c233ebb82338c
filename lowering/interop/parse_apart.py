"""Sources that MLIR or its bindings may not survive are parsed by another process (`parse_worker`) first.

MLIR's reader of bytecode trusts what it reads: damaged bytecode makes it read memory that is not its own, or end
the process ("SmallVector unable to grow"). So bytecode is read and written anew there, and only that is read here;
portable artifacts are bytecode, too.
The bindings end the process when Python asks for the name of an operation that is not UTF-8; in text that is
UTF-8, such a name has an escape. That, and what is known to end MLIR's reader of text, is looked for in text
(`_is_fatal`). It takes as long as to load MLIR once more. Text with brackets too deep inside each other, and
text that is not UTF-8, is refused without that.
"""

import pickle
import re
import subprocess
from codecs import getincrementaldecoder
from io import RawIOBase
from pathlib import Path

from devscope.errors import DevscopeError, ParseError
from devscope.lowering.interop.nesting import Nesting
from devscope.lowering.interop.parsing import BYTECODE_MAGIC, decoded
from devscope.runtime.child_process import crashed, ending, python_module

_ESCAPE = re.compile(rb"\\[89A-Fa-f][0-9A-Fa-f]")
_ENDLESS = re.compile(rb"\d{10}x")
_NO_FLOATS = re.compile(rb"unsigned|[x<]\s*(?:[su]?i\d|index|complex|!)")
_SIGNS = b"-" * 1000
_OVERLAP = 1024
_CHUNK = 1 << 20
_MOST_CHUNKS = 16
"""What follows in larger files is mostly data."""


def parsed_apart(source: bytes | Path, filename: str) -> bytes | None:
    """Bytecode to read in place of ``source``, which is text, bytecode, or a file; None to read it itself.

    Raises `ParseError` for what MLIR or its bindings refuse, or do not survive, for text that is nested too
    deeply, and for a file that is not UTF-8; `DevscopeError` if the other process fails otherwise.
    Raises OSError.
    """
    nesting = Nesting(filename)
    if isinstance(source, bytes):
        if source.startswith(BYTECODE_MAGIC):
            return _ask(source, None, filename)
        if nesting.goes_on(source):
            nesting.check(source)
        return _ask(source, None, filename) if _is_fatal(source) else None
    with source.open("rb", buffering=0) as file:  # another process goes on where this one is
        fatal = file.read(len(BYTECODE_MAGIC)) == BYTECODE_MAGIC
        file.seek(0)
        piece, utf_8 = b"", getincrementaldecoder("utf-8")()
        for _ in range(_MOST_CHUNKS):
            if fatal or not (more := file.read(_CHUNK)):
                break
            if nesting.goes_on(more):
                file.seek(0)
                nesting.check(file.readall())
            try:
                utf_8.decode(more)
            except UnicodeDecodeError:
                file.seek(0)
                decoded(file.readall(), filename)
            piece = piece[-_OVERLAP:] + more
            fatal = _is_fatal(piece)
        file.seek(0)
        return _ask(None, file, filename) if fatal else None


def _is_fatal(text: bytes) -> bool:
    return (
        (b"\\" in text and _ESCAPE.search(text) is not None)
        # In affine expressions: it recurses.
        or _SIGNS in text
        # The parser makes a vector for so many elements.
        or (b"tensor.from_elements" in text and _ENDLESS.search(text) is not None)
        # A resource that is aligned to 0 bytes.
        or (b"dialect_resources" in text and b'"0x00000000' in text)
        # Of a kind that does not go with the type of its elements; floats have all but the unsigned ones.
        or (b"linalg.elementwise" in text and _NO_FLOATS.search(text) is not None)
    )


def _ask(data: bytes | None, file: RawIOBase | None, filename: str) -> bytes | None:
    command = python_module("devscope.lowering.interop.parse_worker", filename)
    given = {"stdin": file} if data is None else {"input": data}
    process = subprocess.run(command, capture_output=True, check=False, **given)  # pyright: ignore[reportCallIssue, reportArgumentType]
    if process.returncode == 0:
        found = pickle.loads(process.stdout)
        if isinstance(found, ParseError):
            raise found
        return found
    said = process.stderr.decode(errors="replace")
    if not crashed(process.returncode):
        raise DevscopeError(f"the process that parses {filename} failed: {ending(process.returncode, said)}")
    if "conversion error" in said:
        raise ParseError(f"{filename} has an operation whose name is not UTF-8")
    notes = [line for line in said.splitlines() if line.startswith("LLVM ERROR: ")]
    raise ParseError(f"{filename} ends the process that parses it: MLIR does not survive it", notes=notes[:1])
