"""The code blocks of README and docs, as MLIR, Python and shells see them.

Every block is fenced and says what it is:

* ``console``: commands after ``$ ``, each with what it prints, unless that is left out; ``...`` is anything.
* ``mlir``: what devscope-opt accepts. ``<!-- file: NAME -->`` in front of it: later commands find it there.
* ``toml``: a machine description, rows of schedules, rules that place, or costs.
* ``python``: all of a document are one program; ``text`` right after one is what it prints.
* ``text``: anything else, not checked.

``<!-- not run: why -->`` in front of a block says that it cannot be, and ``<!-- part of a program -->`` that it is
none on its own.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[2]
DOCUMENTS = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), ROOT / "examples" / "README.md")
LANGUAGES = {"console", "mlir", "python", "text", "toml"}
_NOT_RUN = re.compile(r"<!-- (?:not run: .*|part of a program) -->")
_FILE = re.compile(r"<!-- file: (.*) -->")


@dataclass(frozen=True)
class Block:
    """``line``: of the document; ``runs``: unless it is marked as one that does not."""

    document: Path
    line: int
    language: str
    name: str
    text: str
    runs: bool

    def __str__(self) -> str:
        return f"{self.document.relative_to(ROOT)}:{self.line}"


def blocks(document: Path) -> Iterator[Block]:
    """All of a document, in order; one that is indented instead of fenced has no language."""
    comment = ""
    for token in MarkdownIt().parse(document.read_text(encoding="utf-8")):
        if token.type in ("fence", "code_block"):
            assert token.map is not None
            named = _FILE.fullmatch(comment)
            yield Block(
                document,
                token.map[0] + 1,
                token.info.strip(),
                named[1] if named else "",
                token.content,
                _NOT_RUN.fullmatch(comment) is None,
            )
        comment = token.content.strip() if token.type == "html_block" else ""


def commands(text: str) -> Iterator[tuple[str, list[str], str]]:
    """Each command in a block, its words, and what it prints."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, shlex.split(command, comments=True), output.strip("\n")


def agrees(output: str, expected: str) -> bool:
    """Whether ``output`` is what is ``expected``, in which ``...`` stands for anything."""
    pattern = ".*?".join(re.escape(part) for part in expected.strip().split("..."))
    lines = (line.rstrip() for line in output.strip().split("\n"))
    return re.fullmatch(pattern, "\n".join(lines), re.DOTALL) is not None
