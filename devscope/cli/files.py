"""Reading and writing files: output appears whole or not at all, and a file of text can hold several modules."""

import os
import re
import sys
import tempfile
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from pathlib import Path

from devscope.errors import DevscopeError, InputError, OptionError, ParseError, SourceLocation
from devscope.runtime.replaced_file import replaced_file
from devscope.source import PipedSource, read_all, read_once, reading, require_readable

STDIN = "<stdin>"
"""The name of standard input in messages."""

SEPARATOR = b"// -----"
# The whole line, as in MLIR's tools (xDSL splits anywhere): "// -----// IR Dump After ..." must not split.
_SEPARATOR_LINE = re.compile(r"^[ \t]*// -----[ \t]*$\n?", re.MULTILINE)


def write_output(path: str, data: str | bytes) -> None:
    """Writes to ``path``, or to standard output for ``-``.

    A regular file is written beside its final place and renamed, so that no reader ever sees half of it.
    Raises InputError with the system's reason.
    """
    content = data.encode() if isinstance(data, str) else data
    if path == "-":
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return
    try:
        target = Path(path)
        if target.exists() and not target.is_file():
            target.write_bytes(content)  # a pipe or /dev/null: nothing to rename
        else:
            with replaced_file(Path(os.path.realpath(path))) as stream:
                stream.write(content)
    except (OSError, ValueError) as error:  # ValueError: a name with a null character
        raise InputError(f"cannot write '{path}': {_reason(error)}") from error


def require_other_file(output: str | Path, inputs: Iterable[str | Path | PipedSource | None]) -> None:
    """Raise OptionError when what is read would be overwritten: a source, unlike output, cannot be made again."""
    for path in inputs:
        with suppress(OSError, ValueError):
            if isinstance(path, str | Path) and os.path.isfile(path) and os.path.samefile(path, output):
                raise OptionError(f"--output would overwrite '{path}', which is read", notes=["name another file"])


def require_place(name: str | Path) -> None:
    """Raise InputError when no file can be written to ``name``, before the work that would fill it."""
    path = Path(name)
    folder = path.parent
    if name == "-":
        return
    try:
        there = _is_there(path)
        if path.is_dir() or os.path.basename(name) in ("", ".", ".."):  # which a Path leaves out at the end
            reason = "it is a folder"
        elif not folder.is_dir():
            reason = f"folder '{folder}' does not exist"
        elif not os.access(path if there else folder, os.W_OK):
            reason = "permission denied"
        else:
            return
    except (OSError, ValueError) as error:  # ValueError: a name with a null character
        reason = _reason(error)
    raise InputError(f"cannot write '{name}': {reason}")


def _reason(error: OSError | ValueError) -> str:
    return getattr(error, "strerror", None) or str(error)


def _is_there(path: Path) -> bool:
    """As ``path.exists()``, which says no, too, of a name that no file can have. Raises OSError and ValueError."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def read_input(path: str) -> bytes:
    """The bytes of a file, or of standard input for ``-``. Raises InputError with the system's reason."""
    with reading(path):
        if path != "-":
            with open(path, "rb") as file:
                return read_all(file, path)
        if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison]
            raise InputError("cannot read standard input: it is closed")
        return read_all(sys.stdin.buffer, STDIN)


def program_source(path: str) -> Path | PipedSource:
    """The program that a command is given: a file, or what is in a pipe or standard input. Raises InputError."""
    if path == "-":
        return PipedSource(STDIN, read_input(path))
    require_readable(path)
    # The loader refuses a pipe of that name, which nobody may ever write to.
    return Path(path) if path.endswith(".dsx") else read_once(Path(path))


@contextmanager
def program_file(source: Path | PipedSource) -> Generator[Path]:
    """A compiled program as a file, which a piped one becomes for as long as it is loaded.

    Errors name the source.
    """
    if isinstance(source, Path):
        yield source
        return
    with tempfile.TemporaryDirectory(prefix="devscope-") as folder:
        file = Path(folder) / "program.dsx"
        try:
            file.write_bytes(source.data)
        except OSError as error:
            raise InputError(f"cannot keep '{source.name}' in '{folder}': {error.strerror or error}") from error
        try:
            yield file
        except DevscopeError as error:
            error.message = error.message.replace(str(file), source.name)
            raise


def decode(data: bytes, filename: str) -> str:
    """The text of a file. Raises ParseError with the position of the first byte that is none."""
    try:
        text = data.decode()
        bad = data.find(b"\0")  # MLIR would take it for a blank
    except UnicodeDecodeError as error:
        text, bad = "", error.start
    if bad >= 0:
        raise ParseError("neither MLIR bytecode nor UTF-8 text", SourceLocation.of_byte(filename, data, bad))
    return text


def split_text(text: str) -> list[str]:
    """The parts between separator lines, padded so that every line keeps its number in the file."""
    chunks: list[str] = []
    start = line = 0
    for match in _SEPARATOR_LINE.finditer(text):
        chunks.append("\n" * line + text[start : match.start()])
        line += text.count("\n", start, match.end())
        start = match.end()
    chunks.append("\n" * line + text[start:])
    return chunks
